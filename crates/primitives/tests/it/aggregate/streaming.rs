//! Rows that arrive batch by batch, against the slow aggregation: with all sizes of batches, numbers of inputs and
//! outputs, variants, and expectations about the input.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use atoll_placement::FixedBudget;
use atoll_primitives::aggregate::{
    Aggregate, Collector, Ended, Expected, Function, Gathered, KeyRange, Next, Outputs, Query,
    SortedGroups, Stage, Variant,
};
use atoll_primitives::{Context, Part, PrimitiveError};
use atoll_testkit::machines;
use atoll_topology::Bytes;
use proptest::prelude::*;
use proptest::sample::select;

use super::data::{Spread, batch, column, numbers, sparse, with_nulls};
use super::{context, reference, sum_by, two_workers};

/// How rows arrive and leave.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Rows of an input batch, and maximum of an output batch.
    pub(super) batch_in: usize,
    pub(super) batch_out: usize,
    pub(super) variant: Variant,
    pub(super) expected: Expected,
}

impl Shape {
    pub(super) fn plain(variant: Variant) -> Self {
        let expected = Expected::default();
        Self { inputs: 2, outputs: 2, batch_in: 1000, batch_out: 8192, variant, expected }
    }
}

/// Streams the rows, inputs in turn, and returns the batches of all outputs.
pub(super) fn stream(
    context: &Context,
    query: &Query,
    rows: &RecordBatch,
    shape: &Shape,
) -> Result<Vec<RecordBatch>, PrimitiveError> {
    let (context, schema) = (context.clone(), rows.schema());
    let (outputs, expected, variant) = (shape.outputs, &shape.expected, shape.variant);
    let stage = Arc::new(Stage::new(context, query, &schema, outputs, expected, variant)?);
    let collector = |_| Collector::new(Arc::clone(&stage), None);
    let mut collectors: Vec<Collector> = (0..shape.inputs).map(collector).collect();
    for (at, start) in (0..rows.num_rows()).step_by(shape.batch_in).enumerate() {
        let len = shape.batch_in.min(rows.num_rows() - start);
        collectors[at % shape.inputs].push(&rows.slice(start, len))?;
    }
    let gathered = gathered(&stage, collectors)?;
    let mut batches = Vec::new();
    for output in 0..outputs {
        let mut output = Outputs::new(Arc::clone(&gathered), output, None, shape.batch_out);
        loop {
            match output.advance()? {
                Next::Visit { .. } => output.visit()?,
                Next::Batch(batch) => batches.push(batch),
                Next::End => break,
            }
        }
    }
    assert!(batches.iter().all(|batch| (1..=shape.batch_out).contains(&batch.num_rows())));
    Ok(batches)
}

/// The results of the collectors, each ended and finished.
pub(super) fn gathered(
    stage: &Arc<Stage>,
    collectors: Vec<Collector>,
) -> Result<Arc<Gathered>, PrimitiveError> {
    let ended: Result<Vec<Ended>, _> = collectors.into_iter().map(Collector::end).collect();
    let ended = ended?;
    stage.settle(&ended)?;
    let collected: Result<Vec<_>, _> = ended.into_iter().map(Ended::finish).collect();
    Ok(Arc::new(Gathered::new(Arc::clone(stage), collected?)))
}

#[track_caller]
pub(super) fn assert_streams_right(
    context: &Context,
    query: &Query,
    rows: &RecordBatch,
    shape: &Shape,
) {
    let parts = [Part::new(None, rows.clone())];
    let expected = reference::group(query, &parts).expect("nothing overflows");
    let batches = stream(context, query, rows, shape).unwrap_or_else(|error| panic!("{error}"));
    let found = reference::rows(query.keys.len(), &batches);
    reference::assert_same(&found, &expected, &format!("{shape:?}"));
}

fn key_types() -> Vec<Vec<DataType>> {
    use DataType as T;
    let codes = T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8));
    vec![
        vec![T::Int64],
        vec![T::Int8],
        vec![T::Float64],
        vec![T::Utf8View],
        vec![T::Decimal128(9, 2)],
        vec![T::Int8, T::Utf8View],
        vec![T::Date32, T::Int16],
        vec![T::Int64, T::Int64],
        vec![T::Utf8],
        vec![T::Boolean, codes],
        vec![],
    ]
}

fn spreads() -> Vec<Spread> {
    let (few, many) = (Spread::Uniform(5), Spread::Uniform(2000));
    vec![few, many, Spread::Zipf(500), Spread::Hot(300), Spread::Distinct, Spread::Sorted(50)]
}

