//! The target of a statement's rows: its transaction, and the rules that they satisfy.

use std::error::Error;
use std::fmt;

use atoll_store::database::{Isolation, LockScope, ReferentialActions, TransactionError, Written};
use atoll_store::table::{KeyTask, NewKeys, SortKeysTask, TableChange};
use datafusion::common::{DataFusionError, Result};

use super::actions::RunningActions;
use super::{PlacedTable, WriteRules};
use crate::database::Database;
use crate::shared_transaction::SharedTransaction;
use atoll_sql_common::error::{table_error, transaction_error};
use atoll_sql_common::task::on_workers;

/// The target of a statement's rows.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    pub(crate) database: Database,
    pub(crate) transaction: SharedTransaction,
    pub(crate) rules: WriteRules,
}

impl WriteTarget {
    /// Passes a change to the transaction, which may wait for others that hold its rows.
    ///
    /// # Errors
    /// [`StaleStatement`] if the rows have changed since; any error of the transaction.
    pub(crate) async fn write(&self, table: &PlacedTable, change: TableChange) -> Result<()> {
        self.hand_over(table, change, true).await
    }

    /// The same for existing rows of an altered table: foreign keys hold as they did before.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub(crate) async fn rewrite(&self, table: &PlacedTable, change: TableChange) -> Result<()> {
        self.hand_over(table, change, false).await
    }

    async fn hand_over(
        &self,
        table: &PlacedTable,
        mut change: TableChange,
        follows_references: bool,
    ) -> Result<()> {
        if change.is_empty() {
            return Ok(());
        }
        if change.rows() > change.deleted.len() as usize {
            self.database.gauge().check(format_args!("a change of table '{}'", table.name()))?;
        }
        if !change.is_row_by_row() {
            self.ready_chunks(table, &mut change).await?;
        }
        let (table, mut transaction) = (table.id(), self.transaction.lock().await?);
        let running = RunningActions::new(self.rules.actions.as_deref());
        let actions: &dyn ReferentialActions = &running;
        let actions = follows_references.then_some(actions);
        match transaction.write_with(table, change, LockScope::Rows, actions).await {
            Ok(written) => fresh(written),
            Err(TransactionError::ActionRefused) => Err(running.failure()),
            // Another table may have its name by now.
            Err(TransactionError::UndefinedRelation { .. })
                if transaction.options().isolation == Isolation::ReadCommitted =>
            {
                Err(StaleStatement::error())
            }
            Err(error) => Err(transaction_error(error)),
        }
    }

    /// Writes new chunks to their files, and prepares their keys.
    async fn ready_chunks(&self, table: &PlacedTable, change: &mut TableChange) -> Result<()> {
        // A read-only transaction refuses the change, and leaves no files.
        if !self.transaction.lock().await?.options().read_only {
            self.database.write_chunks(table.id(), table.columns(), change).await?;
        }
        ready_keys(table, change).await
    }
}

/// Prepares the keys of new chunks for the table's indexes, which takes longer than the transaction then takes to add
/// them.
async fn ready_keys(table: &PlacedTable, change: &mut TableChange) -> Result<()> {
    let hashed = table.version().key_tasks(change).into_iter();
    let hashed = hashed.map(|task| (task.node(), task)).collect();
    let (runtime, doing) = (table.runtime(), "reading the keys of new rows");
    let hash = |task: KeyTask| task.run().map_err(table_error);
    let pieces = on_workers(runtime, doing, hashed, hash).await?;
    let sorting = NewKeys::sort_tasks(pieces).into_iter().map(|task| (None, task)).collect();
    let sort = |task: SortKeysTask| Ok(task.run());
    change.keys = NewKeys::from_parts(on_workers(runtime, doing, sorting, sort).await?);
    Ok(())
}

/// [`StaleStatement`] if the statement has to run again.
pub(crate) fn fresh(written: Written) -> Result<()> {
    match written {
        Written::Done => Ok(()),
        Written::Stale => Err(StaleStatement::error()),
    }
}

/// Others changed the rows that a statement found before it had locked them: it runs again with their current values.
/// Only the session sees this error.
#[derive(Debug)]
pub(crate) struct StaleStatement;

impl StaleStatement {
    pub(crate) fn error() -> DataFusionError {
        DataFusionError::External(Box::new(Self))
    }

    /// Whether an error is this one.
    pub(crate) fn ended(error: &DataFusionError) -> bool {
        match error.find_root() {
            DataFusionError::External(error) => error.is::<Self>(),
            _ => false,
        }
    }
}

impl fmt::Display for StaleStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows were changed by another transaction; run the statement again")
    }
}

impl Error for StaleStatement {}
