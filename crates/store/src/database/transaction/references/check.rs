//! Checks that the parent has a key, and that no row refers to a removed key.

use std::sync::Arc;

use hashbrown::HashSet;

use super::{Checks, ConstraintId, KeysToCheck, ROWS_LOCKED_MAX, Reference};
use crate::database::error::{
    ConcurrentChange, ForeignKeyViolation, ReferenceFault, TransactionError,
};
use crate::database::transaction::write::key_target;
use crate::database::transaction::{Result, Transaction};
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::Key;

impl Transaction {
    /// Checks all rows of a table against some of its foreign keys, which are new; both tables are locked.
    pub async fn check_foreign_keys(&mut self, table: TableId, names: &[Arc<str>]) -> Result<()> {
        for name in names {
            let id = (table, Arc::clone(name));
            let Some(reference) = self.reference(&id)? else { continue };
            if reference.key.is_full && reference.child.has_mixed_nulls(&reference.key.columns)? {
                return Err(self.mixes_nulls(&id));
            }
            let come = reference.child.all_keys(&reference.columns)?;
            self.check_parents(&id, come).await?;
        }
        Ok(())
    }

    pub(super) async fn check(&mut self, checks: Checks) -> Result<()> {
        for (id, KeysToCheck { come, go }) in checks.0 {
            if !come.is_empty() {
                self.check_parents(&id, come).await?;
            }
            if !go.is_empty() {
                self.check_children(&id, &go).await?;
            }
        }
        Ok(())
    }

    /// Refuses keys of rows that the parent does not have, and keeps the other keys there until the transaction ends.
    async fn check_parents(&mut self, id: &ConstraintId, come: HashSet<Key>) -> Result<()> {
        let Some(reference) = self.reference(id)? else { return Ok(()) };
        let parent = reference.key.parent;
        let whole = LockTarget::Table(parent);
        if come.len() > ROWS_LOCKED_MAX {
            self.lock(whole, LockMode::Exclusive).await?;
        } else if !self.locks.holds(&whole, LockMode::Exclusive) {
            self.lock(whole, LockMode::Shared).await?;
            // The table is locked, so its constraints keep their numbers.
            let Some(reference) = self.reference(id)? else { return Ok(()) };
            let keys = come.iter().filter_map(|key| reference.to_parent(key));
            let mut targets: Vec<LockTarget> =
                keys.map(|key| key_target(parent, reference.unique, &key)).collect();
            targets.sort_unstable();
            for target in targets {
                self.lock(target, LockMode::Shared).await?;
            }
        }
        let Some(reference) = self.reference(id)? else { return Ok(()) };
        let missing = missing_keys(&reference, come);
        // The row may have got another key since it was written.
        let rows = reference.child.rows_with_keys(&reference.columns, &missing)?;
        match rows.first() {
            None => Ok(()),
            Some((row, key)) => Err(self.no_parent(id, &reference, *row, key)),
        }
    }

    /// Refuses removed keys of a parent that rows still refer to. Waits for rows that another transaction is changing:
    /// they may lose the key or be deleted.
    async fn check_children(&mut self, id: &ConstraintId, go: &HashSet<Key>) -> Result<()> {
        loop {
            let Some(reference) = self.reference(id)? else { return Ok(()) };
            let lost =
                go.iter().filter(|key| reference.parent.find(reference.unique, key).is_none());
            let lost: HashSet<Key> = lost.filter_map(|key| reference.to_child(key)).collect();
            let rows = reference.child.rows_with_keys(&reference.columns, &lost)?;
            let Some((row, _)) = rows.first() else { return Ok(()) };
            let (table, target) = (LockTarget::Table(id.0), LockTarget::Row(id.0, *row));
            if self.locks.holds(&table, LockMode::Exclusive)
                || self.locks.holds(&target, LockMode::Shared)
            {
                return Err(self.has_children(id, &reference, *row));
            }
            self.lock(table, LockMode::Shared).await?;
            self.lock(target, LockMode::Shared).await?;
        }
    }

    fn no_parent(
        &self,
        id: &ConstraintId,
        reference: &Reference,
        row: RowId,
        key: &Key,
    ) -> TransactionError {
        let base = self.base.as_ref().filter(|_| self.is_repeatable());
        let base = base.and_then(|base| base.table(reference.key.parent));
        let key = reference.to_parent(key);
        if let (Some(base), Some(key)) = (base, key)
            && base.definition() == reference.parent.definition()
            && base.find(reference.unique, &key).is_some()
        {
            return TransactionError::Serialization(ConcurrentChange::Delete);
        }
        let columns = &reference.key.columns;
        let key = reference.child.key_of(row, columns);
        let key = key.map(|key| reference.child.codec().describe_key(&key, columns));
        let (key, parent) = (key.unwrap_or_default(), self.name_of(reference.key.parent));
        let detail = format!("Key {key} is not present in table \"{parent}\".");
        self.violation(ReferenceFault::NoParent, id, id.0, detail)
    }

    fn has_children(
        &self,
        id: &ConstraintId,
        reference: &Reference,
        row: RowId,
    ) -> TransactionError {
        let names = reference.parent.codec().names_of(&reference.key.parent_columns);
        let (child, columns) = (&reference.child, &reference.key.columns);
        let key = child.key_of(row, columns);
        let key = key.map(|key| child.codec().describe_key_of(&key, columns, &names));
        let (key, table) = (key.unwrap_or_default(), self.name_of(id.0));
        let detail = format!("Key {key} is still referenced from table \"{table}\".");
        self.violation(ReferenceFault::HasChildren, id, reference.key.parent, detail)
    }

    /// The error for a row with some NULLs under MATCH FULL.
    pub(super) fn mixes_nulls(&self, id: &ConstraintId) -> TransactionError {
        let detail = "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned();
        self.violation(ReferenceFault::NoParent, id, id.0, detail)
    }

    fn violation(
        &self,
        fault: ReferenceFault,
        (child, constraint): &ConstraintId,
        changed: TableId,
        detail: String,
    ) -> TransactionError {
        let table = self.name_of(*child);
        let on = match fault {
            ReferenceFault::NoParent => String::new(),
            ReferenceFault::HasChildren => format!(" on table \"{table}\""),
        };
        TransactionError::ForeignKey(Box::new(ForeignKeyViolation {
            fault,
            schema: self.schema_of(*child),
            table,
            constraint: constraint.to_string(),
            changed: self.name_of(changed),
            on,
            detail,
        }))
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.options.isolation.is_repeatable()
    }
}

/// The keys of rows that the parent does not have. They are looked up in hash order, which is the order of
/// the index.
fn missing_keys(reference: &Reference, come: HashSet<Key>) -> HashSet<Key> {
    let mut keys: Vec<(Key, Option<Key>)> =
        come.into_iter().map(|key| (key.clone(), reference.to_parent(&key))).collect();
    keys.sort_by_cached_key(|(_, parent)| parent.as_ref().map(Key::hash64));
    let is_there = |parent: &Option<Key>| {
        parent.as_ref().is_some_and(|key| reference.parent.find(reference.unique, key).is_some())
    };
    keys.into_iter().filter(|(_, parent)| !is_there(parent)).map(|(key, _)| key).collect()
}
