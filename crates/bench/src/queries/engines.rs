//! Processes of engines that answer SQL.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use atoll_topology::Bytes;
use serde::Serialize;

use crate::protocol::Loaded;
use crate::rivals::{self, Rival, SqlEngine};
use crate::worker::EngineKind;

/// How engines are started.
#[derive(Clone, Debug)]
pub(crate) struct EnginePrograms {
    /// The words that start this program again, as each engine.
    pub(crate) own: Vec<OsString>,
    pub(crate) rivals: Vec<Rival>,
    pub(crate) python: Option<PathBuf>,
    /// How long a load or a query may take.
    pub(crate) patience: Duration,
}

impl EnginePrograms {
    /// Starts the engines, one after the other; Atoll is the first. They load the files of `data`, or start
    /// without tables.
    ///
    /// # Errors
    /// When one does not start, or cannot load.
    pub(crate) fn start(
        &self,
        threads: usize,
        data: Option<&Path>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<SqlEngine>> {
        let mut commands = vec![("atoll", worker(&self.own, EngineKind::Atoll, threads, data))];
        for rival in &self.rivals {
            commands.push(match rival {
                Rival::Duckdb => ("duckdb", self.duckdb(threads, data, progress)?),
                _ => ("datafusion", worker(&self.own, EngineKind::Datafusion, threads, data)),
            });
        }
        let mut engines = Vec::with_capacity(commands.len());
        for (name, mut command) in commands {
            progress(&format!("{name}: loading"));
            let engine = SqlEngine::start(name, &mut command, self.patience)?;
            let Loaded { version, load_ms, rss_bytes, .. } = &engine.loaded;
            let resident = Bytes(*rss_bytes);
            progress(&format!("{name} {version}: loaded in {load_ms:.0} ms, {resident} resident"));
            engines.push(engine);
        }
        Ok(engines)
    }

    fn duckdb(
        &self,
        threads: usize,
        data: Option<&Path>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Command> {
        let python = rivals::python(self.python.as_deref(), progress)?;
        let mut command = Command::new(python);
        command.args(["-c", rivals::DUCKDB_SCRIPT, "--threads", &threads.to_string()]);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        Ok(command)
    }
}

/// The command that makes this program an engine.
pub(crate) fn worker(
    own: &[OsString],
    kind: EngineKind,
    threads: usize,
    data: Option<&Path>,
) -> Command {
    let (program, words) = own.split_first().expect("a program has a name");
    let mut command = Command::new(program);
    command.args(words).args(["worker", "--engine", kind.name(), "--threads"]);
    command.arg(threads.to_string());
    if let Some(data) = data {
        command.arg("--data").arg(data);
    }
    command
}

/// Load and memory of an engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EngineMeasured {
    /// Its message after the load.
    pub(crate) loaded: Loaded,
    /// Highest resident memory of its process, load and queries included.
    pub(crate) peak_rss_bytes: u64,
}

impl EngineMeasured {
    /// Memory that the tables took: resident after the load, without what was before.
    pub(crate) fn tables_bytes(&self) -> u64 {
        self.loaded.rss_bytes.saturating_sub(self.loaded.rss_before_load_bytes)
    }
}

/// Ends the engines; what they report.
///
/// # Errors
/// When one does not end well.
pub(crate) fn finish(engines: Vec<SqlEngine>) -> Result<Vec<EngineMeasured>> {
    let measured = engines.into_iter().map(|engine| {
        let loaded = engine.loaded.clone();
        Ok(EngineMeasured { peak_rss_bytes: engine.finish()?, loaded })
    });
    measured.collect()
}
