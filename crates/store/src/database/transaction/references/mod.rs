//! Foreign keys: each row with a key refers to a row of the parent, whatever transactions run at the same time.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | the work that a change causes, done at the end of its statement |
//! | `check.rs` | keys that must exist, and keys that no row may refer to any more |
//! | `act.rs` | CASCADE, SET NULL, SET DEFAULT |
//! | `deferred.rs` | checks that wait for COMMIT, those of unique constraints too; SET CONSTRAINTS |
//!
//! A transaction that adds a reference shares the lock of the parent's key; one that removes a key, or gives its row
//! another one, has held that lock exclusively since before it wrote (`unique.rs`). Both then read the newest version,
//! whatever their snapshots are:
//!
//! ```text
//! child: INSERT, shares key 1, sees row 1 ……… COMMIT           │ parent waits for the key, then sees the new row: 23503
//! parent:         DELETE of row 1, wants key 1 alone ……………… │
//!
//! parent: DELETE of row 1, has key 1 alone ……… COMMIT          │ child waits for the key, then misses row 1: 23503,
//! child:          INSERT, wants to share key 1 …………………………… │ or 40001 where its snapshot has it
//! ```
//!
//! A lock is released when what it protects is visible to all, so the next holder sees that. A lock on a table covers
//! all its keys; a statement with more keys than [`ROWS_LOCKED_MAX`] locks the parent. Rows that an
//! action changes are locked, and read again once they are: others may have changed them while it waited, but no
//! transaction can add rows with these keys.

mod act;
mod check;
mod deferred;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use arrow_array::ArrayRef;
use hashbrown::{HashMap, HashSet};

use super::own::OwnBase;
use super::write::{MadeChange, ROWS_LOCKED_MAX};
use super::{Result, Transaction};
use crate::database::options::Written;
use crate::database::version::DatabaseVersion;
use crate::ids::TableId;
use crate::table::{
    ChangedKeys, ForeignKey, Key, ReferentialAction, TableChange, TableDefinition, TableVersion,
};

pub(super) use deferred::DeferredChecks;

/// Computes the rows that a foreign key changes: the store cannot, because it knows no expressions.
pub trait ReferentialActions: Send + Sync {
    /// Rows of a table, all columns, as they are to be written; the columns in `defaults` get their defaults.
    fn written(
        &self,
        table: TableId,
        definition: &TableDefinition,
        columns: Vec<ArrayRef>,
        defaults: &[usize],
    ) -> ActionRows;
}

/// The result for rows that a foreign key changes.
#[derive(Debug)]
pub enum ActionRows {
    /// The rows as they are written.
    Written(Vec<ArrayRef>),
    /// The table, or this definition of it, is unknown: the statement must be planned again.
    Unknown,
    /// They violate a constraint; the implementation knows which one.
    Refused,
}

/// Knows no table.
#[derive(Clone, Copy, Debug)]
pub struct NoActions;

impl ReferentialActions for NoActions {
    fn written(
        &self,
        _: TableId,
        _: &TableDefinition,
        _: Vec<ArrayRef>,
        _: &[usize],
    ) -> ActionRows {
        ActionRows::Unknown
    }
}

/// A constraint, by its table and its name.
type ConstraintId = (TableId, Arc<str>);

/// Keys of a foreign key to be checked.
#[derive(Clone, Debug, Default)]
struct KeysToCheck {
    /// Keys that the parent must have, in the types of the foreign key.
    come: HashSet<Key>,
    /// Keys that the parent lost, in its types.
    go: HashSet<Key>,
}

/// Keys to be checked, by foreign key.
#[derive(Clone, Debug, Default)]
struct Checks(BTreeMap<ConstraintId, KeysToCheck>);

impl Checks {
    fn entry(&mut self, reference: ConstraintId) -> &mut KeysToCheck {
        self.0.entry(reference).or_default()
    }

    fn then(&mut self, later: Self) {
        for (reference, keys) in later.0 {
            let known = self.entry(reference);
            known.come.extend(keys.come);
            known.go.extend(keys.go);
        }
    }
}

