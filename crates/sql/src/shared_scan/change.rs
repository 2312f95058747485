//! UPDATE and DELETE by conditions on single columns: a shared scan finds their rows with their ids, which are then
//! changed relative to the version of the scan. If others have changed one of them since, the statement is stale like
//! any other.

use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::selection::{SharedSelection, VersionRows};
use crate::compiled::{Parameters, select_list};
use crate::database::Database;
use crate::shared_transaction::SharedTransaction;
use crate::table::{ChangeKind, ChangedTable, StaleStatement, WriteRules, WriteTarget};

/// A statement that changes the rows that a shared scan finds.
#[derive(Debug)]
pub(crate) struct SharedChange {
    /// Finds ids, followed by the new values.
    pub(crate) selection: SharedSelection,
    changed: Arc<ChangedTable>,
}

impl SharedChange {
    /// Compiles an optimized plan; `None` for other statements, or if it changes all rows.
    pub(crate) fn compile(
        state: &SessionState,
        plan: &LogicalPlan,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        let LogicalPlan::Dml(write) = plan else { return Ok(None) };
        let target = source_as_provider(&write.target)?;
        let Some(changed) = target.downcast_ref::<ChangedTable>() else { return Ok(None) };
        let Some((exprs, scan)) = select_list(&write.input) else { return Ok(None) };
        let source = source_as_provider(&scan.source)?;
        // Statements with referential actions are planned each time.
        let acts = changed.target().rules.actions.is_some();
        if !source.is::<ChangedTable>() || scan.filters.is_empty() || acts {
            return Ok(None);
        }
        let schema = Arc::clone(write.input.schema().inner());
        let found = (exprs, scan, schema);
        let selection = SharedSelection::of_ids(state, found, changed.table(), parameters)?;
        let changed = Arc::new(changed.without_rows()?);
        Ok(selection.map(|selection| Self { selection, changed }))
    }

    /// The change of the rows.
    pub(crate) fn kind(&self) -> ChangeKind {
        self.changed.kind()
    }

    /// Changes the rows that were found and returns their number.
    ///
    /// # Errors
    /// [`StaleStatement`] if one of them has changed since.
    pub(crate) async fn write(
        &self,
        found: VersionRows,
        database: &Database,
        transaction: &SharedTransaction,
    ) -> Result<usize> {
        let VersionRows { batches, version, charge } = found;
        let Some(table) = version.table(self.changed.table().id()) else {
            return Err(StaleStatement::error());
        };
        let table = self.changed.table().in_version(Arc::clone(table));
        if !transaction.lock().await?.statement_over(version) {
            return Err(StaleStatement::error());
        }
        let (database, transaction) = (database.clone(), transaction.clone());
        let target = WriteTarget { database, transaction, rules: WriteRules::default() };
        let changed = self.changed.change_found(table, &batches, &target).await;
        drop(charge);
        changed
    }
}
