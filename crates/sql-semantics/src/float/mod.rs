//! Floats in one form: no −0.0, and a single NaN, so that equal values are equal in every bit.
//!
//! In SQL −0.0 is 0.0 and NaN equals NaN and is above all numbers, as in PostgreSQL. Arrow compares,
//! sorts and hashes floats by IEEE 754's total order, in which −0.0 lies below 0.0 and a NaN with its
//! sign set (which is what x86 makes of 0.0 / 0.0) below −∞. On floats in this one form, the canonical
//! one, the two orders are the same. So nothing above the scans knows of special values:
//!
//! | where a float comes from | who brings it into the form |
//! |---|---|
//! | a table | `store`, once, when it is stored |
//! | a file or any other source | a projection above the scan ([`CanonicalFloats`]) |
//! | a literal | the literal itself is replaced ([`CanonicalFloats`]) |
//! | an expression | the function `canonical` around it, where another form may come out (`expr.rs`) |
//! | an aggregate or window function | a projection above the operator, likewise |
//!
//! The projection above a file's scan also keeps the file's statistics from answering a filter or a
//! `min`: they were written by other rules.

mod constant;
mod expr;
mod function;
mod rule;

pub use rule::CanonicalFloats;
