//! Values of sequences. A value is given once: a rollback of its transaction does not return it,
//! and the log records in advance that it may have been given.

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

/// The position of each sequence within the values logged ahead.
#[derive(Debug, Default)]
pub(super) struct SequenceValues(Mutex<HashMap<SequenceId, GivenValues>>);

#[derive(Clone, Copy, Debug)]
struct GivenValues {
    /// The generation that this belongs to.
    generation: u64,
    last: Option<i64>,
    /// Number of further values that the log allows, and the position of that record.
    left: u64,
    position: Position,
}

/// A value, and the position up to which the log must be synced before it may be shown.
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

    /// The last value given, as far as known.
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

    /// Records that the log allows this many values after the last one of a state.
    fn logged(&self, id: SequenceId, state: &SequenceState, left: u64, position: Position) {
        let (generation, last) = (state.generation, state.last);
        self.0.lock().insert(id, GivenValues { generation, last, left, position });
    }
}

impl Database {
    /// The last value given by a sequence. For values given by an earlier process, a value such that all up to it may
    /// have been given.
    pub fn last_value(&self, id: SequenceId, state: &SequenceState) -> Option<i64> {
        self.values.last(id, state)
    }

    /// The next value of a committed sequence.
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

    /// Logs that more values may have been given; one session at a time per sequence.
    async fn log_ahead(&self, id: SequenceId) -> Result<(), TransactionError> {
        // A lock for this call only: it is released before the transaction waits for anything else.
        let mut turn = HeldLocks::new(Arc::clone(&self.locks), self.new_call());
        let locked = turn.lock(LockTarget::SequenceAhead(id), LockMode::Exclusive).await;
        debug_assert!(locked.is_ok(), "a call that holds nothing else closes no cycle");
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
                Some(_) => Ok(newest.apply(&change, &self.environment)?),
                None => Err(ApplyError::Misfit(format!("sequence {id} was altered")).into()),
            }
        };
        match self.order(&change, make, &mut |_| ()).await {
            Ok(ordered) => {
                self.values.logged(id, &state, left, ordered.version.position());
                Ok(())
            }
            // The caller checks it again in its current state.
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

/// The error for a sequence that has reached its limit.
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
