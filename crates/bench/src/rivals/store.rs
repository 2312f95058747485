//! An engine whose database sessions change and read row by row: a process of Python, which
//! `rivals/store_engine.py` of this crate is.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Rival;
use super::process::RivalProcess;

const SCRIPT: &str = include_str!("../../rivals/store_engine.py");

/// A rival's process.
#[derive(Debug)]
pub(crate) struct StoreEngine {
    pub(crate) rival: Rival,
    pub(crate) version: String,
    process: RivalProcess,
}

#[derive(Deserialize)]
struct Made {
    made: bool,
}

#[derive(Deserialize)]
struct Timed {
    seconds: f64,
}

#[derive(Deserialize)]
struct IndexBytes {
    bytes: Option<u64>,
}

/// What sessions did.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Worked {
    count: u64,
    seconds: f64,
}

impl StoreEngine {
    /// Starts the engine with `threads` threads, its databases in a directory.
    ///
    /// # Errors
    /// When it does not start, does not answer within `patience`, or is not the engine asked for.
    pub(crate) fn start(
        rival: Rival,
        python: &Path,
        threads: usize,
        directory: &Path,
        patience: Duration,
    ) -> Result<Self> {
        let threads = threads.to_string();
        let arguments = [OsStr::new(rival.name()), OsStr::new(&threads), directory.as_os_str()];
        let (process, version) = RivalProcess::serve(rival, python, SCRIPT, &arguments, patience)?;
        Ok(Self { rival, version, process })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T> {
        let reply = self.process.ask::<T>(request)?;
        reply.map_err(|error| anyhow!("{}: {error}", self.rival))
    }

    /// Makes the database of this name and durability, with a table of `rows` rows and these indexes.
    pub(crate) fn open(
        &mut self,
        name: &str,
        durability: &str,
        rows: u64,
        indexes: &[&str],
    ) -> Result<()> {
        self.make(&json!({
            "open": rows, "database": name, "durability": durability, "indexes": indexes,
        }))
    }

    /// Makes the table that is copied.
    pub(crate) fn source(&mut self, name: &str, rows: u64) -> Result<()> {
        self.make(&json!({ "source": rows, "database": name }))
    }

    fn make(&mut self, request: &Value) -> Result<()> {
        let Made { made } = self.ask(request)?;
        ensure!(made, "{} did not make its tables", self.rival);
        Ok(())
    }

    /// Seconds that a statement takes.
    pub(crate) fn time(&mut self, name: &str, sql: &str) -> Result<f64> {
        let Timed { seconds } = self.ask(&json!({ "time": sql, "database": name }))?;
        self.checked(seconds)
    }

    /// Bytes of a table's indexes; for some engines together with its rows. None if the engine does not say.
    pub(crate) fn index_bytes(&mut self, name: &str, table: &str) -> Result<Option<u64>> {
        let IndexBytes { bytes } = self.ask(&json!({ "index_bytes": table, "database": name }))?;
        Ok(bytes)
    }

    /// Transactions per second of this many sessions.
    pub(crate) fn rate(
        &mut self,
        name: &str,
        work: &str,
        sessions: u16,
        seconds: f64,
    ) -> Result<f64> {
        let request = json!({
            "work": work, "database": name, "sessions": sessions, "seconds": seconds,
        });
        let Worked { count, seconds } = self.ask(&request)?;
        Ok(count as f64 / self.checked(seconds)?)
    }

    fn checked(&self, seconds: f64) -> Result<f64> {
        let is_time = seconds.is_finite() && seconds > 0.0;
        ensure!(is_time, "{} reported {seconds} s for a run", self.rival);
        Ok(seconds)
    }
}
