//! The fence that stops filters, and the physical rule that keeps filters above the volatile calls
//! whose results they test.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, Statistics};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::called::with_called;
use atoll_sql_common::operator::{OperatorRule, PassThrough, PassThroughExec};

/// Puts a [`FenceExec`] over every projection that makes volatile calls. A projection in DataFusion
/// 55 pushes filters on its columns down as filters on the calls that compute them.
#[derive(Debug)]
pub struct VolatileFences;

impl OperatorRule for VolatileFences {
    const NAME: &'static str = "VolatileFences";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
        if !projection.expr().iter().any(|made| is_volatile(&made.expr)) {
            return Ok(None);
        }
        let made = projection.expr().iter().map(|made| {
            Ok(ProjectionExpr { expr: with_called(&made.expr)?, alias: made.alias.clone() })
        });
        let made = made.collect::<Result<Vec<_>>>()?;
        let called: Arc<dyn ExecutionPlan> =
            Arc::new(ProjectionExec::try_new(made, Arc::clone(projection.input()))?);
        Ok(Some(Fence::closed(&called)))
    }
}

/// Passes rows on, and only pushes down filters on certain columns.
pub type FenceExec = PassThroughExec<Fence>;

/// Which filters may be pushed below a [`FenceExec`].
#[derive(Clone, Debug)]
pub struct Fence {
    /// Those that only reference columns with these indices; None if no filter may pass.
    open: Option<HashSet<usize>>,
}

impl Fence {
    /// A fence for filters that only reference these columns.
    pub fn open_for(
        columns: HashSet<usize>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Arc<dyn ExecutionPlan> {
        FenceExec::plan(input, Self { open: Some(columns) })
    }

    /// A fence that stops all filters.
    pub(crate) fn closed(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        FenceExec::plan(input, Self { open: None })
    }

    /// Whether some filters may pass.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

impl PassThrough for Fence {
    const NAME: &'static str = "FenceExec";

    /// Rows are computed even if their number is known.
    fn statistics(&self, input: &Arc<Statistics>) -> Arc<Statistics> {
        match self.open {
            Some(_) => Arc::clone(input),
            None => Arc::new(Statistics::clone(input).to_inexact()),
        }
    }

    fn passed_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<FilterDescription> {
        Ok(FilterDescription::new().with_child(match self.open.clone() {
            None => ChildFilterDescription::all_unsupported(&filters),
            Some(open) => {
                ChildFilterDescription::from_child_with_allowed_indices(&filters, open, input)?
            }
        }))
    }
}
