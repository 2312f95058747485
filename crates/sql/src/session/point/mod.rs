//! Prepared statements, and those of them that are about one row by its key: planned once, they find and
//! change the row without an operator.

mod compile;
mod run;

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::{DatabaseNames, DatabaseVersion};
use atoll_store::table::TableDefinition;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, Result, ScalarValue, TableReference, exec_err};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::resolve::resolve_table_references;
use parking_lot::Mutex;

use super::Session;
use super::execute::QueryResult;
use super::planner::StatementPlanner;
use crate::error::SqlError;
use crate::settings::SharedScan;
use crate::shared_scan::SharedSelection;
use crate::table::PlacedTable;
use compile::PointPlan;
pub(crate) use compile::{Parameters, compile, select_list};
pub(crate) use run::one_row;

/// A statement that a session runs with different values, `$1` and so on.
#[derive(Debug)]
pub struct PreparedStatement {
    session: Session,
    sql: Arc<str>,
    types: Vec<DataType>,
    shape: Mutex<PreparedShape>,
}

/// How a statement runs, as long as names mean what they meant when it was planned.
#[derive(Clone, Debug)]
struct PreparedShape {
    names: DatabaseNames,
    shape: Shape,
}

/// How a statement runs without being planned again.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// It finds a row by its key, or has its rows at hand.
    Point(Arc<PlannedPoint>),
    /// It selects rows of one table, together with other statements.
    Shared(Arc<SharedSelection>),
    /// It is planned whenever it runs.
    Planned,
}

impl Shape {
    /// Whether its table is declared as it was.
    fn is_current(&self, version: &DatabaseVersion) -> bool {
        match self {
            Self::Point(point) => point.table_in(version).is_some(),
            Self::Shared(selection) => selection.is_current(version),
            Self::Planned => true,
        }
    }
}

/// A plan, for as long as the table is declared as it was.
#[derive(Debug)]
pub(super) struct PlannedPoint {
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
        // Those from before it is planned: where they change meanwhile, it is planned once more.
        let names = self.database().store().published().names();
        let planned = self.plan_prepared(sql).await;
        let (types, shape) =
            planned.map_err(|error| SqlError::new(error, sql).with_near_names(self))?;
        let shape = Mutex::new(PreparedShape { names, shape });
        Ok(PreparedStatement { session: self.clone(), sql: sql.into(), types, shape })
    }

    pub(super) async fn plan_prepared(&self, sql: &str) -> Result<(Vec<DataType>, Shape)> {
        let transaction = self.statement_transaction()?;
        let statement = self.parse(sql)?.statement;
        let writes = self.prepared.writes(&statement);
        let planner = self.planner(&transaction, writes).await?;
        let normalizes = planner.state.config_options().sql_parser.enable_ident_normalization;
        let (names, _) = resolve_table_references(&statement, normalizes)?;
        let plan = planner.plan(statement).await?;
        let types = types_of(&plan)?;
        let may_be = matches!(
            plan,
            LogicalPlan::Dml(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::Distinct(_)
        );
        if !may_be || !are_tables(&planner, names)? || !is_fixed(&plan)? {
            return Ok((types, Shape::Planned));
        }
        let optimized = planner.state.optimize(&plan)?;
        let parameters = Parameters::new(&types)?;
        let point = compile(&planner.state, &optimized, &parameters)?;
        if let Some(plan) = point {
            let definition = Arc::clone(plan.table.definition());
            let point = PlannedPoint { table: plan.table.id(), definition, plan };
            return Ok((types, Shape::Point(Arc::new(point))));
        }
        let shared = SharedSelection::compile(&planner.state, &optimized, &parameters).await?;
        Ok((types, shared.map_or(Shape::Planned, |shared| Shape::Shared(Arc::new(shared)))))
    }
}

/// Whether names are those of tables: a view may become another one.
fn are_tables(planner: &StatementPlanner, names: Vec<TableReference>) -> Result<bool> {
    for name in names {
        let found = planner.names.table(&planner.resolve(name))?;
        if !found.is_some_and(|found| found.is::<PlacedTable>()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a plan computes the same from the same values whenever it runs: `now()` and `nextval('s')`
/// belong to the statement that they are planned for.
fn is_fixed(plan: &LogicalPlan) -> Result<bool> {
    let mut fixed = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| match expr {
                Expr::ScalarFunction(call)
                    if call.func.signature().volatility != Volatility::Immutable =>
                {
                    fixed = false;
                    Ok(TreeNodeRecursion::Stop)
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(fixed)
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
        let unfinished = self.session.unfinished();
        let result = self.try_execute(values).await;
        unfinished.ended(&result);
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
        let result = match self.current_shape().await? {
            Shape::Point(point) => self.run_point(&point, &values).await?,
            Shape::Shared(selection) => self.run_shared(&selection, &values).await?,
            Shape::Planned => None,
        };
        match result {
            Some(result) => Ok(result),
            None => self.run_planned(values).await,
        }
    }

    /// How it runs now.
    async fn current_shape(&self) -> Result<Shape> {
        let database = self.session.database();
        let version = database.store().published();
        {
            let planned = self.shape.lock();
            if planned.names.are_those_of(&version) && planned.shape.is_current(&version) {
                return Ok(planned.shape.clone());
            }
        }
        let (types, shape) = self.session.plan_prepared(&self.sql).await?;
        // With parameters of other types it is another statement, which the ordinary way refuses or answers.
        let shape = if types == self.types { shape } else { Shape::Planned };
        *self.shape.lock() = PreparedShape { names: version.names(), shape: shape.clone() };
        Ok(shape)
    }

    /// Selects rows together with others; none where that is off, or the ordinary way has to answer.
    async fn run_shared(
        &self,
        selection: &SharedSelection,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let session = &self.session;
        if session.is_in_transaction() || session.shared_scan() == SharedScan::Off {
            return Ok(None);
        }
        let values = run::arrays(values)?;
        let Some(bound) = selection.bind(&values)? else { return Ok(None) };
        let rows = bound.ride(session).await?;
        Ok(rows.map(|rows| QueryResult::of_scan(selection.schema(), rows, Arc::clone(&self.sql))))
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
