//! Types of literals, parameters and operands by what stands beside them, as in PostgreSQL's documentation (“Type
//! Conversion”), while a statement is planned and before DataFusion settles the types of a plan.
//!
//! | file | what is written | what it becomes |
//! |---|---|---|
//! | `literals` | `n = '5'`, `'1' + 1` | literals of the type beside them |
//! | `narrow_numbers` | `n + 1`, `coalesce(n, 0)` | INTEGER where n is |
//! | `sibling_marks`, `sibling_types` | `coalesce(d, '2024-01-01')`, `array_append(a, $1)` | literals and parameters of the types beside them |
//! | `decimals_beside_floats` | `f > 1.5`, `f IN (SELECT d …)` | decimals as floats |
//! | `dates` | `d < now()`, `t2 - t1` | dates beside timestamps, and what lies between two of these |

mod dates;
mod decimals_beside_floats;
mod literals;
mod narrow_numbers;
mod sibling_marks;
mod sibling_types;

pub use dates::{DatesBesideTimestamps, PlanDates};
pub use decimals_beside_floats::DecimalsBesideFloats;
pub use literals::TypedLiterals;
pub(crate) use sibling_marks::{mark_siblings, mark_siblings_within};
