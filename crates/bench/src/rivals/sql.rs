//! An engine that answers SQL, in its own process: Atoll or DataFusion ([`crate::worker`]), or
//! DuckDB by `rivals/sql_engine.py`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::process::RivalProcess;
use crate::protocol::{Answer, Last, Loaded, Request, Scanned, WasReset};

/// A process that has loaded its tables and waits for requests. Dropping it ends it.
#[derive(Debug)]
pub struct SqlEngine {
    /// Its message after the load.
    pub loaded: Loaded,
    process: RivalProcess,
}

impl SqlEngine {
    /// Starts the program and waits until its tables are loaded. No reply may take longer than
    /// `patience`, the load included: an engine that hangs is an error.
    ///
    /// # Errors
    /// When it does not start, hangs, or cannot load its tables.
    pub fn start(name: &str, command: &mut Command, patience: Duration) -> Result<Self> {
        let mut process = RivalProcess::start(name, command, patience)?;
        let loaded = process.receive()?.map_err(|error| anyhow!("{name}: {error}"))?;
        Ok(Self { loaded, process })
    }

    /// Name of the engine.
    pub fn name(&self) -> &str {
        &self.loaded.engine
    }

    /// Runs a query: its answer, or the engine's error message.
    ///
    /// # Errors
    /// When the process is gone, hangs, or does not keep to the protocol.
    pub fn ask(&mut self, query: u8, sql: &str) -> Result<Result<Answer, String>> {
        self.process.ask(&Request::Query { query, sql: sql.to_owned() })
    }

    /// Bytes that the query's scans read; None if the engine does not count them.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn scanned_bytes(&mut self, query: u8, sql: &str) -> Result<Option<u64>> {
        let request = Request::Scan { scan: query, sql: sql.to_owned() };
        Ok(self.process.ask::<Scanned>(&request)?.ok().and_then(|scanned| scanned.bytes))
    }

    /// Empties the engine and runs the statements; returns the engine's error message if one fails.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn reset(&mut self, statements: &[String]) -> Result<Result<(), String>> {
        let request = Request::Reset { reset: statements.to_vec() };
        let reply = self.process.ask::<WasReset>(&request)?;
        Ok(reply.map(|_| ()))
    }

    /// Ends it; the highest resident memory of its run.
    ///
    /// # Errors
    /// As [`Self::ask`], and when it does not end well.
    pub fn finish(mut self) -> Result<u64> {
        let last = self.process.ask::<Last>(&Request::Quit { quit: true })?;
        let last = last.map_err(|error| anyhow!("{}: {error}", self.name()))?;
        self.process.wait()?;
        Ok(last.peak_rss_bytes)
    }

    /// Waits until a process that takes no requests ends, and returns its first line.
    ///
    /// # Errors
    /// When it does not end well.
    pub fn wait(mut self) -> Result<Loaded> {
        self.process.wait()?;
        Ok(self.loaded.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = r#"{"engine":"sh","version":"1","load_ms":1.5,"rss_before_load_bytes":1,"rss_bytes":2,"peak_rss_bytes":3}"#;

    /// A shell that loads at once and then runs `script`.
    fn shell(script: &str) -> Result<SqlEngine> {
        let script = format!("echo '{LOADED}'; {script}");
        SqlEngine::start("sh", Command::new("sh").args(["-c", &script]), Duration::from_secs(60))
    }

    #[test]
    fn requests_and_replies_are_lines() {
        let reply = r#"{"query":6,"ms":2.5,"columns":["integer"],"values":[["7"]]}"#;
        let script = format!(
            "read a; echo '{reply}'; read b; echo '{{\"error\": \"no\"}}'; read c; \
             echo '{{\"peak_rss_bytes\": 9}}'"
        );
        let mut engine = shell(&script).expect("it starts");
        assert_eq!((engine.name(), engine.loaded.load_ms), ("sh", 1.5));
        let answer = engine.ask(6, "select 7").expect("alive").expect("an answer");
        assert_eq!((answer.ms, answer.values.len()), (2.5, 1));
        assert_eq!(engine.ask(6, "select x").expect("alive"), Err("no".to_owned()));
        assert_eq!(engine.finish().expect("the end"), 9);
    }

    #[test]
    fn an_engine_that_goes_away_is_an_error_with_its_name() {
        let mut engine = shell("exit 3").expect("it starts");
        let error = engine.ask(1, "select 1").expect_err("it is gone");
        assert!(format!("{error:#}").contains("sh"), "{error:#}");
        let error = shell("exit 3").expect("it starts").wait().expect_err("a bad end");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
