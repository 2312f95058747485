//! One instance started from a thread of its own.
//!
//! The thread takes the instance's affinity and policy, starts the program, which inherits both, and
//! then waits for the program's end: the kernel ends the program with the *thread* that started it
//! (`PR_SET_PDEATHSIG`), and so with Atoll, whatever ends Atoll.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use atoll_sys as sys;
use atoll_sys::SignalMask;

use super::calls::{PlacementCalls, apply};
use super::error::LaunchError;
use super::obstacle::Obstacle;
use super::output::OutputSink;
use super::plan::InstancePlan;
use super::program::Program;

/// How to start an instance.
pub(super) struct Start {
    pub(super) instance: InstancePlan,
    pub(super) program: Program,
    pub(super) sink: OutputSink,
    pub(super) calls: Arc<dyn PlacementCalls>,
    /// Refuse to start if a part of the placement is refused.
    pub(super) is_strict: bool,
    /// Whether it is the only one: it then shares Atoll's terminal and process group.
    pub(super) is_alone: bool,
    /// Signals that the program starts with blocked.
    pub(super) mask: SignalMask,
}

/// A running program.
#[derive(Debug)]
pub(super) struct StartedProgram {
    pub(super) child: Child,
    pub(super) obstacles: Vec<Obstacle>,
    /// The thread that started it ends when this is dropped.
    pub(super) hold: Sender<()>,
}

/// Starts an instance.
pub(super) fn start(start: Start) -> Result<StartedProgram, LaunchError> {
    let (answer, answered) = channel();
    let (hold, held) = channel();
    let instance = start.instance.index;
    let run = move || in_thread(start, &answer, &held);
    thread::Builder::new()
        .name(format!("instance-{instance}"))
        .spawn(run)
        .map_err(|source| LaunchError::NoThread { instance, source })?;
    let gone = |_| LaunchError::NoThread { instance, source: std::io::ErrorKind::Other.into() };
    let (child, obstacles) = answered.recv().map_err(gone)??;
    Ok(StartedProgram { child, obstacles, hold })
}

type StartAnswer = Result<(Child, Vec<Obstacle>), LaunchError>;

fn in_thread(start: Start, answer: &Sender<StartAnswer>, held: &Receiver<()>) {
    let result = started(&start);
    let is_running = result.is_ok();
    if answer.send(result).is_ok() && is_running {
        // No message is ever sent: this returns when the other end is dropped.
        let _ = held.recv();
    }
}

fn started(start: &Start) -> StartAnswer {
    let mut obstacles = apply(&start.instance, start.calls.as_ref());
    for obstacle in &mut obstacles {
        obstacle.instance = (!start.is_alone).then_some(start.instance.index);
    }
    if start.is_strict && !obstacles.is_empty() {
        return Err(LaunchError::Refused { obstacles });
    }
    let mut command = start.program.command();
    start.sink.attach(&mut command, start.instance.index)?;
    if !start.is_alone {
        command.stdin(Stdio::null()).process_group(0);
    }
    sys::tie_to_parent(&mut command, sys::signal::TERM, start.mask);
    let child = command.spawn();
    let name = start.program.name.clone();
    child.map(|child| (child, obstacles)).map_err(|error| LaunchError::of_start(name, error))
}
