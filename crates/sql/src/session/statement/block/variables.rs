//! The variables of running blocks, and the statements that name them.
//!
//! A name in an expression or in a statement is a variable if one is visible, and becomes a parameter of the statement.
//! As in PostgreSQL, a name that could also be a column of a table that the statement reads is an error.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::metadata::{FieldMetadata, ScalarAndMetadata};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LimitClause, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr,
    Statement as Ast, TableFactor, Value, VisitMut, VisitorMut,
};

use super::tree::Target;
use crate::session::ddl::routines::{replace_named, template};
use atoll_functions::sql_name;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::dialect::folded;
use atoll_sql_parse::syntax::{flow, walk_mut};

/// A value with its type, and the marks of the type.
#[derive(Clone, Debug)]
pub(in crate::session) struct Cell {
    pub(in crate::session) value: ScalarValue,
    pub(in crate::session) field: FieldRef,
}

impl Cell {
    pub(super) fn new(value: ScalarValue) -> Self {
        let field = Arc::new(Field::new("v", value.data_type(), true));
        Self { value, field }
    }

    pub(super) fn null() -> Self {
        Self::new(ScalarValue::Null)
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(ScalarValue::Utf8(Some(text.into())))
    }

    /// The same as the value of a parameter.
    pub(in crate::session) fn as_parameter(&self) -> ScalarAndMetadata {
        let marks = self.field.metadata();
        let marks = (!marks.is_empty()).then(|| FieldMetadata::from(marks.clone()));
        ScalarAndMetadata::new(self.value.clone(), marks)
    }

    /// A field of a row; `None` if it has no such field.
    pub(super) fn of_field(&self, name: &str) -> Option<Self> {
        let DataType::Struct(fields) = self.field.data_type() else { return None };
        let (at, field) = fields.iter().enumerate().find(|(_, field)| field.name() == name)?;
        let value = match &self.value {
            ScalarValue::Struct(row) => ScalarValue::try_from_array(row.column(at), 0).ok()?,
            _ => ScalarValue::try_from(field.data_type()).ok()?,
        };
        Some(Self { value, field: Arc::clone(field) })
    }
}

/// How values are converted for a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VariableType {
    /// By a cast to this type.
    Cast(String),
    /// A row of this table.
    Row(String),
    /// A row of any columns, which the assignment declares.
    Record,
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) of: VariableType,
    pub(super) is_constant: bool,
    pub(super) is_not_null: bool,
    pub(super) cell: Cell,
}

/// The variables of a block, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) label: Option<String>,
    pub(super) variables: Vec<Variable>,
}

/// All visible variables.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) list: Vec<Scope>,
    /// The places of the parameters `$1`, … in the first scope.
    pub(super) parameters: Vec<usize>,
}

/// A variable's place: its scope, and its position there.
type Place = (usize, usize);

impl Scopes {
    fn named(&self, name: &str) -> Option<Place> {
        self.list.iter().enumerate().rev().find_map(|(scope, variables)| {
            let at = variables.variables.iter().rposition(|other| other.name == name)?;
            Some((scope, at))
        })
    }

    fn labelled(&self, label: &str, name: &str) -> Option<Place> {
        let is_it = |scope: &Scope| scope.label.as_deref() == Some(label);
        let scope = self.list.iter().rposition(is_it)?;
        let at = self.list[scope].variables.iter().rposition(|other| other.name == name)?;
        Some((scope, at))
    }

    /// The variable that names mean, and the names of the fields after it.
    fn find<'n>(&self, names: &'n [String]) -> Option<(Place, &'n [String])> {
        let (first, rest) = names.split_first()?;
        if let Some(place) = self.named(first) {
            return Some((place, rest));
        }
        let (second, rest) = rest.split_first()?;
        Some((self.labelled(first, second)?, rest))
    }

    pub(super) fn at(&self, (scope, at): Place) -> &Variable {
        &self.list[scope].variables[at]
    }

    /// The variable of an assignment, and the field of it.
    pub(super) fn target<'t>(
        &mut self,
        target: &'t Target,
    ) -> Result<(&mut Variable, Option<&'t str>)> {
        let Some(((scope, at), fields)) = self.find(target) else {
            return stated_err!(SYNTAX_ERROR, "\"{}\" is not a known variable", target.join("."));
        };
        let variable = &mut self.list[scope].variables[at];
        if variable.is_constant {
            return stated_err!(
                ERROR_IN_ASSIGNMENT,
                "variable \"{}\" is declared CONSTANT",
                variable.name
            );
        }
        match fields {
            [] => Ok((variable, None)),
            [field] => Ok((variable, Some(field.as_str()))),
            _ => stated_err!(
                FEATURE_NOT_SUPPORTED,
                "assignments to fields of fields are not supported: {}",
                target.join(".")
            ),
        }
    }
}

