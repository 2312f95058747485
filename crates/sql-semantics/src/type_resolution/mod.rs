//! Type resolution of literals, parameters and operands from their context, as in PostgreSQL's documentation (“Type
//! Conversion”), during planning and before DataFusion's type coercion.
//!
//! | file | written | becomes |
//! |---|---|---|
//! | `literals` | `n = '5'`, `'1' + 1` | literals of the type next to them |
//! | `narrow_numbers` | `n + 1`, `coalesce(n, 0)` | INTEGER if n is INTEGER |
//! | `sibling_marks`, `sibling_types` | `coalesce(d, '2024-01-01')`, `array_append(a, $1)` | literals and parameters of their siblings' types |
//! | `decimals_beside_floats` | `f > 1.5`, `f IN (SELECT d …)` | decimals as floats |
//! | `dates` | `d < now()`, `t2 - t1` | dates next to timestamps, and differences of timestamps |

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
