//! Ranges and multiranges, which are texts in the form that PostgreSQL prints: `[1,5)`, `empty`, `{[1,3),[5,7)}`.
//!
//! That form is one text for each value: integers and dates have bounds `[)`, times with a zone are in UTC, and the ranges
//! of a multirange have gaps between them. So equality, keys, hash joins and groups of rows compare the texts, and clients
//! get them as they are. The exception is a NUMERIC, which keeps the digits that it was written with: `[1.0,2)` is `[1,2)`.
//! Equality and groups of these, and the order of all, compare the bytes of functions such as `int4range_order`.
//!
//! | file | contents |
//! |---|---|
//! | `form` | the types, and the names of their functions |
//! | `point` | values that are bounds |
//! | `points` | arrays of these |
//! | `set` | ranges as sets of values, and what operators compute of them |
//! | `text` | texts of ranges |
//! | `functions` | casts, constructors, functions and operators |
//! | `aggregate` | `range_agg` and `range_intersect_agg` |
//! | `bounds` | `lower` and `upper` |

mod aggregate;
mod bounds;
mod form;
mod functions;
mod point;
mod points;
mod set;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use aggregate::aggregates;
pub(super) use bounds::register;
pub use form::{RangeForm, RangeType};
pub(crate) use functions::form_of;
pub(super) use functions::{ENTRIES, given_form, gives_range};
pub use point::{RangeNumber, RangePoint};
pub use set::{RangeBound, RangeSet};
