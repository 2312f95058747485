//! Where results are kept, and going on with them.

use std::path::{Path, PathBuf};

use atoll_tools::exit::{CommandError, Exit};
use clap::{Args, ValueHint};

/// The flags of benchmarks whose results may be kept case by case.
#[derive(Args, Clone, Debug)]
pub(crate) struct ResultArgs {
    /// Directory that keeps the result of each case as soon as it is measured
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) results: Option<PathBuf>,
    /// Go on with the run whose results are in --results
    #[arg(long, requires = "results")]
    pub(crate) resume: bool,
}

impl ResultArgs {
    /// How a run that a signal stopped ends.
    pub(crate) fn stopped(&self) -> CommandError {
        stopped(self.results.as_deref())
    }
}

/// How a run ends that a signal stopped, with its results in this directory.
pub(crate) fn stopped(results: Option<&Path>) -> CommandError {
    let message = match results {
        Some(results) => format!("stopped; --results {} --resume goes on", results.display()),
        None => "stopped; with --results it could go on".to_owned(),
    };
    CommandError::with(Exit::Interrupted, message)
}

/// Each value once, in the order of their first appearance.
pub(crate) fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
