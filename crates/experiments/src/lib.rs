//! Kiefer's memory-access experiments (Kiefer 2013, section 3): what remote memory, migrating threads
//! and shared caches cost.
//!
//! Threads read or write random entries of arrays; [`plan()`] says which thread runs where and where
//! each array lies, as [`Arm`]s to be compared, and [`run()`] runs them and proves the placement. On
//! hardware the figures are times and, with such counters, hit rates; in the lab the plugin
//! counts each arm's region, and [`reproduce`] turns the counts into times by the machine model, next to
//! the [`published`] ones.
//!
//! | File | Owns |
//! |---|---|
//! | `arm` | one run: groups of threads, their arrays, their ways over the machine |
//! | `places`, `plan/` | from a machine to arms, one file for each experiment |
//! | `schedule`, `access` | the work of a thread, and its loops |
//! | `meeting` | a barrier between threads and processes |
//! | `array`, `counters` | memory with a home; the processor's counters |
//! | `run/` | coordinator, groups, threads, processes |
//! | `outcome`, `manifest` | the results, and under which conditions |
//! | `text`, `plot/` | tables and pictures |
//! | `published`, `reproduce/` | the paper's figures, and ours from counts next to them |
//!
//! It is a separate crate because it runs in a guest as it does on hardware, and is tested on
//! machines that are not there.

#![forbid(unsafe_code)]

mod access;
mod arm;
mod array;
mod counters;
mod error;
mod manifest;
mod meeting;
mod options;
mod outcome;
mod places;
mod plan;
pub mod plot;
pub mod published;
pub mod reproduce;
mod run;
mod schedule;
mod text;

pub use arm::{Arm, CpuRoute, Group, Home, Kind, Operation};
pub use error::{ExperimentError, PlanError};
pub use manifest::ExperimentManifest;
pub use options::{ACCESSES_MAX, Arrangement, By, Custom, ExperimentOptions, SCALE_MAX};
pub use outcome::{Achieved, ArmOutcome, CacheLoads, ExperimentResults, RepeatedFigure, Slice};
pub use plan::{Plan, PlanRow, Which, plan};
pub use run::{PartProgram, RunConditions, RunPart, run, serve};
pub use text::table;