/// An action on the rows that have one of some keys.
#[derive(Debug)]
struct Action {
    reference: ConstraintId,
    /// Keys of the parent, in its types, and the new keys if rows follow them.
    keys: HashMap<Key, Option<Key>>,
    kind: ActionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActionKind {
    Delete,
    Follow,
    SetNull,
    SetDefault,
}

/// The foreign key work of a statement.
#[derive(Debug, Default)]
pub(super) struct ReferenceWork {
    /// Checks of RESTRICT, before anything is done.
    restricted: Checks,
    actions: VecDeque<Action>,
    /// Checks after the actions, or later.
    checks: Checks,
}

impl ReferenceWork {
    pub(super) fn is_empty(&self) -> bool {
        self.restricted.0.is_empty() && self.actions.is_empty() && self.checks.0.is_empty()
    }

    /// Adds the work for keys that a parent lost.
    fn add_gone(&mut self, reference: &ConstraintId, key: &ForeignKey, gone: &ChangedKeys) {
        let deleted = gone.deleted.iter().map(|key| (key.clone(), None)).collect();
        self.add(reference, key.on_delete, ActionKind::Delete, deleted);
        let updated = gone.updated.iter();
        let updated = updated.map(|(key, other)| (key.clone(), other.clone()));
        // A parent without a key has none that rows could follow.
        let (follow, leave) = updated.partition(|(_, other)| other.is_some());
        self.add(reference, key.on_update, ActionKind::Follow, follow);
        let leave_to = match key.on_update {
            ReferentialAction::Cascade => ReferentialAction::SetNull,
            other => other,
        };
        self.add(reference, leave_to, ActionKind::Follow, leave);
    }

    fn add(
        &mut self,
        reference: &ConstraintId,
        action: ReferentialAction,
        cascade: ActionKind,
        keys: HashMap<Key, Option<Key>>,
    ) {
        if keys.is_empty() {
            return;
        }
        let reference = reference.clone();
        let kind = match action {
            ReferentialAction::NoAction => {
                self.checks.entry(reference).go.extend(keys.into_keys());
                return;
            }
            ReferentialAction::Restrict => {
                self.restricted.entry(reference).go.extend(keys.into_keys());
                return;
            }
            ReferentialAction::Cascade => cascade,
            ReferentialAction::SetNull => ActionKind::SetNull,
            ReferentialAction::SetDefault => {
                // A row whose default is the removed key keeps it: a check of new references misses it.
                self.checks.entry(reference.clone()).go.extend(keys.keys().cloned());
                ActionKind::SetDefault
            }
        };
        self.actions.push_back(Action { reference, keys, kind });
    }
}

/// A foreign key with both its tables.
struct Reference {
    key: ForeignKey,
    child: Arc<TableVersion>,
    parent: Arc<TableVersion>,
    /// The constraint of the parent.
    unique: usize,
    /// The columns of the foreign key in the order of that constraint.
    columns: Vec<usize>,
    has_same_keys: bool,
}

impl Reference {
    fn find(version: &DatabaseVersion, (child, name): &ConstraintId) -> Option<Self> {
        let child = version.table(*child)?;
        let mut keys = child.definition().foreign_keys.iter();
        let key = keys.find(|key| key.name == *name)?.clone();
        let (child, parent) = (Arc::clone(child), Arc::clone(version.table(key.parent)?));
        let found = key.referenced(child.definition(), parent.definition())?;
        let parent_columns = &parent.definition().uniques[found.unique].columns;
        let has_same_keys =
            child.codec().has_same_keys(&found.columns, parent.codec(), parent_columns);
        let (unique, columns) = (found.unique, found.columns);
        Some(Self { key, child, parent, unique, columns, has_same_keys })
    }

    /// The columns of the parent's constraint.
    fn parent_columns(&self) -> &[usize] {
        &self.parent.definition().uniques[self.unique].columns
    }

    /// The key of the parent that a row with a key refers to. Returns None if no such key can exist.
    fn to_parent(&self, key: &Key) -> Option<Key> {
        match self.has_same_keys {
            true => Some(key.clone()),
            false => {
                let (child, parent) = (self.child.codec(), self.parent.codec());
                child.key_as(key, &self.columns, parent, self.parent_columns())
            }
        }
    }

