//! A group as its own process: it is given its part on stdin and answers on stdout.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use atoll_placement::Kernel;
use atoll_sys::{SharedWords, SignalMask, signal, tie_to_parent};
use atoll_topology::Machine;

use super::group::{self, GroupRun};
use super::{RunBarriers, RunPart, all_or_cause};
use crate::ExperimentError;

/// Most of a process's answer that is read: a thousand slices of a thousand threads.
const ANSWER_MAX: u64 = 256 << 20;

/// A program that calls [`serve`]; the descriptor of the meeting is its last argument.
#[derive(Clone, Debug)]
pub struct PartProgram {
    /// The program and its first arguments.
    pub command: Vec<OsString>,
    /// Signal mask that it starts with.
    pub mask: SignalMask,
}

/// The processes of an arm.
#[derive(Debug)]
pub(super) struct Processes(Vec<Child>);

impl Processes {
    /// Starts one for each group.
    pub(super) fn start(
        program: &PartProgram,
        part: &RunPart,
        shared: &SharedWords,
    ) -> Result<Self, ExperimentError> {
        let mut all = Self(Vec::new());
        for group in 0..part.arm.groups.len() {
            let io = |error| ExperimentError::Io { group, error };
            let (name, arguments) = program
                .command
                .split_first()
                .ok_or_else(|| io(std::io::ErrorKind::NotFound.into()))?;
            let mut command = Command::new(name);
            command.args(arguments).arg(shared.descriptor().to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            tie_to_parent(&mut command, signal::KILL, program.mask);
            all.0.push(command.spawn().map_err(io)?);
            let part = RunPart { group, ..part.clone() };
            let text = serde_json::to_vec(&part).map_err(|error| io(error.into()))?;
            let stdin = all.0[group].stdin.take();
            // A process that is gone already is found by `check`.
            let _ = stdin.map(|mut stdin| stdin.write_all(&text));
        }
        Ok(all)
    }

    /// Whether all still live.
    pub(super) fn check(&mut self) -> Result<(), ExperimentError> {
        for child in &mut self.0 {
            if !matches!(child.try_wait(), Ok(None)) {
                return Err(ExperimentError::CalledOff);
            }
        }
        Ok(())
    }

    /// Their answers.
    pub(super) fn finish(mut self) -> Result<Vec<GroupRun>, ExperimentError> {
        all_or_cause(self.0.iter_mut().enumerate().map(|(group, child)| answer(group, child)))
    }
}

/// None outlives the run.
impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn answer(group: usize, child: &mut Child) -> Result<GroupRun, ExperimentError> {
    let io = |error| ExperimentError::Io { group, error };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    if let Some(stdout) = child.stdout.take() {
        stdout.take(ANSWER_MAX).read_to_end(&mut out).map_err(io)?;
    }
    if let Some(stderr) = child.stderr.take() {
        stderr.take(ANSWER_MAX).read_to_end(&mut err).map_err(io)?;
    }
    let status = child.wait().map_err(io)?;
    if !status.success() {
        let err = String::from_utf8_lossy(&err).trim().to_owned();
        let reason = if err.is_empty() { status.to_string() } else { err };
        // It only reports that it was called off: the cause is in another thread.
        if reason.ends_with(&ExperimentError::CalledOff.to_string()) {
            return Err(ExperimentError::CalledOff);
        }
        return Err(ExperimentError::Process { group, reason });
    }
    serde_json::from_slice(&out).map_err(|error| io(error.into()))
}

/// Runs the part that stdin holds as a process of a run, and returns the answer for stdout.
///
/// # Errors
/// Those of the run; [`ExperimentError::Part`] for an unknown part.
pub fn serve(
    machine: &Arc<Machine>,
    kernel: &Arc<dyn Kernel>,
    descriptor: i32,
    part: &str,
) -> Result<String, ExperimentError> {
    let wrong = |error: serde_json::Error| ExperimentError::Part(error.to_string());
    let part: RunPart = serde_json::from_str(part).map_err(wrong)?;
    let shared = SharedWords::inherited(descriptor, RunBarriers::WORDS)?;
    let meetings = RunBarriers::new(&shared, &part.arm)?;
    let ran = group::run(machine, kernel, &part, meetings)?;
    serde_json::to_string(&ran).map_err(wrong)
}
