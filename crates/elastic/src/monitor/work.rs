//! Performance `p`: work per second.
//!
//! | Kind | Counts | Is |
//! |---|---|---|
//! | an [`Adapter`] | the DBMS's own counter: transactions, statements | real |
//! | `command` | the output of a user's command: a rising counter, such as committed transactions | real |
//! | `calls` | reads and writes that the kernel completed for the target (`/proc/PID/io`) | a fallback: misses work in memory |
//! | `cpu` | cpu time | a fallback: waiting for memory looks like work |

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use atoll_process::inspect::ProcessId;
use atoll_sys::Root;

use super::MonitorState;
use crate::adapter::{Adapter, AdapterCalls, LiveAdapters};

/// Time between two calls of a command.
const COMMAND_EVERY: Duration = Duration::from_millis(500);

/// The source of the work counter: `cpu`, `calls` or `command:COMMAND`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkKind {
    /// The counter of a DBMS.
    Adapter(Adapter),
    /// The output of this shell command.
    Command(String),
    /// Reads and writes.
    Calls,
    /// Cpu time.
    #[default]
    Cpu,
}

impl WorkKind {
    /// Parses a kind.
    pub fn named(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("command", command)) if !command.trim().is_empty() => {
                Ok(Self::Command(command.to_owned()))
            }
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "calls" => Ok(Self::Calls),
            _ => Err(format!(
                "unknown work '{text}'; expected cpu, calls, or command: and a command that prints a \
                 counter"
            )),
        }
    }
}

/// A reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorkReading {
    /// Work so far, in its own unit.
    Count(f64),
    /// Equal to the cpu time used.
    CpuTime,
    /// There is no new figure.
    Unchanged,
}

/// Counts work.
#[derive(Debug)]
pub(super) struct WorkCounter {
    kind: WorkKind,
    /// The pending answer of a command.
    answer: Option<Receiver<Result<f64, String>>>,
    next: Duration,
    failed: Option<String>,
}

impl WorkCounter {
    pub(super) fn new(kind: WorkKind) -> Self {
        Self { kind, answer: None, next: Duration::ZERO, failed: None }
    }

    /// The work so far.
    pub(super) fn read(
        &mut self,
        at: Duration,
        root: &Root,
        processes: &[ProcessId],
    ) -> WorkReading {
        match &self.kind {
            WorkKind::Cpu => WorkReading::CpuTime,
            WorkKind::Calls => {
                let calls = processes.iter().filter_map(|id| calls_of(root, id.pid));
                WorkReading::Count(calls.sum::<u64>() as f64)
            }
            WorkKind::Command(command) => {
                let command = command.clone();
                self.asked(at, move || run(&command))
            }
            WorkKind::Adapter(adapter) => {
                let adapter = adapter.clone();
                self.asked(at, move || {
                    LiveAdapters.work(&adapter).map_err(|error| error.to_string())
                })
            }
        }
    }

    /// Answers come from a separate thread: a slow server delays no decision.
    fn asked(
        &mut self,
        at: Duration,
        ask: impl FnOnce() -> Result<f64, String> + Send + 'static,
    ) -> WorkReading {
        let Some(answer) = &self.answer else {
            if at >= self.next {
                self.next = at + COMMAND_EVERY;
                let (send, receive) = channel();
                // If the run ends first, nothing waits for the answer.
                std::thread::spawn(move || send.send(ask()));
                self.answer = Some(receive);
            }
            return WorkReading::Unchanged;
        };
        let result = match answer.try_recv() {
            Err(TryRecvError::Empty) => return WorkReading::Unchanged,
            Err(TryRecvError::Disconnected) => Err("it was interrupted".to_owned()),
            Ok(result) => result,
        };
        self.answer = None;
        match result {
            Ok(count) => {
                self.failed = None;
                WorkReading::Count(count)
            }
            Err(reason) => {
                self.failed = Some(reason);
                WorkReading::Unchanged
            }
        }
    }

    pub(super) fn state(&self) -> MonitorState {
        const NAME: &str = "performance";
        match (&self.kind, &self.failed) {
            (WorkKind::Adapter(adapter), None) => MonitorState::real(NAME, adapter.counter()),
            (WorkKind::Adapter(adapter), Some(reason)) => {
                MonitorState::absent(NAME, format!("{}: {reason}", adapter.counter()))
            }
            (WorkKind::Command(command), None) => {
                MonitorState::real(NAME, format!("the counter that '{command}' prints"))
            }
            (WorkKind::Command(command), Some(reason)) => {
                MonitorState::absent(NAME, format!("'{command}': {reason}"))
            }
            (WorkKind::Calls, _) => MonitorState::fallback(
                NAME,
                "reads and writes in /proc/PID/io: work in memory alone is not seen",
            ),
            (WorkKind::Cpu, _) => MonitorState::fallback(
                NAME,
                "cpu time: waiting for memory looks like work; --dbms or --work 'command:…' names a counter",
            ),
        }
    }
}

fn calls_of(root: &Root, pid: u32) -> Option<u64> {
    let text = root.read_text(&format!("/proc/{pid}/io")).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse::<u64>().ok()
    };
    Some(field("syscr")?.saturating_add(field("syscw")?))
}

/// The last number that a command prints.
fn run(command: &str) -> Result<f64, String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("ended with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.split_whitespace().last().and_then(|word| word.parse::<f64>().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| {
        format!("expected a number, found '{}'", text.trim().chars().take(40).collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_counts_by_the_last_number_that_it_prints() {
        assert_eq!(run("echo commits 41; echo 42.5"), Ok(42.5));
        assert!(run("exit 3").unwrap_err().contains("exit status: 3"));
        assert_eq!(run("echo none").unwrap_err(), "expected a number, found 'none'");
        assert!(run("echo inf").is_err());
    }
}
