//! Marks statements that call functions which run statements: these run before their caller is planned.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};

use atoll_sql_common::error::SqlState;

/// How deep functions call functions at most.
const DEPTH_MAX: usize = 50;

/// Whether planning found such a call.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RoutineCalls(Arc<AtomicBool>);

impl RoutineCalls {
    pub(in crate::session) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(in crate::session) fn are_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks the error of a statement with such a call.
    pub(in crate::session) fn marked(&self, error: DataFusionError) -> DataFusionError {
        match self.are_noted() {
            true => DataFusionError::External(Box::new(RoutineCalled(error))),
            false => error,
        }
    }
}

/// A statement calls functions that must run first. Only the session sees this error.
#[derive(Debug)]
pub(in crate::session) struct RoutineCalled(DataFusionError);

impl RoutineCalled {
    /// Whether an error is one of these.
    pub(in crate::session) fn is(error: &DataFusionError) -> bool {
        matches!(error, DataFusionError::External(error) if error.is::<Self>())
    }

    /// The error for a call that cannot be served, if this is one of these.
    ///
    /// # Errors
    /// Any other error, as it is.
    pub(in crate::session) fn refusal(error: DataFusionError) -> Result<DataFusionError> {
        match error {
            DataFusionError::External(error) => match error.downcast::<Self>() {
                Ok(called) => Ok(called.0),
                Err(error) => Err(DataFusionError::External(error)),
            },
            error => Err(error),
        }
    }
}

impl fmt::Display for RoutineCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RoutineCalled {}

/// How many functions of a session run inside one another.
#[derive(Debug, Default)]
pub(in crate::session) struct RoutineDepth(AtomicUsize);

impl RoutineDepth {
    /// One more, until the result is dropped.
    ///
    /// # Errors
    /// If there are too many.
    pub(in crate::session) fn enter(&self) -> Result<EnteredRoutine<'_>> {
        let entered = EnteredRoutine(&self.0);
        match self.0.fetch_add(1, Ordering::Relaxed) < DEPTH_MAX {
            true => Ok(entered),
            false => Err(SqlState::STATEMENT_TOO_COMPLEX.error(format!(
                "stack depth limit exceeded: functions call functions more than {DEPTH_MAX} deep"
            ))),
        }
    }
}

/// A function that runs.
#[derive(Debug)]
pub(in crate::session) struct EnteredRoutine<'a>(&'a AtomicUsize);

impl Drop for EnteredRoutine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
