//! Forms of values as texts, and of texts as bytes.

mod array;
mod decimal;
mod encoding;

pub use array::{
    ArrayItem, array_items, is_array_item_quoted, lengths as array_lengths, nested_array_items,
    push_array_item,
};
pub use decimal::without_exponent;
pub use encoding::{EncodingError, TextDecoder, TextEncoding};