/// Key columns, then values with and without nulls, and what to do with them.
fn case(types: &[DataType], spread: Spread, count: usize, seed: u64) -> (Query, RecordBatch) {
    let values = [DataType::Int64, DataType::Decimal128(9, 2), DataType::Decimal128(38, 10)];
    let mut columns = Vec::new();
    for (at, data_type) in types.iter().enumerate() {
        let numbers = numbers(seed + at as u64, count, spread);
        let share = [0.0, 0.2][(seed as usize + at) % 2];
        columns.push(column(data_type, &with_nulls(seed, &numbers, share)));
    }
    for (at, data_type) in values.iter().enumerate() {
        let numbers = numbers(seed + 7 + at as u64, count, Spread::Uniform(1000));
        columns.push(column(data_type, &with_nulls(seed + 3, &numbers, 0.3 * at as f64)));
    }
    let functions = [Function::CountRows, Function::Count, Function::Sum, Function::Avg];
    let functions = functions.into_iter().chain([Function::Min, Function::Max]);
    let of = |function| (0..values.len()).map(move |at| (function, at));
    let aggregate = |(function, at)| Aggregate { function, column: types.len() + at };
    let aggregates = functions.flat_map(of).map(aggregate).collect();
    (Query { keys: (0..types.len()).collect(), aggregates }, batch(columns).1)
}

/// Ranges that are right for some keys and wrong for others, and row counts that are never right.
fn expectations(keys: usize) -> Vec<Expected> {
    let told = |rows, key| Expected { rows, keys: vec![key; keys], ..Expected::default() };
    vec![
        Expected::default(),
        told(None, (false, None)),
        told(Some(0), (true, Some(KeyRange { min: 0, max: 4 }))),
        told(Some(usize::MAX), (false, Some(KeyRange { min: 0, max: 2000 }))),
        told(Some(1 << 40), (true, Some(KeyRange { min: -1, max: -1 }))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn streams_of_every_shape_come_to_what_the_reference_comes_to(
        seed in 0_u64..1 << 40,
        count in select(vec![0_usize, 1, 2, 5, 300, 1500]),
        types in select(key_types()),
        spread in select(spreads()),
        (inputs, outputs) in (1_usize..8, 1_usize..8),
        batch_in in select(vec![1_usize, 2, 3, 511, 512, 1000, 5000]),
        batch_out in select(vec![1_usize, 2, 64, 8192]),
        variant in select(Variant::ALL.to_vec()),
        told in 0_usize..5,
    ) {
        let (query, rows) = case(&types, spread, count, seed);
        let expected = expectations(types.len()).swap_remove(told);
        let shape = Shape { inputs, outputs, batch_in, batch_out, variant, expected };
        assert_streams_right(&two_workers(), &query, &rows, &shape);
    }

    #[test]
    fn runs_come_to_what_the_reference_comes_to_whatever_was_told(
        seed in 0_u64..1 << 40,
        keys in select(vec![1_u64, 40, 900]),
        count in select(vec![0_usize, 1, 2, 5, 300, 1500]),
        batch_in in select(vec![1_usize, 2, 3, 511, 5000]),
        data_type in select(vec![DataType::Int64, DataType::Int16, DataType::Date32]),
        told in 1_usize..5,
    ) {
        let (query, rows) = case(&[data_type], Spread::Sorted(keys), count, seed & !1);
        let expected = expectations(1).swap_remove(told);
        let told = expected.keys;
        let Some(batches) = runs(&two_workers(), &query, &rows, batch_in, &told) else {
            return Ok(());
        };
        let wanted = reference::group(&query, &[Part::new(None, rows)]).expect("nothing overflows");
        let found = reference::rows(1, &batches);
        reference::assert_same(&found, &wanted, &format!("{told:?}"));
    }
}

/// The groups of grouped rows; None if their keys are not expected to fit a word.
fn runs(
    context: &Context,
    query: &Query,
    rows: &RecordBatch,
    batch_in: usize,
    keys: &[(bool, Option<KeyRange>)],
) -> Option<Vec<RecordBatch>> {
    let schema: SchemaRef = rows.schema();
    let runs =
        SortedGroups::new(context.clone(), query, &schema, keys, None).expect("it can be made");
    let mut runs = runs?;
    let mut batches = Vec::new();
    for start in (0..rows.num_rows()).step_by(batch_in) {
        let len = batch_in.min(rows.num_rows() - start);
        batches.extend(runs.push(&rows.slice(start, len)).expect("it takes all rows"));
    }
    batches.extend(runs.finish().expect("it ends"));
    Some(batches)
}

#[test]
fn grouped_rows_keep_streaming_after_a_key_outside_of_its_range() {
    let context = two_workers();
    let rows = 60_000;
    let keys: Vec<Option<u64>> = (0..rows as u64).map(|row| Some(row / 2)).collect();
    let values = with_nulls(2, &numbers(2, rows, Spread::Uniform(1000)), 0.1);
    let columns = vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)];
    let (_, rows) = batch(columns);
    let wanted = reference::group(&sum_by(1), &[Part::new(None, rows.clone())]);
    let told = [(false, Some(KeyRange { min: 0, max: 1000 }))];
    for batch_in in [1, 999, 10_000] {
        let batches = runs(&context, &sum_by(1), &rows, batch_in, &told).expect("they fit");
        assert!(batches.len() > 2, "{} batches", batches.len());
        let found: BTreeMap<_, _> = reference::rows(1, &batches);
        reference::assert_same(
            &found,
            wanted.as_ref().expect("no overflow"),
            "after a key outside",
        );
    }
}

