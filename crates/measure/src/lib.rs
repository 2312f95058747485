//! Measurements of the machine, as facts of its knowledge base: latency and bandwidth of every path
//! between nodes, alone, loaded and under cross traffic, and the time from core to core.
//!
//! It owns the kernels that are timed and the threads and memory they need. It is a crate of its own
//! because it must be compiled and run apart from everything that could disturb it, and because
//! `topology` knows a machine without touching it.

#![forbid(unsafe_code)]
