//! ENUMs in plans: conversions between labels and codes, and refusal of operations that would show codes.
//!
//! | file | contents |
//! |---|---|
//! | `array_operands` | items, comparisons and orders of arrays of labels |
//! | `arrays` | casts to arrays of labels |
//! | `containers` | labels in arrays, rows and JSON |
//! | `labels` | casts of texts to codes and back |
//! | `functions` | `enum_first`, `enum_last` and `enum_range` |
//! | `operands` | operators and functions that ENUMs do not have; comparison of two different ENUMs |
//! | `parameters` | parameters whose place implies an ENUM |
//! | `output` | labels instead of codes in the rows that leave the database |
//!
//! `atoll_sql_common::user_type` says what the values are. All else treats them as numbers.

mod array_operands;
mod arrays;
mod containers;
mod functions;
mod labels;
mod operands;
mod output;
mod parameters;

pub use arrays::{cast_to_array, check_labels};
pub use containers::labels_in_containers;
pub use functions::functions;
pub(crate) use functions::with_labels;
pub use labels::cast;
pub use operands::EnumOperands;
pub use output::{labelled, labelled_rows, labelled_schema};
pub use parameters::cast_parameters;
