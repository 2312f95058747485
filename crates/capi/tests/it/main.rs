//! The C interface, called as a C program calls it.
//!
//! - `program`: the example in C, compiled and run, with AddressSanitizer as well
//! - `header`: the header and the library say the same
//! - `groups`, `joins`, `sorts`, `shuffles`: results, against plain loops
//! - `errors`: every error, and that nothing is lost by one

mod compiler;
mod errors;
mod groups;
mod header;
mod joins;
mod lent;
mod program;
mod shuffles;
mod sorts;
