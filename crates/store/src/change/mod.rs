//! The changes of a transaction, with the names and sequences that they refer to, as the log holds them.

mod catalog;
mod prepared;
mod sequence;

use std::sync::Arc;

use crate::ids::{SequenceId, TableId};
use crate::table::{TableChange, TableDefinition};

pub(crate) use catalog::temporary_schema;
pub use catalog::{Relation, RelationName, StoredStatement, is_temporary_schema};
pub use prepared::{KeptLock, PreparedTransaction};
pub use sequence::{SequenceDefinition, SequenceState};

/// The changes of one transaction. The steps are applied in order: the rows of a table
/// before and after an ALTER TABLE have different columns, and rows that a new constraint forbids may have been
/// deleted just before it.
#[derive(Clone, Debug, Default)]
pub struct DatabaseChange {
    /// The steps, oldest first.
    pub steps: Vec<ChangeStep>,
}

/// A step of a transaction.
#[derive(Clone, Debug)]
pub enum ChangeStep {
    /// Changes names, definitions or the objects that names refer to.
    Catalog(CatalogChange),
    /// Changes the rows of a table.
    Table(TableId, TableChange),
    /// Values of a sequence up to this one may have been given.
    Sequence(SequenceId, i64),
    /// `PREPARE TRANSACTION` under this name.
    Prepare(Arc<str>, Arc<PreparedTransaction>),
    /// `COMMIT PREPARED`, which applies the changes of the transaction, or `ROLLBACK PREPARED`.
    EndPrepared {
        /// Its name.
        name: Arc<str>,
        /// Whether it commits.
        commits: bool,
    },
}

/// A change of names, definitions or the objects that names refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// Creates an empty schema.
    CreateSchema {
        /// Its name.
        name: Arc<str>,
    },
    /// Removes an empty schema.
    DropSchema {
        /// Its name.
        name: Arc<str>,
    },
    /// Creates an empty table.
    CreateTable {
        /// Its name.
        name: RelationName,
        /// Its number, never used by another table.
        id: TableId,
        /// Its definition.
        definition: Arc<TableDefinition>,
    },
    /// Creates a view or replaces one with the same name.
    CreateView {
        /// Its name.
        name: RelationName,
        /// Its query.
        statement: Arc<StoredStatement>,
    },
    /// Creates a table that is read from files.
    CreateExternal {
        /// Its name.
        name: RelationName,
        /// The statement that creates it.
        statement: Arc<StoredStatement>,
    },
    /// Creates a sequence.
    CreateSequence {
        /// Its name.
        name: RelationName,
        /// Its number, never used by another sequence.
        id: SequenceId,
        /// How values follow each other.
        definition: Arc<SequenceDefinition>,
    },
    /// Removes a table, view, sequence or external table.
    Drop {
        /// Its name.
        name: RelationName,
    },
    /// Renames a table, view, sequence or external table.
    Rename {
        /// Its old name.
        from: RelationName,
        /// Its new name.
        to: RelationName,
    },
    /// Changes names of columns, defaults, constraints or placement of a table; types may change
    /// only while it has no rows.
    SetDefinition {
        /// The table.
        table: TableId,
        /// Its new definition.
        definition: Arc<TableDefinition>,
    },
    /// `ALTER SEQUENCE`.
    SetSequence {
        /// The sequence.
        sequence: SequenceId,
        /// How values follow each other from now on.
        definition: Arc<SequenceDefinition>,
        /// Where it continues: after this value, or at the first one.
        last: Option<i64>,
    },
}

impl ChangeStep {
    /// Whether it changes objects of a session, which neither the log nor a checkpoint contains.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Catalog(change) => change.is_temporary(),
            Self::Table(table, _) => table.is_temporary(),
            Self::Sequence(sequence, _) => sequence.is_temporary(),
            Self::Prepare(..) | Self::EndPrepared { .. } => false,
        }
    }
}

impl CatalogChange {
    /// Whether it changes objects of a session.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::CreateSchema { name } | Self::DropSchema { name } => is_temporary_schema(name),
            Self::CreateTable { name, .. }
            | Self::CreateView { name, .. }
            | Self::CreateExternal { name, .. }
            | Self::CreateSequence { name, .. }
            | Self::Drop { name }
            | Self::Rename { from: name, .. } => is_temporary_schema(&name.schema),
            Self::SetDefinition { table, .. } => table.is_temporary(),
            Self::SetSequence { sequence, .. } => sequence.is_temporary(),
        }
    }
}

impl DatabaseChange {
    /// The steps that outlive their session and go into a record.
    pub fn durable_steps(&self) -> impl Iterator<Item = &ChangeStep> {
        self.steps.iter().filter(|step| !step.is_temporary())
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a step to what was done before.
    pub fn push(&mut self, step: ChangeStep) {
        let ChangeStep::Table(table, change) = step else { return self.steps.push(step) };
        match self.last_change_of(table) {
            Some(before) => before.then(change),
            None => self.steps.push(ChangeStep::Table(table, change)),
        }
    }

    /// Adds a later change.
    pub fn then(&mut self, later: Self) {
        match self.is_empty() {
            true => *self = later,
            false => later.steps.into_iter().for_each(|step| self.push(step)),
        }
    }

    /// The last change of a table, unless a definition was changed since.
    fn last_change_of(&mut self, table: TableId) -> Option<&mut TableChange> {
        let is_rows = |step: &&mut ChangeStep| !matches!(step, ChangeStep::Catalog(_));
        self.steps.iter_mut().rev().take_while(is_rows).find_map(|step| match step {
            ChangeStep::Table(id, change) if *id == table => Some(change),
            _ => None,
        })
    }

    /// The tables that outlive their session and whose rows it changes, now or when a transaction that it prepares
    /// commits; a table may occur several times.
    pub fn durable_tables(&self) -> impl Iterator<Item = (TableId, &TableChange)> {
        let steps = self.durable_steps().flat_map(|step| match step {
            ChangeStep::Prepare(_, prepared) => prepared.change.steps.as_slice(),
            step => std::slice::from_ref(step),
        });
        steps.filter_map(|step| match step {
            ChangeStep::Table(table, change) => Some((*table, change)),
            _ => None,
        })
    }
}
