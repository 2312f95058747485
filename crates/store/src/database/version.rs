//! The contents of a database at one moment: immutable, shared by all readers.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_placement::Arena;
use atoll_topology::Machine;
use imbl::{OrdMap, OrdSet};

use crate::change::{PreparedTransaction, SequenceState};
use crate::change::{Relation, RelationName, is_temporary_schema};
use crate::ids::{Epoch, SequenceId, TableId};
use crate::log::Position;
use crate::table::{ForeignKey, TableDefinition, TableVersion};

/// Where tables place their rows.
#[derive(Clone, Debug)]
pub struct StoreEnvironment {
    /// The machine and its homes.
    pub machine: Arc<Machine>,
    /// The source of memory.
    pub arena: Arena,
}

/// The contents of a database after some number of commits: names, tables, sequences. Versions share what
/// did not change between them.
#[derive(Clone, Debug, Default)]
pub struct DatabaseVersion {
    pub(super) epoch: Epoch,
    pub(super) position: Position,
    pub(super) schemas: OrdSet<Arc<str>>,
    pub(super) relations: OrdMap<RelationName, Relation>,
    pub(super) tables: OrdMap<TableId, StoredTable>,
    pub(super) sequences: OrdMap<SequenceId, Arc<SequenceState>>,
    pub(super) prepared: OrdMap<Arc<str>, Arc<PreparedTransaction>>,
    /// For each referenced table, the tables whose foreign keys refer to it.
    children: OrdMap<TableId, Arc<[TableId]>>,
    pub(super) next_table: TableId,
    pub(super) next_sequence: SequenceId,
}

/// The names of a version, to be compared with those of another one: as long as they are the same, a name
/// refers to the same relation.
#[derive(Clone, Debug, Default)]
pub struct DatabaseNames {
    schemas: OrdSet<Arc<str>>,
    relations: OrdMap<RelationName, Relation>,
}

impl DatabaseNames {
    /// Whether a version still has these names; false also if they were changed and changed back.
    pub fn are_those_of(&self, version: &DatabaseVersion) -> bool {
        self.schemas.ptr_eq(&version.schemas) && self.relations.ptr_eq(&version.relations)
    }
}

/// A table with the last commit that changed it; folding does not count.
#[derive(Clone, Debug)]
pub(super) struct StoredTable {
    pub(super) name: RelationName,
    pub(super) version: Arc<TableVersion>,
    pub(super) changed: Epoch,
}

/// The same as lists, for a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct DatabaseContents {
    /// Number of commits.
    pub epoch: Epoch,
    /// Log position up to which it contains all records.
    pub position: Position,
    /// Names of schemas.
    pub schemas: Vec<Arc<str>>,
    /// Names and their relations.
    pub relations: Vec<(RelationName, Relation)>,
    /// The tables.
    pub tables: Vec<(TableId, Arc<TableVersion>)>,
    /// The sequences.
    pub sequences: Vec<(SequenceId, SequenceState)>,
    /// Prepared transactions, by name.
    pub prepared: Vec<(Arc<str>, Arc<PreparedTransaction>)>,
    /// All ids of tables given so far are below this one.
    pub next_table: TableId,
    /// All ids of sequences given so far are below this one.
    pub next_sequence: SequenceId,
}

impl DatabaseVersion {
    /// A database with these empty schemas.
    pub fn with_schemas(schemas: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { schemas: schemas.into_iter().collect(), ..Self::default() }
    }

    /// The version that a checkpoint held. Returns an error for a table without a name, or a name without a table or
    /// sequence.
    pub fn from_contents(contents: DatabaseContents) -> Result<Self, String> {
        let mut version = Self {
            epoch: contents.epoch,
            position: contents.position,
            schemas: contents.schemas.into_iter().collect(),
            relations: contents.relations.into_iter().collect(),
            tables: OrdMap::new(),
            sequences: OrdMap::new(),
            prepared: contents.prepared.into_iter().collect(),
            children: OrdMap::new(),
            next_table: contents.next_table,
            next_sequence: contents.next_sequence,
        };
        let each = contents.sequences.into_iter();
        version.sequences = each.map(|(id, state)| (id, Arc::new(state))).collect();
        let mut tables: OrdMap<TableId, Arc<TableVersion>> = contents.tables.into_iter().collect();
        for (name, relation) in &version.relations {
            let is_known = match relation {
                Relation::Sequence(id) => version.sequences.contains_key(id),
                Relation::Table(id) => tables.remove(id).is_some_and(|table| {
                    let changed = version.epoch;
                    let table = StoredTable { name: name.clone(), version: table, changed };
                    version.tables.insert(*id, table).is_none()
                }),
                Relation::View(_) | Relation::External(_) => true,
            };
            if !is_known || !version.schemas.contains(&name.schema) {
                return Err(format!("the named {} {name} does not exist", relation.kind()));
            }
        }
        if let Some(id) = tables.keys().next() {
            return Err(format!("table {id} does not have a name"));
        }
        let all: Vec<_> =
            version.tables().map(|(id, table)| (id, Arc::clone(table.definition()))).collect();
        all.iter()
            .for_each(|(id, definition)| version.follow_references(*id, None, Some(definition)));
        Ok(version)
    }

