//! MERGE as a query that names an action for each pair of rows.
//!
//! ```text
//! MERGE INTO t USING s ON c
//!   WHEN MATCHED AND p THEN DELETE            0
//!   WHEN MATCHED THEN UPDATE SET b = e        1
//!   WHEN NOT MATCHED THEN INSERT VALUES (f, g)  2
//!     ▼
//! SELECT action, t."row id", CASE action WHEN 1 THEN t.a WHEN 2 THEN f END AS a, CASE action WHEN 1 THEN e WHEN 2 THEN g END AS b
//! FROM (SELECT *, CASE WHEN t."row id" IS NOT NULL THEN CASE WHEN p THEN 0 ELSE 1 END ELSE 2 END AS action
//!       FROM s LEFT JOIN t ON c)
//! ```
//!
//! The expressions of WHEN NOT MATCHED see the source alone: they are planned as a query over it, and taken out of its
//! plan. CASE computes values only for the rows of their clause.

use std::sync::Arc;
use std::vec::IntoIter;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::{
    Column, DFSchema, ResolvedTableReference, Result, ScalarValue, TableReference, internal_err,
};
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    Case, DmlStatement, Expr, ExprSchemable, LogicalPlan, Projection, Statement as PlanStatement,
    WriteOp, lit,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr as AstExpr, Ident, Join, JoinConstraint, JoinOperator, Merge, SelectItem, SetExpr,
    Statement as Ast, TableAlias, TableFactor, TableWithJoins, With,
};

use crate::role::rights::Right;
use crate::session::dml::change::{
    CHANGED, RowQuery, change_within, changed_source, column_of, innermost, parsed, quoted, rename,
    table_to_change, type_parameter,
};
use crate::session::dml::merge_clause::{MergeClause, check_aggregates};
use crate::session::dml::refused_values::check_value;
use crate::session::dml::{row_assignment, unread_columns};
use crate::session::plan::planner::StatementPlanner;
use crate::table::{ChangeKind, ChangedTable, MergeAction, MergedTable, PlacedTable, WriteRules};
use atoll_functions::sql_name;
use atoll_sql_common::error::stated_err;

/// The name of the column of actions, which no table has.
const ACTION: &str = "action of MERGE\u{1}";

/// A MERGE, whose statement was replaced by a query.
pub(in crate::session) struct RowMerge {
    table: PlacedTable,
    target: Arc<MergedTable>,
    clauses: Vec<MergeClause>,
    /// The expressions of the WHEN NOT MATCHED clauses.
    unmatched: Vec<Expr>,
}

impl RowMerge {
    /// The MERGE of a statement, if it is one, also within EXPLAIN and PREPARE: the statement becomes a query, and the
    /// target is among the names.
    ///
    /// # Errors
    /// For relations not made by CREATE TABLE, and for invalid clauses.
    pub(in crate::session) async fn take(
        statement: &mut Parsed,
        planner: &StatementPlanner,
        state: &SessionState,
    ) -> Result<Option<Self>> {
        let Some(ast) = innermost(statement) else { return Ok(None) };
        let Some((merge, with)) = merge_of(ast) else { return Ok(None) };
        let (at, table) = table_to_change(planner, state, &merge.table, "MERGE")?;
        unread_columns::check(ast, &at)?;
        let Merge { table: mut relation, source, on, clauses, .. } = merge;
        let changed = changed_source(&at);
        let name = rename(&mut relation, &changed)?;
        let normalize = |ident: &Ident| planner.normalized(ident);
        check_names(&relation, &source, &normalize)?;
        let clauses = MergeClause::from_ast(clauses, &name, table.definition(), &normalize)?;
        check_aggregates(&clauses, state)?;
        check_rights(planner, &clauses, &at)?;

        let mut rules = planner.write_rules(state, &table, &quoted(&at.table), None).await?;
        rules.actions = Box::pin(planner.referential_actions(state, table.id())).await?;
        let reading = planner.target(WriteRules::default());
        let read = ChangedTable::new(table.clone(), ChangeKind::Delete, reading);
        let row_id = column_of(&name, read.row_id());
        planner.names.hide(CHANGED, Arc::new(read));

        let inserts = clauses.iter().any(|clause| !clause.is_matched && clause.action.is_some());
        let on = JoinConstraint::On(*on);
        let join_operator = match inserts {
            true => JoinOperator::LeftOuter(on),
            false => JoinOperator::Inner(on),
        };
        let alone = TableWithJoins { relation: source, joins: Vec::new() };
        let mut joined = alone.clone();
        joined.joins.push(Join { relation, global: false, join_operator });

        let unmatched = items_of(&clauses, false);
        let unmatched = match unmatched.is_empty() {
            true => Vec::new(),
            false => {
                let mut other = statement.clone();
                put_query(&mut other, unmatched, alone, with.clone())?;
                let plan = planner.plan_query(state, other, &[]).await?;
                select_list(query_within(plan))?.0
            }
        };
        let mut items = vec![row_id];
        items.extend(items_of(&clauses, true));
        put_query(statement, items, joined, with)?;
        let actions = clauses.iter().map(|clause| clause.action).collect();
        let target = MergedTable::new(table.clone(), planner.target(rules), actions);
        Ok(Some(Self { table, target: Arc::new(target), clauses, unmatched }))
    }

