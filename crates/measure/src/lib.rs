//! Measurements of the machine, as facts of its knowledge base: latency and bandwidth of every path
//! between nodes, alone, loaded and under cross traffic, and the time from core to core.
//!
//! It owns the timed kernels and the threads and memory they need. It is a separate crate because it must be compiled
//! and run apart from everything that could disturb it, and because `topology` describes a machine without touching it.
//!
//! [`measure`] follows its [`MeasureOptions`] and returns a [`MeasureReport`]: facts, and notes on what could not be
//! measured. Every figure is of memory that is verified to be on its node, read by threads that are verified to run on
//! their cpus; any obstacle becomes a note.

#![forbid(unsafe_code)]

mod buffers;
mod chain;
mod cluster;
mod crew;
mod error;
mod options;
mod pages;
mod parts;
mod plan;
mod run;
mod samples;
mod seats;
mod step;
mod stream;

pub use error::MeasureError;
pub(crate) use error::MeasureStepError;
pub use options::{BUFFER_MIN, MeasureOptions, MeasurementKind, REPETITIONS_MAX, WINDOW_MAX};
pub use run::{MeasureProgress, MeasureReport, estimate, measure};
