//! What traces tell of a statement: when its steps ended, and what its operators did.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

/// Operators that are told of at most.
const OPERATORS_MAX: usize = 256;

/// The steps of a statement. Those that it was spared, as by a plan that was kept, are none.
#[derive(Clone, Debug, Default)]
pub struct StatementSteps {
    /// When it was parsed.
    pub parsed: Option<SystemTime>,
    /// When it was planned.
    pub planned: Option<SystemTime>,
    /// What its operators did, each behind the one that it gives its rows to.
    pub operators: Vec<OperatorSteps>,
}

/// What an operator did, over all its partitions.
#[derive(Clone, Debug)]
pub struct OperatorSteps {
    /// Its name in EXPLAIN.
    pub name: String,
    /// The place of the one that it gives its rows to.
    pub parent: Option<usize>,
    /// When its first partition began.
    pub begun: Option<SystemTime>,
    /// When its last one ended.
    pub ended: Option<SystemTime>,
    /// Rows that it gave.
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
    /// The statement is parsed now.
    pub(crate) fn parsed(&mut self) {
        *self = Self { parsed: Some(SystemTime::now()), ..Self::default() };
    }

    /// The statement is planned now.
    pub(crate) fn planned(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        self.planned = Some(SystemTime::now());
        self.plan = Some(Arc::clone(plan));
    }

    /// The statement has ended. Its plan ends with it.
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

/// When the partitions of an operator began, or ended.
fn times(metrics: &MetricsSet, ends: bool) -> impl Iterator<Item = SystemTime> {
    metrics.iter().filter_map(move |metric| match metric.value() {
        MetricValue::StartTimestamp(time) if !ends => time.value().map(SystemTime::from),
        MetricValue::EndTimestamp(time) if ends => time.value().map(SystemTime::from),
        _ => None,
    })
}
