//! The signals that end a run: the process of the current case ends, and no other case starts.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_sys::{
    SignalMask, block_signals, kill_process, set_signal_mask, signal, tie_to_parent, wait_signal,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rivals::RivalProcess;

/// Signals that end the run.
const ENDING: [i32; 3] = [signal::INT, signal::TERM, signal::HUP];
/// Time between two looks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Calls `run`, which signals then stop instead of ending this process: `run` looks at
/// [`is_stopped`](RunStop::is_stopped) between cases.
///
/// # Errors
/// As `run`, and if signals cannot be blocked.
pub(crate) fn until_signal<T>(run: impl FnOnce(&RunStop) -> Result<T>) -> Result<T> {
    let before = block_signals(&ENDING).context("signals cannot be blocked")?;
    let stop = RunStop::new(before);
    let done = thread::scope(|scope| {
        scope.spawn(|| stop.watch());
        // Also after a panic: the scope waits for the thread.
        let _over = Over(&stop.is_over);
        run(&stop)
    });
    set_signal_mask(before).context("signals cannot be unblocked")?;
    done
}

/// Ends the process of the current case when a signal comes.
#[derive(Debug)]
pub(crate) struct RunStop {
    is_stopped: AtomicBool,
    is_over: AtomicBool,
    /// Number of the current process; 0 between cases.
    process: AtomicU32,
    /// Signals that were blocked before the run.
    mask: SignalMask,
}

/// Sets a flag when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl RunStop {
    fn new(mask: SignalMask) -> Self {
        let (is_stopped, is_over, process) = Default::default();
        Self { is_stopped, is_over, process, mask }
    }

    fn watch(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            if matches!(wait_signal(&ENDING, LOOK), Ok(Some(_))) {
                self.is_stopped.store(true, Ordering::SeqCst);
            }
            let process = self.process.load(Ordering::SeqCst);
            if self.is_stopped() && process != 0 {
                // It may end on its own at the same moment.
                let _ = kill_process(process.cast_signed(), signal::KILL);
            }
        }
    }

    /// Whether a signal came.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Calls `act`, which waits for this process: a signal ends the process, and so `act`.
    pub(crate) fn with_process<T>(&self, pid: u32, act: impl FnOnce() -> T) -> T {
        self.process.store(pid, Ordering::SeqCst);
        let done = act();
        self.process.store(0, Ordering::SeqCst);
        done
    }

    /// Makes a program start with the signals that this process blocked before the run, and end with this process.
    pub(crate) fn prepare(&self, command: &mut Command) {
        tie_to_parent(command, signal::KILL, self.mask);
    }

    /// Asks a process, which a signal ends.
    ///
    /// # Errors
    /// What the process answers as its error, or when it is gone, hangs, or does not keep to the protocol.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        process: &mut RivalProcess,
        request: &impl Serialize,
    ) -> Result<T> {
        self.with_process(process.pid(), || process.ask::<T>(request))?.map_err(anyhow::Error::msg)
    }
}
