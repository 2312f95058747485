//! A command of the user's: run by the shell in a process group of its own, which ends with the time given, with
//! a signal, or with the server that it needs.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use atoll_sys::{kill_group, signal};

use crate::trials::RunStop;

/// Time between two looks whether it has to end.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of a program's output that a message repeats, and characters of them.
const LINES: usize = 10;
const CHARACTERS: usize = 2000;

/// How a command ended.
#[derive(Debug)]
pub(super) enum ShellEnd {
    /// On its own, after so many seconds.
    Ended(ExitStatus, f64),
    /// It took too long.
    TooLong,
    /// A signal stops the run, or `is_needless` said so.
    Needless,
}

/// Runs a command of the shell; what it writes goes to these files.
///
/// # Errors
/// When the shell does not start.
pub(super) fn run(
    command: &str,
    (out, err): (&Path, &Path),
    longest: Duration,
    stop: &RunStop,
    mut is_needless: impl FnMut() -> bool,
) -> Result<ShellEnd> {
    let file = |path: &Path| File::create(path).with_context(|| path.display().to_string());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).process_group(0);
    shell.stdout(file(out)?).stderr(file(err)?);
    stop.prepare(&mut shell);
    let begun = Instant::now();
    let mut child = shell.spawn().context("the shell does not start")?;
    let group = child.id().cast_signed();
    let (sender, ended) = channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send((child.wait(), begun.elapsed())));
        let kill = || {
            // It may end on its own at the same moment.
            let _ = kill_group(group, signal::KILL);
        };
        loop {
            match ended.recv_timeout(LOOK) {
                Ok((status, time)) => {
                    let status = status.context("the command is lost")?;
                    return Ok(ShellEnd::Ended(status, time.as_secs_f64()));
                }
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the command is lost"),
                Err(RecvTimeoutError::Timeout) if stop.is_stopped() || is_needless() => {
                    kill();
                    return Ok(ShellEnd::Needless);
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > longest => {
                    kill();
                    return Ok(ShellEnd::TooLong);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })
}

/// The last lines of what a program wrote.
pub(super) fn last_lines(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let skip = last.chars().count().saturating_sub(CHARACTERS);
    match last.is_empty() {
        true => "it wrote nothing".to_owned(),
        false => last.chars().skip(skip).collect(),
    }
}
