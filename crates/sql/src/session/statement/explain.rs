//! EXPLAIN output about shared scans: whether a selection from one table would share a scan, and why not; and the plan
//! in PostgreSQL's JSON format.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Explain, ExplainFormat, LogicalPlan};
use serde_json::Value;

use crate::compiled::Parameters;
use crate::session::Session;
use crate::session::cache::point::compile;
use crate::session::dml::write::has_effects;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::query_result::QueryResult;
use crate::shared_scan::sharing;
use atoll_sql_common::pg_type::as_json;
use atoll_sql_common::settings::SharedScan;
use atoll_sql_parse::parse::explain_analyzes;

/// The row's type, next to `physical_plan`.
const ROW: &str = "shared_scan";

impl Session {
    /// Runs EXPLAIN; after the plan of a selection from one table it says whether that shares scans.
    pub(in crate::session) async fn explain(
        &self,
        planner: StatementPlanner,
        explain: Explain,
        writes: bool,
        sql: &str,
    ) -> Result<QueryResult> {
        if explain.explain_format == ExplainFormat::PostgresJSON {
            let mut plan = planner.state.optimize(&explain.plan)?.display_pg_json().to_string();
            if explain_analyzes(sql) {
                let begun = Instant::now();
                let run = Arc::unwrap_or_clone(explain.plan);
                let rows = match writes || has_effects(&run)? {
                    true => {
                        self.write(planner, run, sql).await?;
                        None
                    }
                    false => Some(self.query(planner, run, sql).await?.count_rows().await?),
                };
                plan = analyzed(&plan, rows, begun.elapsed())?;
            }
            let column: ArrayRef = Arc::new(StringArray::from(vec![plan]));
            let batch = RecordBatch::try_new(json_schema(), vec![column])?;
            return Ok(QueryResult::from_batches(batch.schema(), vec![batch], sql));
        }
        let says = match (self.shared_scan(), &explain.explain_format) {
            (SharedScan::Off, _) | (_, ExplainFormat::Tree) => None,
            _ => says(&planner, &explain.plan)?,
        };
        let mut result = self.query(planner, LogicalPlan::Explain(explain), sql).await?;
        if let Some(says) = says {
            result.last = Some(row(&result, &says)?);
        }
        Ok(result)
    }
}

/// The column of EXPLAIN (FORMAT JSON).
pub(in crate::session) fn json_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![as_json(Field::new("QUERY PLAN", DataType::Utf8, false))]))
}

/// The plan in JSON with what a run of it adds: its time, and the rows of a query at the root.
fn analyzed(plan: &str, rows: Option<usize>, took: Duration) -> Result<String> {
    let failed = |error| DataFusionError::External(Box::new(error));
    let mut plan: Value = serde_json::from_str(plan).map_err(failed)?;
    if let Some(root) = plan.get_mut(0) {
        if let Some(rows) = rows {
            root["Plan"]["Actual Rows"] = rows.into();
        }
        root["Execution Time"] = ((took.as_secs_f64() * 1e6).round() / 1e3).into();
    }
    serde_json::to_string_pretty(&plan).map_err(failed)
}

/// The text for a plan; `None` if it is not a selection from one table, or finds its row by a key.
fn says(planner: &StatementPlanner, plan: &LogicalPlan) -> Result<Option<String>> {
    let (state, parameters) = (&planner.state, Parameters::new(&[])?);
    let optimized = state.optimize(plan)?;
    match compile(state, &optimized, &parameters)? {
        Some(_) => Ok(None),
        None => sharing(state, &optimized, &parameters),
    }
}

fn row(result: &QueryResult, says: &str) -> Result<RecordBatch> {
    let schema = Arc::clone(result.schema());
    let columns = [ROW, says].into_iter().zip(schema.fields()).map(|(text, field)| {
        let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
        Ok(cast(&text, field.data_type())?)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(schema, columns)?)
}