    /// The plan of the MERGE from the plan of its query, also within EXPLAIN and PREPARE.
    pub(in crate::session) fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        change_within(plan, &|query| self.merge(query))
    }

    fn merge(&self, query: LogicalPlan) -> Result<LogicalPlan> {
        select_list(query.clone())?;
        let (matched, input) = select_list(row_assignment::once(query)?)?;
        let schema = Arc::clone(input.schema());
        let mut matched = matched.into_iter();
        let Some(row_id) = matched.next() else { return internal_err!("MERGE without row ids") };
        let mut exprs = ClauseExprs { matched, unmatched: self.unmatched.clone().into_iter() };
        let columns = self.table.columns().fields();
        let mut values: Vec<Vec<WhenThen>> = vec![Vec::new(); columns.len()];
        let (mut when_matched, mut when_not) = (Choice::default(), Choice::default());
        for (number, clause) in self.clauses.iter().enumerate() {
            let number = number as i32;
            let choice = if clause.is_matched { &mut when_matched } else { &mut when_not };
            let condition = match clause.condition {
                Some(_) => Some(condition(exprs.next(clause.is_matched)?, &schema)?),
                None => None,
            };
            choice.add(condition, clause.action.map(|_| number));
            for (values, field) in values.iter_mut().zip(columns).take(clause.values.len()) {
                let value = typed(exprs.next(clause.is_matched)?, field, &schema)?;
                values.push((Box::new(lit(number)), Box::new(value)));
            }
        }
        let is_matched = Box::new(row_id.clone().is_not_null());
        let action = vec![(is_matched, Box::new(when_matched.into_expr()))];
        let action = Case::new(None, action, Some(Box::new(when_not.into_expr())));
        let below = schema.columns().into_iter().map(Expr::Column);
        let below = below.chain([Expr::Case(action).alias(ACTION)]).collect();
        let below = Arc::new(LogicalPlan::Projection(Projection::try_new(below, input)?));

        let action = Expr::Column(Column::from_name(ACTION));
        let mut list = vec![action.clone(), row_id];
        if values.iter().any(|values| !values.is_empty()) {
            for (field, values) in columns.iter().zip(values) {
                let value = Case::new(Some(Box::new(action.clone())), values, None);
                list.push(Expr::Case(value).alias(field.name()));
            }
        }
        let input = Arc::new(LogicalPlan::Projection(Projection::try_new(list, below)?));
        let name = TableReference::bare(self.table.name());
        let target = provider_as_source(Arc::clone(&self.target) as _);
        let op = WriteOp::Insert(InsertOp::Append);
        Ok(LogicalPlan::Dml(DmlStatement::new(name, target, op, input)))
    }
}

/// WHEN and THEN of a CASE.
type WhenThen = (Box<Expr>, Box<Expr>);

/// The planned expressions of the clauses, in order.
struct ClauseExprs {
    matched: IntoIter<Expr>,
    unmatched: IntoIter<Expr>,
}

impl ClauseExprs {
    fn next(&mut self, is_matched: bool) -> Result<Expr> {
        let next = if is_matched { self.matched.next() } else { self.unmatched.next() };
        match next {
            Some(expr) => Ok(expr.unalias()),
            None => internal_err!("an expression of MERGE was not planned"),
        }
    }
}

/// The number of the first clause that applies.
#[derive(Default)]
struct Choice {
    conditions: Vec<WhenThen>,
    /// The clause without a condition.
    otherwise: Option<Expr>,
}

impl Choice {
    fn add(&mut self, condition: Option<Expr>, number: Option<i32>) {
        let number = lit(ScalarValue::Int32(number));
        match condition {
            Some(condition) => self.conditions.push((Box::new(condition), Box::new(number))),
            None => self.otherwise = Some(number),
        }
    }

    fn into_expr(self) -> Expr {
        let otherwise = self.otherwise.unwrap_or_else(|| lit(ScalarValue::Int32(None)));
        match self.conditions.is_empty() {
            true => otherwise,
            false => Expr::Case(Case::new(None, self.conditions, Some(Box::new(otherwise)))),
        }
    }
}

