//! Passes matches to the consumers.

use std::sync::{Arc, Mutex, PoisonError};

use atoll_runtime::TaskContext;

use crate::PrimitiveError;
use crate::join::kind::UnmatchedRows;
use crate::join::{BuildSide, JoinKind, Matches};

/// The consumers of all workers, and the rows they want.
pub(super) struct Hands<C> {
    /// By worker; each worker's task holds the lock for the length of a step.
    consumers: Vec<Mutex<C>>,
    pub(super) pairs: bool,
    pub(super) build_alone: UnmatchedRows,
    pub(super) probe_alone: UnmatchedRows,
    build: BuildSide,
}

impl<C: Matches> Hands<C> {
    pub(super) fn new(consumers: Vec<C>, kind: JoinKind, build: BuildSide) -> Self {
        let (left, right) = (kind.left_alone(), kind.right_alone());
        let (build_alone, probe_alone) = match build {
            BuildSide::Left => (left, right),
            BuildSide::Right => (right, left),
        };
        let consumers = consumers.into_iter().map(Mutex::new).collect();
        Self { consumers, pairs: kind.has_pairs(), build_alone, probe_alone, build }
    }

    /// Whether the table's rows must be marked when they match.
    pub(super) fn marked(&self) -> bool {
        self.build_alone != UnmatchedRows::None
    }

    /// Locks the consumer of a task's worker.
    pub(super) fn with<T>(
        &self,
        task: &TaskContext,
        work: impl FnOnce(&mut Hand<'_, C>) -> T,
    ) -> T {
        let consumer = &self.consumers[task.task() % self.consumers.len()];
        let mut consumer = consumer.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut Hand { consumer: &mut consumer, hands: self })
    }

    /// The consumers, once no other reference exists.
    pub(super) fn into_consumers(hands: Arc<Self>) -> Result<Vec<C>, PrimitiveError> {
        let hands = Arc::into_inner(hands).ok_or_else(|| PrimitiveError::Panicked {
            step: "join".into(),
            message: "a step that has ended still holds its consumers".into(),
        })?;
        let inner =
            |consumer: Mutex<C>| consumer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(hands.consumers.into_iter().map(inner).collect())
    }
}

/// A worker's consumer in terms of build and probe instead of left and right.
pub(super) struct Hand<'a, C> {
    consumer: &'a mut C,
    hands: &'a Hands<C>,
}

/// Single rows passed at a time.
const ALONE_ROWS: usize = 1024;

impl<C: Matches> Hand<'_, C> {
    /// Whether pairs are wanted.
    pub(super) fn has_pairs(&self) -> bool {
        self.hands.pairs
    }

    /// Which single rows of the probe side are wanted.
    pub(super) fn probe_alone(&self) -> UnmatchedRows {
        self.hands.probe_alone
    }

    /// Pairs of payloads.
    #[inline(always)]
    pub(super) fn pairs(&mut self, build: &[u64], probe: &[u64]) -> Result<(), PrimitiveError> {
        match self.hands.build {
            BuildSide::Left => self.consumer.pairs(build, probe),
            BuildSide::Right => self.consumer.pairs(probe, build),
        }
    }

    /// Rows of the build side, flagged if they have a match.
    pub(super) fn build_rows(
        &mut self,
        rows: impl Iterator<Item = (u64, bool)>,
    ) -> Result<(), PrimitiveError> {
        let wanted = self.hands.build_alone;
        let left = self.hands.build == BuildSide::Left;
        self.alone(rows, wanted, left)
    }

    /// Rows of the probe side, flagged if they have a match.
    pub(super) fn probe_rows(
        &mut self,
        rows: impl Iterator<Item = (u64, bool)>,
    ) -> Result<(), PrimitiveError> {
        let wanted = self.hands.probe_alone;
        let left = self.hands.build == BuildSide::Right;
        self.alone(rows, wanted, left)
    }

    fn alone(
        &mut self,
        rows: impl Iterator<Item = (u64, bool)>,
        wanted: UnmatchedRows,
        left: bool,
    ) -> Result<(), PrimitiveError> {
        let wanted = match wanted {
            UnmatchedRows::None => return Ok(()),
            UnmatchedRows::Matched => true,
            UnmatchedRows::Unmatched => false,
        };
        let (mut waiting, mut count) = ([0; ALONE_ROWS], 0);
        for (payload, matched) in rows {
            waiting[count] = payload;
            count += usize::from(matched == wanted);
            if count == ALONE_ROWS {
                self.give_alone(&waiting, left)?;
                count = 0;
            }
        }
        if count == 0 { Ok(()) } else { self.give_alone(&waiting[..count], left) }
    }

    fn give_alone(&mut self, payloads: &[u64], left: bool) -> Result<(), PrimitiveError> {
        if left { self.consumer.left_alone(payloads) } else { self.consumer.right_alone(payloads) }
    }
}
