//! `SELECT * FROM t`, `SELECT a, b, … FROM t` and `INSERT INTO t` for tables with very many columns.
//!
//! DataFusion 55.2 compares the columns of a select list with each other by their texts (`push_projection_dedupl`),
//! which takes ten seconds for ten thousand (apache/datafusion#7698). A select list that is `*` alone returns the
//! columns of FROM: the query is planned with a constant in its place, which is then removed from the plan. A list of
//! plain columns is put on top of that. Rows written into all columns of a table need no projection with casts if their
//! types are the table's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DdlStatement, DmlStatement, Explain, Expr as LogicalExpr, ExprSchemable, LogicalPlan, PlanType,
    Projection, ToStringifiedPlan, Values, WriteOp,
};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, GroupByExpr, Insert, ObjectName, OrderByKind, Query, SelectItem, SetExpr,
    Statement as Ast, TableFactor, TableObject, Value, WildcardAdditionalOptions,
};

use futures::future::BoxFuture;

use crate::session::plan::planner::StatementPlanner;

/// Fewer columns are planned as written.
const COLUMNS_MIN: usize = 500;

/// The name of the constant, which no one can type.
const CONSTANT: &str = "$star";

/// A query whose select list was taken out: the names of its columns, or `None` for `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct TakenList(Option<Vec<String>>);

impl StatementPlanner {
    /// Takes a long select list out of a statement that is `SELECT * FROM t` or `SELECT a, b, … FROM t`, or that
    /// explains, copies or creates a table from such a query.
    pub(in crate::session) async fn take_list(
        &self,
        state: &SessionState,
        statement: &mut Parsed,
    ) -> Result<Option<TakenList>> {
        let Some((table, items)) = query_of(statement).and_then(plain_list) else {
            return Ok(None);
        };
        let Ok(at) = self.resolve_in(state, table) else { return Ok(None) };
        let mut found = self.names.table(&at)?;
        if found.is_none() {
            // The schema resolves files by name, and inspects each only once.
            let Ok(schema) = state.schema_for_ref(at.clone()) else { return Ok(None) };
            found = schema.table(&at.table).await?;
            if let Some(found) = &found {
                self.names.hide(&at.table, Arc::clone(found));
            }
        }
        let schema = found.map(|found| found.schema());
        let Some(schema) = schema.filter(|schema| schema.fields().len() >= COLUMNS_MIN) else {
            return Ok(None);
        };
        let taken = match items.as_slice() {
            [SelectItem::Wildcard(_)] => TakenList(None),
            items => match self.names_of(items, &schema) {
                Some(names) => TakenList(Some(names)),
                None => return Ok(None),
            },
        };
        let expr = Expr::Value(Value::Null.into());
        let alias = crate::session::dml::change::quoted(CONSTANT);
        *items = vec![SelectItem::ExprWithAlias { expr, alias }];
        Ok(Some(taken))
    }

    /// The columns of a select list; `None` if one of them is missing or ambiguous.
    fn names_of(&self, items: &[SelectItem], schema: &Schema) -> Option<Vec<String>> {
        let mut left: HashSet<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).collect();
        let name = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => {
                let name = self.normalized(ident);
                left.remove(name.as_str()).then_some(name)
            }
            _ => None,
        };
        items.iter().map(name).collect()
    }

    /// The plan of an INSERT into all columns of a wide table, of rows of VALUES or of a query of the same types;
    /// `None` for all other statements.
    pub(in crate::session) fn wide_insert<'a>(
        &'a self,
        state: &'a SessionState,
        statement: &'a Parsed,
    ) -> BoxFuture<'a, Result<Option<LogicalPlan>>> {
        Box::pin(self.try_wide_insert(state, statement))
    }

    async fn try_wide_insert(
        &self,
        state: &SessionState,
        statement: &Parsed,
    ) -> Result<Option<LogicalPlan>> {
        let Parsed::Statement(ast) = statement else { return Ok(None) };
        let Ast::Insert(insert) = ast.as_ref() else { return Ok(None) };
        let TableObject::TableName(name) = &insert.table else { return Ok(None) };
        let Some(source) = all_columns_source(insert) else { return Ok(None) };
        let at = self.resolve_in(state, name)?;
        let Some(table) = self.names.table(&at)? else { return Ok(None) };
        let schema = table.schema();
        if schema.fields().len() < COLUMNS_MIN {
            return Ok(None);
        }
        // NOT NULL is checked when rows are written.
        let nullable = schema.fields().iter().map(|it| it.as_ref().clone().with_nullable(true));
        let target = DFSchema::try_from(Schema::new(nullable.collect::<Vec<_>>()))?;
        let input = match source.body.as_ref() {
            SetExpr::Values(rows) => {
                let rows = rows.rows.iter().map(|row| values(state, &row.content, &target));
                match rows.collect::<Result<Option<Vec<_>>>>()? {
                    Some(values) => {
                        LogicalPlan::Values(Values { schema: Arc::new(target), values })
                    }
                    None => return Ok(None),
                }
            }
            _ => {
                let query = Parsed::Statement(Box::new(Ast::Query(Box::new(source.clone()))));
                let plan = self.plan_query(state, query, &[]).await?;
                let is_same = plan.schema().fields().len() == schema.fields().len()
                    && plan.schema().fields().iter().zip(schema.fields()).all(|(given, wanted)| {
                        given.data_type() == wanted.data_type() && given.name() == wanted.name()
                    });
                match is_same {
                    true => plan,
                    false => return Ok(None),
                }
            }
        };
        let op = WriteOp::Insert(InsertOp::Append);
        let dml = DmlStatement::new(at.into(), provider_as_source(table), op, Arc::new(input));
        Ok(Some(LogicalPlan::Dml(dml)))
    }
}