/// The names of the columns that queries within a statement make.
pub(super) fn inner_columns(ast: &mut Ast) -> HashSet<String> {
    struct Inner {
        depth: usize,
        found: HashSet<String>,
    }
    impl VisitorMut for Inner {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            self.depth += 1;
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            let columns = ctes.flat_map(|cte| &cte.alias.columns);
            self.found.extend(columns.map(|column| folded(&column.name)));
            if self.depth > 1
                && let SetExpr::Select(select) = query.body.as_ref()
            {
                self.found.extend(select.projection.iter().filter_map(|item| match item {
                    SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
                    _ => None,
                }));
            }
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            let (TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::Table { alias, .. }) = factor
            else {
                return ControlFlow::Continue(());
            };
            let columns = alias.iter().flat_map(|alias| &alias.columns);
            self.found.extend(columns.map(|column| folded(&column.name)));
            ControlFlow::Continue(())
        }
    }
    let mut inner = Inner { depth: 0, found: HashSet::new() };
    let _ = walk_mut(ast, &mut inner);
    inner.found
}

/// The type of a value in SQL; `None` for those that a cast would change.
fn type_of(cell: &Cell) -> Option<String> {
    let of = cell.field.data_type();
    let is_plain = cell.field.metadata().is_empty() && !of.is_null() && !of.is_nested();
    let is_text = matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match is_text {
        true if is_plain => Some("text".to_owned()),
        _ => is_plain.then(|| sql_name(of)),
    }
}

/// Makes the variables in statements their parameters.
pub(super) struct Taker<'a> {
    state: &'a SessionState,
    scopes: &'a Scopes,
    places: Vec<(Place, Vec<String>)>,
    /// The values of the parameters.
    pub(super) values: Vec<Cell>,
    /// The variables that are named without a qualifier.
    pub(super) bare: Vec<String>,
    /// The names of relations: a name qualified by one of them is its column.
    aliases: HashSet<String>,
}

impl<'a> Taker<'a> {
    pub(super) fn new(state: &'a SessionState, scopes: &'a Scopes) -> Self {
        let (places, values, bare, aliases) = Default::default();
        Self { state, scopes, places, values, bare, aliases }
    }

