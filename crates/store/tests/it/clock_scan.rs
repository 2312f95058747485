//! Batches of random queries over tables with changed and deleted rows, against each query asked by itself of
//! each row.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    RecordBatch, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use atoll_placement::{Arena, Strategy as Placement};
use atoll_store::RowId;
use atoll_store::clock_scan::{
    BatchQuery, BatchScan, ColumnSamples, ColumnTest, NumberTest, QueryBatch, QueryRows,
    RowsOutcome, TextTest, float_key, is_number,
};
use atoll_store::table::{
    AppendedChunk, BLOCK_ROWS, ChunkWriter, Destination, TableChange, TableDefinition,
    TableSnapshot, TableVersion,
};
use atoll_sys::SplitMix64;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::NodeId;
use proptest::prelude::*;

/// A value as the naive evaluation knows it.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Number(i128),
    Real(f64),
    Text(String),
}

fn schema() -> SchemaRef {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("narrow", DataType::Int64),
        field("wide", DataType::Int64),
        field("unsigned", DataType::UInt64),
        field("real", DataType::Float64),
        field("flag", DataType::Boolean),
        field("price", DataType::Decimal128(38, 2)),
        field("day", DataType::Date32),
        field("moment", DataType::Timestamp(TimeUnit::Microsecond, None)),
        field("city", DataType::Utf8View),
        field("note", DataType::Utf8View),
    ]))
}

/// Some of few values, so that tests hit.
fn value(data_type: &DataType, name: &str, random: &mut SplitMix64) -> Value {
    if random.next().is_multiple_of(9) {
        return Value::Null;
    }
    let small = (random.next() % 40) as i128 - 20;
    let step = i128::from(i64::MAX / 50);
    match data_type {
        DataType::Boolean => Value::Number(small & 1),
        DataType::UInt64 => Value::Number((small + 20) * step),
        DataType::Float64 => Value::Real(match small {
            0 => -0.0,
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            other => other as f64 / 3.0,
        }),
        DataType::Decimal128(..) if small % 7 == 3 => Value::Number(small * step * step),
        DataType::Utf8View if name == "note" => Value::Text(match small % 3 {
            0 => "x".repeat(small.unsigned_abs() as usize),
            1 => format!("a note on {small} that does not fit into a view"),
            _ => format!("ß{}{small}", random.next() % 1000),
        }),
        DataType::Utf8View => Value::Text(format!("city {small}")),
        DataType::Int64 if name == "wide" => Value::Number(small * step * 2),
        DataType::Timestamp(..) => Value::Number(small * step),
        _ => Value::Number(small),
    }
}

fn array(values: &[&Value], data_type: &DataType) -> ArrayRef {
    let number = |value: &&Value| match value {
        Value::Number(number) => Some(*number),
        _ => None,
    };
    let numbers = || values.iter().map(number);
    let real = |value: &&Value| match value {
        Value::Real(real) => Some(*real),
        _ => None,
    };
    let text = |value: &&Value| match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    match data_type {
        DataType::Int64 => Arc::new(numbers().map(|n| n.map(|n| n as i64)).collect::<Int64Array>()),
        DataType::UInt64 => {
            Arc::new(numbers().map(|n| n.map(|n| n as u64)).collect::<UInt64Array>())
        }
        DataType::Float64 => Arc::new(values.iter().map(real).collect::<Float64Array>()),
        DataType::Boolean => {
            Arc::new(numbers().map(|n| n.map(|n| n != 0)).collect::<BooleanArray>())
        }
        DataType::Decimal128(p, s) => Arc::new(
            numbers().collect::<Decimal128Array>().with_precision_and_scale(*p, *s).unwrap(),
        ),
        DataType::Date32 => {
            Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Date32Array>())
        }
        DataType::Timestamp(..) => {
            Arc::new(numbers().map(|n| n.map(|n| n as i64)).collect::<TimestampMicrosecondArray>())
        }
        _ => Arc::new(StringViewArray::from_iter(values.iter().map(text))),
    }
}

fn batch(rows: &[Vec<Value>]) -> RecordBatch {
    let fields = schema();
    let columns = fields.fields().iter().enumerate().map(|(at, field)| {
        let values: Vec<&Value> = rows.iter().map(|row| &row[at]).collect();
        array(&values, field.data_type())
    });
    RecordBatch::try_new(schema(), columns.collect()).unwrap()
}

