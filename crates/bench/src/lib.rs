//! bench

pub mod runtime;
