//! An engine's process, seen from the benchmark.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::worker::protocol::{Answer, Failed, Last, Loaded, Request, Scanned, WasReset};

/// A process that has loaded its tables and waits for requests. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Engine {
    /// What it said after the load.
    pub(crate) loaded: Loaded,
    process: Process,
}

impl Engine {
    /// Starts the program and waits until its tables are loaded. No reply may take longer than
    /// `patience`, the load included: an engine that hangs is an error.
    pub(crate) fn start(name: &str, command: &mut Command, patience: Duration) -> Result<Self> {
        let mut process = Process::start(name, command, patience)?;
        let loaded = process.receive()?.map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        Ok(Self { loaded, process })
    }

    /// Name of the engine.
    pub(crate) fn name(&self) -> &str {
        &self.loaded.engine
    }

    /// Runs a query: its answer, or the engine's error message.
    ///
    /// # Errors
    /// When the process is gone, hangs, or does not keep to the protocol.
    pub(crate) fn ask(&mut self, query: u8, sql: &str) -> Result<Result<Answer, String>> {
        self.process.send(&Request::Query { query, sql: sql.to_owned() })?;
        self.process.receive()
    }

    /// Bytes that the query's scans read; none where the engine does not count them.
    pub(crate) fn scanned_bytes(&mut self, query: u8, sql: &str) -> Result<Option<u64>> {
        self.process.send(&Request::Scan { scan: query, sql: sql.to_owned() })?;
        Ok(self.process.receive::<Scanned>()?.ok().and_then(|scanned| scanned.bytes))
    }

    /// Empties the engine and runs the statements; the engine's error message where one fails.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn reset(&mut self, statements: &[String]) -> Result<Result<(), String>> {
        self.process.send(&Request::Reset { reset: statements.to_vec() })?;
        let reply = self.process.receive::<WasReset>()?;
        Ok(reply.map(|_| ()))
    }

    /// Ends it; the highest resident memory of its run.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.process.send(&Request::Quit { quit: true })?;
        let last = self.process.receive::<Last>()?;
        let last = last.map_err(|error| anyhow::anyhow!("{}: {error}", self.process.name))?;
        self.process.wait()?;
        Ok(last.peak_rss_bytes)
    }

    /// Waits until a process that takes no requests ends; what it said first.
    pub(crate) fn wait(mut self) -> Result<Loaded> {
        self.process.wait()?;
        Ok(self.loaded.clone())
    }
}

#[derive(Debug)]
struct Process {
    name: String,
    child: Child,
    requests: ChildStdin,
    /// Lines, read by a thread of their own so that waiting for one can end.
    replies: Receiver<io::Result<String>>,
    patience: Duration,
}

impl Process {
    fn start(name: &str, command: &mut Command, patience: Duration) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            started.with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let (requests, replies) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(replies)) = (requests, replies) else {
            bail!("{name} has no standard input or output");
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(replies).lines();
            // Ends with the process's output, or when nobody listens any more.
            lines.try_for_each(|line| sender.send(line))
        });
        Ok(Self { name: name.to_owned(), child, requests, replies: lines, patience })
    }

    fn send(&mut self, request: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(request)?;
        let sent = writeln!(self.requests, "{line}").and_then(|()| self.requests.flush());
        sent.with_context(|| format!("{} takes no more requests", self.name))
    }

    /// The next reply: what was asked for, or the engine's error message.
    fn receive<T: DeserializeOwned>(&mut self) -> Result<Result<T, String>> {
        let name = &self.name;
        let line = match self.replies.recv_timeout(self.patience) {
            Ok(line) => line.with_context(|| format!("cannot read what {name} says"))?,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("{name} ended without a reply; what it said is above")
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("{name} has not replied for {} s", self.patience.as_secs_f64())
            }
        };
        if let Ok(Failed { error }) = serde_json::from_str(&line) {
            return Ok(Err(error));
        }
        let reply = serde_json::from_str(&line);
        let reply = reply.with_context(|| format!("{name} replied {line:.200}"))?;
        Ok(Ok(reply))
    }

    fn wait(&mut self) -> Result<()> {
        let status = self.child.wait().with_context(|| format!("{} is lost", self.name))?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // It may end by itself at the same moment.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = r#"{"engine":"sh","version":"1","load_ms":1.5,"rss_before_load_bytes":1,"rss_bytes":2,"peak_rss_bytes":3}"#;

    /// A shell that loads at once and then runs `script`.
    fn shell(script: &str) -> Result<Engine> {
        let script = format!("echo '{LOADED}'; {script}");
        Engine::start("sh", Command::new("sh").args(["-c", &script]), Duration::from_secs(60))
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

    #[test]
    fn an_engine_that_hangs_is_an_error_and_is_ended() {
        let patience = Duration::from_millis(50);
        let error = Engine::start("sh", Command::new("sh").args(["-c", "read never"]), patience);
        let error = error.expect_err("it says nothing").to_string();
        assert_eq!(error, "sh has not replied for 0.05 s");
    }

    #[test]
    fn a_reply_that_is_none_is_shown() {
        let mut engine = shell("read a; echo hello").expect("it starts");
        let error = engine.ask(1, "select 1").expect_err("no JSON");
        assert!(format!("{error:#}").contains("sh replied hello"), "{error:#}");
    }
}
