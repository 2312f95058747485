//! Dropping and emptying tables and keys that foreign keys refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::{CatalogChange, DatabaseVersion};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    CascadeOption, ObjectName, ObjectNamePart, Truncate, TruncateTableTarget,
};

use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::{stated_err, transaction_error};

/// Foreign keys, by their tables.
pub(in crate::session) type ForeignKeys = BTreeMap<TableId, BTreeSet<Arc<str>>>;

/// A TRUNCATE with all tables that it empties.
pub(in crate::session) struct WholeTruncate {
    pub(in crate::session) truncate: Truncate,
    pub(in crate::session) tables: Vec<TableId>,
}

impl StatementPlanner {
    /// The stored tables among the named ones.
    pub(in crate::session) fn tables_named<'n>(
        &self,
        names: impl IntoIterator<Item = &'n ObjectName>,
    ) -> Result<Vec<TableId>> {
        let mut tables = Vec::new();
        for name in names {
            let found = self.names.table(&self.resolve(self.name(name)?))?;
            let table = found.as_ref().and_then(|found| found.downcast_ref::<PlacedTable>());
            tables.extend(table.map(PlacedTable::id));
        }
        Ok(tables)
    }

    /// Drops the foreign keys that refer to tables about to be dropped, if their own tables are dropped too or the
    /// statement says CASCADE. Others prevent the drop.
    pub(in crate::session) async fn release_tables(
        &self,
        dropped: &[TableId],
        cascade: bool,
    ) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        let mut released = ForeignKeys::new();
        for table in dropped {
            for (child, _, key) in version.references_to(*table) {
                if child != *table && (cascade || dropped.contains(&child)) {
                    released.entry(child).or_default().insert(Arc::clone(&key.name));
                }
            }
        }
        self.drop_foreign_keys(&released).await
    }

    /// Drops foreign keys. Their target belongs to the user, so the owners of their tables do not matter.
    pub(in crate::session) async fn drop_foreign_keys(&self, dropped: &ForeignKeys) -> Result<()> {
        for (table, names) in dropped {
            let version = self.transaction.statement(true).await?;
            let Some(stored) = version.table(*table) else { continue };
            let mut definition = stored.definition().as_ref().clone();
            definition.foreign_keys.retain(|key| !names.contains(&key.name));
            let (table, definition) = (*table, Arc::new(definition));
            self.define_any(CatalogChange::SetDefinition { table, definition }).await?;
        }
        Ok(())
    }

    /// Updates the column numbers of a table in the foreign keys of others.
    pub(in crate::session) async fn renumber_references(
        &self,
        table: TableId,
        number: &BTreeMap<usize, usize>,
    ) -> Result<()> {
        let version = self.transaction.statement(true).await?;
        for child in version.children(table).iter().filter(|child| **child != table) {
            let Some(stored) = version.table(*child) else { continue };
            let mut definition = stored.definition().as_ref().clone();
            for key in definition.foreign_keys.iter_mut().filter(|key| key.parent == table) {
                for column in &mut key.parent_columns {
                    *column = number.get(&*column).copied().unwrap_or(*column);
                }
            }
            if definition != **stored.definition() {
                let (table, definition) = (*child, Arc::new(definition));
                self.define_any(CatalogChange::SetDefinition { table, definition }).await?;
            }
        }
        Ok(())
    }

    /// Checks the rows of a table against new foreign keys.
    pub(in crate::session) async fn check_foreign_keys(
        &self,
        table: TableId,
        names: &[Arc<str>],
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut transaction = self.transaction.transaction.lock().await?;
        transaction.check_foreign_keys(table, names).await.map_err(transaction_error)
    }

    /// The tables that a TRUNCATE empties: with CASCADE also those that refer to the named ones.
    ///
    /// # Errors
    /// If a table that it does not empty refers to one that it does.
    pub(in crate::session) fn whole_truncate(&self, truncate: &Truncate) -> Result<WholeTruncate> {
        let version = self.names.stored_version();
        let mut whole = WholeTruncate { truncate: truncate.clone(), tables: Vec::new() };
        let names = truncate.table_names.iter().map(|target| &target.name);
        whole.tables = self.tables_named(names)?;
        let cascade = matches!(truncate.cascade, Some(CascadeOption::Cascade));
        let mut next = 0;
        while let Some(table) = whole.tables.get(next).copied() {
            next += 1;
            for child in version.children(table) {
                if whole.tables.contains(child) {
                    continue;
                }
                if !cascade {
                    return not_truncated(&version, table, *child);
                }
                whole.tables.push(*child);
                whole.truncate.table_names.extend(target(&version, *child));
            }
        }
        Ok(whole)
    }
}

fn target(version: &DatabaseVersion, table: TableId) -> Option<TruncateTableTarget> {
    let at = version.table_name(table)?;
    let parts = [&at.schema, &at.name].map(|part| ObjectNamePart::Identifier(quoted(part)));
    let name = ObjectName(parts.to_vec());
    Some(TruncateTableTarget { name, only: false, has_asterisk: false })
}

fn not_truncated<T>(version: &DatabaseVersion, table: TableId, child: TableId) -> Result<T> {
    let name = |table| version.table_name(table).map_or("", |name| &*name.name);
    let (table, child) = (name(table), name(child));
    stated_err!(
        FEATURE_NOT_SUPPORTED,
        "cannot truncate a table referenced in a foreign key constraint: table '{child}' references '{table}'; \
         truncate table '{child}' at the same time, or use TRUNCATE … CASCADE"
    )
}
