//! Checks that wait for COMMIT, and SET CONSTRAINTS.
//!
//! Keys are deferred, not rows: when they are checked, each key that the parent does not have must be one that no row
//! has. So a rollback to a savepoint leaves harmless keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Checks, ReferenceId};
use crate::database::error::TransactionError;
use crate::database::transaction::own::OwnBase;
use crate::database::transaction::{Result, Transaction};
use crate::database::version::DatabaseVersion;
use crate::ids::TableId;
use crate::table::{Deferral, ForeignKey};

/// The deferred checks of a transaction, and its SET CONSTRAINTS.
#[derive(Debug, Default)]
pub(in crate::database::transaction) struct DeferredChecks {
    checks: Checks,
    /// Checks deferred to the last part of the statement.
    of_parts: Checks,
    /// The last SET CONSTRAINTS ALL.
    all: Option<bool>,
    /// Later settings of single constraints.
    named: BTreeMap<ReferenceId, bool>,
}

impl DeferredChecks {
    /// Keeps the checks that are deferred; returns the others.
    pub(super) fn put_off(&mut self, checks: Checks, version: &DatabaseVersion) -> Checks {
        let (later, now) = checks
            .0
            .into_iter()
            .partition(|(id, _)| foreign_key(version, id).is_some_and(|key| self.defers(id, key)));
        self.checks.then(Checks(later));
        Checks(now)
    }

    fn defers(&self, id: &ReferenceId, key: &ForeignKey) -> bool {
        let said = self.named.get(id).copied().or(self.all);
        match key.deferral {
            Deferral::Never => false,
            Deferral::InitiallyImmediate => said.unwrap_or(false),
            Deferral::InitiallyDeferred => said.unwrap_or(true),
        }
    }

    /// Keeps checks for the end of the statement.
    pub(super) fn keep_for_parts(&mut self, checks: Checks) {
        self.of_parts.then(checks);
    }

    /// Whether checks of a table's foreign keys are deferred.
    pub(in crate::database::transaction) fn has_of(&self, table: TableId) -> bool {
        self.checks.0.keys().any(|(child, _)| *child == table)
    }
}

fn foreign_key<'v>(
    version: &'v DatabaseVersion,
    (table, name): &ReferenceId,
) -> Option<&'v ForeignKey> {
    let mut keys = version.table(*table)?.definition().foreign_keys.iter();
    keys.find(|key| key.name == *name)
}

impl Transaction {
    /// Runs the deferred checks before the transaction commits.
    pub(in crate::database::transaction) async fn check_deferred(&mut self) -> Result<()> {
        let checks = std::mem::take(&mut self.deferred.checks);
        self.check(checks).await
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

    /// `SET CONSTRAINTS`, for all or for single foreign keys. Checks that are no longer deferred run at once.
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
                    let key = foreign_key(&own, &id);
                    if key.is_some_and(|key| key.deferral == Deferral::Never) {
                        return Err(TransactionError::NotDeferrable { name: id.1.to_string() });
                    }
                    self.deferred.named.insert(id, is_deferred);
                }
            }
        }
        let waiting = std::mem::take(&mut self.deferred.checks);
        let now = self.deferred.put_off(waiting, &own);
        self.check(now).await
    }
}
