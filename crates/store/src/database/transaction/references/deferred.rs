//! Checks that wait for COMMIT, and SET CONSTRAINTS.
//!
//! Keys are deferred, not rows: when they are checked, each key that the parent does not have must be one that no row
//! has, and each key of a unique constraint one that at most one row has. So a rollback to a savepoint leaves harmless
//! keys. The transaction has the locks of the keys, so no other one adds or removes them before it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;

use super::{Checks, ConstraintId};
use crate::database::error::TransactionError;
use crate::database::transaction::own::OwnBase;
use crate::database::transaction::unique::violation;
use crate::database::transaction::{Result, Transaction};
use crate::database::version::DatabaseVersion;
use crate::ids::TableId;
use crate::table::{Deferral, Key, TableVersion, Unique};

/// The deferred checks of a transaction, and its SET CONSTRAINTS.
#[derive(Debug, Default)]
pub(in crate::database::transaction) struct DeferredChecks {
    checks: Checks,
    /// Checks deferred to the last part of the statement.
    of_parts: Checks,
    /// Keys of unique constraints that several rows had after a statement.
    duplicates: BTreeMap<ConstraintId, DuplicateKeys>,
    /// The last SET CONSTRAINTS ALL.
    all: Option<bool>,
    /// Later settings of single constraints.
    named: BTreeMap<ConstraintId, bool>,
}

/// Keys of a unique constraint to be checked.
#[derive(Debug, Default)]
struct DuplicateKeys {
    keys: HashSet<Key>,
    /// Whether all other keys are checked too: those of many rows are not kept.
    is_whole: bool,
}

impl DuplicateKeys {
    /// A key that several rows still have.
    fn first(&self, version: &TableVersion, unique: usize) -> Result<Option<Key>> {
        match self.is_whole {
            true => Ok(version.any_duplicate(unique)?),
            false => Ok(self.keys.iter().find(|key| version.has_duplicate(unique, key)).cloned()),
        }
    }
}

impl DeferredChecks {
    /// Keeps the checks that are deferred; returns the others.
    pub(super) fn put_off(&mut self, checks: Checks, version: &DatabaseVersion) -> Checks {
        let (later, now) = checks.0.into_iter().partition(|(id, _)| self.defers(id, version));
        self.checks.then(Checks(later));
        Checks(now)
    }

    /// Keeps a key that several rows have, or notes that there are such keys. Returns whether the check of the
    /// constraint is deferred.
    pub(in crate::database::transaction) fn put_off_duplicate(
        &mut self,
        table: TableId,
        unique: &Unique,
        key: Option<&Key>,
    ) -> bool {
        let id = (table, Arc::clone(&unique.name));
        if !self.defers_now(&id, unique.deferral) {
            return false;
        }
        let duplicates = self.duplicates.entry(id).or_default();
        match key {
            Some(key) => drop(duplicates.keys.insert(key.clone())),
            None => duplicates.is_whole = true,
        }
        true
    }

    fn defers(&self, id: &ConstraintId, version: &DatabaseVersion) -> bool {
        deferral(version, id).is_some_and(|deferral| self.defers_now(id, deferral))
    }

    fn defers_now(&self, id: &ConstraintId, deferral: Deferral) -> bool {
        let said = self.named.get(id).copied().or(self.all);
        match deferral {
            Deferral::Never => false,
            Deferral::InitiallyImmediate => said.unwrap_or(false),
            Deferral::InitiallyDeferred => said.unwrap_or(true),
        }
    }

    /// Keeps checks for the end of the statement.
    pub(super) fn keep_for_parts(&mut self, checks: Checks) {
        self.of_parts.then(checks);
    }

    /// Whether checks of a table's constraints are deferred.
    pub(in crate::database::transaction) fn has_of(&self, table: TableId) -> bool {
        let mut ids = self.checks.0.keys().chain(self.duplicates.keys());
        ids.any(|(of, _)| *of == table)
    }
}

/// Whether and how the check of a foreign key or a unique constraint can be deferred.
fn deferral(version: &DatabaseVersion, (table, name): &ConstraintId) -> Option<Deferral> {
    let definition = version.table(*table)?.definition();
    let of_keys = definition.foreign_keys.iter().map(|key| (&key.name, key.deferral));
    let of_uniques = definition.uniques.iter().map(|unique| (&unique.name, unique.deferral));
    let mut all = of_keys.chain(of_uniques);
    all.find(|(own, _)| *own == name).map(|(_, deferral)| deferral)
}

impl Transaction {
    /// Runs the deferred checks before the transaction commits.
    pub(in crate::database::transaction) async fn check_deferred(&mut self) -> Result<()> {
        let duplicates = std::mem::take(&mut self.deferred.duplicates);
        self.check_duplicates(duplicates)?;
        let checks = std::mem::take(&mut self.deferred.checks);
        self.check(checks).await
    }

    /// Refuses keys that several rows have now.
    fn check_duplicates(
        &mut self,
        duplicates: BTreeMap<ConstraintId, DuplicateKeys>,
    ) -> Result<()> {
        if duplicates.is_empty() {
            return Ok(());
        }
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        for ((table, name), keys) in duplicates {
            let Some(version) = own.table(table) else { continue };
            let uniques = &version.definition().uniques;
            let Some(at) = uniques.iter().position(|unique| unique.name == name) else { continue };
            if let Some(key) = keys.first(version, at)? {
                return Err(self.with_schema(table, violation(version, &uniques[at], &key)));
            }
        }
        Ok(())
    }

    /// Runs the checks deferred to the last part of a statement.
    pub(in crate::database::transaction) async fn check_after_parts(&mut self) -> Result<()> {
        let checks = std::mem::take(&mut self.deferred.of_parts);
        self.check(checks).await
    }

    /// Forgets the checks of a statement that is undone.
    pub(in crate::database::transaction) fn forget_checks_of_parts(&mut self) {
        self.deferred.of_parts = Checks::default();
    }

    /// `SET CONSTRAINTS`, for all or for single constraints. Checks that are no longer deferred run at once.
    ///
    /// # Errors
    /// For constraints that cannot be deferred, and where a check fails.
    pub async fn set_constraints(
        &mut self,
        named: Option<Vec<(TableId, Arc<str>)>>,
        is_deferred: bool,
    ) -> Result<()> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        match named {
            None => {
                self.deferred.all = Some(is_deferred);
                self.deferred.named.clear();
            }
            Some(named) => {
                for id in named {
                    if deferral(&own, &id) == Some(Deferral::Never) {
                        return Err(TransactionError::NotDeferrable { name: id.1.to_string() });
                    }
                    self.deferred.named.insert(id, is_deferred);
                }
            }
        }
        let duplicates = std::mem::take(&mut self.deferred.duplicates);
        let (later, now) =
            duplicates.into_iter().partition(|(id, _)| self.deferred.defers(id, &own));
        self.deferred.duplicates = later;
        self.check_duplicates(now)?;
        let waiting = std::mem::take(&mut self.deferred.checks);
        let now = self.deferred.put_off(waiting, &own);
        self.check(now).await
    }
}
