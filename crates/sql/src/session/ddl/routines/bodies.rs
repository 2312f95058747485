//! The bodies of functions: their names, and the arguments in place of their parameters.

use std::collections::HashSet;
use std::ops::ControlFlow;

use atoll_store::database::RelationName;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableAlias, TableFactor, Value, VisitorMut,
};

use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::relation_name;
use atoll_sql_parse::dialect::{call, folded};
use atoll_sql_parse::syntax::walk_expressions;

/// The names that mean something in the body of a function.
#[derive(Debug, Default)]
pub(super) struct BodyScope {
    /// The columns of its relations, and those that its inner queries make.
    pub(super) columns: HashSet<String>,
    /// The relations by the names that its columns are qualified with.
    pub(super) relations: HashSet<String>,
    /// Whether it reads views, whose columns are not known yet.
    pub(super) has_views: bool,
    /// Whether there are queries in it.
    pub(super) is_nested: bool,
}

/// Refuses an argument that names columns which mean others in the body.
pub(super) fn check_captured(own: &str, argument: &Expr, scope: &BodyScope) -> Result<()> {
    let is_captured = |names: &Vec<Ident>| {
        let first = names.first().map(folded).unwrap_or_default();
        match names.len() {
            1 => {
                scope.columns.contains(&first)
                    || scope.has_views
                    || scope.relations.contains(&first)
            }
            _ => scope.relations.contains(&first) || scope.columns.contains(&first),
        }
    };
    let mut names = Vec::new();
    let _: ControlFlow<()> = walk_expressions(argument, &mut |expr| {
        match expr {
            Expr::Identifier(name) => names.push(vec![name.clone()]),
            Expr::CompoundIdentifier(parts) => names.push(parts.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    match names.iter().find(|names| is_captured(names)) {
        Some(names) => {
            let name = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
            stated_err!(
                FEATURE_NOT_SUPPORTED,
                "function {own}(): its query reads a relation that may have the column \"{name}\" too; give the relation \
                 outside another alias, and qualify the argument by it"
            )
        }
        None => Ok(()),
    }
}

/// Gives the relations of a body their full names, and collects what their names mean.
pub(super) struct FullNames<'a> {
    pub(super) planner: &'a StatementPlanner,
    pub(super) state: &'a SessionState,
    pub(super) scope: &'a mut BodyScope,
    pub(super) queries: usize,
    /// The names in WITH.
    pub(super) defined: Vec<String>,
}

impl VisitorMut for FullNames<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        self.queries += 1;
        self.scope.is_nested |= self.queries > 1;
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.defined.push(folded(&cte.alias.name));
            self.scope.columns.extend(cte.alias.columns.iter().map(|it| folded(&it.name)));
        }
        if self.queries > 1
            && let SetExpr::Select(select) = query.body.as_ref()
        {
            self.scope.columns.extend(select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
                _ => None,
            }));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        let alias = match factor {
            TableFactor::Table { name, args: None, alias, .. } => {
                let own = name.0.last().and_then(|part| part.as_ident()).cloned();
                let is_defined = name.0.len() == 1
                    && own.as_ref().is_some_and(|own| self.defined.contains(&folded(own)));
                if !is_defined && let Some(own) = own.clone() {
                    let found = self.planner.resolve_in(self.state, name).and_then(|at| {
                        Ok(self.planner.names.table(&at)?.map(|_| relation_name(&at)))
                    });
                    match found {
                        Ok(Some(RelationName { schema, name: table, .. })) => {
                            *name = ObjectName::from(vec![quoted(&schema), quoted(&table)]);
                            let same = || TableAlias {
                                explicit: true,
                                name: own,
                                columns: vec![],
                                at: None,
                            };
                            alias.get_or_insert_with(same);
                        }
                        Ok(None) => {}
                        Err(error) => return ControlFlow::Break(error),
                    }
                }
                alias.clone().map(|alias| alias.name).or(own)
            }
            TableFactor::Table { name, alias, .. } => {
                let own = name.0.last().and_then(|part| part.as_ident()).cloned();
                alias.clone().map(|alias| alias.name).or(own)
            }
            TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
                alias.clone().map(|alias| alias.name)
            }
            _ => None,
        };
        self.scope.relations.extend(alias.as_ref().map(folded));
        ControlFlow::Continue(())
    }
}

/// Replaces parameters with values. A column with the name of a parameter is the column, as in PostgreSQL.
pub(super) struct Parameters<'a> {
    pub(super) own: String,
    pub(super) names: Vec<Option<String>>,
    pub(super) values: &'a [Expr],
    pub(super) scope: &'a BodyScope,
    pub(super) used: Vec<usize>,
}

impl Parameters<'_> {
    fn value(&mut self, expr: &Expr) -> Result<Option<Expr>> {
        let position =
            |name: &str| self.names.iter().position(|other| other.as_deref() == Some(name));
        let (at, fields) = match expr {
            Expr::Value(value) => {
                let Value::Placeholder(text) = &value.value else { return Ok(None) };
                let number = text.strip_prefix('$').and_then(|it| it.parse::<usize>().ok());
                let at = number.and_then(|number| number.checked_sub(1));
                match at.filter(|at| *at < self.values.len()) {
                    Some(at) => (at, &[][..]),
                    None => {
                        return Err(SqlState::UNDEFINED_PARAMETER
                            .error(format!("there is no parameter {text}")));
                    }
                }
            }
            Expr::Identifier(name) => {
                let name = folded(name);
                let Some(at) = position(&name) else { return Ok(None) };
                let is_column = self.scope.columns.contains(&name);
                if is_column && !self.scope.is_nested {
                    return Ok(None);
                }
                if is_column || self.scope.has_views {
                    return stated_err!(
                        AMBIGUOUS_COLUMN,
                        "function {}(): \"{name}\" may be its parameter or a column; write ${} for the parameter, and \
                         qualify the column",
                        self.own,
                        at + 1
                    );
                }
                (at, &[][..])
            }
            Expr::CompoundIdentifier(names) => {
                let [first, second, rest @ ..] = names.as_slice() else { return Ok(None) };
                if self.scope.relations.contains(&folded(first)) {
                    return Ok(None);
                }
                match (folded(first) == self.own, position(&folded(first))) {
                    (true, _) if position(&folded(second)).is_some() => {
                        (position(&folded(second)).unwrap_or_default(), rest)
                    }
                    (_, Some(at)) => (at, &names[1..]),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.used[at] += 1;
        let field = |root, field: &Ident| {
            let name = Value::SingleQuotedString(field.value.clone());
            call("get_field", vec![root, Expr::value(name)])
        };
        Ok(Some(fields.iter().fold(Expr::Nested(Box::new(self.values[at].clone())), field)))
    }
}

impl VisitorMut for Parameters<'_> {
    type Break = DataFusionError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match self.value(expr) {
            Ok(Some(value)) => {
                *expr = value;
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
