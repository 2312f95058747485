//! Runs the SQL in blocks: expressions as queries, statements with the values of variables as parameters.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, ParamValues, Result, ScalarValue};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement as Ast, TableObject, Visit};
use futures::future::BoxFuture;

use super::run::BlockRun;
use super::tree::Source;
use super::variables::{Cell, Taker, VariableType, check_ambiguous, inner_columns};
use crate::catalog::UnplannedView;
use crate::session::plan::declared_operands::{DeclaredType, cast_operands};
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::atoll_statement::AtollStatement;
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::statement::query_result::QueryResult;
use atoll_sql_common::error::{SqlError, SqlState, stated_err};
use atoll_sql_parse::syntax::walk_relations;

/// What a statement returned.
pub(super) struct Ran {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// The number of rows that it returned or changed; `None` for statements that do neither.
    pub(super) count: Option<i64>,
    /// Whether it returns rows.
    pub(super) has_rows: bool,
}

/// A row of a batch.
pub(super) fn cells_of(schema: &Schema, batch: &RecordBatch, row: usize) -> Result<Vec<Cell>> {
    let cell = |(field, column): (&Arc<Field>, &ArrayRef)| {
        let value = ScalarValue::try_from_array(column, row)?;
        Ok(Cell { value, field: Arc::clone(field) })
    };
    schema.fields().iter().zip(batch.columns()).map(cell).collect()
}

impl BlockRun<'_> {
    /// Runs a statement to its end. Boxed, since the text of a dynamic statement is the value of another one.
    pub(super) fn run<'b>(&'b mut self, source: &'b Source) -> BoxFuture<'b, Result<Ran>> {
        Box::pin(async move {
            let result = match source {
                Source::Sql(sql) => self.start(sql).await?,
                Source::Dynamic { text, using } => {
                    let sql = self.text(text).await?.ok_or_else(|| {
                        let message = "query string argument of EXECUTE is null";
                        SqlState::NULL_VALUE_NOT_ALLOWED.error(message)
                    })?;
                    let mut values = Vec::with_capacity(using.len());
                    for value in using {
                        values.push(self.evaluated(value).await?);
                    }
                    self.given(&values, &sql).await?
                }
            };
            ended(result).await
        })
    }

    /// Starts a statement, in which variables are parameters.
    async fn start(&mut self, sql: &str) -> Result<QueryResult> {
        let AtollStatement::Parsed(mut parsed) = self.session.read(sql)? else {
            return self.session.run_nested(sql).await;
        };
        let values = match &mut parsed.statement {
            Parsed::Statement(ast) => self.values_of(ast).await?,
            _ => Vec::new(),
        };
        match values.is_empty() {
            // By its cached plan, if there is one.
            true => self.session.run_nested(sql).await,
            false => self.start_with(*parsed, &values, sql).await,
        }
    }

    /// Starts a statement with these values of its parameters.
    pub(super) async fn given(&self, values: &[Cell], sql: &str) -> Result<QueryResult> {
        match self.session.read(sql)? {
            AtollStatement::Parsed(parsed) if !values.is_empty() => {
                self.start_with(*parsed, values, sql).await
            }
            _ => self.session.run_nested(sql).await,
        }
    }

    async fn start_with(
        &self,
        mut parsed: ParsedStatement,
        values: &[Cell],
        sql: &str,
    ) -> Result<QueryResult> {
        let types = values.iter().map(|cell| DeclaredType::from(Some(cell.value.data_type())));
        cast_operands(&mut parsed.statement, &types.collect::<Vec<_>>(), None)?;
        let values = ParamValues::List(values.iter().map(Cell::as_parameter).collect());
        let transaction = self.session.statement_transaction()?;
        let running = self.session.run_in(&transaction, &parsed, Some(&values), sql);
        let result = Box::pin(running).await;
        if result.is_err() {
            transaction.fail_settled().await;
        }
        result
    }

    /// Makes the variables of a statement its parameters, and returns their values.
    async fn values_of(&self, ast: &mut Ast) -> Result<Vec<Cell>> {
        let state = self.session.state();
        let mut taker = Taker::new(&state, &self.scopes);
        match ast {
            Ast::Insert(insert) => {
                // Its columns are not visible in what it inserts.
                if let Some(mut source) = insert.source.take() {
                    taker.take(source.as_mut())?;
                    self.check(&mut taker, source.as_ref(), None).await?;
                    insert.source = Some(source);
                }
                let source = insert.source.take();
                taker.take(insert)?;
                let target = match &insert.table {
                    TableObject::TableName(name) => Some(name.clone()),
                    _ => None,
                };
                self.check(&mut taker, insert, target).await?;
                insert.source = source;
            }
            Ast::Query(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_) => {
                let inner = inner_columns(ast);
                taker.take(ast)?;
                check_ambiguous(&taker.bare, &inner)?;
                self.check(&mut taker, ast, None).await?;
            }
            _ => {}
        }
        Ok(taker.values)
    }

    /// Refuses variables with the names of columns of the relations that a part of a statement reads.
    async fn check(
        &self,
        taker: &mut Taker<'_>,
        part: &impl Visit,
        target: Option<ObjectName>,
    ) -> Result<()> {
        let bare = std::mem::take(&mut taker.bare);
        if bare.is_empty() {
            return Ok(());
        }
        let mut names: Vec<ObjectName> = target.into_iter().collect();
        let _: ControlFlow<()> = walk_relations(part, &mut |name| {
            names.push(name.clone());
            ControlFlow::Continue(())
        });
        if names.is_empty() {
            return Ok(());
        }
        let transaction = self.session.statement_transaction()?;
        let planner = self.session.planner(&transaction, false).await?;
        let mut columns = HashSet::new();
        for name in names {
            columns.extend(columns_of_relation(&planner, &name).await?);
        }
        check_ambiguous(&bare, &columns)
    }

    /// Whether a condition holds.
    pub(super) async fn holds(&mut self, condition: &str) -> Result<bool> {
        let of = VariableType::Cast("boolean".to_owned());
        Ok(self.converted(condition, &of).await?.value == ScalarValue::Boolean(Some(true)))
    }

    /// The value of an expression, as a text.
    pub(super) async fn text(&mut self, expression: &str) -> Result<Option<String>> {
        let of = VariableType::Cast("text".to_owned());
        let cell = self.converted(expression, &of).await?;
        Ok(cell.value.try_as_str().flatten().map(str::to_owned))
    }

    /// The value of an expression.
    pub(super) async fn evaluated(&mut self, expression: &str) -> Result<Cell> {
        self.only(&format!("SELECT {}", whole(expression))).await
    }

    /// The value of an expression for a variable.
    pub(super) async fn converted(&mut self, expression: &str, of: &VariableType) -> Result<Cell> {
        match of {
            VariableType::Cast(of) => {
                self.only(&format!("SELECT CAST({} AS {of}) AS v", whole(expression))).await
            }
            VariableType::Row(_) | VariableType::Record => self.evaluated(expression).await,
        }
    }

    /// The value in the only row of a query.
    pub(super) async fn only(&mut self, sql: &str) -> Result<Cell> {
        let ran = self.run(&Source::Sql(sql.to_owned())).await?;
        let rows: usize = ran.batches.iter().map(RecordBatch::num_rows).sum();
        if rows > 1 {
            return stated_err!(CARDINALITY_VIOLATION, "query returned more than one row");
        }
        let Some(batch) = ran.batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(Cell::null());
        };
        let cells = cells_of(&ran.schema, batch, 0)?;
        Ok(cells.into_iter().next().unwrap_or_else(Cell::null))
    }
}

