//! The server of the user's: started under an arm by `atoll run`, waited for, stopped.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use atoll_process::inspect::{ProcessId, descendants, identify};
use atoll_sys::{Root, kill_process, signal};
use atoll_topology::Machine;

use super::shell::{self, ShellEnd, last_lines};
use super::{PlacementArgs, StopSignal};
use crate::programs::run_command;
use crate::trials::RunStop;

/// How long after its start a server without --ready counts as ready.
const SETTLE: Duration = Duration::from_secs(1);
/// Time between two questions whether it is ready, or has ended.
const LOOK: Duration = Duration::from_millis(50);

/// A server, stopped when dropped.
pub(super) struct PlacedServer<'a> {
    child: Child,
    /// What it writes.
    log: PathBuf,
    stop_signal: i32,
    grace: Duration,
    pub(super) machine: &'a Machine,
}

impl<'a> PlacedServer<'a> {
    /// Starts it under an arm. `atoll run` becomes the server, whose number is therefore known.
    ///
    /// # Errors
    /// When `atoll` is missing or does not start.
    pub(super) fn start(
        args: &PlacementArgs,
        arm: &str,
        machine: &'a Machine,
        home: &Path,
        stop: &RunStop,
    ) -> Result<Self> {
        let log = home.join("server.log");
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = run_command()?;
        command.args(["--placement", arm, "--"]).args(&args.server);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        stop.prepare(&mut command);
        let child = command.spawn().context("atoll run does not start")?;
        let stop_signal = match args.stop_signal {
            StopSignal::Term => signal::TERM,
            StopSignal::Int => signal::INT,
            StopSignal::Quit => signal::QUIT,
        };
        let grace = Duration::from_secs_f64(args.grace);
        Ok(Self { child, log, stop_signal, grace, machine })
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// When it ends before, or takes too long.
    pub(super) fn wait_ready(
        &mut self,
        args: &PlacementArgs,
        home: &Path,
        stop: &RunStop,
    ) -> Result<()> {
        let (begun, longest) = (Instant::now(), Duration::from_secs_f64(args.ready_timeout));
        while !self.is_ready(args, begun, home, stop)? {
            if self.has_ended() {
                return Err(self.ended_early("before it was ready"));
            }
            if stop.is_stopped() {
                bail!("the run was stopped");
            }
            if begun.elapsed() > longest {
                bail!(
                    "the server was not ready within {} s (--ready-timeout); --ready says:\n{}\nthe server says:\n{}",
                    args.ready_timeout,
                    last_lines(&home.join("ready.err")),
                    last_lines(&self.log)
                );
            }
            thread::sleep(LOOK);
        }
        match self.has_ended() {
            true => Err(self.ended_early("before the load; it has to stay in the foreground")),
            false => Ok(()),
        }
    }

    fn is_ready(
        &mut self,
        args: &PlacementArgs,
        begun: Instant,
        home: &Path,
        stop: &RunStop,
    ) -> Result<bool> {
        let Some(ready) = &args.ready else { return Ok(begun.elapsed() >= SETTLE) };
        let files = (home.join("ready.out"), home.join("ready.err"));
        let longest = Duration::from_secs_f64(args.ready_timeout).saturating_sub(begun.elapsed());
        let end = shell::run(ready, (&files.0, &files.1), longest, stop, || self.has_ended())?;
        Ok(matches!(end, ShellEnd::Ended(status, _) if status.success()))
    }

    /// Whether it has ended on its own.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The error of a server that has ended.
    pub(super) fn ended_early(&mut self, when: &str) -> anyhow::Error {
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "an unknown status".to_owned(),
        };
        anyhow!("the server ended with {how} {when}; its last lines:\n{}", last_lines(&self.log))
    }

    /// Stops it and what it started; kills what is left after the grace.
    ///
    /// # Errors
    /// When it has to be killed.
    pub(super) fn stop(&mut self) -> Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        let tree = self.tree();
        let _ = kill_process(self.pid().cast_signed(), self.stop_signal);
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > self.grace {
                kill(&tree);
                let _ = self.child.kill();
                let _ = self.child.wait();
                bail!(
                    "the server did not stop within {} s and was killed",
                    self.grace.as_secs_f64()
                );
            }
            thread::sleep(LOOK);
        }
        kill(&tree);
        Ok(())
    }

    /// Its processes now.
    fn tree(&self) -> Vec<ProcessId> {
        let root = Root::live();
        let own: Vec<ProcessId> = identify(&root, self.pid()).into_iter().collect();
        descendants(&root, &own).unwrap_or(own)
    }
}

/// Kills those that are still the same processes.
fn kill(tree: &[ProcessId]) {
    let root = Root::live();
    let is_same = |it: &&ProcessId| identify(&root, it.pid).is_ok_and(|now| now == **it);
    for process in tree.iter().filter(is_same) {
        // It may end on its own at the same moment.
        let _ = kill_process(process.pid.cast_signed(), signal::KILL);
    }
}

impl Drop for PlacedServer<'_> {
    fn drop(&mut self) {
        // After an error that is reported already.
        let _ = self.stop();
    }
}
