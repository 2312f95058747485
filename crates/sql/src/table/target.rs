//! Where the rows of a statement go: its transaction, and what they obey.

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

/// Where the rows of a statement go.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    pub(crate) database: Database,
    pub(crate) transaction: SharedTransaction,
    pub(crate) rules: WriteRules,
}

impl WriteTarget {
    /// Hands a change to the transaction, which may wait for others that hold its rows.
    ///
    /// # Errors
    /// [`StaleStatement`] where the rows are others by now; whatever the transaction refuses.
    pub(crate) async fn write(&self, table: &PlacedTable, change: TableChange) -> Result<()> {
        self.hand_over(table, change, true).await
    }

    /// The same for rows that are there already, as a table has them whose columns are altered: foreign keys hold as
    /// they did before.
    ///
    /// # Errors
    /// As [`write`](Self::write).
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

    /// Writes new chunks to their files, and gets their keys ready.
    async fn ready_chunks(&self, table: &PlacedTable, change: &mut TableChange) -> Result<()> {
        // One that only reads refuses the change, and leaves no files.
        if !self.transaction.lock().await?.options().read_only {
            self.database.write_chunks(table.id(), table.columns(), change).await?;
        }
        ready_keys(table, change).await
    }
}

/// Gets the keys of new chunks ready for the table's indexes, which takes longer than what the transaction then does
/// with them.
async fn ready_keys(table: &PlacedTable, change: &mut TableChange) -> Result<()> {
    let hashed = table.version().key_tasks(change).into_iter();
    let hashed = hashed.map(|task| (task.node(), task)).collect();
    let (runtime, doing) = (table.runtime(), "reading the keys of new rows");
    let hash = |task: KeyTask| task.run().map_err(table_error);
    let pieces = on_workers(runtime, doing, hashed, hash).await?;
    let sorting = NewKeys::sort_tasks(pieces).into_iter().map(|task| (None, task)).collect();
    let sort = |task: SortKeysTask| Ok(task.run());
    change.keys = NewKeys::of(on_workers(runtime, doing, sorting, sort).await?);
    Ok(())
}

/// Nothing, where a change was made; [`StaleStatement`] where the statement is to run again.
pub(crate) fn fresh(written: Written) -> Result<()> {
    match written {
        Written::Done => Ok(()),
        Written::Stale => Err(StaleStatement::error()),
    }
}

/// The rows that a statement found were changed by others before it had locked them: it is run again, over
/// what they are now. No one but the session sees this.
#[derive(Debug)]
pub(crate) struct StaleStatement;

impl StaleStatement {
    pub(crate) fn error() -> DataFusionError {
        DataFusionError::External(Box::new(Self))
    }

    /// Whether this is why a statement ended.
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
