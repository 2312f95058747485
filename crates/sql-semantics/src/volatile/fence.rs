//! The fence that filters do not pass, and the physical rule that keeps filters above the volatile calls
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

/// Puts a [`FenceExec`] over every projection that makes volatile calls. A projection of DataFusion
/// 55 hands filters on its columns down as filters on the calls that make them.
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

/// Passes rows on, and down only filters on columns for which it is open.
pub type FenceExec = PassThroughExec<Fence>;

/// Which filters may sink below a [`FenceExec`].
#[derive(Clone, Debug)]
pub struct Fence {
    /// Those that read only columns with these numbers; none where no filter may.
    open: Option<HashSet<usize>>,
}

impl Fence {
    /// A fence that filters pass which name only these columns.
    pub fn open_for(
        columns: HashSet<usize>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Arc<dyn ExecutionPlan> {
        FenceExec::plan(input, Self { open: Some(columns) })
    }

    /// A fence that no filter passes.
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

    /// Rows that are known to be so many are computed nevertheless.
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
