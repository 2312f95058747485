//! Arithmetic and casts whose answers are right, or errors.
//!
//! DataFusion's integers wrap around (apache/datafusion#3520), its decimals outgrow their precision and its quotients
//! and casts cut off what is behind the point. The functions here take the place of those expressions:
//!
//! | file | what |
//! |---|---|
//! | `rule` | the rule that replaces DataFusion's expressions |
//! | `planner` | quotients of decimals, whose type differs from DataFusion's |
//! | `operation` | the operations as functions |
//! | `integer` | `+ - * << >>` of integers: one look at a batch tells whether one overflowed |
//! | `decimal` | `+ - *` of decimals at the speed of the bits that the values have |
//! | `divide` | `/` of decimals, rounded |
//! | `cast` | casts between numbers, rounded |
//! | `moments` | casts between dates, timestamps, times and intervals |
//! | `intervals` | comparisons, orders and groups of intervals by how long they are |
//! | `interval_choice` | `greatest`, `least` and `nullif` of intervals |
//! | `nested_text` | casts of lists, structs and maps to texts, in which NULL can be seen |
//! | `nested_input` | texts as lists, structs and maps |
//! | `float_text` | texts as floats that hold them |
//! | `text_input` | casts of texts to bytes and nested values |
//! | `bounds` | which integer expressions cannot overflow by their types |
//! | `guard` | AND and OR that compute what may fail only where it decides |

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

pub use cast::{assigned, assigned_value, convert};
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