/// Rows of this many keys far apart, all equally frequent.
pub(super) fn far_keys(count: usize, keys: u64) -> RecordBatch {
    let of = |row: u64| Some(sparse(row.wrapping_mul(7919) % keys));
    let keys: Vec<Option<u64>> = (0..count as u64).map(of).collect();
    let values = with_nulls(2, &numbers(2, count, Spread::Uniform(1000)), 0.0);
    batch(vec![column(&DataType::Int64, &keys), column(&DataType::Int64, &values)]).1
}

/// More rows than a sample, so that some input decides for all before any has ended.
#[test]
fn many_groups_and_few_in_every_variant() {
    let context = two_workers();
    for keys in [3, 50_000] {
        let rows = far_keys(150_000, keys);
        for variant in Variant::ALL {
            let shape = Shape { inputs: 3, outputs: 3, ..Shape::plain(variant) };
            assert_streams_right(&context, &sum_by(1), &rows, &shape);
        }
    }
}

#[test]
fn long_strings_of_many_groups_are_merged_by_all_outputs() {
    let context = two_workers();
    let numbers: Vec<Option<u64>> = (0..60_000).map(|row| Some(row % 25_000 * 3 + 1)).collect();
    let keys = column(&DataType::Utf8View, &numbers);
    let (_, rows) = batch(vec![keys, column(&DataType::Int64, &numbers)]);
    let shape = Shape { outputs: 5, batch_out: 1 << 20, ..Shape::plain(Variant::Local) };
    assert_streams_right(&context, &sum_by(1), &rows, &shape);
    let batches = stream(&context, &sum_by(1), &rows, &shape).expect("it runs");
    assert!(batches.len() > 5, "{} pieces", batches.len());
}

/// An estimate of a trillion rows costs no more memory than the actual rows.
#[test]
fn a_wrong_number_of_rows_costs_no_memory() {
    let budget = Arc::new(FixedBudget::new(Bytes(24 << 20)));
    let context = context(machines::one_node(), Some(2), Some(budget));
    let rows = far_keys(100_000, 100_000);
    let keys = vec![(false, None)];
    let expected = Expected { rows: Some(1 << 40), keys, counted: false };
    for variant in [Variant::Auto, Variant::Local, Variant::Ring] {
        let shape = Shape { expected: expected.clone(), ..Shape::plain(variant) };
        assert_streams_right(&context, &sum_by(1), &rows, &shape);
    }
}

/// Batches of two rows would hold all of their original memory if they waited unchanged.
#[test]
fn small_batches_are_not_kept_while_a_collector_waits_for_more_rows() {
    let context = two_workers();
    let rows = far_keys(3000, 100);
    let (schema, expected) = (rows.schema(), Expected::default());
    let stage = Stage::new(context, &sum_by(1), &schema, 1, &expected, Variant::Auto);
    let mut collector = Collector::new(Arc::new(stage.expect("it can be made")), None);
    let mut keys = Vec::new();
    for start in (0..3000).step_by(2) {
        let batch = rows.slice(start, 2);
        keys.push(Arc::downgrade(batch.column(0)));
        collector.push(&batch).expect("it takes two rows");
    }
    let kept = keys.iter().filter(|key| key.strong_count() > 0).count();
    assert!(kept <= 1, "{kept} batches of two rows are kept");
}

#[test]
fn batches_of_another_schema_are_errors() {
    let context = two_workers();
    let rows = far_keys(10, 10);
    let (schema, expected) = (rows.schema(), Expected::default());
    let stage = Stage::new(context, &sum_by(1), &schema, 1, &expected, Variant::Auto);
    let mut collector = Collector::new(Arc::new(stage.expect("it can be made")), None);
    let fewer = batch(vec![Arc::clone(rows.column(0))]).1;
    let other = column(&DataType::Int8, &[Some(1)]);
    let other = batch(vec![other, rows.column(1).slice(0, 1)]).1;
    for wrong in [fewer, other] {
        let error = collector.push(&wrong).expect_err("it is another schema");
        assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
    }
}
