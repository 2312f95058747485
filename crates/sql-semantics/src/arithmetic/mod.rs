//! Arithmetic and casts that return the right result or an error.
//!
//! DataFusion's integers wrap around (apache/datafusion#3520), its decimals exceed their precision, and its quotients
//! and casts truncate. The functions here replace those expressions:
//!
//! | file | contents |
//! |---|---|
//! | `rule` | the rule that replaces DataFusion's expressions |
//! | `planner` | quotients of decimals, whose result type differs from DataFusion's |
//! | `operation` | the operations as functions |
//! | `integer` | `+ - * << >>` of integers, with one overflow check per batch |
//! | `decimal` | `+ - *` of decimals, as fast as the width of their values allows |
//! | `divide` | `/` of decimals, rounded |
//! | `cast` | casts between numbers, rounded |
//! | `moments` | casts between dates, timestamps, times and intervals |
//! | `intervals` | comparison, ordering and grouping of intervals by length |
//! | `interval_choice` | `greatest`, `least` and `nullif` of intervals |
//! | `nested_text` | casts of lists, structs and maps to texts, with visible NULLs |
//! | `nested_input` | texts to lists, structs and maps |
//! | `float_text` | texts to floats, with range checks |
//! | `text_input` | casts of texts to bytes and nested values |
//! | `bounds` | which integer expressions cannot overflow, judged by their types |
//! | `guard` | AND and OR that evaluate fallible operands only if needed |

mod bounds;
mod cast;
mod decimal;
mod divide;
mod float_text;
mod guard;
mod integer;
mod interval_choice;
mod intervals;
mod moments;
mod nested_input;
mod nested_text;
mod operation;
mod planner;
mod rule;
#[cfg(test)]
mod tests;
mod text_input;

pub use cast::{assigned, assigned_value, convert, convert_in};
pub(crate) use float_text::float_of_literal;
pub(crate) use guard::{Failure, failure};
pub(crate) use intervals::windows;
pub use nested_text::hexadecimal;
pub use nested_text::{is_ambiguous, quoted};
use operation::Operation;
pub use operation::sum_of;
pub use planner::PlanDivision;
pub use rule::CheckedArithmetic;
pub use text_input::TextInput;
