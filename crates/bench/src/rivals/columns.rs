//! An engine that runs one query over columns of 64-bit integers: a process of Python, which
//! `rivals/engines.py` of this crate is.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Rival;
use super::files::Files;
use super::process::RivalProcess;
use crate::check::Check;

const SCRIPT: &str = include_str!("../../rivals/engines.py");

/// Work for a rival; `ways` of `engines.py` has the queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RivalOperation {
    Aggregate,
    Join,
    Sort,
}

/// A rival's process.
#[derive(Debug)]
pub(crate) struct ColumnEngine {
    pub(crate) rival: Rival,
    pub(crate) version: String,
    process: RivalProcess,
}

#[derive(Deserialize)]
struct Loaded {
    loaded: bool,
}

#[derive(Deserialize)]
struct Warm {
    way: String,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RivalRan {
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) check: Check,
}

impl ColumnEngine {
    /// Starts the engine with `threads` threads and no data.
    ///
    /// # Errors
    /// When it does not start, does not answer within `patience`, or is not the engine asked for.
    pub(crate) fn start(
        rival: Rival,
        python: &Path,
        threads: usize,
        patience: Duration,
    ) -> Result<Self> {
        let threads = threads.to_string();
        let arguments = [rival.name(), &threads].map(OsStr::new);
        let (process, version) = RivalProcess::serve(rival, python, SCRIPT, &arguments, patience)?;
        Ok(Self { rival, version, process })
    }

    /// Loads tables into its memory; returns the engine's message on failure.
    pub(crate) fn load(&mut self, files: &Files) -> Result<Result<(), String>> {
        let reply = self.process.ask::<Loaded>(&json!({ "load": files.paths() }))?;
        Ok(reply.and_then(|Loaded { loaded }| loaded.then_some(()).ok_or("not loaded".to_owned())))
    }

    /// Runs the query in each of the engine's ways, `runs` times and once at least; which one was the
    /// fastest, where there are several.
    pub(crate) fn warm(
        &mut self,
        operation: RivalOperation,
        runs: u32,
    ) -> Result<Result<String, String>> {
        let reply = self.process.ask::<Warm>(&json!({ "warm": operation, "runs": runs }))?;
        Ok(reply.map(|warm| warm.way))
    }

    /// Runs the query once.
    ///
    /// # Errors
    /// Also for a time that no run takes.
    pub(crate) fn run(&mut self, operation: RivalOperation) -> Result<Result<RivalRan, String>> {
        let ran = self.process.ask::<RivalRan>(&json!({ "run": operation }))?;
        match ran {
            Ok(ran) if !(ran.seconds.is_finite() && ran.seconds > 0.0) => {
                Err(anyhow!("{} reported {} s for a run", self.rival, ran.seconds))
            }
            ran => Ok(ran),
        }
    }
}
