//! The version of a database after a change. Only checks that the change fits: conflicts and constraints
//! were checked before.

use std::sync::Arc;

use super::version::{DatabaseVersion, StoreEnvironment, StoredTable};
use crate::change::SequenceState;
use crate::change::{CatalogChange, ChangeStep, DatabaseChange, PreparedTransaction};
use crate::change::{Relation, RelationName};
use crate::ids::{Epoch, SequenceId, TableId};
use crate::table::{Destination, TableDefinition, TableError, TableVersion};
use crate::workers::Workers;

/// Why a change was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The change does not belong to this version of the database: a bug or damage.
    #[error("a change does not fit the database: {0}")]
    Misfit(String),
    /// A change that cannot be applied to a table.
    #[error(transparent)]
    Table(#[from] TableError),
}

type Result<T> = std::result::Result<T, ApplyError>;

fn misfit<T>(problem: String) -> Result<T> {
    Err(ApplyError::Misfit(problem))
}

fn no_table<T>(id: TableId) -> Result<T> {
    misfit(format!("table {id} does not exist"))
}

impl DatabaseVersion {
    /// The version after a change, with the epoch and position of this one.
    pub fn apply(&self, change: &DatabaseChange, environment: &StoreEnvironment) -> Result<Self> {
        let mut next = self.clone();
        change.steps.iter().try_for_each(|step| next.apply_step(step, environment))?;
        Ok(next)
    }

    /// Applies a change in place; the version is unusable if that fails. Workers prepare the keys of new chunks.
    pub(crate) fn apply_in_place(
        &mut self,
        change: &mut DatabaseChange,
        environment: &StoreEnvironment,
        workers: &dyn Workers,
    ) -> Result<()> {
        for step in &mut change.steps {
            if let ChangeStep::Table(id, change) = step {
                self.stored(*id)?.version.ready_keys(change, workers)?;
            }
            self.apply_step(step, environment)?;
        }
        Ok(())
    }

    pub(super) fn next_epoch(&self) -> Epoch {
        Epoch::new(self.epoch.get() + 1)
    }

    pub(super) fn apply_step(
        &mut self,
        step: &ChangeStep,
        environment: &StoreEnvironment,
    ) -> Result<()> {
        match step {
            ChangeStep::Catalog(change) => self.apply_catalog(change, environment),
            ChangeStep::Table(id, change) => {
                let epoch = self.next_epoch();
                let Some(table) = self.tables.get_mut(id) else { return no_table(*id) };
                match Arc::get_mut(&mut table.version) {
                    // No other version of the database has it.
                    Some(version) => version.apply_in_place(change)?,
                    None => table.version = Arc::new(table.version.apply(change)?),
                }
                table.changed = epoch;
                Ok(())
            }
            ChangeStep::Prepare(name, prepared) => {
                self.reserve_ids(&prepared.change);
                match self.prepared.insert(Arc::clone(name), Arc::clone(prepared)) {
                    Some(_) => misfit(format!("transaction {name} is already prepared")),
                    None => Ok(()),
                }
            }
            ChangeStep::EndPrepared { name, commits } => {
                let prepared = self.forget_prepared(name)?;
                let steps = if *commits { prepared.change.steps.as_slice() } else { &[] };
                steps.iter().try_for_each(|step| self.apply_step(step, environment))
            }
            ChangeStep::Sequence(id, last) => {
                let state = SequenceState { last: Some(*last), ..self.state(*id)?.clone() };
                self.sequences.insert(*id, Arc::new(state));
                Ok(())
            }
        }
    }

    /// Removes a prepared transaction.
    pub(super) fn forget_prepared(&mut self, name: &str) -> Result<Arc<PreparedTransaction>> {
        let prepared = self.prepared.remove(name);
        let missing = || ApplyError::Misfit(format!("transaction {name} is not prepared"));
        prepared.ok_or_else(missing)
    }

    /// Keeps others from giving the ids that a prepared transaction has given.
    fn reserve_ids(&mut self, change: &DatabaseChange) {
        for step in &change.steps {
            match step {
                ChangeStep::Catalog(CatalogChange::CreateTable { id, .. }) => {
                    self.next_table = self.next_table.max(TableId::new(id.get() + 1));
                }
                ChangeStep::Catalog(CatalogChange::CreateSequence { id, .. }) => {
                    self.next_sequence = self.next_sequence.max(SequenceId::new(id.get() + 1));
                }
                ChangeStep::Table(id, change) => {
                    if let (Some(table), Some(last)) = (self.table(*id), change.last_new_row()) {
                        table.raise_next_row_id(last.next());
                    }
                }
                _ => {}
            }
        }
    }

    fn stored(&self, id: TableId) -> Result<&StoredTable> {
        self.tables.get(&id).map_or_else(|| no_table(id), Ok)
    }

