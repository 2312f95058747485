//! Errors are reported, and release everything.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_placement::FixedBudget;
use atoll_primitives::aggregate::{Aggregate, Function, Query, Variant};
use atoll_primitives::{Part, PrimitiveError};
use atoll_testkit::machines;
use atoll_topology::Bytes;

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::{context, parts, run, sum_by, two_workers};

fn rows(count: usize) -> (SchemaRef, RecordBatch) {
    let keys = numbers(1, count, Spread::Distinct).into_iter().map(|key| Some(sparse(key)));
    let values = with_nulls(2, &numbers(2, count, Spread::Uniform(1000)), 0.0);
    let keys: Vec<Option<u64>> = keys.collect();
    batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)])
}

#[track_caller]
fn error(query: &Query, schema: &SchemaRef, parts: &[Part]) -> PrimitiveError {
    let context = two_workers();
    run(&context, query, schema, parts, Variant::Auto).expect_err("it cannot work")
}

#[test]
fn unknown_positions_and_types_are_errors() {
    let (schema, rows) = rows(10);
    let parts = [Part::new(None, rows)];
    let sum = |column| Aggregate { function: Function::Sum, column };
    for query in [
        Query { keys: vec![2], aggregates: vec![] },
        Query { keys: vec![0], aggregates: vec![sum(2)] },
        Query { keys: vec![0], aggregates: vec![sum(usize::MAX)] },
    ] {
        let error = error(&query, &schema, &parts);
        assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
    }
}

#[test]
fn functions_of_unsupported_types_are_errors() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let (schema, rows) = batch(vec![Arc::new(Int32Array::from(vec![1, 2])), text]);
    for function in [Function::Sum, Function::Avg, Function::Min, Function::Max] {
        let query = Query { keys: vec![0], aggregates: vec![Aggregate { function, column: 1 }] };
        let error = error(&query, &schema, &[Part::new(None, rows.clone())]);
        assert!(matches!(error, PrimitiveError::Type { .. }), "{error}");
    }
}

#[test]
fn parts_of_another_schema_are_errors() {
    let (schema, rows) = rows(10);
    let (_, fewer) = batch(vec![rows.column(0).clone()]);
    let (_, other_key) =
        batch(vec![Arc::new(Int32Array::from(vec![1])), rows.column(1).slice(0, 1)]);
    let (_, other_value) =
        batch(vec![rows.column(0).slice(0, 1), Arc::new(Int32Array::from(vec![1]))]);
    for other in [fewer, other_key, other_value] {
        let parts = [Part::new(None, rows.clone()), Part::new(None, other)];
        let error = error(&sum_by(1), &schema, &parts);
        assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
    }
    let wrong = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("v", DataType::Int64, true),
    ]));
    let error = error(&sum_by(1), &wrong, &[Part::new(None, rows)]);
    assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
}

#[test]
fn a_budget_that_is_too_small_is_an_error_and_gets_everything_back() {
    let (schema, rows) = rows(60_000);
    let (schema_of_text, text) = {
        let keys = with_nulls(1, &numbers(1, 20_000, Spread::Distinct), 0.0);
        let values = column(&DataType::Int64, &keys);
        batch(vec![column(&DataType::Utf8, &keys), values])
    };
    for variant in Variant::ALL {
        let mut failed = 0;
        for limit in (10..25).map(|power| Bytes(1 << power)) {
            let budget = Arc::new(FixedBudget::new(limit));
            let context = context(machines::two_nodes(), Some(3), Some(budget.clone()));
            for (schema, rows) in [(&schema, &rows), (&schema_of_text, &text)] {
                let parts = parts(rows, 5, &[None, Some(1)]);
                // Every third text is empty.
                let groups = if schema == &schema_of_text { 13_335 } else { rows.num_rows() };
                match run(&context, &sum_by(1), schema, &parts, variant) {
                    Ok(outcome) => {
                        let count: usize = outcome.batches.iter().map(RecordBatch::num_rows).sum();
                        assert_eq!(count, groups);
                    }
                    Err(PrimitiveError::Memory(_)) => failed += 1,
                    Err(other) => panic!("{variant}, {limit}: {other}"),
                }
                assert_eq!(budget.used(), Bytes(0), "{variant}, {limit}");
            }
        }
        assert!(failed > 4, "{variant}: {failed} runs failed");
    }
}

#[test]
fn a_cancelled_aggregation_ends_as_cancelled() {
    let (schema, rows) = rows(30_000);
    let parts = parts(&rows, 5, &[None]);
    for variant in Variant::ALL {
        let context = two_workers();
        context.cancel().cancel();
        let error = run(&context, &sum_by(1), &schema, &parts, variant).expect_err("cancelled");
        assert!(matches!(error, PrimitiveError::Cancelled(_)), "{variant}: {error}");
    }
}

#[test]
fn an_error_in_one_run_does_not_spoil_the_next() {
    let budget = Arc::new(FixedBudget::new(Bytes(3 << 20)));
    let context = context(machines::one_node(), Some(2), Some(budget));
    let (schema, many) = rows(200_000);
    let (_, few) = rows(100);
    for _ in 0..2 {
        let failed = run(&context, &sum_by(1), &schema, &parts(&many, 2, &[None]), Variant::Auto);
        assert!(matches!(failed, Err(PrimitiveError::Memory(_))), "{failed:?}");
        super::assert_right(&context, &sum_by(1), &schema, &parts(&few, 2, &[None]));
    }
}
