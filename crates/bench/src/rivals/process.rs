//! A process that answers one line of JSON for each that it is given.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use atoll_sys::{block_signals, signal, tie_to_parent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Rival;
use crate::protocol::Failed;

/// The beginning of all scripts.
const SERVING: &str = include_str!("../../rivals/serving.py");
/// Longest line that a process may say, the result of a query: a line without end must not fill memory.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// A running process. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct RivalProcess {
    name: String,
    child: Child,
    requests: ChildStdin,
    /// Lines, read by a thread of their own so that waiting for one can end.
    replies: Receiver<io::Result<String>>,
    patience: Duration,
}

/// An engine's first line.
#[derive(Deserialize)]
struct Started {
    engine: String,
    version: String,
}

impl RivalProcess {
    /// Starts a script of `rivals/` with these arguments, which serves an engine; the process and the engine's
    /// version. Patience as for [`start`](Self::start).
    ///
    /// # Errors
    /// When it does not start, does not answer in time, or is not the engine asked for.
    pub(super) fn serve(
        rival: Rival,
        python: &Path,
        script: &str,
        arguments: &[&OsStr],
        patience: Duration,
    ) -> Result<(Self, String)> {
        let mut command = Command::new(python);
        command.arg("-c").arg(format!("{SERVING}{script}")).args(arguments);
        let mut process = Self::start(rival.name(), &mut command, patience)?;
        let Started { engine, version } = process.receive()?.map_err(|error| {
            anyhow!("{rival} does not start with {}: {error}", python.display())
        })?;
        ensure!(engine == rival.name(), "{engine} was started, not {rival}");
        Ok((process, version))
    }

    /// Starts it. No reply may take longer than `patience`: a process that hangs is an error.
    pub(crate) fn start(name: &str, command: &mut Command, patience: Duration) -> Result<Self> {
        // A benchmark that is killed leaves no engine running.
        tie_to_parent(command, signal::KILL, block_signals(&[])?);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            started.with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let (requests, replies) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(replies)) = (requests, replies) else {
            bail!("{name} has no standard input or output");
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut replies = BufReader::new(replies);
            // Ends with the process's output, or when the receiver is dropped.
            while let Some(line) = line(&mut replies).transpose() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { name: name.to_owned(), child, requests, replies: lines, patience })
    }

    /// Sends a request and waits for the reply: the result, or the process's message why
    /// not.
    ///
    /// # Errors
    /// When it is gone, hangs, or does not keep to the protocol.
    pub(crate) fn ask<T: DeserializeOwned>(
        &mut self,
        request: &impl Serialize,
    ) -> Result<Result<T, String>> {
        let line = serde_json::to_string(request)?;
        let sent = writeln!(self.requests, "{line}").and_then(|()| self.requests.flush());
        sent.with_context(|| format!("{} accepts no more requests", self.name))?;
        self.receive()
    }

    /// Waits until a process that accepts no more requests ends.
    ///
    /// # Errors
    /// When it does not end well.
    pub(super) fn wait(&mut self) -> Result<()> {
        let status = self.child.wait().with_context(|| format!("{} is lost", self.name))?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a reply that needs no request.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Result<Result<T, String>> {
        let name = &self.name;
        let line = match self.replies.recv_timeout(self.patience) {
            Ok(line) => line.with_context(|| format!("cannot read the output of {name}"))?,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("{name} ended without a reply; its messages are above")
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("{name} did not reply within {} s", self.patience.as_secs_f64())
            }
        };
        if let Ok(Failed { error }) = serde_json::from_str(&line) {
            return Ok(Err(error));
        }
        let reply = serde_json::from_str(&line);
        reply.map(Ok).map_err(|error| {
            anyhow!("{name} replied {line:.200}, which violates the protocol: {error}")
        })
    }
}

/// The next line; none at the end.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    match from.take(LINE_BYTES_MAX).read_line(&mut line)? {
        0 => Ok(None),
        read if read as u64 == LINE_BYTES_MAX => {
            Err(io::Error::other("a line of more than 64 MiB"))
        }
        _ => Ok(Some(line.trim_end().to_owned())),
    }
}

impl Drop for RivalProcess {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // It may end on its own at the same moment.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn shell(script: &str, patience: Duration) -> RivalProcess {
        RivalProcess::start("sh", Command::new("sh").args(["-c", script]), patience)
            .expect("it starts")
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn requests_and_replies_are_lines() {
        let script = r#"read a; echo "[$a]"; read b; echo '{"error": "no"}'"#;
        let mut process = shell(script, LONG);
        assert_eq!(process.ask::<Value>(&7).unwrap(), Ok(serde_json::json!([7])));
        assert_eq!(process.ask::<Value>(&8).unwrap(), Err("no".to_owned()));
    }

    #[test]
    fn output_of_an_engine_is_not_a_reply() {
        if Command::new("python3").arg("--version").output().is_err() {
            return;
        }
        let script = r#"
def start():
    print("43%")
    os.write(1, b"56%\n")
    os.system("echo 72%")
    return "duckdb", "1", lambda request: request

print("0%")
serve(start)
"#;
        let python = Path::new("python3");
        let (mut process, version) =
            RivalProcess::serve(Rival::Duckdb, python, script, &[], LONG).expect("it starts");
        assert_eq!(version, "1");
        assert_eq!(process.ask::<Value>(&7).unwrap(), Ok(7.into()));
    }

    #[test]
    fn a_process_that_goes_away_hangs_or_talks_nonsense_is_an_error_with_its_name() {
        let error = shell("exit 3", LONG).receive::<Value>().unwrap_err().to_string();
        assert!(error.contains("sh ended without a reply"), "{error}");
        let short = Duration::from_millis(50);
        let error = shell("read never", short).receive::<Value>().unwrap_err().to_string();
        assert_eq!(error, "sh did not reply within 0.05 s");
        let error = shell("echo hello", LONG).receive::<Value>().unwrap_err().to_string();
        assert!(error.contains("sh replied hello"), "{error}");
        let flood = "tr '\\0' x < /dev/zero";
        let error = format!("{:#}", shell(flood, LONG).receive::<Value>().unwrap_err());
        assert!(error.contains("64 MiB"), "{error}");
    }
}