fn row(random: &mut SplitMix64) -> Vec<Value> {
    let fields = schema();
    fields.fields().iter().map(|field| value(field.data_type(), field.name(), random)).collect()
}

type Rows = BTreeMap<RowId, Vec<Value>>;

/// A table of chunks of several sizes, of whose rows some have newer values and some are gone.
fn table(chunks: &[usize], changes: usize, random: &mut SplitMix64) -> (TableVersion, Rows) {
    let machine = Arc::new(machines::four_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    let destination = Destination { machine, arena, strategy: Placement::Aligned };
    let definition = Arc::new(TableDefinition::new(schema(), Placement::Aligned));
    let mut version = TableVersion::new("t".into(), definition, destination.clone()).unwrap();
    let mut all = Rows::new();
    for (number, rows) in chunks.iter().enumerate() {
        let values: Vec<Vec<Value>> = (0..*rows).map(|_| row(random)).collect();
        let first = version.reserve(*rows);
        let node = NodeId(number as u32 % 4);
        let mut writer = ChunkWriter::new("t".into(), schema(), destination.clone(), node, 0)
            .with_chunk_rows(*rows);
        writer.write(&batch(&values)).unwrap();
        let chunk = Arc::new(writer.finish().unwrap().remove(0));
        let mut change = TableChange::default();
        change.appended.push(AppendedChunk { first, chunk, file: None });
        version = version.apply(&change).unwrap();
        all.extend((first.get()..).map(RowId::new).zip(values));
    }
    let mut change = TableChange::default();
    let ids: Vec<RowId> = all.keys().copied().collect();
    for _ in 0..if ids.is_empty() { 0 } else { changes } {
        let id = ids[random.next() as usize % ids.len()];
        change.updated.remove(&id);
        if random.next().is_multiple_of(2) {
            change.deleted.insert(id.get());
            all.remove(&id);
        } else if !change.deleted.contains(id.get()) {
            let values = row(random);
            let encoded = version.codec().encode(&batch(std::slice::from_ref(&values))).unwrap();
            change.updated.insert(id, encoded.into_iter().next().unwrap());
            all.insert(id, values);
        }
    }
    (version.apply(&change).unwrap(), all)
}

/// A value of the column's kind, or one outside its values.
fn number_test(field: &Field, random: &mut SplitMix64) -> NumberTest {
    let mut key = || loop {
        let key = match value(field.data_type(), field.name(), random) {
            Value::Number(number) => i64::try_from(number).unwrap_or(17),
            Value::Real(real) => float_key(real),
            _ => continue,
        };
        break match random.next() % 8 {
            0 => key.saturating_add(1),
            1 => key.saturating_sub(1),
            _ => key,
        }
        .clamp(i64::MIN + 1, i64::MAX - 1);
    };
    let mut several = |count: usize| {
        let mut keys: Vec<i64> = (0..count).map(|_| key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_boxed_slice()
    };
    let keys = several(4);
    let count = random.next() as usize % 5;
    match random.next() % 7 {
        0 | 1 => NumberTest::In(keys[..1].into()),
        2 => NumberTest::In(keys[..count.min(keys.len())].into()),
        3 => NumberTest::NotIn(keys[..count.min(keys.len())].into()),
        4 => NumberTest::Between(keys[0], keys[keys.len() - 1]),
        5 => NumberTest::Between(i64::MIN, keys[0]),
        _ => NumberTest::Between(keys[0], if count > 3 { keys[0] - 1 } else { i64::MAX }),
    }
}

fn text_test(field: &Field, random: &mut SplitMix64) -> TextTest {
    let mut text = || loop {
        if let Value::Text(text) = value(field.data_type(), field.name(), random) {
            break match random.next() % 6 {
                0 => format!("{text}!").into_boxed_str(),
                _ => text.into_boxed_str(),
            };
        }
    };
    let mut several = vec![text(), text(), text()];
    several.sort();
    several.dedup();
    let mut start = |text: &str| text.chars().take(random.next() as usize % 8).collect::<String>();
    let prefix = start(&several[0]).into_boxed_str();
    let bound = |text: &str, random: &mut SplitMix64| match random.next() % 3 {
        0 => Bound::Included(text.into()),
        1 => Bound::Excluded(text.into()),
        _ => Bound::Unbounded,
    };
    let last = several[several.len() - 1].clone();
    match random.next() % 6 {
        0 | 1 => TextTest::In([several[0].clone()].into()),
        2 => TextTest::In(several.into()),
        3 => TextTest::NotIn(several.into()),
        4 => TextTest::Prefix(prefix),
        _ => TextTest::Between(bound(&several[0], random), bound(&last, random)),
    }
}

fn query(random: &mut SplitMix64) -> BatchQuery {
    let fields = schema();
    let count = fields.fields().len();
    let tests = (0..random.next() % 4).map(|_| {
        let column = random.next() as usize % count;
        let field = fields.field(column);
        let test = match random.next() % 8 {
            0 => ColumnTest::Null(random.next().is_multiple_of(2)),
            _ if is_number(field.data_type()) => ColumnTest::Number(number_test(field, random)),
            _ => ColumnTest::Text(text_test(field, random)),
        };
        (column, test)
    });
    let tests = tests.collect();
    let projection: Vec<usize> =
        (0..random.next() % 5).map(|_| random.next() as usize % count).collect();
    BatchQuery { tests, projection: projection.into(), with_ids: true, limit: usize::MAX }
}

fn passes(value: &Value, test: &ColumnTest) -> bool {
    match (value, test) {
        (Value::Null, test) => *test == ColumnTest::Null(true),
        (_, ColumnTest::Null(wanted)) => !wanted,
        (Value::Text(text), ColumnTest::Text(test)) => match test {
            TextTest::In(list) => list.iter().any(|own| **own == **text),
            TextTest::NotIn(list) => list.iter().all(|own| **own != **text),
            TextTest::Prefix(prefix) => text.starts_with(&**prefix),
            TextTest::Between(low, high) => {
                let bounds = (low.as_ref().map(|b| &**b), high.as_ref().map(|b| &**b));
                RangeBounds::<str>::contains(&bounds, &**text)
            }
        },
        (Value::Number(number), ColumnTest::Number(test)) => number_passes(*number, test),
        (Value::Real(real), ColumnTest::Number(test)) => {
            number_passes(float_key(*real).into(), test)
        }
        other => panic!("{other:?}"),
    }
}

fn number_passes(number: i128, test: &NumberTest) -> bool {
    match test {
        NumberTest::In(keys) => keys.iter().any(|key| i128::from(*key) == number),
        NumberTest::NotIn(keys) => keys.iter().all(|key| i128::from(*key) != number),
        NumberTest::Between(low, high) => {
            (*low == i64::MIN || i128::from(*low) <= number)
                && (*high == i64::MAX || number <= i128::from(*high))
        }
    }
}

fn read(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    macro_rules! number {
        ($arrow:ty) => {
            Value::Number(column.as_primitive::<$arrow>().value(row) as i128)
        };
    }
    match column.data_type() {
        DataType::Int64 => number!(Int64Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Date32 => number!(Date32Type),
        DataType::Decimal128(..) => number!(Decimal128Type),
        DataType::Timestamp(..) => number!(TimestampMicrosecondType),
        DataType::Boolean => Value::Number(column.as_boolean().value(row).into()),
        DataType::Float64 => Value::Real(column.as_primitive::<Float64Type>().value(row)),
        _ => Value::Text(column.as_string_view().value(row).to_owned()),
    }
}

/// Floats by their keys: NaN is a value.
fn comparable(row: Vec<Value>) -> Vec<Value> {
    let plain = |value| match value {
        Value::Real(real) => Value::Number(float_key(real).into()),
        other => other,
    };
    row.into_iter().map(plain).collect()
}

/// Runs a batch with so many workers, and puts together what they found.
fn run(view: &TableSnapshot, queries: &[BatchQuery], workers: usize) -> Vec<Vec<QueryRows>> {
    let samples = ColumnSamples::from_snapshot(view);
    let batch = Arc::new(QueryBatch::new(schema(), queries.to_vec(), &samples));
    let scans = (0..workers).map(|worker| {
        let mut scan = BatchScan::new(Arc::clone(&batch), usize::MAX);
        for chunk in (worker..view.chunks.len()).step_by(workers) {
            scan.chunk(view, chunk, 0).unwrap();
        }
        scan.finish().unwrap().0
    });
    scans.collect()
}

fn check(view: &TableSnapshot, rows: &Rows, queries: &[BatchQuery], workers: usize) {
    let parts = run(view, queries, workers);
    for (number, query) in queries.iter().enumerate() {
        let mut found = Rows::new();
        for part in &parts {
            let QueryRows { outcome, columns, rows } = &part[number];
            assert_eq!(*outcome, RowsOutcome::Whole);
            let ids = columns[query.projection.len()].as_primitive::<UInt64Type>();
            for row in 0..*rows {
                let values = columns[..query.projection.len()].iter().map(|c| read(c, row));
                let before = found.insert(RowId::new(ids.value(row)), comparable(values.collect()));
                assert!(before.is_none(), "{query:?} finds a row twice");
            }
        }
        let passing = rows.iter().filter(|(_, row)| {
            query.tests.iter().all(|(column, test)| passes(&row[*column], test))
        });
        let wanted: Rows = passing
            .map(|(id, row)| {
                let values = query.projection.iter().map(|column| row[*column].clone());
                (*id, comparable(values.collect()))
            })
            .collect();
        assert!(found == wanted, "{query:?}\nfound {found:?}\nwanted {wanted:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_batch_finds_what_each_query_finds_by_itself(
        seed in any::<u64>(),
        chunks in prop::collection::vec(1_usize..400, 0..5),
        changes in 0_usize..300,
        queries in 0_usize..120,
        workers in 1_usize..6,
    ) {
        let random = &mut SplitMix64::new(seed);
        let (version, rows) = table(&chunks, changes, random);
        let queries: Vec<BatchQuery> = (0..queries).map(|_| query(random)).collect();
        check(&version.view().unwrap(), &rows, &queries, workers);
    }
}

#[test]
fn blocks_of_full_size_are_looked_at_whole() {
    let random = &mut SplitMix64::new(3);
    let (version, rows) = table(&[2 * BLOCK_ROWS + 5, 17], 2000, random);
    let queries: Vec<BatchQuery> = (0..60).map(|_| query(random)).collect();
    check(&version.view().unwrap(), &rows, &queries, 2);
}

#[test]
fn four_thousand_copies_of_a_query_find_the_same() {
    let random = &mut SplitMix64::new(11);
    let (version, rows) = table(&[300], 50, random);
    let tests = vec![(0, ColumnTest::Number(NumberTest::In([3].into())))];
    let one = BatchQuery { tests, projection: [8, 8, 0].into(), with_ids: true, limit: usize::MAX };
    check(&version.view().unwrap(), &rows, &vec![one; 4096], 3);
}

#[test]
fn a_query_with_a_limit_has_that_many_rows_of_each_worker_at_most() {
    let random = &mut SplitMix64::new(5);
    let (version, _) = table(&[500], 0, random);
    let query = BatchQuery { tests: vec![], projection: [0].into(), with_ids: false, limit: 7 };
    let found = run(&version.view().unwrap(), &[query], 1);
    assert_eq!((found[0][0].rows, found[0][0].columns[0].len()), (7, 7));
}

#[test]
fn a_query_with_more_rows_than_a_pass_gathers_is_given_up_alone() {
    let random = &mut SplitMix64::new(6);
    let (version, _) = table(&[300, 300], 0, random);
    let view = version.view().unwrap();
    let all =
        BatchQuery { tests: vec![], projection: [0].into(), with_ids: false, limit: usize::MAX };
    let none =
        BatchQuery { tests: vec![(8, ColumnTest::Text(TextTest::In([].into())))], ..all.clone() };
    let batch = QueryBatch::new(schema(), vec![all, none], &ColumnSamples::from_snapshot(&view));
    let mut scan = BatchScan::new(Arc::new(batch), 100);
    (0..view.chunks.len()).for_each(|chunk| scan.chunk(&view, chunk, 0).unwrap());
    let (found, counts) = scan.finish().unwrap();
    assert_eq!(found[0].outcome, RowsOutcome::TooMany);
    assert_eq!((found[1].outcome, found[1].rows), (RowsOutcome::Whole, 0));
    assert_eq!(counts.rows, 600);
}
