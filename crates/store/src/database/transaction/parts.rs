//! Statements of several parts that change rows: `WITH q AS (DELETE …) INSERT …`.
//!
//! All parts find their rows in the version that the statement reads, without the changes of the parts before them.
//! Their changes are combined in the transaction, so a part may find rows that an earlier one has changed:
//!
//! | the part | the row was deleted | it was changed, or inserted |
//! |---|---|---|
//! | deletes it | stays so | is refused |
//! | updates it | is refused | is refused |
//!
//! Foreign keys are checked after the last part.

use std::sync::Arc;

use super::own::OwnBase;
use super::savepoint::SavepointMark;
use super::write::changed_rows;
use super::{Result, Transaction};
use crate::database::error::TransactionError;
use crate::database::version::DatabaseVersion;
use crate::ids::{RowId, TableId};
use crate::table::{TableChange, TableVersion};

/// A statement of several parts.
#[derive(Debug)]
pub(super) struct StatementParts {
    /// What its parts read.
    read: Arc<DatabaseVersion>,
    /// Where its changes begin.
    mark: SavepointMark,
}

impl Transaction {
    /// The statement that [`statement`](Self::statement) began has several parts, from here to
    /// [`end_parts`](Self::end_parts).
    pub fn begin_parts(&mut self) -> Result<()> {
        self.undo_parts();
        let read = match self.base.clone() {
            Some(base) => self.with_own(&base)?,
            None => self.statement(true)?,
        };
        let mark = self.mark();
        self.parts = Some(StatementParts { read, mark });
        Ok(())
    }

    /// The last part is done.
    ///
    /// # Errors
    /// If rows refer to no row, or deleted rows are still referred to.
    pub async fn end_parts(&mut self) -> Result<()> {
        let Some(StatementParts { mark, .. }) = self.parts.take() else { return Ok(()) };
        self.release_mark(mark);
        self.check_after_parts().await
    }

    /// Undoes the changes of the parts of a statement that is going to run again.
    pub fn undo_parts(&mut self) {
        let Some(StatementParts { mark, .. }) = self.parts.take() else { return };
        self.forget_checks_of_parts();
        self.rollback_to_mark(mark);
        self.release_mark(mark);
    }

    /// Whether an earlier part of the statement changed rows of a table.
    pub fn has_changed(&self, table: TableId) -> bool {
        let parts = self.parts.as_ref();
        parts.is_some_and(|parts| self.own.has_changed_since(parts.mark.depth(), table))
    }

    /// Leaves rows out of a change that an earlier part deleted too, and refuses those that one has changed. Other
    /// transactions have not changed its rows since they were read.
    pub(super) fn check_parts(
        &mut self,
        table: TableId,
        change: &mut TableChange,
        newest: &Arc<DatabaseVersion>,
    ) -> Result<()> {
        if !self.has_changed(table) {
            return Ok(());
        }
        let now = self.own.on(OwnBase::Newest, newest, &self.database.environment)?;
        let read = self.parts.as_ref().and_then(|parts| parts.read.table(table));
        let (Some(read), Some(now)) = (read, now.table(table)) else { return Ok(()) };
        for row in gone(change, read, now) {
            change.deleted.remove(row.get());
        }
        match changed_rows(change).into_iter().all(|row| read.same_row(now, row)) {
            true => Ok(()),
            false => Err(TransactionError::ChangedTwice { table: self.name_of(table) }),
        }
    }
}

/// Rows that a change deletes and that were deleted since they were read.
fn gone(change: &TableChange, read: &TableVersion, now: &TableVersion) -> Vec<RowId> {
    let rows = change.deleted.iter().map(RowId::new);
    rows.filter(|row| read.has(*row) && !now.has(*row)).collect()
}
