//! Changes of the catalog. They are part of the transaction like changes of rows: others see them when it
//! commits, and a rollback undoes them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::own::OwnBase;
use super::{Result, Transaction};
use crate::change::{CatalogChange, ChangeStep};
use crate::change::{Relation, RelationName, is_temporary_schema};
use crate::database::apply::ApplyError;
use crate::database::error::{ConcurrentChange, TransactionError};
use crate::database::options::Written;
use crate::database::version::DatabaseVersion;
use crate::ids::TableId;
use crate::lock::{LockMode, LockTarget};
use crate::table::{ForeignKey, TableDefinition};

impl Transaction {
    /// Changes the catalog. A changed table is locked exclusively, by
    /// [`lock_table`](Self::lock_table) before the statement reads it, or here.
    pub async fn define(&mut self, change: CatalogChange) -> Result<Written> {
        self.check_writable("a change of the catalog")?;
        for (target, mode) in locks_of(&change) {
            self.lock(target, mode).await?;
        }
        if let Some(written) = self.lock_table_of(&change).await? {
            return Ok(written);
        }
        self.lock_parents(&change).await?;
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        check_names(&own, &change)?;
        if !self.check_references(&own, &change)? {
            return self.stale(ConcurrentChange::Update);
        }
        let step = ChangeStep::Catalog(change);
        let mut after = (*own).clone();
        after.apply_step(&step, &self.database.environment)?;
        self.keep(step, &newest, after)?;
        Ok(Written::Done)
    }

    /// Locks the table of a change. Returns its concurrent change, if any.
    async fn lock_table_of(&mut self, change: &CatalogChange) -> Result<Option<Written>> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let (table, is_read) = match change {
            CatalogChange::SetDefinition { table, .. } => (Some(*table), true),
            CatalogChange::Drop { name } | CatalogChange::Rename { from: name, .. } => {
                (own.table_named(name).map(|(table, _)| table), false)
            }
            _ => (None, false),
        };
        let Some(table) = table else { return Ok(None) };
        self.lock(LockTarget::Table(table), LockMode::Exclusive).await?;
        if !is_read {
            return Ok(None);
        }
        let newest = self.read_newest();
        let before = self.base.as_ref().and_then(|base| base.table_changed(table));
        let now = newest.table_changed(table);
        match (before, now) {
            (Some(_), None) => {
                Err(TransactionError::UndefinedRelation { name: self.name_of(table) })
            }
            (before, now) if before == now => Ok(None),
            _ => self.stale(ConcurrentChange::Update).map(Some),
        }
    }
}

impl Transaction {
    /// Locks the tables that new foreign keys refer to, so that they and their keys stay. If existing rows are to be
    /// checked, none of the referenced rows may be deleted.
    async fn lock_parents(&mut self, change: &CatalogChange) -> Result<()> {
        let (table, definition, mode) = match change {
            CatalogChange::CreateTable { id, definition, .. } => {
                (*id, definition, LockMode::Shared)
            }
            CatalogChange::SetDefinition { table, definition } => {
                (*table, definition, LockMode::Exclusive)
            }
            _ => return Ok(()),
        };
        if definition.foreign_keys.is_empty() {
            return Ok(());
        }
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let known = own.table(table).map(|table| Arc::clone(table.definition()));
        let is_known = |key: &ForeignKey| {
            let mut old = known.iter().flat_map(|known| &known.foreign_keys);
            old.any(|old| (&old.name, old.parent) == (&key.name, key.parent))
        };
        let new = definition.foreign_keys.iter().filter(|key| key.parent != table);
        let mut parents: Vec<TableId> =
            new.filter(|key| !is_known(key)).map(|key| key.parent).collect();
        parents.sort_unstable();
        parents.dedup();
        for parent in parents {
            self.lock(LockTarget::Table(parent), mode).await?;
        }
        Ok(())
    }

    /// Refuses to drop objects that foreign keys refer to, and to alter a table with pending checks. Returns false if a
    /// new foreign key refers to a table that changed since it was planned.
    fn check_references(&self, version: &DatabaseVersion, change: &CatalogChange) -> Result<bool> {
        let (table, definition) = match change {
            CatalogChange::CreateTable { id, definition, .. } => (*id, definition),
            CatalogChange::SetDefinition { table, definition } => (*table, definition),
            CatalogChange::Drop { name } => {
                let Some((table, _)) = version.table_named(name) else { return Ok(true) };
                let mut others = version.references_to(table);
                return match others.find(|(child, ..)| *child != table) {
                    None => Ok(true),
                    Some((child, _, key)) => Err(TransactionError::StillReferenced {
                        table: name.name.to_string(),
                        constraint: key.name.to_string(),
                        child: self.name_of(child),
                    }),
                };
            }
            _ => return Ok(true),
        };
        if self.deferred.has_of(table) {
            return Err(TransactionError::PendingChecks { table: self.name_of(table) });
        }
        let refers = |key: &ForeignKey| match key.parent == table {
            true => key.referenced(definition, definition).is_some(),
            false => {
                let parent = version.table(key.parent);
                parent.is_some_and(|it| key.referenced(definition, it.definition()).is_some())
            }
        };
        Ok(definition.foreign_keys.iter().all(refers))
    }
}

