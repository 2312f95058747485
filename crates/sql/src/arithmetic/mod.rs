//! Arithmetic and casts whose answers are right, or errors.
//!
//! DataFusion's integers wrap around, its decimals outgrow their precision and its quotients and casts
//! cut off what is behind the point. The functions here take the place of those expressions:
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
//! | `nested_text` | casts of lists, structs and maps to texts, in which NULL can be seen |
//! | `text_input` | casts of texts to bytes and lists, as PostgreSQL writes these |
//! | `bounds` | which integer expressions cannot overflow by their types |
//! | `guard` | AND and OR that compute what may fail only where it decides |
//! | `overflow` | the error |

mod bounds;
mod cast;
mod decimal;
mod divide;
mod guard;
mod integer;
mod nested_text;
mod operation;
mod overflow;
mod planner;
mod rule;
#[cfg(test)]
mod tests;
mod text_input;

pub use nested_text::{is_ambiguous, quoted};
use operation::Operation;
pub(crate) use operation::sum_of;
pub(crate) use planner::{PlanDivision, null_where_an_argument_is};
pub(crate) use rule::CheckedArithmetic;
pub(crate) use text_input::TextInput;
