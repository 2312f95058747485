//! Ordering: one commit after the other makes the next version and puts its record into the log.
//!
//! Everything is decided before: a change to be ordered holds its locks, was checked against the newest version
//! under them, and has room in the log. Only an error of the log can refuse it here, and then nothing
//! has changed. The order of versions is the order of records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::Database;
use super::error::TransactionError;
use super::log::PreparedRecord;
use super::options::Durability;
use super::version::DatabaseVersion;
use crate::change::DatabaseChange;
use crate::log::{Acknowledgement, LogTicket, Position};

/// The sequencer: held for one commit at a time.
#[derive(Debug, Default)]
pub(super) struct Sequencer {
    /// Whether commits are paused.
    pub(super) is_paused: bool,
}

/// What commits survive: set by the holder of the sequencer, read without waiting for it.
#[derive(Debug, Default)]
pub(super) struct CurrentDurability(AtomicU8);

impl CurrentDurability {
    pub(super) fn get(&self) -> Durability {
        match self.0.load(Ordering::Acquire) {
            0 => Durability::Fsync,
            1 => Durability::Async,
            _ => Durability::Off,
        }
    }

    pub(super) fn set(&self, durability: Durability, _: &Sequencer) {
        self.0.store(durability as u8, Ordering::Release);
    }
}

/// An ordered commit.
#[derive(Debug)]
pub(super) struct OrderedCommit {
    pub(super) version: Arc<DatabaseVersion>,
    ticket: Option<LogTicket>,
}

impl OrderedCommit {
    /// Waits until the commit is as durable as requested.
    pub(super) async fn synced(self) -> Result<Position, TransactionError> {
        match self.ticket {
            Some(ticket) => Ok(ticket.await?),
            None => Ok(self.version.position()),
        }
    }
}

/// The result of an attempt to order a commit.
enum OrderAttempt {
    Done(Result<OrderedCommit, TransactionError>),
    /// Records are written again, and the commit has none.
    NoRecord,
    /// Commits are paused.
    Paused,
}

/// Called once a commit is ordered, with its position in the log, while no other commit can be ordered.
pub(super) type OnOrder<'a> = &'a mut (dyn FnMut(Position) + Send);

type MadeVersion = Result<DatabaseVersion, TransactionError>;

impl Database {
    /// Orders a change; `make` gives the version after it from the newest one. `on_order` is called before any later
    /// change is ordered.
    pub(super) async fn order(
        &self,
        change: &DatabaseChange,
        make: impl Fn(&Arc<DatabaseVersion>) -> MadeVersion,
        on_order: OnOrder<'_>,
    ) -> Result<OrderedCommit, TransactionError> {
        let is_temporary = change.durable_steps().next().is_none();
        loop {
            let mut record = self.prepare(change).await?;
            match self.try_order(&mut record, is_temporary, &make, on_order) {
                OrderAttempt::Done(done) => return done,
                OrderAttempt::NoRecord => {}
                OrderAttempt::Paused => {
                    // Do not hold room while waiting.
                    drop(record);
                    self.wait_for_pause().await;
                }
            }
        }
    }

    fn try_order(
        &self,
        record: &mut Option<PreparedRecord>,
        is_temporary: bool,
        make: impl Fn(&Arc<DatabaseVersion>) -> MadeVersion,
        on_order: OnOrder<'_>,
    ) -> OrderAttempt {
        let sequencer = self.sequencer.lock();
        let durability = self.durability.get();
        let log = self.log.as_ref().filter(|_| durability != Durability::Off);
        if sequencer.is_paused {
            return OrderAttempt::Paused;
        }
        if log.is_some() && record.is_none() && !is_temporary {
            return OrderAttempt::NoRecord;
        }
        let newest = self.versions.newest();
        let mut next = match make(&newest) {
            Ok(next) => next,
            Err(error) => return OrderAttempt::Done(Err(error)),
        };
        (next.epoch, next.position) = (newest.next_epoch(), newest.position);
        let mut ticket = None;
        if let (Some(log), Some(record)) = (log, record.take()) {
            let acknowledgement = match durability {
                Durability::Fsync => Acknowledgement::Synced,
                Durability::Async | Durability::Off => Acknowledgement::AtOnce,
            };
            match log.submit(record.room, &record.payload, acknowledgement) {
                Ok(submitted) => next.position = ticket.insert(submitted).position(),
                Err(error) => return OrderAttempt::Done(Err(error.into())),
            }
        }
        let version = Arc::new(next);
        let is_shown = log.is_none() || durability != Durability::Fsync;
        let old = self.versions.push(Arc::clone(&version), is_shown);
        on_order(version.position());
        drop(sequencer);
        drop((old, newest));
        OrderAttempt::Done(Ok(OrderedCommit { version, ticket }))
    }
}