    /// The contents as lists.
    pub fn contents(&self) -> DatabaseContents {
        let relations = self.relations.iter();
        let tables = self.tables.iter().map(|(id, table)| (*id, Arc::clone(&table.version)));
        DatabaseContents {
            epoch: self.epoch,
            position: self.position,
            schemas: self.schemas.iter().cloned().collect(),
            relations: relations.map(|(name, of)| (name.clone(), of.clone())).collect(),
            tables: tables.collect(),
            sequences: self.sequences.iter().map(|(id, of)| (*id, (**of).clone())).collect(),
            prepared: self
                .prepared()
                .map(|(name, of)| (Arc::clone(name), Arc::clone(of)))
                .collect(),
            next_table: self.next_table,
            next_sequence: self.next_sequence,
        }
    }

    /// The same without the objects of sessions: the contents of a checkpoint.
    pub fn durable(self: &Arc<Self>) -> Arc<Self> {
        let temporary: Vec<_> =
            self.schemas.iter().filter(|name| is_temporary_schema(name)).cloned().collect();
        if temporary.is_empty() {
            return Arc::clone(self);
        }
        let mut durable = (**self).clone();
        temporary.iter().for_each(|schema| durable.forget_schema(schema));
        Arc::new(durable)
    }

    /// Removes a schema with all its objects.
    pub(super) fn forget_schema(&mut self, schema: &Arc<str>) {
        let names: Vec<RelationName> =
            self.relations_of(schema).map(|(name, _)| name.clone()).collect();
        for name in names {
            match self.relations.remove(&name) {
                Some(Relation::Table(id)) => self.remove_table(id),
                Some(Relation::Sequence(id)) => drop(self.sequences.remove(&id)),
                Some(Relation::View(_) | Relation::External(_)) | None => {}
            }
        }
        self.schemas.remove(schema);
    }

    /// Its names.
    pub fn names(&self) -> DatabaseNames {
        DatabaseNames { schemas: self.schemas.clone(), relations: self.relations.clone() }
    }

    /// Number of commits it has seen.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Log position up to which it contains all records: it is durable when the log is synced up to there.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The same version after the record at this log position.
    pub fn at(self, epoch: Epoch, position: Position) -> Self {
        Self { epoch, position, ..self }
    }

