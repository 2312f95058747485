//! The own changes of a transaction, and versions of the database with them.

use std::sync::Arc;

use super::super::apply::ApplyError;
use super::super::version::{DatabaseVersion, StoreEnvironment};
use crate::change::{CatalogChange, ChangeStep, DatabaseChange};
use crate::ids::TableId;

type Result<T> = std::result::Result<T, ApplyError>;

/// A version with the transaction's changes, and the version that it is based on.
#[derive(Clone, Debug)]
pub(in crate::database) struct OwnVersion {
    base: Arc<DatabaseVersion>,
    version: Arc<DatabaseVersion>,
}

impl OwnVersion {
    /// A version with the changes, and what it is based on.
    pub(in crate::database) fn new(
        base: Arc<DatabaseVersion>,
        version: Arc<DatabaseVersion>,
    ) -> Self {
        Self { base, version }
    }
}

/// The changes of a transaction, one level per savepoint.
#[derive(Debug)]
pub(super) struct OwnChanges {
    levels: Vec<ChangeLevel>,
    versions: OwnVersions,
}

/// Versions with all changes: on the newest one, which decides about conflicts and becomes the next one,
/// and on the snapshot that a repeatable read reads.
#[derive(Clone, Debug, Default)]
struct OwnVersions {
    newest: Option<OwnVersion>,
    snapshot: Option<OwnVersion>,
}

#[derive(Debug)]
struct ChangeLevel {
    change: DatabaseChange,
    /// What the versions were when the level began.
    before: OwnVersions,
}

/// On which version a transaction's changes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnBase {
    Newest,
    Snapshot,
}

impl OwnChanges {
    pub(super) fn new() -> Self {
        let before = OwnVersions::default();
        let level = ChangeLevel { change: DatabaseChange::default(), before };
        Self { levels: vec![level], versions: OwnVersions::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.change.is_empty())
    }

    /// What was done, oldest first.
    pub(super) fn steps(&self) -> impl Iterator<Item = &ChangeStep> {
        self.levels.iter().flat_map(|level| &level.change.steps)
    }

    /// Whether rows of a table were changed above a depth.
    pub(super) fn has_changed_since(&self, depth: usize, table: TableId) -> bool {
        let mut steps = self.levels.iter().skip(depth).flat_map(|level| &level.change.steps);
        steps.any(|step| matches!(step, ChangeStep::Table(of, _) if *of == table))
    }

    /// A version with the transaction's changes. Reuses the last version for the same base, or its tables
    /// that have not changed since.
    pub(super) fn on(
        &mut self,
        which: OwnBase,
        base: &Arc<DatabaseVersion>,
        environment: &StoreEnvironment,
    ) -> Result<Arc<DatabaseVersion>> {
        if self.is_empty() {
            return Ok(Arc::clone(base));
        }
        let known = match which {
            OwnBase::Newest => &self.versions.newest,
            OwnBase::Snapshot => &self.versions.snapshot,
        };
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.base, base)) {
            return Ok(Arc::clone(&known.version));
        }
        let version = Arc::new(rebase(base, known.as_ref(), self.steps(), environment)?);
        self.set(which, base, &version);
        Ok(version)
    }

    /// The version with all changes that was made last, if there is one: its names are as they are still.
    pub(super) fn known(&self) -> Option<&Arc<DatabaseVersion>> {
        self.versions.newest.as_ref().map(|own| &own.version)
    }

    /// The version after one more step, which is not kept yet.
    pub(super) fn set(
        &mut self,
        which: OwnBase,
        base: &Arc<DatabaseVersion>,
        version: &Arc<DatabaseVersion>,
    ) {
        let own = OwnVersion { base: Arc::clone(base), version: Arc::clone(version) };
        match which {
            OwnBase::Newest => self.versions.newest = Some(own),
            OwnBase::Snapshot => self.versions.snapshot = Some(own),
        }
    }

    /// Keeps a step. Versions are to be set to those with it.
    pub(super) fn push(&mut self, step: ChangeStep) {
        self.versions = OwnVersions::default();
        if let Some(level) = self.levels.last_mut() {
            level.change.push(step);
        }
    }

    /// Number of levels.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Begins a level; returns the depth to go back to.
    pub(super) fn begin_level(&mut self) -> usize {
        let (depth, before) = (self.depth(), self.versions.clone());
        self.levels.push(ChangeLevel { change: DatabaseChange::default(), before });
        depth
    }

    /// Undoes all changes above a depth.
    pub(super) fn undo_to(&mut self, depth: usize) {
        if let Some(level) = self.levels.get_mut(depth) {
            self.versions = std::mem::take(&mut level.before);
        }
        self.levels.truncate(depth);
    }

    /// Merges the changes above a depth into the level below it.
    pub(super) fn merge_to(&mut self, depth: usize) {
        let later: Vec<ChangeLevel> = self.levels.drain(depth.min(self.levels.len())..).collect();
        if let Some(level) = self.levels.last_mut() {
            later.into_iter().for_each(|later| level.change.then(later.change));
        }
    }

    /// All changes, and the version with them that the next one may be taken from.
    pub(super) fn finish(mut self) -> FinishedChanges {
        self.merge_to(1);
        let change = self.levels.pop().map(|level| level.change).unwrap_or_default();
        FinishedChanges { change, own: self.versions.newest }
    }
}

