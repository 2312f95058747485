//! `bench`: the benchmarks that need neither SQL nor another engine, so that a guest of the lab can run
//! them, and what all benchmarks share.
//!
//! | File | Owns |
//! |---|---|
//! | `memory`, `reproduce` | Kiefer's experiments |
//! | `shuffle` | shuffles, and their simulation |
//! | `scale_up` | a measured pass on more threads of a declared machine |
//! | `chart` | curves in frames |
//! | `output` | where results go, and in which form |
//! | `document` | the JSON form of all results |
//! | `manifest` | conditions |
//! | `summary` | what some runs come to |

mod chart;
mod document;
mod manifest;
mod memory;
mod output;
mod reproduce;
mod scale_up;
mod shuffle;
mod summary;

use std::ffi::OsString;

use anyhow::Context;
use clap::Subcommand;

use crate::exit::CommandError;

pub use chart::{ChartAxis, Curve, CurveChart, picture, stacked};
pub use document::{Better, Document, Measurement};
pub use manifest::Manifest;
pub use output::{Form, OutputArgs, Outputs, json, put};
pub use scale_up::{MeasuredPass, ScalePoint, ScaleUp, ScaledPass, scale_up};
pub use summary::Summary;

/// What `--help` shows.
pub const EXAMPLES: &str = memory::EXAMPLES;

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct ToolsBenchArgs {
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// The program of this process and the words before the name of a benchmark: `atoll-bench`, or `atoll bench`.
///
/// # Errors
/// The path of the program is unknown.
pub fn own_words() -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe().context("cannot find the program of this process")?;
    let is_bench = own.file_name().is_some_and(|name| name == "atoll-bench");
    let mut words = vec![own.into_os_string()];
    words.extend((!is_bench).then(|| "bench".into()));
    Ok(words)
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Benchmark {
    /// What remote memory, migrating threads and shared caches cost (Kiefer 2013, section 3)
    #[command(after_help = memory::EXAMPLES)]
    Memory(Box<memory::MemoryArgs>),
    /// Shuffles: pieces that every worker holds for every other (Li 2013, sections 3 and 4.1)
    #[command(after_help = shuffle::EXAMPLES)]
    Shuffle(Box<shuffle::ShuffleArgs>),
    /// One process of a run of several
    #[command(hide = true)]
    Part(memory::PartArgs),
}

impl ToolsBenchArgs {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// How the process ends.
    pub fn run(&self) -> Result<(), CommandError> {
        self.benchmark.run()
    }
}

impl Benchmark {
    /// Runs it.
    ///
    /// # Errors
    /// How the process ends.
    pub fn run(&self) -> Result<(), CommandError> {
        match self {
            Self::Memory(memory) => memory::run(memory),
            Self::Shuffle(shuffle) => shuffle::run(shuffle),
            Self::Part(part) => memory::part(part),
        }
    }
}