/// An expression in parentheses; `count(*) FROM t` is one in PL/pgSQL.
fn whole(expression: &str) -> String {
    match expression.to_ascii_lowercase().contains("from") {
        true => format!("(SELECT {expression})"),
        false => format!("({expression})"),
    }
}

/// All rows of a result.
pub(super) async fn ended(mut result: QueryResult) -> Result<Ran> {
    let schema = Arc::clone(result.schema());
    let mut batches = Vec::new();
    while let Some(batch) = result.next().await.map_err(stated)? {
        batches.push(batch);
    }
    let has_rows = !result.is_told_by_tag();
    let tag = result.tag();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let words = tag.split(": ").next().unwrap_or_default();
    let changed = words.rsplit(' ').next().and_then(|count| count.parse::<i64>().ok());
    let count = if has_rows { i64::try_from(rows).ok() } else { changed };
    Ok(Ran { schema, batches, count, has_rows })
}

/// The columns of a relation; none if the name is one of the statement's own.
async fn columns_of_relation(planner: &StatementPlanner, name: &ObjectName) -> Result<Vec<String>> {
    let at = planner.resolve_in(&planner.state, name)?;
    let Some(found) = planner.names.table(&at)? else { return Ok(Vec::new()) };
    let names = |schema: &Schema| schema.fields().iter().map(|it| it.name().clone()).collect();
    if !found.is::<UnplannedView>() {
        return Ok(names(&found.schema()));
    }
    let sql = format!("SELECT * FROM {name}");
    let statement = crate::session::statement::parsed_statement::parse(&sql, &planner.state)?;
    let plan = planner.plan_other(statement.statement).await?;
    Ok(names(plan.schema().as_arrow()))
}

/// The error of a statement of the block.
fn stated(error: SqlError) -> DataFusionError {
    let detail = error.detail().map(str::to_owned);
    error.state.told(error.message, detail, None)
}
