//! Values of sequences. A value is given once: it is not taken back when its transaction is rolled back,
//! and the log says ahead of it that it may have been given.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::Database;
use super::apply::ApplyError;
use super::error::TransactionError;
use super::version::DatabaseVersion;
use crate::change::SequenceState;
use crate::change::{ChangeStep, DatabaseChange};
use crate::ids::SequenceId;
use crate::lock::{HeldLocks, LockMode, LockTarget};
use crate::log::Position;

/// How far each sequence is in what was logged ahead.
#[derive(Debug, Default)]
pub(super) struct SequenceValues(Mutex<HashMap<SequenceId, GivenValues>>);

#[derive(Clone, Copy, Debug)]
struct GivenValues {
    /// Of the state that this belongs to.
    generation: u64,
    last: Option<i64>,
    /// How many more the log allows for, and where it says so.
    left: u64,
    position: Position,
}

/// A value, and how far the log must be synced before it may be shown.
pub(super) type GivenValue = (i64, Position);

impl SequenceValues {
    /// The next value, if the log is ahead of it.
    fn next(&self, id: SequenceId, state: &SequenceState) -> Option<GivenValue> {
        let mut all = self.0.lock();
        let given = all.get_mut(&id).filter(|given| given.generation == state.generation)?;
        given.left = given.left.checked_sub(1)?;
        given.last = state.definition.after(given.last);
        Some((given.last?, given.position))
    }

    /// The value that was given last, as far as is known.
    fn last(&self, id: SequenceId, state: &SequenceState) -> Option<i64> {
        let all = self.0.lock();
        let given = all.get(&id).filter(|given| given.generation == state.generation);
        given.map_or(state.last, |given| given.last)
    }

    /// Whether the log is ahead of it.
    fn has_more(&self, id: SequenceId, state: &SequenceState) -> bool {
        let all = self.0.lock();
        let given = all.get(&id).filter(|given| given.generation == state.generation);
        given.is_some_and(|given| given.left > 0)
    }

    /// Notes that the log allows for so many values behind the last one of a state.
    fn logged(&self, id: SequenceId, state: &SequenceState, left: u64, position: Position) {
        let (generation, last) = (state.generation, state.last);
        self.0.lock().insert(id, GivenValues { generation, last, left, position });
    }
}

impl Database {
    /// The value that a sequence gave last; of what an earlier process gave, a value such that all up to it may have been
    /// given.
    pub fn last_value(&self, id: SequenceId, state: &SequenceState) -> Option<i64> {
        self.values.last(id, state)
    }

    /// The next value of a sequence that is committed.
    pub(super) async fn next_value(&self, id: SequenceId) -> Result<GivenValue, TransactionError> {
        loop {
            let state = self.committed_sequence(id)?;
            if let Some(given) = self.values.next(id, &state) {
                return Ok(given);
            }
            self.log_ahead(id).await?;
        }
    }

    fn committed_sequence(&self, id: SequenceId) -> Result<Arc<SequenceState>, TransactionError> {
        let newest = self.newest();
        newest.sequence(id).cloned().ok_or_else(|| sequence_is_gone(id))
    }

    /// Has the log say that more values may have been given; one session at a time for a sequence.
    async fn log_ahead(&self, id: SequenceId) -> Result<(), TransactionError> {
        // A lock of the call alone: it is let go of before the transaction waits for anything else.
        let mut turn = HeldLocks::new(Arc::clone(&self.locks), self.new_call());
        let locked = turn.lock(LockTarget::SequenceAhead(id), LockMode::Exclusive).await;
        debug_assert!(locked.is_ok(), "a call that holds nothing else closes no circle");
        let state = self.committed_sequence(id)?;
        if self.values.has_more(id, &state) {
            return Ok(());
        }
        let next = state.definition.after(state.last);
        let Some(next) = next else { return Err(self.sequence_ended(id, &state)) };
        let (ahead, left) = state.definition.ahead(next);
        let change = DatabaseChange { steps: vec![ChangeStep::Sequence(id, ahead)] };
        let make = |newest: &Arc<DatabaseVersion>| {
            let now = newest.sequence(id).filter(|now| now.generation == state.generation);
            match now {
                Some(_) => newest.apply(&change, &self.environment),
                None => Err(ApplyError::Misfit(format!("sequence {id} was altered"))),
            }
        };
        match self.order(&change, make).await {
            Ok(ordered) => {
                self.values.logged(id, &state, left, ordered.version.position());
                Ok(())
            }
            // The caller looks at it again as it is now.
            Err(TransactionError::Apply(_)) if self.is_altered(id, &state) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_altered(&self, id: SequenceId, before: &SequenceState) -> bool {
        let newest = self.newest();
        newest.sequence(id).is_none_or(|now| now.generation != before.generation)
    }

    fn sequence_ended(&self, id: SequenceId, state: &SequenceState) -> TransactionError {
        let newest = self.newest();
        ended(&newest, id, state)
    }
}

pub(super) fn sequence_is_gone(id: SequenceId) -> TransactionError {
    TransactionError::UndefinedRelation { name: format!("sequence {id}") }
}

/// The error of a sequence without further values.
pub(super) fn ended(
    version: &DatabaseVersion,
    id: SequenceId,
    state: &SequenceState,
) -> TransactionError {
    let name =
        version.sequence_name(id).map_or_else(|| id.to_string(), |name| name.name.to_string());
    let definition = &state.definition;
    let (end, limit) = match definition.increment > 0 {
        true => ("maximum", definition.max),
        false => ("minimum", definition.min),
    };
    TransactionError::SequenceEnded { name, end, limit }
}