    /// Names of schemas, sorted.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<str>> {
        self.schemas.iter()
    }

    /// Whether a schema has this name.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains(name)
    }

    /// All names, sorted, with their relations.
    pub fn relations(&self) -> impl Iterator<Item = (&RelationName, &Relation)> {
        self.relations.iter()
    }

    /// The names in a schema, sorted, with their relations.
    pub fn relations_of(&self, schema: &str) -> impl Iterator<Item = (&RelationName, &Relation)> {
        let first = RelationName::new(schema, "");
        let of_schema = self.relations.range(first.clone()..);
        of_schema.take_while(move |(name, _)| name.schema == first.schema)
    }

    /// The relation with this name.
    pub fn relation(&self, name: &RelationName) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// The table with this name.
    pub fn table_named(&self, name: &RelationName) -> Option<(TableId, &Arc<TableVersion>)> {
        match self.relation(name)? {
            Relation::Table(id) => Some((*id, self.table(*id)?)),
            _ => None,
        }
    }

    /// A table.
    pub fn table(&self, id: TableId) -> Option<&Arc<TableVersion>> {
        self.tables.get(&id).map(|table| &table.version)
    }

    /// The name of a table.
    pub fn table_name(&self, id: TableId) -> Option<&RelationName> {
        self.tables.get(&id).map(|table| &table.name)
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Arc<TableVersion>)> {
        self.tables.iter().map(|(id, table)| (*id, &table.version))
    }

    /// The commit that changed a table last, its rows or its definition.
    pub fn table_changed(&self, id: TableId) -> Option<Epoch> {
        self.tables.get(&id).map(|table| table.changed)
    }

    /// A sequence.
    pub fn sequence(&self, id: SequenceId) -> Option<&Arc<SequenceState>> {
        self.sequences.get(&id)
    }

    /// The prepared transactions, by name.
    pub fn prepared(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<PreparedTransaction>)> {
        self.prepared.iter()
    }

    /// The name of a sequence; searches all names.
    pub fn sequence_name(&self, id: SequenceId) -> Option<&RelationName> {
        let mut all = self.relations.iter();
        all.find(|(_, relation)| **relation == Relation::Sequence(id)).map(|(name, _)| name)
    }

    /// The table whose column owns a sequence, and the number of the column; searches all tables.
    pub fn sequence_owner(&self, id: SequenceId) -> Option<(TableId, usize)> {
        self.tables().find_map(|(table, version)| {
            let mut identities = version.definition().identities.iter();
            let column = identities.position(|of| of.is_some_and(|of| of.sequence == id))?;
            Some((table, column))
        })
    }

    /// Replaces an earlier version of a table.
    pub(super) fn set_table(&mut self, id: TableId, version: Arc<TableVersion>, changed: Epoch) {
        let Some(table) = self.tables.get_mut(&id) else { return };
        let after = Arc::clone(version.definition());
        let before = std::mem::replace(&mut table.version, version);
        table.changed = changed;
        self.follow_references(id, Some(before.definition()), Some(&after));
    }

    /// Removes a table that no longer has a name.
    pub(super) fn remove_table(&mut self, id: TableId) {
        if let Some(removed) = self.tables.remove(&id) {
            self.follow_references(id, Some(removed.version.definition()), None);
        }
    }

    /// The tables whose foreign keys refer to a table, possibly including itself.
    pub fn children(&self, parent: TableId) -> &[TableId] {
        self.children.get(&parent).map_or(&[][..], |children| children)
    }

    /// The foreign keys that refer to a table, with their tables.
    pub fn references_to(
        &self,
        parent: TableId,
    ) -> impl Iterator<Item = (TableId, &Arc<TableVersion>, &ForeignKey)> {
        let children = self.children(parent).iter().filter_map(|id| Some((*id, self.table(*id)?)));
        children.flat_map(move |(id, table)| {
            let keys = table.definition().foreign_keys.iter();
            keys.filter(move |key| key.parent == parent).map(move |key| (id, table, key))
        })
    }

    /// Updates the parents named by a table's foreign keys when its definition changes.
    pub(super) fn follow_references(
        &mut self,
        child: TableId,
        before: Option<&Arc<TableDefinition>>,
        after: Option<&Arc<TableDefinition>>,
    ) {
        if let (Some(before), Some(after)) = (before, after)
            && Arc::ptr_eq(before, after)
        {
            return;
        }
        let parents = |definition: Option<&Arc<TableDefinition>>| -> BTreeSet<TableId> {
            let keys = definition.into_iter().flat_map(|it| &it.foreign_keys);
            keys.map(|key| key.parent).collect()
        };
        let (before, after) = (parents(before), parents(after));
        for parent in before.difference(&after) {
            let left = self.children(*parent).iter().copied().filter(|id| *id != child);
            let left: Arc<[TableId]> = left.collect();
            match left.is_empty() {
                true => drop(self.children.remove(parent)),
                false => drop(self.children.insert(*parent, left)),
            }
        }
        for parent in after.difference(&before) {
            let mut all = self.children(*parent).to_vec();
            all.push(child);
            all.sort_unstable();
            all.dedup();
            self.children.insert(*parent, all.into());
        }
        self.renew_definitions(child, before.union(&after).copied().collect());
    }

    /// Gives the ancestors of a redefined table new definitions, equal to the old ones:
    /// cached plans belong to a definition, and a change of an ancestor's rows may change rows of the table.
    fn renew_definitions(&mut self, child: TableId, mut ancestors: Vec<TableId>) {
        let mut seen = BTreeSet::from([child]);
        while let Some(id) = ancestors.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(table) = self.tables.get_mut(&id) else { continue };
            let definition = table.version.definition();
            ancestors.extend(definition.foreign_keys.iter().map(|key| key.parent));
            let same = Arc::new(definition.as_ref().clone());
            if let Ok(renewed) = table.version.with_definition(same) {
                table.version = Arc::new(renewed);
            }
        }
    }
}
