//! Primitives against slow, readable references, on machines of many shapes.

mod aggregate;
mod join;
mod partition;
mod shuffle;
mod sort;
