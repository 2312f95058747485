//! Stops filters on columns with a namesake from being pushed down.
//!
//! An operator hands a filter to its input by the names of the columns (DataFusion 55.2,
//! `filter_pushdown.rs`, `FilterRemapper`; apache/datafusion#25296). Above a join of two tables that both have a column
//! `id`, a filter on the second `id` would come out as one on the first, and rows would be lost. While filters
//! sink, every operator with such columns has a fence above it, which lets only the other filters pass.
//!
//! A semi-join hands filters on its keys to the side that it does not return as well, where they would
//! be filters on another column that is called like the key. That side has a fence above it too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::HashJoinExec;

use atoll_sql_semantics::volatile::{Fence, FenceExec};

/// One of DataFusion's rules that push filters down, between fences; see the module.
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
            let plan = fenced_semi_join(plan)?;
            let names = once(&plan.data.schema());
            Ok(match names.len() == plan.data.schema().fields().len() {
                true => plan,
                false => Transformed::yes(Fence::open_for(names, &plan.data)),
            })
        })?;
        let sunk = self.sinking.optimize(fenced.data, config)?;
        if !fenced.transformed {
            return Ok(sunk);
        }
        sunk.transform_up(|plan| {
            let inner = plan.downcast_ref::<FenceExec>().filter(|fence| fence.pass().is_open());
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

/// The plan; a semi-join gets a fence above columns of the other side that have the name of a key which they are
/// not compared with.
fn fenced_semi_join(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
    let (other, is_left) = match join.join_type() {
        JoinType::LeftSemi => (join.right(), false),
        JoinType::RightSemi => (join.left(), true),
        _ => return Ok(Transformed::no(plan)),
    };
    let keys =
        join.on().iter().map(|(left, right)| if is_left { (right, left) } else { (left, right) });
    let mut open: HashSet<usize> = (0..other.schema().fields().len()).collect();
    for (returned, compared) in keys {
        let Some(returned) = column(returned) else { continue };
        let compared = column(compared).map(Column::index);
        let schema = other.schema();
        open.retain(|at| schema.field(*at).name() != returned.name() || Some(*at) == compared);
    }
    if open.len() == other.schema().fields().len() {
        return Ok(Transformed::no(plan));
    }
    let fence = Fence::open_for(open, other);
    let mut sides: Vec<_> = join.children().into_iter().cloned().collect();
    sides[usize::from(!is_left)] = fence;
    replace_children_if_necessary(plan, sides).map(Transformed::yes)
}

fn column(key: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    key.downcast_ref::<Column>()
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
