//! Canonical floats: no −0.0 and a single NaN, so that equal values have equal bits.
//!
//! In SQL −0.0 equals 0.0, and NaN equals NaN and is greater than all numbers, as in PostgreSQL. Arrow compares,
//! sorts and hashes floats by IEEE 754's total order, in which −0.0 is less than 0.0, and a NaN with its
//! sign bit set (the result of 0.0 / 0.0 on x86) less than −∞. For canonical floats the two
//! orders are the same. So nothing above the scans needs to know about special values:
//!
//! | source of a float | what canonicalizes it |
//! |---|---|
//! | a table | `store`, once, when the value is stored |
//! | a file or any other source | a projection above the scan ([`CanonicalFloats`]) |
//! | a literal | the literal itself is replaced ([`CanonicalFloats`]) |
//! | an expression | the function `canonical` around it, if the result may not be canonical (`expr.rs`) |
//! | an aggregate or window function | a projection above the operator, likewise |
//!
//! The projection above a file's scan also prevents the file's statistics from answering a filter or a
//! `min`: they follow other rules.

mod constant;
mod expr;
mod function;
mod rule;

pub use rule::CanonicalFloats;