/// The names that a change locks: what it makes, moves or removes alone, the schema around it shared.
pub(in crate::database) fn locks_of(change: &CatalogChange) -> Vec<(LockTarget, LockMode)> {
    let schema = |name: &str, mode| (name_target(name, None), mode);
    let in_schema = |name: &RelationName| {
        let own = (name_target(&name.schema, Some(&name.name)), LockMode::Exclusive);
        vec![schema(&name.schema, LockMode::Shared), own]
    };
    match change {
        CatalogChange::CreateSchema { name } | CatalogChange::DropSchema { name } => {
            vec![schema(name, LockMode::Exclusive)]
        }
        CatalogChange::CreateTable { name, .. }
        | CatalogChange::CreateView { name, .. }
        | CatalogChange::CreateExternal { name, .. }
        | CatalogChange::CreateSequence { name, .. }
        | CatalogChange::Drop { name } => in_schema(name),
        CatalogChange::Rename { from, to } => {
            let mut locks = in_schema(from);
            locks.extend(in_schema(to));
            locks.sort_unstable();
            locks
        }
        // The schema is that of the table, whatever it is: names in others wait for nothing but each other.
        CatalogChange::SetDefinition { definition, .. } => {
            let names = index_names(definition);
            let mut locks: Vec<_> =
                names.map(|name| (name_target("", Some(name)), LockMode::Exclusive)).collect();
            locks.sort_unstable();
            locks.dedup();
            locks
        }
        CatalogChange::SetSequence { sequence, .. } => {
            vec![(LockTarget::Sequence(*sequence), LockMode::Exclusive)]
        }
    }
}

fn name_target(schema: &str, name: Option<&str>) -> LockTarget {
    let mut hasher = std::hash::DefaultHasher::new();
    (schema, name).hash(&mut hasher);
    LockTarget::Name(hasher.finish())
}

/// Refuses names that are in use, or that do not exist.
fn check_names(version: &Arc<DatabaseVersion>, change: &CatalogChange) -> Result<()> {
    match change {
        CatalogChange::CreateSchema { name } if version.has_schema(name) => {
            Err(TransactionError::DuplicateSchema { name: name.to_string() })
        }
        CatalogChange::CreateSchema { .. } => Ok(()),
        CatalogChange::DropSchema { name } => {
            check_schema(version, name)?;
            match version.relations_of(name).next() {
                Some((inside, relation)) => Err(TransactionError::SchemaNotEmpty {
                    schema: name.to_string(),
                    object: format!("{} {}", relation.kind(), inside.name),
                }),
                None => Ok(()),
            }
        }
        CatalogChange::CreateView { name, .. }
            if matches!(version.relation(name), Some(Relation::View(_))) =>
        {
            Ok(())
        }
        CatalogChange::CreateTable { name, .. }
        | CatalogChange::CreateView { name, .. }
        | CatalogChange::CreateExternal { name, .. }
        | CatalogChange::CreateSequence { name, .. } => check_free(version, name),
        CatalogChange::Rename { from, to }
            if is_temporary_schema(&from.schema) != is_temporary_schema(&to.schema) =>
        {
            let between = format!("{from} cannot be renamed into {to}: one of them is temporary");
            Err(ApplyError::Misfit(between).into())
        }
        CatalogChange::Drop { name } => check_there(version, name),
        CatalogChange::Rename { from, to } => {
            check_there(version, from)?;
            check_free(version, to)
        }
        CatalogChange::SetDefinition { table, definition } => match version.table(*table) {
            Some(before) => check_index_names(version, *table, before.definition(), definition),
            None => Err(undefined(&format!("table {table}"))),
        },
        CatalogChange::SetSequence { sequence, .. } => match version.sequence(*sequence) {
            Some(_) => Ok(()),
            None => Err(undefined(&format!("sequence {sequence}"))),
        },
    }
}

/// The names of indexes that are not those of constraints.
fn index_names(definition: &TableDefinition) -> impl Iterator<Item = &str> {
    let uniques = definition.uniques.iter().filter(|unique| unique.is_index);
    let uniques = uniques.map(|unique| &*unique.name);
    let in_catalog = definition.catalog_indexes.iter().map(|index| &*index.name);
    uniques.chain(definition.indexes.iter().map(|index| &*index.name)).chain(in_catalog)
}

/// Refuses new indexes with the names of relations or of other indexes.
fn check_index_names(
    version: &DatabaseVersion,
    table: TableId,
    before: &TableDefinition,
    after: &TableDefinition,
) -> Result<()> {
    let Some(at) = version.table_name(table) else { return Ok(()) };
    let is_known = |name: &str| index_names(before).any(|known| known == name);
    for name in index_names(after).filter(|name| !is_known(name)) {
        let relation = RelationName::new(Arc::clone(&at.schema), name);
        if version.relation(&relation).is_some() || has_index(version, &relation, Some(table)) {
            return Err(TransactionError::DuplicateRelation { name: name.to_owned() });
        }
    }
    Ok(())
}

/// Whether a table of the schema, other than this one, has an index with a name.
fn has_index(version: &DatabaseVersion, name: &RelationName, except: Option<TableId>) -> bool {
    version.tables().any(|(id, table)| {
        Some(id) != except
            && version.table_name(id).is_some_and(|at| at.schema == name.schema)
            && index_names(table.definition()).any(|index| *index == *name.name)
    })
}

fn check_schema(version: &DatabaseVersion, name: &str) -> Result<()> {
    match version.has_schema(name) {
        true => Ok(()),
        false => Err(TransactionError::UndefinedSchema { name: name.to_owned() }),
    }
}

fn check_there(version: &DatabaseVersion, name: &RelationName) -> Result<()> {
    match version.relation(name) {
        Some(_) => Ok(()),
        None => Err(undefined(&name.name)),
    }
}

fn check_free(version: &DatabaseVersion, name: &RelationName) -> Result<()> {
    check_schema(version, &name.schema)?;
    match version.relation(name).is_some() || has_index(version, name, None) {
        true => Err(TransactionError::DuplicateRelation { name: name.name.to_string() }),
        false => Ok(()),
    }
}

fn undefined(name: &str) -> TransactionError {
    TransactionError::UndefinedRelation { name: name.to_owned() }
}
