//! One group: its array, its threads.

use std::sync::Arc;

use atoll_placement::{Kernel, NodeBuffer};
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};

use super::thread::{Array, Runner, ThreadRun};
use super::{RunBarriers, RunPart, all_or_cause};
use crate::access::{AccessSequence, link};
use crate::outcome::Achieved;
use crate::{ExperimentError, Group, Kind, array};

/// The outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupRun {
    pub(crate) threads: Vec<ThreadRun>,
    pub(crate) achieved: Achieved,
}

/// Runs a group to its end; when it fails, the others do not wait for it.
pub(crate) fn run(
    machine: &Arc<Machine>,
    kernel: &Arc<dyn Kernel>,
    part: &RunPart,
    meetings: RunBarriers<'_>,
) -> Result<GroupRun, ExperimentError> {
    let ran = run_all(machine, kernel, part, meetings);
    if ran.is_err() {
        meetings.call_off();
    }
    ran
}

fn run_all(
    machine: &Arc<Machine>,
    kernel: &Arc<dyn Kernel>,
    part: &RunPart,
    meetings: RunBarriers<'_>,
) -> Result<GroupRun, ExperimentError> {
    let none = || ExperimentError::Part(format!("unknown group {}", part.group));
    let group = part.arm.groups.get(part.group).ok_or_else(none)?;
    let cpu = group.threads.first().and_then(|way| way.at(0));
    let cpu = cpu.ok_or_else(|| ExperimentError::Part("no thread has a cpu".to_owned()))?;
    let mut memory = array::allocate(machine, kernel, &group.home, part.arm.size_run, cpu)?;
    let threads = run_threads(kernel.as_ref(), part, group, meetings, &mut memory)?;
    let achieved = array::achieved(kernel.as_ref(), &group.home, &memory)?;
    Ok(GroupRun { threads, achieved })
}

fn run_threads(
    kernel: &dyn Kernel,
    part: &RunPart,
    group: &Group,
    meetings: RunBarriers<'_>,
    memory: &mut NodeBuffer,
) -> Result<Vec<ThreadRun>, ExperimentError> {
    let array = match part.arm.kind {
        Kind::Independent => Array::Bytes(memory.as_atomic_bytes()),
        Kind::Dependent => {
            let words = memory.as_atomic_words();
            link(words, &mut AccessSequence::new(part.seed, 0));
            Array::Chain(words)
        }
    };
    let before: usize = part.arm.groups[..part.group].iter().map(|it| it.threads.len()).sum();
    std::thread::scope(|scope| {
        let start = |(i, way)| {
            let number = before + i;
            let runner = Runner { kernel, part, meetings, array, way, number };
            let thread = std::thread::Builder::new().name(format!("thread-{number}"));
            let thread = thread.spawn_scoped(scope, move || {
                let ran = runner.run();
                if ran.is_err() {
                    meetings.call_off();
                }
                ran
            });
            thread.map_err(|error| {
                meetings.call_off();
                ExperimentError::Thread(error)
            })
        };
        let threads: Vec<_> = group.threads.iter().enumerate().map(start).collect();
        all_or_cause(threads.into_iter().map(|thread| {
            thread.and_then(|thread| thread.join().unwrap_or(Err(ExperimentError::CalledOff)))
        }))
    })
}
