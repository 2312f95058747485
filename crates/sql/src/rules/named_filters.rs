//! Filters that name a column which has a namesake go no further down.
//!
//! An operator hands a filter to its input by the names of the columns (DataFusion 55.2,
//! `filter_pushdown.rs`, `FilterRemapper`). Above a join of two tables that both have a column `id`, a
//! filter on the second `id` would come out as one on the first, and rows would be lost. While filters
//! sink, every operator with such columns has a fence above it, which lets only the other filters pass.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::volatile::FenceExec;

/// One of DataFusion's rules that have filters sink, between fences; see the module.
#[derive(Debug)]
pub(crate) struct NamedFilters {
    sinking: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl NamedFilters {
    /// That rule, between fences.
    pub(crate) fn around(sinking: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { sinking }
    }
}

impl PhysicalOptimizerRule for NamedFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let fenced = plan.transform_up(|plan| {
            let names = once(&plan.schema());
            Ok(match names.len() == plan.schema().fields().len() {
                true => Transformed::no(plan),
                false => Transformed::yes(FenceExec::open_for(names, &plan)),
            })
        })?;
        let sunk = self.sinking.optimize(fenced.data, config)?;
        if !fenced.transformed {
            return Ok(sunk);
        }
        sunk.transform_up(|plan| {
            let inner = plan.downcast_ref::<FenceExec>().filter(|fence| fence.is_open());
            Ok(match inner.map(|fence| Arc::clone(fence.input())) {
                Some(input) => Transformed::yes(input),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        self.sinking.name()
    }

    fn schema_check(&self) -> bool {
        self.sinking.schema_check()
    }
}

/// The columns whose names occur once.
fn once(schema: &Schema) -> HashSet<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(schema.fields().len());
    for field in schema.fields() {
        *counts.entry(field.name()).or_default() += 1;
    }
    let is_single = |at: &usize| counts[schema.field(*at).name().as_str()] == 1;
    (0..schema.fields().len()).filter(is_single).collect()
}
