//! Values in PostgreSQL's protocol: text and binary form, out and in.
//!
//! | file | what |
//! |---|---|
//! | `types` | the types of columns and parameters |
//! | `format` | the two formats |
//! | `rows` | batches as messages, one per row |
//! | `text`, `number`, `json` | values as text |
//! | `binary`, `numeric` | values in binary form |
//! | `parameter`, `array` | parameter values from both |
//! | `range` | ranges in binary form, both ways |
//! | `recoded` | values in the encoding of the client |

mod array;
mod binary;
mod format;
mod json;
mod number;
mod numeric;
mod parameter;
mod range;
mod recoded;
mod rows;
mod text;
mod types;

pub(crate) use binary::binary_column;
#[cfg(test)]
pub(crate) use binary::write_sized;
pub(crate) use format::Format;
pub(crate) use parameter::{hex, parameter};
pub(crate) use recoded::from_client;
pub(crate) use rows::{
    RowColumns, row_description, types_of, write_cells, write_message, write_rows,
};
pub(crate) use text::{TextCells, text_cells, text_column};
pub(crate) use types::{PgType, TIMETZ, arrow_type, type_of_values};

use atoll_sql::arrow::array::{Array, ArrayRef};
use atoll_sql::arrow::compute::cast;
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::arrow::error::ArrowError;

/// Appends the value of a row.
type WriteValue<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// The array with its dictionaries and runs decoded.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        DataType::RunEndEncoded(_, values) => cast(array, values.data_type()),
        _ => Ok(ArrayRef::clone(array)),
    }
}

/// The range of a list's items among those of all rows.
fn items_of(array: &dyn Array, row: usize) -> std::ops::Range<usize> {
    use atoll_sql::arrow::array::AsArray;
    let (start, end) = match array.data_type() {
        DataType::List(_) => {
            let offsets = array.as_list::<i32>().value_offsets();
            (offsets[row] as usize, offsets[row + 1] as usize)
        }
        DataType::LargeList(_) => {
            let offsets = array.as_list::<i64>().value_offsets();
            (offsets[row] as usize, offsets[row + 1] as usize)
        }
        DataType::Map(..) => {
            let offsets = array.as_map().value_offsets();
            (offsets[row] as usize, offsets[row + 1] as usize)
        }
        _ => {
            let lists = array.as_fixed_size_list();
            let start = lists.value_offset(row) as usize;
            (start, start + lists.value_length() as usize)
        }
    };
    start..end
}

/// The items of all rows of a list.
fn items(array: &dyn Array) -> Option<&ArrayRef> {
    use atoll_sql::arrow::array::AsArray;
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().values()),
        DataType::LargeList(_) => Some(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().values()),
        _ => None,
    }
}