    /// The key of rows that refer to a key of the parent. Returns None if none can.
    fn to_child(&self, key: &Key) -> Option<Key> {
        match self.has_same_keys {
            true => Some(key.clone()),
            false => {
                let (child, parent) = (self.child.codec(), self.parent.codec());
                parent.key_as(key, self.parent_columns(), child, &self.columns)
            }
        }
    }
}

impl Transaction {
    /// Tables of a TRUNCATE, which are emptied one after another: references between them are not
    /// checked meanwhile.
    pub fn set_truncated(&mut self, tables: Vec<TableId>) {
        self.truncated = tables;
    }

    /// Whether a statement empties several tables.
    pub fn is_truncating(&self) -> bool {
        !self.truncated.is_empty()
    }

    /// Whether a change may add references or remove referenced keys.
    pub(super) fn has_references(
        &mut self,
        newest: &Arc<DatabaseVersion>,
        table: TableId,
        change: &TableChange,
    ) -> Result<bool> {
        let own = self.own.on(OwnBase::Newest, newest, &self.database.environment)?;
        let brings = change.rows() > change.deleted.len() as usize;
        let has_keys = || {
            let definition = own.table(table).map(|table| table.definition());
            definition.is_some_and(|definition| !definition.foreign_keys.is_empty())
        };
        Ok(brings && has_keys() || takes_keys(change) && !own.children(table).is_empty())
    }

    /// Records the work that a change causes, before the change is kept.
    pub(super) fn collect_references(
        &self,
        table: TableId,
        change: &TableChange,
        made: &MadeChange,
        work: &mut ReferenceWork,
    ) -> Result<()> {
        let before = &made.before;
        for key in &before.definition().foreign_keys {
            let reference = (table, Arc::clone(&key.name));
            if key.is_full && before.mixes_nulls(change, &key.columns)? {
                return Err(self.mixes_nulls(&reference));
            }
            let Some(found) = Reference::find(&made.own, &reference) else { continue };
            let come = before.keys_that_come(change, &found.columns)?;
            if !come.is_empty() {
                work.checks.entry(reference).come.extend(come);
            }
        }
        if !takes_keys(change) {
            return Ok(());
        }
        let mut known: HashMap<usize, ChangedKeys> = HashMap::new();
        for (child, _, key) in made.own.references_to(table) {
            let reference = (child, Arc::clone(&key.name));
            let Some(found) = Reference::find(&made.own, &reference) else { continue };
            if child != table && self.truncated.contains(&child) {
                continue;
            }
            if !known.contains_key(&found.unique) {
                known.insert(found.unique, before.keys_that_go(change, found.parent_columns())?);
            }
            work.add_gone(&reference, key, &known[&found.unique]);
        }
        Ok(())
    }

    /// Does the foreign key work of a statement.
    pub(super) async fn follow_references(
        &mut self,
        mut work: ReferenceWork,
        actions: &dyn ReferentialActions,
    ) -> Result<Written> {
        loop {
            self.check(std::mem::take(&mut work.restricted)).await?;
            let Some(action) = work.actions.pop_front() else { break };
            if self.act(action, actions, &mut work).await? == Written::Stale {
                return Ok(Written::Stale);
            }
            pause().await;
        }
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let now = self.deferred.put_off(work.checks, &own);
        match self.parts.is_some() {
            true => self.deferred.keep_for_parts(now),
            false => self.check(now).await?,
        }
        Ok(Written::Done)
    }

    /// A foreign key in the newest version with the transaction's changes. Returns None if it no longer exists.
    fn reference(&mut self, id: &ConstraintId) -> Result<Option<Reference>> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        Ok(Reference::find(&own, id))
    }
}

/// Yields the thread, and lets a cancelled statement end here: actions may take long.
async fn pause() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether rows may have other keys after a change, or be deleted.
fn takes_keys(change: &TableChange) -> bool {
    let has_others = !change.updated.is_empty() && !change.keeps_keys;
    change.truncated || has_others || !change.deleted.is_empty() || !change.replaced.is_empty()
}
