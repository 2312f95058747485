//! Where results are kept, and going on with them.

use std::path::PathBuf;

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
        let message = match &self.results {
            Some(results) => format!("stopped; --results {} --resume goes on", results.display()),
            None => "stopped; with --results it could go on".to_owned(),
        };
        CommandError::with(Exit::Interrupted, message)
    }
}
