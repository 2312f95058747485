//! Same cut points for tables that are joined by the key they are sorted by.
//!
//! ```text
//! orders    │ keys below 3000001 │ from 3000001 on │      worker 0 joins the left parts,
//! lineitem  │ keys below 3000001 │ from 3000001 on │      worker 1 the right ones: no exchange
//! ```
//!
//! Each table is cut by its own row counts when it is scanned. A hash join of two inputs that are
//! both cut by the join key gets the points of the larger table on both sides; then partition p of
//! one side meets partition p of the other, DataFusion plans no exchange, and both sides of the
//! join are built and probed in parallel on the nodes of the rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr, RangePartitioning};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::polled_probes::waits_for_siblings;
use crate::scan::{ScanExec, whole_number};
use atoll_sql_common::operator::OperatorRule;

/// Gives joined tables common cuts; see the module.
#[derive(Debug)]
pub(crate) struct CommonCuts;

impl OperatorRule for CommonCuts {
    const NAME: &'static str = "CommonCuts";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        common(join)
    }
}

/// The join with both sides cut at the same points; `None` if a side is not cut by its key.
fn common(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let [(left_key, right_key)] = join.on() else { return Ok(None) };
    let (left, right) = (join.left(), join.right());
    // A cut join has no exchange to its probe side that would poll all siblings.
    if waits_for_siblings(right) {
        return Ok(None);
    }
    let (Some(left_cut), Some(right_cut)) = (cut_by(left, left_key), cut_by(right, right_key))
    else {
        return Ok(None);
    };
    let (left_points, right_points) = (points(left_cut), points(right_cut));
    let (Some(left_points), Some(right_points)) = (left_points, right_points) else {
        return Ok(None);
    };
    let sides = if left_points == right_points {
        Some((Arc::clone(left), Arc::clone(right)))
    } else if rows_cut_at(left, &left_points) > rows_cut_at(right, &right_points) {
        recut(right, &right_points, &left_points)?.map(|right| (Arc::clone(left), right))
    } else {
        recut(left, &left_points, &right_points)?.map(|left| (left, Arc::clone(right)))
    };
    let Some((left, right)) = sides else { return Ok(None) };
    let joined = join
        .builder()
        .with_partition_mode(PartitionMode::Partitioned)
        .with_new_children(vec![left, right])?
        .recompute_properties()
        .build_exec()?;
    Ok(Some(joined))
}

/// The cut of a plan's partitions, if they are cut by that key.
fn cut_by<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    key: &Arc<dyn PhysicalExpr>,
) -> Option<&'a RangePartitioning> {
    let Partitioning::Range(range) = plan.output_partitioning() else { return None };
    let [ordered] = &range.ordering()[..] else { return None };
    let same = key.is::<Column>()
        && plan.equivalence_properties().eq_group().exprs_equal(&ordered.expr, key);
    same.then_some(range)
}

fn points(range: &RangePartitioning) -> Option<Vec<i64>> {
    let point = |values: &[_]| match values {
        [value] => whole_number(value),
        _ => None,
    };
    range.split_points().iter().map(|split| point(split.values())).collect()
}

/// Rows of the largest table below that is cut there.
fn rows_cut_at(plan: &Arc<dyn ExecutionPlan>, points: &[i64]) -> usize {
    let own = plan
        .downcast_ref::<ScanExec>()
        .filter(|scan| scan.is_cut_at(points))
        .map_or(0, ScanExec::table_rows);
    let below = plan.children().into_iter().map(|child| rows_cut_at(child, points));
    below.fold(own, usize::max)
}

/// The plan with every scan that is cut at `from` cut at `to`; `None` if one of them cannot be.
fn recut(
    plan: &Arc<dyn ExecutionPlan>,
    from: &[i64],
    to: &[i64],
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut possible = true;
    let plan = Arc::clone(plan)
        .transform_up(|plan| {
            let Some(scan) = plan.downcast_ref::<ScanExec>().filter(|scan| scan.is_cut_at(from))
            else {
                return Ok(Transformed::no(plan));
            };
            Ok(match scan.with_cut_points(to)? {
                Some(scan) => Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>),
                None => {
                    possible = false;
                    Transformed::no(plan)
                }
            })
        })
        .data()?;
    let cut = matches!(
        plan.output_partitioning(),
        Partitioning::Range(range) if points(range).as_deref() == Some(to)
    );
    Ok((possible && cut).then_some(plan))
}
