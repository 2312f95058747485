//! Results that are awkward to write, and their text in a mode.

use std::sync::Arc;

use atoll_sql::arrow::array::types::Int32Type;
use atoll_sql::arrow::array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray,
};
use atoll_sql::arrow::buffer::NullBuffer;
use atoll_sql::arrow::datatypes::{DataType, Field, Fields, Schema};

use super::{DrawLayout, Mode};

/// The text of batches in a mode, without limits.
pub(super) fn written(mode: Mode, batches: &[RecordBatch]) -> String {
    written_in(mode, DrawLayout::default(), batches).0
}

/// The text in a layout, with the notes.
pub(super) fn written_in(
    mode: Mode,
    layout: DrawLayout,
    batches: &[RecordBatch],
) -> (String, Vec<String>) {
    let mut rows = mode.rows(layout);
    let mut out = Vec::new();
    rows.start(&batches[0].schema(), &mut out).unwrap();
    batches.iter().for_each(|batch| rows.batch(batch, &mut out).unwrap());
    let notes = rows.finish(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), notes)
}

/// Four rows in two batches: NULLs, quotes, newlines, wide characters, NaN, long numbers.
pub(super) fn awkward() -> Vec<RecordBatch> {
    let price = Decimal128Array::from(vec![
        Some(1230),
        Some(-5),
        None,
        Some(9_999_999_999_999_999_999_999),
    ]);
    let columns: [(&str, ArrayRef); 4] = [
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some((1 << 53) + 1), Some(-7)]))),
        (
            "text",
            Arc::new(StringArray::from(vec![
                Some("a,\"b\"\nc"),
                Some("zürich 東京"),
                Some(""),
                None,
            ])),
        ),
        (
            "x",
            Arc::new(Float64Array::from(vec![
                Some(1.5),
                Some(f64::NAN),
                Some(f64::INFINITY),
                None,
            ])),
        ),
        ("price", Arc::new(price.with_precision_and_scale(38, 2).unwrap())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    vec![batch.slice(0, 3), batch.slice(3, 1)]
}

/// The same columns without rows.
pub(super) fn empty() -> Vec<RecordBatch> {
    vec![awkward()[0].slice(0, 0)]
}

/// One column of texts.
pub(super) fn texts(values: &[&str]) -> Vec<RecordBatch> {
    let array: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    vec![RecordBatch::try_from_iter([("text", array)]).unwrap()]
}

/// One column of the numbers from 0, in batches.
pub(super) fn numbers(count: i64, batch: usize) -> Vec<RecordBatch> {
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let all = RecordBatch::try_from_iter([("n", array)]).unwrap();
    let starts = (0..all.num_rows()).step_by(batch);
    starts.map(|start| all.slice(start, batch.min(all.num_rows() - start))).collect()
}

/// A list, a struct and a dictionary, with NULLs.
pub(super) fn nested() -> Vec<RecordBatch> {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let fields = Fields::from(vec![
        Field::new("x", DataType::Int64, false),
        Field::new("y", DataType::Utf8, true),
    ]);
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, None]));
    let valid = NullBuffer::from(vec![true, true, false]);
    let point = StructArray::new(fields, vec![x, y], Some(valid));
    let word: DictionaryArray<Int32Type> =
        vec![Some("red"), None, Some("red")].into_iter().collect();
    let columns: [(&str, ArrayRef); 3] =
        [("list", Arc::new(list)), ("point", Arc::new(point)), ("word", Arc::new(word))];
    vec![RecordBatch::try_from_iter(columns).unwrap()]
}

/// Three columns of the same name.
pub(super) fn twice() -> Vec<RecordBatch> {
    let field = Field::new("a", DataType::Int64, true);
    let schema = Schema::new(vec![field.clone(), field.clone(), field]);
    let column = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    vec![RecordBatch::try_new(Arc::new(schema), vec![column(1), column(2), column(3)]).unwrap()]
}

/// What EXPLAIN returns.
pub(super) fn plan() -> Vec<RecordBatch> {
    let kind: ArrayRef = Arc::new(StringArray::from(vec!["physical_plan"]));
    let plan: ArrayRef = Arc::new(StringArray::from(vec!["Sort\n  Scan: a | b\n"]));
    vec![RecordBatch::try_from_iter([("plan_type", kind), ("plan", plan)]).unwrap()]
}
