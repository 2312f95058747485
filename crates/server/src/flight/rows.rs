//! Rows as Arrow messages of plain types and acceptable size.
//!
//! The engine's batches go out unchanged, except two kinds of columns: views of text and bytes, which older clients
//! cannot read and whose buffers are larger than the batch's part of them, and dictionaries. Nothing is converted row
//! by row, and nothing is compressed.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use atoll_sql::arrow::compute::{CastOptions, cast_with_options};
use atoll_sql::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use atoll_sql::arrow::error::ArrowError;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tonic::Status;

/// Bytes of rows per message. Clients accept 4 MiB by default; a larger row is a message alone.
const MESSAGE_BYTES: usize = 2 << 20;

/// Rows on their way to a client.
pub(super) type MessageStream = BoxStream<'static, Result<FlightData, Status>>;

/// The columns of a result as they are sent. All are nullable: the schema before a statement runs may be less precise
/// than its rows.
pub(super) fn sent_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| sent_field(field).with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn sent_field(field: &FieldRef) -> Field {
    field.as_ref().clone().with_data_type(sent_type(field.data_type()))
}

/// The plain type for one that not all clients read.
fn sent_type(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(sent_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => sent_type(values),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}

/// Converts a batch to these columns.
pub(super) fn sent_batch(
    schema: &SchemaRef,
    batch: &RecordBatch,
) -> Result<RecordBatch, ArrowError> {
    if schema.fields().len() != batch.num_columns() {
        let (wanted, found) = (schema.fields().len(), batch.num_columns());
        let message = format!("expected {wanted} columns, found {found}");
        return Err(ArrowError::SchemaError(message));
    }
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| plain(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn plain(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == wanted {
        return Ok(Arc::clone(column));
    }
    // A value that does not fit is an error, not NULL.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, wanted, &options)
}

/// Cuts a batch into pieces of one message each.
pub(super) fn pieces(batch: RecordBatch) -> VecDeque<RecordBatch> {
    let mut pieces = VecDeque::new();
    cut(batch, MESSAGE_BYTES, &mut pieces);
    pieces
}

fn cut(batch: RecordBatch, most: usize, pieces: &mut VecDeque<RecordBatch>) {
    let rows = batch.num_rows();
    let bytes: usize = batch.columns().iter().map(bytes).sum();
    if rows <= 1 || bytes <= most {
        pieces.push_back(batch);
        return;
    }
    let half = rows / 2;
    cut(batch.slice(0, half), most, pieces);
    cut(batch.slice(half, rows - half), most, pieces);
}

/// Bytes of a column's rows as they are sent, without unused parts of its buffers.
fn bytes(column: &ArrayRef) -> usize {
    let rows = column.len();
    // The lower half of a view is the length of its value.
    let lengths = |views: &[u128]| views.iter().map(|view| *view as u32 as usize).sum::<usize>();
    let items = |values: &ArrayRef, first: usize, last: usize| {
        bytes(&values.slice(first, last.saturating_sub(first)))
    };
    match column.data_type() {
        DataType::Utf8View => 4 * rows + lengths(column.as_string_view().views()),
        DataType::BinaryView => 4 * rows + lengths(column.as_binary_view().views()),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let values = dictionary.values();
            rows * (0..values.len()).map(|at| bytes(&values.slice(at, 1))).max().unwrap_or(0)
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let ends = list.value_offsets();
            4 * rows + items(list.values(), ends[0] as usize, ends[rows] as usize)
        }
        DataType::LargeList(_) => {
            let list = column.as_list::<i64>();
            let ends = list.value_offsets();
            8 * rows + items(list.values(), ends[0] as usize, ends[rows] as usize)
        }
        DataType::Map(..) => {
            let map = column.as_map();
            let ends = map.value_offsets();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            4 * rows + items(&entries, ends[0] as usize, ends[rows] as usize)
        }
        DataType::Struct(_) => column.as_struct().columns().iter().map(bytes).sum(),
        _ => {
            let all = column.get_array_memory_size();
            column.to_data().get_slice_memory_size().unwrap_or(all)
        }
    }
}

/// Messages for a batch in memory.
pub(super) fn messages(batch: RecordBatch) -> MessageStream {
    let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
    let batches = futures::stream::iter([Ok(batch)]);
    encoder.build(batches).map_err(Status::from).boxed()
}

#[cfg(test)]
mod tests {
    use atoll_sql::arrow::array::{
        BooleanArray, DictionaryArray, Int64Array, ListArray, StringArray, StringViewArray,
    };
    use atoll_sql::arrow::datatypes::{Int32Type, Int64Type};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).expect("columns of the same length")
    }

    #[test]
    fn views_and_dictionaries_are_sent_as_plain_text() {
        let texts: StringViewArray = [Some("a"), None, Some("longer than twelve")].iter().collect();
        let words: DictionaryArray<Int32Type> = [Some("x"), Some("y"), None].into_iter().collect();
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let rows = batch(vec![
            ("t", Arc::new(texts)),
            ("d", Arc::new(words)),
            ("l", Arc::new(list.clone())),
        ]);
        let schema = sent_schema(&rows.schema());
        let sent = sent_batch(&schema, &rows).expect("it is sent");
        let texts = StringArray::from(vec![Some("a"), None, Some("longer than twelve")]);
        assert_eq!(sent.column(0).as_string::<i32>(), &texts);
        assert_eq!(
            sent.column(1).as_string::<i32>(),
            &StringArray::from(vec![Some("x"), Some("y"), None])
        );
        assert_eq!(sent.column(2).as_list::<i32>(), &list);
    }

    #[test]
    fn batches_are_cut_by_the_size_of_their_rows() {
        let texts: StringViewArray = (0..1000).map(|_| Some("x".repeat(1000))).collect();
        let numbers: Int64Array = (0..1000).collect();
        let flags: BooleanArray = (0..1000).map(|at| Some(at % 2 == 0)).collect();
        let rows =
            batch(vec![("t", Arc::new(texts)), ("n", Arc::new(numbers)), ("f", Arc::new(flags))]);
        let mut cut_rows = VecDeque::new();
        cut(rows.clone(), 300_000, &mut cut_rows);
        assert_eq!(cut_rows.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [250; 4]);
        // A slice of a large array is small.
        assert_eq!(pieces(rows.slice(10, 5)).len(), 1);
        let mut single = VecDeque::new();
        cut(rows.slice(0, 3), 10, &mut single);
        assert_eq!(single.len(), 3);
        assert_eq!(pieces(rows.slice(0, 0)).len(), 1);
    }
}
