//! `INSERT INTO`: loads its input and publishes the chunks when all of them are there.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

use super::PlacedTable;
use super::load::load;
use super::write::TableWrite;

/// Appends rows to a table.
#[derive(Debug)]
pub(super) struct Insert(pub(super) PlacedTable);

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, placement={}", self.0.name, self.0.strategy())
    }
}

impl TableWrite for Insert {
    fn name(&self) -> &'static str {
        "InsertExec"
    }

    fn distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    fn run(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> BoxFuture<'static, Result<usize>> {
        let table = self.0.clone();
        Box::pin(async move {
            let chunks = load(input, context, &table).await?;
            let rows = chunks.iter().map(|chunk| chunk.rows).sum();
            table.append(chunks)?;
            Ok(rows)
        })
    }
}