/// The changes of a transaction that commits.
#[derive(Debug)]
pub(super) struct FinishedChanges {
    pub(super) change: DatabaseChange,
    own: Option<OwnVersion>,
}

impl FinishedChanges {
    /// The version after them.
    pub(super) fn on(
        &self,
        newest: &Arc<DatabaseVersion>,
        environment: &StoreEnvironment,
    ) -> Result<DatabaseVersion> {
        match &self.own {
            Some(own) if Arc::ptr_eq(&own.base, newest) => Ok((*own.version).clone()),
            own => rebase(newest, own.as_ref(), self.change.steps.iter(), environment),
        }
    }
}

/// A version after changes. Tables that are the same in it and in the base of `known`, a version with these
/// changes, are taken from there.
pub(in crate::database) fn rebase<'a>(
    base: &Arc<DatabaseVersion>,
    known: Option<&OwnVersion>,
    steps: impl Iterator<Item = &'a ChangeStep>,
    environment: &StoreEnvironment,
) -> Result<DatabaseVersion> {
    let mut next = (**base).clone();
    let mut taken: Vec<TableId> = Vec::new();
    for step in steps {
        let Some(table) = table_of(step) else {
            next.apply_step(step, environment)?;
            continue;
        };
        if taken.contains(&table) {
            continue;
        }
        let creates = matches!(step, ChangeStep::Catalog(CatalogChange::CreateTable { .. }));
        let known = known.filter(|known| is_same_table(&known.base, base, table));
        let known = known.and_then(|known| known.version.table(table));
        if creates || known.is_none() {
            next.apply_step(step, environment)?;
        }
        if let Some(version) = known {
            next.set_table(table, Arc::clone(version), next.next_epoch());
            taken.push(table);
        }
    }
    Ok(next)
}

/// The table whose version a step makes.
fn table_of(step: &ChangeStep) -> Option<TableId> {
    match step {
        ChangeStep::Table(table, _) => Some(*table),
        ChangeStep::Catalog(CatalogChange::CreateTable { id, .. }) => Some(*id),
        ChangeStep::Catalog(CatalogChange::SetDefinition { table, .. }) => Some(*table),
        _ => None,
    }
}

fn is_same_table(one: &DatabaseVersion, two: &DatabaseVersion, table: TableId) -> bool {
    match (one.table(table), two.table(table)) {
        (Some(one), Some(two)) => Arc::ptr_eq(one, two),
        (one, two) => one.is_none() && two.is_none(),
    }
}