/// A copy of the MERGE in a statement, and the WITH before it.
fn merge_of(ast: &Ast) -> Option<(Merge, Option<With>)> {
    match ast {
        Ast::Merge(merge) => Some((merge.clone(), None)),
        Ast::Query(query) => match query.body.as_ref() {
            SetExpr::Merge(Ast::Merge(merge)) => Some((merge.clone(), query.with.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces the innermost statement by a query.
fn put_query(
    statement: &mut Parsed,
    columns: Vec<SelectItem>,
    from: TableWithJoins,
    with: Option<With>,
) -> Result<()> {
    let Some(ast) = innermost(statement) else { return internal_err!("a MERGE is gone") };
    *ast = parsed("SELECT 0")?;
    RowQuery { columns, from: vec![from], selection: None }.put_into(ast, with)
}

/// The plan of a query within EXPLAIN or PREPARE.
fn query_within(plan: LogicalPlan) -> LogicalPlan {
    let inner = match plan {
        LogicalPlan::Explain(explain) => explain.plan,
        LogicalPlan::Analyze(analyze) => analyze.input,
        LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => prepare.input,
        plan => return plan,
    };
    Arc::unwrap_or_clone(inner)
}

/// The select list of a query over the rows of FROM, and their plan.
fn select_list(query: LogicalPlan) -> Result<(Vec<Expr>, Arc<LogicalPlan>)> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = query else {
        return internal_err!("MERGE was not planned as a select list");
    };
    match input.as_ref() {
        LogicalPlan::Aggregate(_) => internal_err!("MERGE was planned as a grouped query"),
        LogicalPlan::Window(_) => stated_err!(
            WINDOWING_ERROR,
            "window functions are not allowed in WHEN clauses of MERGE; call them in the source: USING (SELECT …)"
        ),
        LogicalPlan::Unnest(_) => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "set-returning functions are not allowed in WHEN clauses of MERGE; call them in the source: \
             USING (SELECT …)"
        ),
        _ => Ok((expr, input)),
    }
}

/// The expressions of the clauses for matched rows, or for the others.
fn items_of(clauses: &[MergeClause], is_matched: bool) -> Vec<SelectItem> {
    let clauses = clauses.iter().filter(|clause| clause.is_matched == is_matched);
    let exprs = clauses.flat_map(|clause| clause.condition.iter().chain(&clause.values));
    let named = |(number, expr): (usize, &AstExpr)| SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias: quoted(&format!("expression {number}")),
    };
    exprs.enumerate().map(named).collect()
}

/// The condition of a clause.
fn condition(mut expr: Expr, schema: &DFSchema) -> Result<Expr> {
    type_parameter(&mut expr, &Field::new("", DataType::Boolean, true));
    match expr.get_type(schema)? {
        DataType::Boolean => Ok(expr),
        DataType::Null | DataType::Utf8 | DataType::Utf8View => {
            expr.cast_to(&DataType::Boolean, schema)
        }
        other => stated_err!(
            DATATYPE_MISMATCH,
            "argument of WHEN must be type {}, not type {}",
            sql_name(&DataType::Boolean),
            sql_name(&other)
        ),
    }
}

/// A value in the type of its column.
fn typed(mut value: Expr, column: &Field, schema: &DFSchema) -> Result<Expr> {
    type_parameter(&mut value, column);
    check_value(&value.get_type(schema)?, column, &"value")?;
    value.cast_to(column.data_type(), schema)
}

/// Refuses a source with the name of the target, and an alias with columns for the target.
fn check_names(
    target: &TableFactor,
    source: &TableFactor,
    normalize: &dyn Fn(&Ident) -> String,
) -> Result<()> {
    if let TableFactor::Table { alias: Some(TableAlias { name, columns, .. }), .. } = target {
        if !columns.is_empty() {
            return stated_err!(
                SYNTAX_ERROR,
                "the alias of the target of MERGE names no columns; write MERGE INTO … AS {name}"
            );
        }
        if called(source).map(normalize) == Some(normalize(name)) {
            return stated_err!(
                DUPLICATE_ALIAS,
                "name \"{}\" specified more than once: it is used both as MERGE target table and data source",
                normalize(name)
            );
        }
    }
    Ok(())
}

/// The name of a table or subquery in FROM.
fn called(relation: &TableFactor) -> Option<&Ident> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(&alias.name),
        TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()),
        _ => None,
    }
}

fn check_rights(
    planner: &StatementPlanner,
    clauses: &[MergeClause],
    at: &ResolvedTableReference,
) -> Result<()> {
    for clause in clauses {
        match clause.action {
            Some(MergeAction::Update) => planner.check_right(Right::Update, at)?,
            Some(MergeAction::Delete) => planner.check_right(Right::Delete, at)?,
            Some(MergeAction::Insert) => planner.check_right(Right::Insert, at)?,
            None => {}
        }
    }
    planner.check_right(Right::Select, at)
}
