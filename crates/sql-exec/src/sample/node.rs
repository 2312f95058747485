//! The sample in logical plans, where no filter passes it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::{DFSchemaRef, Result, internal_err, plan_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::SampleExec;
use crate::scan::ScanExec;

/// The unit of drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub(super) enum SampleUnit {
    /// Each row separately (BERNOULLI).
    Row,
    /// All rows of a batch or none (SYSTEM).
    Batch,
}

/// How rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub(super) struct SampleDraw {
    pub(super) unit: SampleUnit,
    /// The share of rows out of 2^64; `None` for all.
    pub(super) share: Option<u64>,
    /// The seed of REPEATABLE.
    pub(super) seed: Option<u64>,
}

impl fmt::Display for SampleDraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            SampleUnit::Row => "rows",
            SampleUnit::Batch => "batches",
        };
        let percent = self.share.map_or(100.0, |share| share as f64 / 2f64.powi(64) * 100.0);
        write!(f, "unit={unit}, percent={percent:.6}")?;
        match self.seed {
            Some(seed) => write!(f, ", seed={seed}"),
            None => Ok(()),
        }
    }
}

/// A part of the input's rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sample {
    input: LogicalPlan,
    draw: SampleDraw,
}

impl Sample {
    pub(super) fn new(
        input: LogicalPlan,
        unit: SampleUnit,
        percent: f64,
        seed: Option<u64>,
    ) -> Self {
        let share = (percent < 100.0).then_some((percent / 100.0 * 2f64.powi(64)) as u64);
        Self { input, draw: SampleDraw { unit, share, seed } }
    }
}

impl PartialOrd for Sample {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.draw.partial_cmp(&other.draw) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            order => order,
        }
    }
}

impl UserDefinedLogicalNodeCore for Sample {
    fn name(&self) -> &str {
        "Sample"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample: {}", self.draw)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, draw: self.draw }),
            _ => internal_err!("Sample has one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

/// Plans [`Sample`].
pub struct SampleNodePlanner;

#[async_trait]
impl ExtensionPlanner for SampleNodePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn PlanningSession,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(sample) = node.as_any().downcast_ref::<Sample>() else { return Ok(None) };
        let [input] = physical_inputs else { return internal_err!("Sample has one input") };
        if sample.draw.seed.is_some() && !is_in_order(input) {
            return plan_err!(
                "REPEATABLE is not supported here: only stored tables give their rows in the same \
                 order each time; create one with CREATE TABLE … AS"
            );
        }
        Ok(Some(SampleExec::plan(input, sample.draw)))
    }
}

/// Whether each partition gives the same rows in the same order each time.
fn is_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>() {
        return plan.children().into_iter().all(is_in_order);
    }
    plan.is::<ScanExec>()
}