    /// Takes the variables in a part of a statement.
    pub(super) fn take(&mut self, part: &mut impl VisitMut) -> Result<()> {
        self.find_aliases(part);
        match walk_mut(part, self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn find_aliases(&mut self, part: &mut impl VisitMut) {
        struct Aliases<'a>(&'a mut HashSet<String>);
        impl VisitorMut for Aliases<'_> {
            type Break = ();

            fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
                let (name, alias) = match factor {
                    TableFactor::Table { name, alias, .. } => {
                        (name.0.last().and_then(|part| part.as_ident()).map(folded), alias)
                    }
                    TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
                        (None, alias)
                    }
                    _ => return ControlFlow::Continue(()),
                };
                let alias = alias.as_ref().map(|alias| folded(&alias.name));
                self.0.extend(alias.or(name));
                ControlFlow::Continue(())
            }
        }
        let _ = walk_mut(part, &mut Aliases(&mut self.aliases));
    }

    /// The parameter for names, if they are a variable.
    fn parameter(&mut self, names: &[String]) -> Result<Option<Expr>> {
        let is_column = names.len() > 1 && self.aliases.contains(&names[0]);
        let Some((place, fields)) = self.scopes.find(names).filter(|_| !is_column) else {
            return Ok(None);
        };
        if names.len() == 1 {
            self.bare.push(names[0].clone());
        }
        self.of_place(place, fields).map(Some)
    }

    fn of_place(&mut self, place: Place, fields: &[String]) -> Result<Expr> {
        let known = |(other, named): &(Place, Vec<String>)| *other == place && named == fields;
        let at = match self.places.iter().position(known) {
            Some(at) => at,
            None => {
                let cell = self.value(place, fields)?;
                self.places.push((place, fields.to_vec()));
                self.values.push(cell);
                self.values.len() - 1
            }
        };
        let parameter = Expr::value(Value::Placeholder(format!("${}", at + 1)));
        let of = match &self.scopes.at(place).of {
            VariableType::Cast(of) => Some(of.clone()),
            _ => type_of(&self.values[at]),
        };
        // Operators find their types before the parameters have values.
        let Some(of) = of else { return Ok(parameter) };
        let mut typed = template(self.state, &format!("CAST(\"$value\" AS {of})"))?;
        replace_named(&mut typed, "$value", &parameter);
        Ok(typed)
    }

    fn value(&self, place: Place, fields: &[String]) -> Result<Cell> {
        let variable = self.scopes.at(place);
        let mut cell = variable.cell.clone();
        if variable.of == VariableType::Record && !fields.is_empty() && cell.value.is_null() {
            let is_row = matches!(cell.field.data_type(), DataType::Struct(_));
            if !is_row {
                return stated_err!(
                    NOT_IN_PREREQUISITE_STATE,
                    "record \"{}\" is not assigned yet",
                    variable.name
                );
            }
        }
        for field in fields {
            cell = cell.of_field(field).ok_or_else(|| {
                let message = format!("record \"{}\" has no field \"{field}\"", variable.name);
                SqlState::UNDEFINED_COLUMN.error(message)
            })?;
        }
        Ok(cell)
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        let new = match expr {
            Expr::Identifier(name) => self.parameter(&[folded(name)])?,
            Expr::CompoundIdentifier(names) => {
                let names: Vec<String> = names.iter().map(folded).collect();
                self.parameter(&names)?
            }
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => Some(self.numbered(&name.clone())?),
                _ => None,
            },
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
        }
        Ok(())
    }

    /// The values of variables in LIMIT and OFFSET.
    fn limits(&self, query: &mut Query) -> Result<()> {
        let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
            return Ok(());
        };
        for number in limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)) {
            let (names, place) = match number {
                Expr::Identifier(name) => (vec![folded(name)], None),
                Expr::CompoundIdentifier(names) => (names.iter().map(folded).collect(), None),
                Expr::Value(value) => match &value.value {
                    Value::Placeholder(name) => (vec![], self.place_of(name)),
                    _ => continue,
                },
                _ => continue,
            };
            let found = match place {
                Some(place) => Some((place, &[][..])),
                None => self.scopes.find(&names),
            };
            if let Some((place, fields)) = found {
                let value = self.value(place, fields)?.value;
                *number = Expr::value(match value.is_null() {
                    true => Value::Null,
                    false => Value::Number(value.to_string(), false),
                });
            }
        }
        Ok(())
    }

    /// The place of `$1`.
    fn place_of(&self, name: &str) -> Option<Place> {
        let number = name.strip_prefix('$')?.parse::<usize>().ok()?;
        Some((0, *self.scopes.parameters.get(number.checked_sub(1)?)?))
    }

    /// `$1` is the first argument.
    fn numbered(&mut self, name: &str) -> Result<Expr> {
        match self.place_of(name) {
            Some(place) => self.of_place(place, &[]),
            None => {
                Err(SqlState::UNDEFINED_PARAMETER.error(format!("there is no parameter {name}")))
            }
        }
    }
}

impl VisitorMut for Taker<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        if let Err(error) = self.limits(query) {
            return ControlFlow::Break(error);
        }
        // A name in ORDER BY may be that of a column of the result.
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let column = |name: &Ident| {
            select.projection.iter().position(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => folded(alias) == folded(name),
                SelectItem::UnnamedExpr(Expr::Identifier(column)) => folded(column) == folded(name),
                _ => false,
            })
        };
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(keys) = &mut order.kind
        {
            for OrderByExpr { expr, .. } in keys {
                if let Expr::Identifier(name) = expr
                    && let Some(at) = column(name)
                {
                    *expr = Expr::value(Value::Number((at + 1).to_string(), false));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        flow(self.expr(expr))
    }
}

/// Refuses variables with the names of columns that their statement reads.
pub(super) fn check_ambiguous(bare: &[String], columns: &HashSet<String>) -> Result<()> {
    match bare.iter().find(|name| columns.contains(*name)) {
        Some(name) => Err(SqlState::AMBIGUOUS_COLUMN.detailed(
            format!("column reference \"{name}\" is ambiguous"),
            "It could refer to either a PL/pgSQL variable or a table column.".to_owned(),
            "qualify the column by its table, or rename the variable",
        )),
        None => Ok(()),
    }
}
