//! What can go wrong.

use atoll_placement::{KernelError, PlacementError, StrategyError};
use atoll_sys::CallError;

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// An option out of bounds or without meaning.
    #[error("{0}")]
    Options(String),
    /// This machine lacks a requirement.
    #[error("{0}")]
    NotHere(String),
    /// The placement asked for has no answer here.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
}

/// Why an arm has no figures.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The array could not be had.
    #[error("cannot allocate an array: {0}")]
    Memory(#[from] PlacementError),
    /// A thread could not be bound, or the kernel does not report a location.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A call of the meeting or of a policy failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Another thread or process failed, or the waiter has gone.
    #[error("stopped because another thread or process of the run failed")]
    CalledOff,
    /// A process of the run ended before its time.
    #[error("the process of group {group} failed: {reason}")]
    Process {
        /// Its group.
        group: usize,
        /// Its last words.
        reason: String,
    },
    /// A process could not be started or understood.
    #[error("the process of group {group}: {error}")]
    Io {
        /// Its group.
        group: usize,
        /// Why.
        error: std::io::Error,
    },
    /// The plan that a process was given makes no sense.
    #[error("invalid part of a run: {0}; only `atoll bench memory` itself starts parts")]
    Part(String),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

impl ExperimentError {
    /// Whether it is the cause rather than a report that another thread failed.
    pub(crate) fn is_cause(&self) -> bool {
        !matches!(self, Self::CalledOff)
    }
}
