//! What a statement has to know before it is planned: the columns of a FROM, the values of a column.
//!
//! [`asked`] gives queries, innermost first, as far as they hang on no other answer; [`answered`] writes the
//! answers in their places. Both are repeated until nothing is asked.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use datafusion::common::{DFSchemaRef, DataFusionError, Result, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    CastKind, Cte, DataType, Distinct, Expr, ObjectName, PivotValueSource, Query, Select, SetExpr,
    TableFactor, Visit, VisitMut, Visitor, VisitorMut, With, visit_relations,
};

use super::{columns, tree};

/// What is asked of the session.
pub(crate) enum Question {
    /// The columns of a query.
    Columns(Query),
    /// The rows of a query of one column, a text.
    Values(Query),
}

/// What the session answers.
pub(crate) enum Answer {
    Columns(DFSchemaRef),
    Values(Vec<String>),
}

/// The questions of a statement that can be answered now.
pub(crate) fn asked(statement: &mut Parsed) -> Result<Vec<Question>> {
    let mut needs = Needs { scopes: vec![], questions: vec![], answers: None };
    visit(statement, &mut needs)?;
    Ok(needs.questions)
}

/// Writes the answers in the places of what asked for them.
pub(crate) fn answered(statement: &mut Parsed, answers: Vec<Answer>) -> Result<()> {
    let mut needs = Needs { scopes: vec![], questions: vec![], answers: Some(answers.into()) };
    visit(statement, &mut needs)
}

fn visit(statement: &mut Parsed, needs: &mut Needs) -> Result<()> {
    let visited = match statement {
        Parsed::Statement(ast) => ast.visit(needs),
        Parsed::Explain(explain) => return visit(&mut explain.statement, needs),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(needs),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Needs {
    /// The WITH of the queries around what is visited.
    scopes: Vec<Vec<Cte>>,
    questions: Vec<Question>,
    answers: Option<VecDeque<Answer>>,
}

impl Needs {
    /// A query with all names that are known where it stands.
    fn scoped(&self, body: SetExpr) -> Query {
        let mut ctes: Vec<Cte> = Vec::new();
        for cte in self.scopes.iter().flatten().filter(|cte| !is_open(*cte)) {
            ctes.retain(|other| other.alias.name != cte.alias.name);
            ctes.push(cte.clone());
        }
        let mut query = tree::query(body);
        if !ctes.is_empty() {
            let with_token = tree::no_token();
            query.with = Some(With { with_token, recursive: true, cte_tables: ctes });
        }
        query
    }

    /// Whether a part of a statement reads a WITH query in which something is to be asked.
    fn reads_open(&self, part: &impl Visit) -> bool {
        let open: Vec<&Cte> = self.scopes.iter().flatten().filter(|cte| is_open(*cte)).collect();
        let is_open = |name: &ObjectName| match name.0.as_slice() {
            [part] => part.as_ident().is_some_and(|name| {
                open.iter().any(|cte| cte.alias.name.value.eq_ignore_ascii_case(&name.value))
            }),
            _ => false,
        };
        let visited = visit_relations(part, |name| match is_open(name) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        visited.is_break()
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        if !columns::are_of(select) || is_open(&select.from) || self.reads_open(&select.from) {
            return Ok(());
        }
        match &mut self.answers {
            None => {
                let all = tree::select(tree::everything(), select.from.clone());
                let query = self.scoped(SetExpr::Select(Box::new(all)));
                self.questions.push(Question::Columns(query));
                Ok(())
            }
            Some(answers) => match answers.pop_front() {
                Some(Answer::Columns(schema)) => {
                    let count = |name: &str| {
                        schema.fields().iter().filter(|field| field.name() == name).count()
                    };
                    let named = schema.iter().map(|(table, field)| {
                        let table = table.filter(|_| count(field.name()) > 1);
                        let table = table.map(|table| tree::quoted(table.table()));
                        (columns::column(table, field.name()), field.name().clone())
                    });
                    let named: Vec<columns::Named> = named.collect();
                    columns::write_out(select, &named)
                }
                _ => plan_err!("COLUMNS(…) cannot be resolved here"),
            },
        }
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let is_ready = is_open_pivot(factor);
        let TableFactor::Pivot { table, value_column, value_source, .. } = factor else {
            return Ok(());
        };
        if !is_ready || is_open(table.as_ref()) {
            return Ok(());
        }
        let listed = std::mem::replace(value_source, PivotValueSource::List(vec![]));
        let of_query = match &listed {
            PivotValueSource::Subquery(query) => Some(query.as_ref().clone()),
            _ => None,
        };
        for column in value_column.iter_mut() {
            let expr = match &*column {
                Expr::InList { .. } => continue,
                Expr::InSubquery { expr, .. } => expr.as_ref().clone(),
                other => other.clone(),
            };
            let text = |expr: Expr| Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expr),
                data_type: DataType::Varchar(None),
                array: false,
                format: None,
            };
            match &mut self.answers {
                None => {
                    let own = match &*column {
                        Expr::InSubquery { subquery, .. } => Some(subquery.as_ref().clone()),
                        _ => of_query.clone(),
                    };
                    let rows = match own {
                        Some(query) => {
                            tree::derived(query, Some(tree::alias("$values", &["value"])))
                        }
                        None => {
                            let mut of_column = tree::select(
                                vec![tree::item(expr, "value")],
                                vec![tree::alone(table.as_ref().clone())],
                            );
                            of_column.distinct = Some(Distinct::Distinct);
                            let query = tree::query(SetExpr::Select(Box::new(of_column)));
                            tree::derived(query, Some(tree::alias("$values", &["value"])))
                        }
                    };
                    let value = || Expr::Identifier(tree::quoted("value"));
                    let mut texts = tree::select(
                        vec![tree::item(text(value()), "text")],
                        vec![tree::alone(rows)],
                    );
                    texts.selection = Some(Expr::IsNotNull(Box::new(value())));
                    let mut query = self.scoped(SetExpr::Select(Box::new(texts)));
                    query.order_by = Some(tree::order_by(value()));
                    self.questions.push(Question::Values(query));
                }
                Some(answers) => {
                    let Some(Answer::Values(values)) = answers.pop_front() else {
                        return plan_err!(
                            "the values of PIVOT cannot be looked up here; list them in IN (…)"
                        );
                    };
                    let list = values.into_iter().map(tree::text).collect();
                    *column = Expr::InList { expr: Box::new(text(expr)), list, negated: false };
                }
            }
        }
        if self.answers.is_none() {
            *value_source = listed;
        }
        Ok(())
    }
}

/// Whether a PIVOT has no list of values for one of its columns.
fn is_open_pivot(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Pivot { value_column, value_source, .. } => match value_source {
            PivotValueSource::List(values) if values.is_empty() => {
                value_column.iter().any(|column| !matches!(column, Expr::InList { .. }))
            }
            PivotValueSource::List(_) => false,
            _ => true,
        },
        _ => false,
    }
}

/// Whether there is something to be asked in a part of a statement.
fn is_open(part: &impl Visit) -> bool {
    columns::are_in(part) || part.visit(&mut OpenPivots).is_break()
}

struct OpenPivots;

impl Visitor for OpenPivots {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if is_open_pivot(factor) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn flow(result: Result<()>) -> ControlFlow<DataFusionError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Needs {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let ctes = query.with.as_ref().map(|with| with.cte_tables.clone());
        self.scopes.push(ctes.unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        flow(self.select(select))
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(self.factor(factor))
    }
}
