//! All variants of aggregation against a slow, readable one.

mod by_hand;
mod choice;
mod data;
mod failures;
mod functions;
mod keys;
mod meeting;
mod reference;
mod shapes;
mod steps;
mod streaming;
mod strings;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use atoll_placement::{Arena, Budget};
use atoll_primitives::aggregate::{Aggregate, Function, Outcome, Query, Variant, aggregate};
use atoll_primitives::{Context, Part, PrimitiveError, Tuning};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::Machine;

/// Workers on a synthetic machine; blocks are small, so that few rows make many blocks.
fn context(machine: Machine, threads: Option<usize>, budget: Option<Arc<dyn Budget>>) -> Context {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let options = RuntimeOptions { threads, ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(&machine), kernel.clone(), options);
    let arena = Arena::new(machine, kernel, budget);
    let tuning = Tuning { block_rows: 500, ..Tuning::default() };
    Context::new(runtime.expect("the runtime starts"), arena).with_tuning(tuning)
}

fn two_workers() -> Context {
    context(machines::one_node(), Some(2), None)
}

fn run(
    context: &Context,
    query: &Query,
    schema: &SchemaRef,
    parts: &[Part],
    variant: Variant,
) -> Result<Outcome, PrimitiveError> {
    context.runtime().block_on(aggregate(context, query, schema, parts, variant))
}

/// The sum of the column after the keys.
fn sum_by(keys: usize) -> Query {
    let sum = Aggregate { function: Function::Sum, column: keys };
    Query { keys: (0..keys).collect(), aggregates: vec![sum] }
}

/// Rows cut into parts of this length, with homes in turn.
fn parts(rows: &RecordBatch, count: usize, homes: &[Option<u32>]) -> Vec<Part> {
    let len = rows.num_rows().div_ceil(count).max(1);
    (0..rows.num_rows())
        .step_by(len)
        .enumerate()
        .map(|(at, start)| {
            let home = homes[at % homes.len()].map(atoll_topology::NodeId);
            Part::new(home, rows.slice(start, len.min(rows.num_rows() - start)))
        })
        .collect()
}

/// Asserts that every variant returns the reference's result.
#[track_caller]
fn assert_right(context: &Context, query: &Query, schema: &SchemaRef, parts: &[Part]) {
    let expected = reference::group(query, parts);
    for variant in Variant::ALL {
        let found = run(context, query, schema, parts, variant);
        let Some(expected) = &expected else {
            let error = found.expect_err("it overflows");
            assert!(matches!(error, PrimitiveError::Overflow { .. }), "{variant}: {error}");
            continue;
        };
        let outcome = found.unwrap_or_else(|error| panic!("{variant}: {error}"));
        for batch in &outcome.batches {
            assert_eq!(batch.schema(), outcome.schema);
        }
        let rows = reference::rows(query.keys.len(), &outcome.batches);
        reference::assert_same(&rows, expected, &outcome.reason);
    }
}