    fn state(&self, id: SequenceId) -> Result<&SequenceState> {
        let state = self.sequences.get(&id).map(|state| &**state);
        state.ok_or_else(|| ApplyError::Misfit(format!("sequence {id} does not exist")))
    }

    fn apply_catalog(
        &mut self,
        change: &CatalogChange,
        environment: &StoreEnvironment,
    ) -> Result<()> {
        match change {
            CatalogChange::CreateSchema { name } => match self.schemas.insert(Arc::clone(name)) {
                Some(_) => misfit(format!("schema {name} already exists")),
                None => Ok(()),
            },
            CatalogChange::DropSchema { name } => self.drop_schema(name),
            CatalogChange::CreateTable { name, id, definition } => {
                self.create_table(name, *id, definition, environment)
            }
            CatalogChange::CreateView { name, statement } => {
                if let Some(Relation::View(_)) = self.relation(name) {
                    self.relations.remove(name);
                }
                self.name(name, Relation::View(Arc::clone(statement)))
            }
            CatalogChange::CreateExternal { name, statement } => {
                self.name(name, Relation::External(Arc::clone(statement)))
            }
            CatalogChange::CreateSequence { name, id, definition } => {
                let state = Arc::new(SequenceState::new(Arc::clone(definition)));
                if self.sequences.insert(*id, state).is_some() {
                    return misfit(format!("sequence {id} already exists"));
                }
                if !id.is_temporary() {
                    self.next_sequence = self.next_sequence.max(SequenceId::new(id.get() + 1));
                }
                self.name(name, Relation::Sequence(*id))
            }
            CatalogChange::Drop { name } => self.remove(name).map(drop),
            CatalogChange::Rename { from, to } => self.rename(from, to),
            CatalogChange::SetDefinition { table, definition } => {
                let changed =
                    self.stored(*table)?.version.with_definition(Arc::clone(definition))?;
                self.set_table(*table, Arc::new(changed), self.next_epoch());
                Ok(())
            }
            CatalogChange::SetSequence { sequence, definition, last } => {
                let generation = self.state(*sequence)?.generation + 1;
                let definition = Arc::clone(definition);
                let state = SequenceState { definition, last: *last, generation };
                self.sequences.insert(*sequence, Arc::new(state));
                Ok(())
            }
        }
    }

    fn drop_schema(&mut self, name: &str) -> Result<()> {
        if let Some((relation, _)) = self.relations_of(name).next() {
            return misfit(format!("schema {name} is dropped and has {relation}"));
        }
        match self.schemas.remove(name) {
            Some(_) => Ok(()),
            None => misfit(format!("schema {name} does not exist")),
        }
    }

    fn create_table(
        &mut self,
        name: &RelationName,
        id: TableId,
        definition: &Arc<TableDefinition>,
        environment: &StoreEnvironment,
    ) -> Result<()> {
        let destination = Destination {
            machine: Arc::clone(&environment.machine),
            arena: environment.arena.clone(),
            strategy: definition.placement,
        };
        let version =
            TableVersion::new(Arc::clone(&name.name), Arc::clone(definition), destination)?;
        let changed = self.next_epoch();
        let table = StoredTable { name: name.clone(), version: Arc::new(version), changed };
        if self.tables.insert(id, table).is_some() {
            return misfit(format!("table {id} already exists"));
        }
        self.follow_references(id, None, Some(definition));
        if !id.is_temporary() {
            self.next_table = self.next_table.max(TableId::new(id.get() + 1));
        }
        self.name(name, Relation::Table(id))
    }

    fn name(&mut self, name: &RelationName, relation: Relation) -> Result<()> {
        if !self.has_schema(&name.schema) {
            return misfit(format!("schema {} does not exist", name.schema));
        }
        match self.relations.insert(name.clone(), relation) {
            Some(before) => misfit(format!("{name} is the name of a {}", before.kind())),
            None => Ok(()),
        }
    }

    /// Removes a name with its object.
    fn remove(&mut self, name: &RelationName) -> Result<Relation> {
        let Some(relation) = self.relations.remove(name) else {
            return misfit(format!("{name} does not exist"));
        };
        match &relation {
            Relation::Table(id) => self.remove_table(*id),
            Relation::Sequence(id) => drop(self.sequences.remove(id)),
            Relation::View(_) | Relation::External(_) => {}
        }
        Ok(relation)
    }

    fn rename(&mut self, from: &RelationName, to: &RelationName) -> Result<()> {
        let Some(relation) = self.relations.remove(from) else {
            return misfit(format!("{from} does not exist"));
        };
        if let Relation::Table(id) = relation {
            let version = self.stored(id)?.version.with_name(Arc::clone(&to.name));
            let (version, changed) = (Arc::new(version), self.next_epoch());
            self.tables.insert(id, StoredTable { name: to.clone(), version, changed });
        }
        self.name(to, relation)
    }
}
