//! Batches of all kinds of columns.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    Float64Array, Int64Array, LargeStringArray, NullArray, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{Field, Fields, Schema};
use atoll_placement::{Arena, FixedBudget};
use atoll_primitives::shuffle::{Moved, Schedule, batches};
use atoll_primitives::{Context, Part, PrimitiveError};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

use super::{context, machine, ring, shuffles};

fn texts(rows: usize) -> Vec<Option<String>> {
    let text =
        |row: usize| (!row.is_multiple_of(5)).then(|| format!("a rather long text for row {row}"));
    (0..rows).map(text).collect()
}

/// Lists of numbers, with nulls at both levels.
fn lists(rows: usize) -> ArrayRef {
    let mut lists = ListBuilder::new(arrow_array::builder::Int32Builder::new());
    for row in 0..rows {
        (0..row % 4).for_each(|at| lists.values().append_option((at > 0).then_some(row as i32)));
        lists.append(!row.is_multiple_of(7));
    }
    Arc::new(lists.finish())
}

fn maps(rows: usize) -> ArrayRef {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..rows {
        (0..row % 3).for_each(|at| {
            maps.keys().append_value(format!("{row} {at}"));
            maps.values().append_value("value");
        });
        maps.append(!row.is_multiple_of(7)).expect("as many keys as values");
    }
    Arc::new(maps.finish())
}

/// A column of every kind, with nulls.
fn columns(rows: usize) -> Vec<ArrayRef> {
    let some = |row: usize| !row.is_multiple_of(3);
    let numbers = || (0..rows).map(|row| some(row).then_some(row as i64 * 1_000_003));
    let mut views = StringViewBuilder::new();
    texts(rows).iter().for_each(|text| views.append_option(text.as_deref()));
    let words = texts(rows);
    let dictionary: DictionaryArray<Int32Type> = words.iter().map(|it| it.as_deref()).collect();
    let bits: BooleanArray =
        (0..rows).map(|row| some(row).then_some(row.is_multiple_of(2))).collect();
    let fixed = (0..rows).map(|row| some(row).then_some([row as u8; 3]));
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 3).expect("of 3 bytes");
    let binary: Vec<Option<&[u8]>> =
        words.iter().map(|it| it.as_deref().map(str::as_bytes)).collect();
    let inner: ArrayRef = Arc::new(bits.clone());
    let field = Field::new("bits", inner.data_type().clone(), true);
    let structs = StructArray::new(Fields::from(vec![field]), vec![inner], None);
    vec![
        Arc::new(numbers().collect::<Int64Array>()),
        Arc::new((0..rows).map(|row| row as f64 / 3.0).collect::<Float64Array>()),
        Arc::new(bits),
        Arc::new(StringArray::from(texts(rows))),
        Arc::new(LargeStringArray::from(texts(rows))),
        Arc::new(BinaryArray::from(binary)),
        Arc::new(views.finish()),
        Arc::new(dictionary),
        Arc::new(fixed),
        Arc::new(NullArray::new(rows)),
        Arc::new(structs),
        lists(rows),
        maps(rows),
    ]
}

