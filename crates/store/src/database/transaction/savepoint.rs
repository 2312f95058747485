//! Savepoints: a rollback to one undoes later changes and keeps locks.

use std::sync::Arc;

use super::own::OwnChanges;
use super::{Result, Transaction};
use crate::database::error::TransactionError;

/// A savepoint of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavepointMark(usize);

#[derive(Debug)]
pub(super) struct NamedSavepoint {
    name: Arc<str>,
    mark: SavepointMark,
}

impl SavepointMark {
    /// Number of levels of changes at the savepoint.
    pub(super) fn depth(self) -> usize {
        self.0
    }
}

impl Transaction {
    /// Sets a savepoint.
    pub fn mark(&mut self) -> SavepointMark {
        SavepointMark(self.own.begin_level())
    }

    /// Undoes later changes; the savepoint is kept, those after it are not.
    pub fn rollback_to_mark(&mut self, mark: SavepointMark) {
        self.own.undo_to(mark.0);
        self.own.begin_level();
        if self.own.is_empty() {
            self.writer = None;
        }
        self.savepoints.retain(|savepoint| savepoint.mark.0 <= mark.0);
        // A statement of several parts that failed is undone as a whole.
        self.parts = None;
    }

    /// A statement failed, and everything is going to be rolled back: drops all changes and locks, so that others need
    /// not wait for them. Does nothing if there is a savepoint that it may go back to.
    pub fn give_up(&mut self) {
        if self.savepoints.is_empty() {
            self.own = OwnChanges::new();
            self.parts = None;
            self.writer = None;
            self.locks.release_all();
        }
    }

    /// Forgets this savepoint and those after it, and keeps the changes.
    pub fn release_mark(&mut self, mark: SavepointMark) {
        self.own.merge_to(mark.0);
        self.savepoints.retain(|savepoint| savepoint.mark.0 < mark.0);
    }

    /// `SAVEPOINT`. A name that exists already refers to the new savepoint from then on.
    pub fn savepoint(&mut self, name: impl Into<Arc<str>>) {
        let mark = self.mark();
        self.savepoints.push(NamedSavepoint { name: name.into(), mark });
    }

    /// `ROLLBACK TO SAVEPOINT`.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let mark = self.savepoint_named(name)?;
        self.rollback_to_mark(mark);
        Ok(())
    }

    /// `RELEASE SAVEPOINT`.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let mark = self.savepoint_named(name)?;
        self.release_mark(mark);
        Ok(())
    }

    fn savepoint_named(&self, name: &str) -> Result<SavepointMark> {
        let found = self.savepoints.iter().rev().find(|savepoint| *savepoint.name == *name);
        let undefined = || TransactionError::UndefinedSavepoint { name: name.to_owned() };
        found.map(|savepoint| savepoint.mark).ok_or_else(undefined)
    }
}
