//! The steps of a statement for traces: when they ended, and what its operators did.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

/// The most operators that a trace lists.
const OPERATORS_MAX: usize = 256;

/// The steps of a statement. Steps that it skipped, as with a cached plan, are `None`.
#[derive(Clone, Debug, Default)]
pub struct StatementSteps {
    /// When it was parsed.
    pub parsed: Option<SystemTime>,
    /// When it was planned.
    pub planned: Option<SystemTime>,
    /// Its operators, each after its parent.
    pub operators: Vec<OperatorSteps>,
}

/// The work of an operator, over all its partitions.
#[derive(Clone, Debug)]
pub struct OperatorSteps {
    /// Its name in EXPLAIN.
    pub name: String,
    /// The index of its parent.
    pub parent: Option<usize>,
    /// When its first partition began.
    pub begun: Option<SystemTime>,
    /// When its last one ended.
    pub ended: Option<SystemTime>,
    /// Rows that it returned.
    pub rows: u64,
    /// The time that all its partitions took, without waiting.
    pub busy: Duration,
}

/// The steps of a statement that runs.
#[derive(Debug, Default)]
pub(crate) struct RunningSteps {
    parsed: Option<SystemTime>,
    planned: Option<SystemTime>,
    plan: Option<Arc<dyn ExecutionPlan>>,
}

impl RunningSteps {
    /// Notes that the statement has been parsed.
    pub(crate) fn parsed(&mut self) {
        *self = Self { parsed: Some(SystemTime::now()), ..Self::default() };
    }

    /// Notes that the statement has been planned.
    pub(crate) fn planned(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        self.planned = Some(SystemTime::now());
        self.plan = Some(Arc::clone(plan));
    }

    /// The steps of the statement, which has ended.
    pub(crate) fn ended(self) -> StatementSteps {
        let mut operators = Vec::new();
        if let Some(plan) = &self.plan {
            add(plan, None, &mut operators);
        }
        StatementSteps { parsed: self.parsed, planned: self.planned, operators }
    }
}

fn add(plan: &Arc<dyn ExecutionPlan>, parent: Option<usize>, all: &mut Vec<OperatorSteps>) {
    if all.len() >= OPERATORS_MAX {
        return;
    }
    let (at, metrics) = (all.len(), plan.metrics().unwrap_or_default());
    all.push(OperatorSteps {
        name: plan.name().to_owned(),
        parent,
        begun: times(&metrics, false).min(),
        ended: times(&metrics, true).max(),
        rows: metrics.output_rows().unwrap_or_default() as u64,
        busy: Duration::from_nanos(metrics.elapsed_compute().unwrap_or_default() as u64),
    });
    plan.children().into_iter().for_each(|child| add(child, Some(at), all));
}

/// The times when the partitions of an operator began, or ended.
fn times(metrics: &MetricsSet, ends: bool) -> impl Iterator<Item = SystemTime> {
    metrics.iter().filter_map(move |metric| match metric.value() {
        MetricValue::StartTimestamp(time) if !ends => time.value().map(SystemTime::from),
        MetricValue::EndTimestamp(time) if ends => time.value().map(SystemTime::from),
        _ => None,
    })
}
