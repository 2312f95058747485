//! Aggregation of rows that are all in memory: the workers are inputs and outputs of a [`Stage`].

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use atoll_runtime::TaskContext;
use atoll_topology::{Bytes, NodeId};

use super::estimate::KeySample;
use super::input::Input;
use super::plan::AggregatePlan;
use super::reader::Visit;
use super::report::{Phase, Spent};
use super::stream::{Collected, Collector, Ended, Expected, Gathered, Next, Outputs, Stage};
use super::{Outcome, Query, Variant, ranges};
use crate::{Context, Part, PrimitiveError, TaskFn};

/// Groups the rows of all parts.
pub(super) async fn run(
    context: &Context,
    query: &Query,
    schema: &Schema,
    parts: &[Part],
    variant: Variant,
) -> Result<Outcome, PrimitiveError> {
    let plan = AggregatePlan::new(query, schema)?;
    let input = Arc::new(Input::new(&plan, schema, parts)?);
    let mut phases = Vec::new();
    let workers = context.runtime().worker_count();
    let stage = |expected: &Expected| {
        Stage::new(context.clone(), query, schema, workers, expected, variant)
    };
    let mut known = vec![None; plan.key_types.len()];
    let mut own = stage(&expected(&input, &known))?;
    if own.packing().is_none() && input.has_numbers(&plan) {
        let (ranges, phase) = ranges::find(context, &input, known.len()).await?;
        phases.push(phase);
        known = ranges;
        own = stage(&expected(&input, &known))?;
    }
    let stage = Arc::new(own);
    look(&stage, &input);
    let gathered = Arc::new(collect(context, &stage, &input, &mut phases).await?.scheduled());
    let batches = read(context, &gathered, &mut phases).await?;
    let (variant, reason) = match stage.chosen() {
        Some((variant, reason)) => (variant, reason.to_owned()),
        None => (Variant::Local, "local: no rows".to_owned()),
    };
    Ok(Outcome { batches, schema: plan.schema().clone(), variant, reason, phases })
}

fn expected(input: &Input, ranges: &[Option<super::KeyRange>]) -> Expected {
    Expected { rows: Some(input.rows), counted: true, keys: input.keys(ranges) }
}

/// Decides by rows from all parts, if their keys fit words.
fn look(stage: &Stage, input: &Input) {
    let keys =
        stage.packing().and_then(|packing| Some((KeySample::sample(input, packing)?, packing)));
    if let Some((keys, packing)) = keys.filter(|_| input.rows > 0) {
        stage.decide_by(&keys, packing, input.rows);
    }
}

/// Collects on all workers, each reading the rows of its node first.
async fn collect(
    context: &Context,
    stage: &Arc<Stage>,
    input: &Arc<Input>,
    phases: &mut Vec<Phase>,
) -> Result<Gathered, PrimitiveError> {
    let (shared, rows) = (Arc::clone(stage), Arc::clone(input));
    let task = move |_, task: &TaskContext| one(&shared, &rows, task);
    let (ended, report) = context.on_workers("collect", task).await?;
    phases.push(Phase::from_report(&report));
    stage.settle(&ended)?;
    if ended.iter().all(Ended::is_finished) {
        let collected: Result<Vec<Collected>, _> = ended.into_iter().map(Ended::finish).collect();
        return Ok(Gathered::new(Arc::clone(stage), collected?));
    }
    let tasks = ended.into_iter().zip(nodes(context)).map(|(ended, node)| {
        let task: TaskFn<Collected> = Box::new(move |_: &TaskContext| ended.finish());
        (Some(node), task)
    });
    let (collected, report) = context.on_nodes("finish", tasks.collect()).await?;
    phases.push(Phase::from_report(&report));
    Ok(Gathered::new(Arc::clone(stage), collected))
}

/// Collects on one worker.
fn one(stage: &Arc<Stage>, input: &Input, task: &TaskContext) -> Result<Ended, PrimitiveError> {
    let node = task.node();
    let mut collector = Collector::new(Arc::clone(stage), Some(node));
    while let Some(morsel) = input.take(node) {
        task.check()?;
        let part = &input.parts[morsel.part];
        collector.push_rows(&part.rows, (morsel.start, morsel.len))?;
        let bytes = (morsel.len * input.row_bytes) as u64;
        task.count_read(part.home.unwrap_or(node), Bytes(bytes));
    }
    collector.end()
}

/// Reads the groups of all outputs.
async fn read(
    context: &Context,
    gathered: &Arc<Gathered>,
    phases: &mut Vec<Phase>,
) -> Result<Vec<RecordBatch>, PrimitiveError> {
    let outputs: Vec<Outputs> = nodes(context)
        .into_iter()
        .enumerate()
        .map(|(output, node)| Outputs::new(Arc::clone(gathered), output, Some(node), usize::MAX))
        .collect();
    let outputs = match gathered.travels() {
        Some(schedule) => {
            let visit =
                |outputs: &mut Outputs, visit: &crate::shuffle::Visit, task: &TaskContext| {
                    travel(outputs, visit.source.index(), task)
                };
            let shuffled = schedule.run(context, "aggregate", outputs, visit).await?;
            let spent = shuffled.states.iter().map(Outputs::spent).fold(Spent::default(), sum);
            phases.push(Phase {
                name: "aggregate".into(),
                time: shuffled.report.time,
                bytes: shuffled.report.bytes(),
                spent: Some(spent),
            });
            shuffled.states
        }
        None => outputs,
    };
    let name = if gathered.travels().is_some() { "result" } else { "aggregate" };
    let tasks = nodes(context).into_iter().zip(outputs).map(|(node, outputs)| {
        let task: TaskFn<(Vec<RecordBatch>, Spent)> =
            Box::new(move |task: &TaskContext| drain(outputs, task));
        (Some(node), task)
    });
    let (made, report) = context.on_nodes(name, tasks.collect()).await?;
    let spent = made.iter().map(|(_, spent)| *spent).fold(Spent::default(), sum);
    let phase = Phase::from_report(&report);
    phases.push(if name == "aggregate" { phase.with(spent) } else { phase });
    Ok(made.into_iter().flat_map(|(batches, _)| batches).collect())
}

/// Node of each worker.
fn nodes(context: &Context) -> Vec<NodeId> {
    context.runtime().workers().iter().map(|worker| worker.node).collect()
}

fn sum(mut all: Spent, more: Spent) -> Spent {
    all += more;
    all
}

/// Makes the visit of one input, if it is due.
fn travel(outputs: &mut Outputs, input: usize, task: &TaskContext) -> Result<(), PrimitiveError> {
    match outputs.due().filter(|visit| visit.input == input) {
        Some(visit) => {
            count(&visit, task);
            outputs.visit()
        }
        None => Ok(()),
    }
}

/// Reads the rest of an output.
fn drain(
    mut outputs: Outputs,
    task: &TaskContext,
) -> Result<(Vec<RecordBatch>, Spent), PrimitiveError> {
    let mut batches = Vec::new();
    loop {
        task.check()?;
        match outputs.advance()? {
            Next::Visit(visit) => {
                count(&visit, task);
                outputs.visit()?;
            }
            Next::Batch(batch) => batches.push(batch),
            Next::End => return Ok((batches, outputs.spent())),
        }
    }
}

fn count(visit: &Visit, task: &TaskContext) {
    task.count_read(visit.home.unwrap_or(task.node()), Bytes(visit.bytes as u64));
    if let Some((from, bytes)) = visit.copied {
        task.count_read(from, Bytes(bytes as u64));
    }
}
