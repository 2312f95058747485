//! Prepared statements, and those of them that are about one row by its key: planned once, they find and
//! change the row without an operator.

mod compile;
mod run;

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::table::TableDefinition;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{ParamValues, Result, ScalarValue, exec_err};
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;

use super::Session;
use super::execute::QueryResult;
use super::statement::parse;
use crate::error::SqlError;
use compile::{Parameters, PointPlan, compile};

/// A statement that a session runs with different values, `$1` and so on.
#[derive(Debug)]
pub struct PreparedStatement {
    session: Session,
    sql: String,
    types: Vec<DataType>,
    point: Mutex<Option<Arc<PlannedPoint>>>,
}

/// A plan, for as long as the table is declared as it was.
#[derive(Debug)]
struct PlannedPoint {
    plan: PointPlan,
    table: TableId,
    definition: Arc<TableDefinition>,
}

impl Session {
    /// Prepares a statement.
    ///
    /// # Errors
    /// For statements that cannot be parsed or planned, with the place in the text where it is known.
    pub async fn prepare(&self, sql: &str) -> Result<PreparedStatement, SqlError> {
        let planned = self.plan_prepared(sql).await;
        let (types, point) =
            planned.map_err(|error| SqlError::new(error, sql).with_near_names(self))?;
        let (session, sql, point) = (self.clone(), sql.to_owned(), Mutex::new(point.map(Arc::new)));
        Ok(PreparedStatement { session, sql, types, point })
    }

    async fn plan_prepared(&self, sql: &str) -> Result<(Vec<DataType>, Option<PlannedPoint>)> {
        let transaction = self.statement_transaction()?;
        let statement = parse(sql, &self.context.state())?.statement;
        let writes = self.prepared.writes(&statement);
        let planner = self.planner(&transaction, writes).await?;
        let plan = planner.plan(statement).await?;
        let types = types_of(&plan)?;
        if !matches!(plan, LogicalPlan::Dml(_) | LogicalPlan::Projection(_)) {
            return Ok((types, None));
        }
        let optimized = planner.state.optimize(&plan)?;
        let parameters = Parameters::new(&types)?;
        let point = compile(&planner.state, &optimized, &parameters)?;
        let point = point.map(|plan| PlannedPoint {
            table: plan.table.id(),
            definition: Arc::clone(plan.table.definition()),
            plan,
        });
        Ok((types, point))
    }
}

/// The types of `$1`, `$2` and so on; text where nothing tells.
fn types_of(plan: &LogicalPlan) -> Result<Vec<DataType>> {
    let found = plan.get_parameter_types()?;
    let mut types = vec![DataType::Utf8View; found.len()];
    for (name, data_type) in found {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        match number.and_then(|number| types.get_mut(number.checked_sub(1)?)) {
            Some(own) => *own = data_type.unwrap_or(DataType::Utf8View),
            None => return exec_err!("parameter {name} is not one of $1 to ${}", types.len()),
        }
    }
    Ok(types)
}

impl PreparedStatement {
    /// Types of the parameters.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.types
    }

    /// Runs the statement with these values, in the session's transaction or one of its own.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub async fn execute(&self, values: &[ScalarValue]) -> Result<QueryResult, SqlError> {
        let result = self.try_execute(values).await;
        result.map_err(|error| SqlError::new(error, &self.sql).with_near_names(&self.session))
    }

    async fn try_execute(&self, values: &[ScalarValue]) -> Result<QueryResult> {
        if values.len() != self.types.len() {
            let (wanted, given) = (self.types.len(), values.len());
            return exec_err!(
                "the statement has {wanted} parameters, but {given} values are given"
            );
        }
        let values = values.iter().zip(&self.types).map(|(value, data_type)| {
            match value.data_type() == *data_type {
                true => Ok(value.clone()),
                false => value.cast_to(data_type),
            }
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let point = self.point.lock().clone();
        if let Some(point) = point {
            if let Some(result) = self.run_point(&point, &values).await? {
                return Ok(result);
            }
            // The table is another one, or declared otherwise.
            *self.point.lock() = self.session.plan_prepared(&self.sql).await?.1.map(Arc::new);
        }
        self.run_planned(values).await
    }

    /// Runs it as any other statement.
    async fn run_planned(&self, values: Vec<ScalarValue>) -> Result<QueryResult> {
        let session = &self.session;
        let transaction = session.statement_transaction()?;
        let values = values.into_iter().map(|value| ScalarAndMetadata::new(value, None));
        let values = ParamValues::List(values.collect());
        let result = session.run_with(&transaction, &self.sql, &values).await;
        if result.is_err() {
            transaction.failure.tell();
        }
        result
    }
}

/// The result of a statement that is done.
fn done(
    schema: SchemaRef,
    rows: Vec<datafusion::arrow::array::RecordBatch>,
    sql: &str,
) -> QueryResult {
    QueryResult::of(schema, rows, sql)
}
