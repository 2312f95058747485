//! Rows written into chunks are read back unchanged, and the statistics of chunks are exact.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    ListArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use atoll_placement::{Arena, Strategy};
use atoll_store::table::{
    BLOCK_ROWS, CHUNK_ROWS, Chunk, ChunkWriter, Destination, Selection, StoredColumn, TableError,
    TableSnapshot, stored_schema,
};
use atoll_sys::SplitMix64;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Machine, NodeId};

fn destination(machine: Machine, strategy: Strategy) -> Destination {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    Destination { machine, arena, strategy }
}

fn chunks(batches: &[RecordBatch], schema: &SchemaRef) -> Vec<Arc<Chunk>> {
    let to = destination(machines::four_nodes(), Strategy::Aligned);
    let mut writer = ChunkWriter::new("t".into(), Arc::clone(schema), to, NodeId(1), 0);
    batches.iter().try_for_each(|batch| writer.write(batch)).unwrap();
    writer.finish().unwrap().into_iter().map(Arc::new).collect()
}

/// A column of a table, decoded whole.
fn decoded(chunks: &[Arc<Chunk>], column: usize, logical: &DataType) -> ArrayRef {
    let blocks = chunks.iter().flat_map(|chunk| &chunk.copies[0].blocks);
    let whole = |block: &Vec<StoredColumn>| {
        let len = block[column].rows().len();
        block[column].decode(logical, &Selection::Range { offset: 0, len }).unwrap()
    };
    let parts: Vec<ArrayRef> = blocks.map(whole).collect();
    concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap()
}

/// Columns of every form in which values are stored, `span` wide where they are numbers.
fn batch(rows: usize, span: i64, random: &mut SplitMix64) -> RecordBatch {
    let mut value = || match random.next() % 7 {
        0 => None,
        _ => Some(random.next() as i64 % span),
    };
    let numbers: Vec<Option<i64>> = (0..rows).map(|_| value()).collect();
    let each = |of: fn(i64) -> f64| numbers.iter().map(move |n| n.map(of));
    let text = |long: bool| {
        numbers.iter().map(move |n| {
            n.map(|n| if long { format!("a long string {n}") } else { n.to_string() })
        })
    };
    let decimals = numbers.iter().map(|n| n.map(|n| i128::from(n) * 1_000_000));
    let lists = numbers.iter().map(|n| n.map(|n| vec![Some(n), None]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("number", Arc::new(Int64Array::from(numbers.clone()))),
        ("day", Arc::new(Date32Array::from_iter(numbers.iter().map(|n| n.map(|n| n as i32))))),
        (
            "real",
            Arc::new(Float64Array::from_iter(each(
                |n| if n % 5 == 0 { -0.0 } else { n as f64 / 3.0 },
            ))),
        ),
        ("short", Arc::new(StringArray::from_iter(text(false)))),
        ("long", Arc::new(StringViewArray::from_iter(text(true)))),
        ("flag", Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| n.map(|n| n > 0))))),
        (
            "price",
            Arc::new(Decimal128Array::from_iter(decimals).with_precision_and_scale(38, 2).unwrap()),
        ),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
    ];
    let fields =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

#[test]
fn rows_come_back_as_they_were_whatever_form_they_are_stored_in() {
    for (seed, span) in [(1, 2), (2, 100), (3, 1 << 12), (4, 1 << 30), (5, i64::MAX)] {
        let mut random = SplitMix64::new(seed);
        let sizes = [1, 7, BLOCK_ROWS, BLOCK_ROWS + 1, 20_000];
        let batches: Vec<RecordBatch> =
            sizes.iter().map(|rows| batch(*rows, span, &mut random)).collect();
        let schema = stored_schema(&batches[0].schema());
        let chunks = chunks(&batches, &schema);
        for (at, field) in schema.fields().iter().enumerate() {
            let parts: Vec<ArrayRef> = batches.iter().map(|b| Arc::clone(b.column(at))).collect();
            let whole = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap();
            let wanted = atoll_store::table::canonical(&cast(&whole, field.data_type()).unwrap());
            let found = decoded(&chunks, at, field.data_type());
            assert_eq!(&found, &wanted.unwrap(), "column {} of seed {seed}", field.name());
        }
    }
}

#[test]
fn bounds_are_exact_over_all_chunks() {
    let mut random = SplitMix64::new(9);
    let batches: Vec<RecordBatch> = (0..3).map(|_| batch(9_000, 1 << 20, &mut random)).collect();
    let schema = stored_schema(&batches[0].schema());
    let each: Vec<Arc<Chunk>> =
        batches.iter().flat_map(|batch| chunks(std::slice::from_ref(batch), &schema)).collect();
    let snapshot = TableSnapshot::new(Arc::clone(&schema), each);
    let numbers: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<Int64Type>().iter().flatten().collect::<Vec<_>>())
        .collect();
    let (min, max) = (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap());
    let (low, high) = snapshot.bounds(0).unwrap();
    assert_eq!(low.as_primitive::<Int64Type>().values().as_ref(), [min]);
    assert_eq!(high.as_primitive::<Int64Type>().values().as_ref(), [max]);
    let (low, _) = snapshot.bounds(1).unwrap();
    assert_eq!(low.as_primitive::<Date32Type>().values().as_ref(), [min as i32]);
    let mut texts: Vec<String> = numbers.iter().map(|n| format!("a long string {n}")).collect();
    texts.sort();
    let (low, high) = snapshot.bounds(4).unwrap();
    assert_eq!(low.as_string_view().value(0), texts[0]);
    assert_eq!(high.as_string_view().value(0), texts[texts.len() - 1]);
    assert!(snapshot.bounds(7).is_none(), "lists have no order");
}

#[test]
fn nan_is_the_largest_float_and_nulls_bound_nothing() {
    let bounds = |values: Vec<Option<f64>>| {
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        let schema = batch.schema();
        let snapshot = TableSnapshot::new(Arc::clone(&schema), chunks(&[batch], &schema));
        let value = |array: &ArrayRef| array.as_primitive::<Float64Type>().value(0);
        snapshot.bounds(0).map(|(low, high)| (value(low), value(high)))
    };
    let (low, high) = bounds(vec![Some(f64::NAN), Some(-1.5), None]).unwrap();
    assert!(low == -1.5 && high.is_nan());
    let (low, high) = bounds(vec![Some(f64::INFINITY), Some(f64::NEG_INFINITY)]).unwrap();
    assert_eq!((low, high), (f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(bounds(vec![None, None]), None);
}

#[test]
fn chunks_are_full_but_the_last_and_lie_at_home() {
    let mut random = SplitMix64::new(3);
    let batches: Vec<RecordBatch> = (0..3).map(|_| batch(60_000, 50, &mut random)).collect();
    let chunks = chunks(&batches, &stored_schema(&batches[0].schema()));
    let rows: Vec<usize> = chunks.iter().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [CHUNK_ROWS, 180_000 - CHUNK_ROWS]);
    assert!(chunks.iter().all(|chunk| chunk.copies[0].home() == Some(NodeId(1))));
}

#[test]
fn a_null_where_none_may_be_is_refused_by_name() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let batch = RecordBatch::try_from_iter_with_nullable([("id", column, true)]).unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let to = destination(machines::four_nodes(), Strategy::Aligned);
    let mut writer = ChunkWriter::new("orders".into(), schema, to, NodeId(0), 0);
    let error = writer.write(&batch).unwrap_err();
    assert!(matches!(&error, TableError::Null { column, .. } if column == "id"));
    assert_eq!(
        error.to_string(),
        "NULL in column 'id' of table 'orders', which is declared NOT NULL"
    );
}