fn batch(rows: usize) -> RecordBatch {
    let columns = columns(rows);
    let field =
        |(at, it): (usize, &ArrayRef)| Field::new(format!("c{at}"), it.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of one length")
}

/// N × N pieces: slices of one batch of 64 rows, some of them empty.
fn pieces(workers: usize, whole: &RecordBatch) -> Vec<Vec<Part>> {
    let piece = |source: usize, worker: usize| {
        let start = (source * 5 + worker) % 60;
        let rows = whole.slice(start, (source * worker) % 5);
        Part::new(NodeId(0), rows)
    };
    (0..workers).map(|source| (0..workers).map(|to| piece(source, to)).collect()).collect()
}

fn run(
    context: &Context,
    schedule: &Schedule,
    pieces: &[Vec<Part>],
) -> Result<Vec<Vec<Part>>, PrimitiveError> {
    let got = batches(context, schedule, pieces.to_vec());
    Ok(context.runtime().block_on(got)?.0)
}

#[test]
fn every_worker_gets_its_batches_by_source_whatever_the_shuffle() {
    let whole = batch(64);
    for machine in [machine(&[1]), machines::two_nodes(), machines::eight_uneven_nodes()] {
        let context = context(machine, Some(9));
        let pieces = pieces(9, &whole);
        for shuffle in shuffles() {
            let schedule = Schedule::for_runtime(context.runtime(), shuffle);
            let got = run(&context, &schedule, &pieces).expect("it runs");
            for (worker, got) in got.iter().enumerate() {
                assert_eq!(got.len(), 9);
                for (source, got) in got.iter().enumerate() {
                    assert_eq!(got.rows, pieces[source][worker].rows, "{shuffle}");
                    got.rows.columns().iter().for_each(|it| {
                        it.to_data().validate_full().expect("a valid array");
                    });
                }
            }
        }
    }
}

#[test]
fn pulled_batches_are_not_copied_and_pushed_ones_are_on_their_recipients_nodes() {
    let context = context(machines::four_nodes(), None);
    let pieces = pieces(16, &batch(64));
    let address = |part: &Part| part.rows.column(0).to_data().buffers()[0].as_ptr();
    for moved in Moved::ALL {
        let schedule = Schedule::for_runtime(context.runtime(), ring(moved));
        let got = run(&context, &schedule, &pieces).expect("it runs");
        for (worker, got) in got.iter().enumerate() {
            let node = schedule.node(atoll_runtime::WorkerId(worker as u32));
            for (piece, got) in pieces.iter().map(|source| &source[worker]).zip(got) {
                match moved {
                    Moved::Pushed => {
                        assert_eq!(got.home, Some(node));
                        assert_ne!(address(piece), address(got));
                        let at = address(got) as usize;
                        let homes = context.arena().kernel().homes(&[at]).expect("known");
                        assert_eq!(homes, [Some(node)]);
                    }
                    _ => assert_eq!(address(piece), address(got)),
                }
            }
        }
    }
}

#[test]
fn a_pushed_slice_takes_no_more_memory_than_its_rows() {
    let context = context(machine(&[1]), None);
    let long: StringArray = (0..100_000).map(|row| Some(format!("text {row}"))).collect();
    let field = Field::new("text", long.data_type().clone(), true);
    let column: ArrayRef = Arc::new(long);
    let whole = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap();
    let schedule = Schedule::for_runtime(context.runtime(), ring(Moved::Pushed));
    let pieces = vec![vec![Part::new(NodeId(0), whole.slice(50_000, 2))]];
    let got = run(&context, &schedule, &pieces).expect("it runs");
    assert!(got[0][0].rows.get_array_memory_size() < 1000);
    assert_eq!(got[0][0].rows, pieces[0][0].rows);
}

#[test]
fn a_budget_too_small_for_pushed_batches_is_an_error() {
    let plain = context(machine(&[1, 1]), None);
    let runtime = plain.runtime().clone();
    let budget = Arc::new(FixedBudget::new(Bytes(1 << 10)));
    let (machine, kernel) = (runtime.machine().clone(), runtime.kernel().clone());
    let context = Context::new(runtime.clone(), Arena::new(machine, kernel, Some(budget)));
    let schedule = Schedule::for_runtime(&runtime, ring(Moved::Pushed));
    let error = run(&context, &schedule, &pieces(2, &batch(64))).expect_err("no room");
    assert!(matches!(error, PrimitiveError::Memory(_)), "{error}");
}

#[test]
fn pieces_that_are_not_workers_by_workers_are_an_error() {
    let context = context(machine(&[1, 1]), None);
    let schedule = Schedule::for_runtime(context.runtime(), ring(Moved::Pulled));
    let whole = batch(64);
    let mut ragged = pieces(2, &whole);
    ragged[1].pop();
    for wrong in [pieces(3, &whole), vec![], ragged] {
        let error = run(&context, &schedule, &wrong).expect_err("they do not fit");
        assert!(matches!(error, PrimitiveError::Shape { .. }), "{error}");
    }
}