/// The values of a row in the types of columns; `None` if their number differs.
fn values(
    state: &SessionState,
    row: &[Expr],
    target: &DFSchema,
) -> Result<Option<Vec<datafusion::logical_expr::Expr>>> {
    if row.len() != target.fields().len() {
        return Ok(None);
    }
    let none = DFSchema::empty();
    let value = |(expr, field): (&Expr, &FieldRef)| {
        let expr = ExprWithAlias { expr: expr.clone(), alias: None };
        state.create_logical_expr_from_sql_expr(expr, &none)?.cast_to(field.data_type(), &none)
    };
    row.iter().zip(target.fields()).map(value).collect::<Result<Vec<_>>>().map(Some)
}

/// The source of an INSERT without a column list or other clauses.
fn all_columns_source(insert: &Insert) -> Option<&Query> {
    let is_plain = insert.columns.is_empty()
        && insert.on.is_none()
        && insert.returning.is_none()
        && insert.partitioned.is_none()
        && !insert.overwrite;
    let source = insert.source.as_deref().filter(|_| is_plain)?;
    let is_alone = source.with.is_none()
        && source.order_by.is_none()
        && source.limit_clause.is_none()
        && source.fetch.is_none();
    match source.body.as_ref() {
        SetExpr::Values(_) => is_alone.then_some(source),
        _ => {
            let is_star = matches!(
                source.body.as_ref(),
                SetExpr::Select(select) if matches!(&select.projection[..], [SelectItem::Wildcard(_)])
            );
            (is_star && plain_list(&mut source.clone()).is_some()).then_some(source)
        }
    }
}

/// The query that a statement runs.
fn query_of(statement: &mut Parsed) -> Option<&mut Query> {
    match statement {
        Parsed::Statement(ast) => match ast.as_mut() {
            Ast::Query(query) => Some(query),
            Ast::CreateTable(create) if create.columns.is_empty() => create.query.as_deref_mut(),
            _ => None,
        },
        Parsed::Explain(explain) => query_of(&mut explain.statement),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => Some(query),
            CopyToSource::Relation(_) => None,
        },
        _ => None,
    }
}

impl TakenList {
    /// The plan of the original statement.
    pub(in crate::session) fn restored(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let inner = |plan: Arc<LogicalPlan>| -> Result<_> {
            Ok(Arc::new(self.restored(Arc::unwrap_or_clone(plan))?))
        };
        Ok(match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut create)) => {
                create.input = inner(create.input)?;
                LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create))
            }
            LogicalPlan::Copy(mut copy) => {
                copy.input = inner(copy.input)?;
                LogicalPlan::Copy(copy)
            }
            LogicalPlan::Explain(explain) => {
                let plan = inner(explain.plan)?;
                let stringified_plans = vec![plan.to_stringified(PlanType::InitialLogicalPlan)];
                LogicalPlan::Explain(Explain { plan, stringified_plans, ..explain })
            }
            LogicalPlan::Analyze(mut analyze) => {
                analyze.input = inner(analyze.input)?;
                LogicalPlan::Analyze(analyze)
            }
            plan => self.above(under_constant(plan))?,
        })
    }

    /// The listed columns on top of a plan that has all columns. The schema is built here: searching each column among
    /// all of them takes long.
    fn above(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let Some(names) = &self.0 else { return Ok(plan) };
        let schema = Arc::clone(plan.schema());
        let places: HashMap<&str, usize> = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| (field.name().as_str(), at))
            .collect();
        let place = |name: &String| places.get(name.as_str()).copied();
        let Some(places) = names.iter().map(place).collect::<Option<Vec<usize>>>() else {
            return internal_err!("a column of the select list is lost");
        };
        let fields = places.iter().map(|at| {
            let (table, field) = schema.qualified_field(*at);
            (table.cloned(), Arc::clone(field))
        });
        let list = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
        let columns = list.columns().into_iter().map(LogicalExpr::Column).collect();
        let projection = Projection::try_new_with_schema(columns, Arc::new(plan), Arc::new(list))?;
        Ok(LogicalPlan::Projection(projection))
    }
}

/// The input of the constant; a sort has it below itself too, next to its sort columns.
fn under_constant(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Projection(constant) => match Arc::unwrap_or_clone(constant.input) {
            LogicalPlan::Sort(mut sort) => {
                sort.input = Arc::new(under_constant(Arc::unwrap_or_clone(sort.input)));
                LogicalPlan::Sort(sort)
            }
            input => input,
        },
        LogicalPlan::Limit(mut limit) => {
            limit.input = Arc::new(under_constant(Arc::unwrap_or_clone(limit.input)));
            LogicalPlan::Limit(limit)
        }
        plan => plan,
    }
}

/// The table and the select list of a query with at most WHERE, ORDER BY columns and LIMIT: `*`, or many columns.
fn plain_list(query: &mut Query) -> Option<(&ObjectName, &mut Vec<SelectItem>)> {
    let sorts_columns = query.order_by.as_ref().is_none_or(|order| match &order.kind {
        OrderByKind::Expressions(keys) => keys
            .iter()
            .all(|key| matches!(key.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))),
        OrderByKind::All(_) => false,
    });
    let is_alone = query.with.is_none()
        && sorts_columns
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_plain = select.distinct.is_none()
        && select.exclude.is_none()
        && select.top.is_none()
        && select.into.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, more) if keys.is_empty() && more.is_empty());
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, args: None, sample: None, .. } = &from.relation else {
        return None;
    };
    let is_list = match select.projection.as_slice() {
        [SelectItem::Wildcard(options)] => *options == WildcardAdditionalOptions::default(),
        items => items.len() >= COLUMNS_MIN,
    };
    (is_alone && is_plain && is_list && from.joins.is_empty())
        .then_some((name, &mut select.projection))
}
