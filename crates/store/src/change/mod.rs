//! What one transaction does to a database, and the names and sequences that it speaks of: what the log holds of it.

mod catalog;
mod sequence;

use std::sync::Arc;

use crate::ids::{SequenceId, TableId};
use crate::table::{TableChange, TableDefinition};

pub(crate) use catalog::temporary_schema;
pub use catalog::{Relation, RelationName, StoredStatement, is_temporary_schema};
pub use sequence::{SequenceDefinition, SequenceState};

/// What one transaction does to a database. The steps are applied in their order: the rows of a table
/// before and after an ALTER TABLE have other columns, and rows that a new constraint forbids may have been
/// deleted just before it.
#[derive(Clone, Debug, Default)]
pub struct DatabaseChange {
    /// The steps, oldest first.
    pub steps: Vec<ChangeStep>,
}

/// A part of what a transaction does.
#[derive(Clone, Debug)]
pub enum ChangeStep {
    /// To names, definitions and what they stand for.
    Catalog(CatalogChange),
    /// To the rows of a table.
    Table(TableId, TableChange),
    /// Values of a sequence up to this one may have been given.
    Sequence(SequenceId, i64),
}

/// What a statement does to names, definitions and what they stand for.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// A schema without anything in it.
    CreateSchema {
        /// Its name.
        name: Arc<str>,
    },
    /// Removes a schema, which is empty.
    DropSchema {
        /// Its name.
        name: Arc<str>,
    },
    /// A table without rows.
    CreateTable {
        /// Its name.
        name: RelationName,
        /// Its number, which no table had before.
        id: TableId,
        /// What is declared of it.
        definition: Arc<TableDefinition>,
    },
    /// A view, in place of another one of that name.
    CreateView {
        /// Its name.
        name: RelationName,
        /// Its query.
        statement: Arc<StoredStatement>,
    },
    /// A table that is read from files.
    CreateExternal {
        /// Its name.
        name: RelationName,
        /// The statement that creates it.
        statement: Arc<StoredStatement>,
    },
    /// A sequence before its first value.
    CreateSequence {
        /// Its name.
        name: RelationName,
        /// Its number, which no sequence had before.
        id: SequenceId,
        /// How values follow each other.
        definition: Arc<SequenceDefinition>,
    },
    /// Removes a table, view, sequence or external table.
    Drop {
        /// Its name.
        name: RelationName,
    },
    /// Gives a table, view, sequence or external table another name.
    Rename {
        /// Its name so far.
        from: RelationName,
        /// Its name from then on.
        to: RelationName,
    },
    /// Declares other names of columns, defaults, constraints or placement of a table; other types only
    /// while it has no rows.
    SetDefinition {
        /// The table.
        table: TableId,
        /// What is declared of it from then on.
        definition: Arc<TableDefinition>,
    },
    /// `ALTER SEQUENCE`.
    SetSequence {
        /// The sequence.
        sequence: SequenceId,
        /// How values follow each other from then on.
        definition: Arc<SequenceDefinition>,
        /// Where it goes on: behind this value, or with the first one.
        last: Option<i64>,
    },
}

impl ChangeStep {
    /// Whether it is about what a session has for itself, of which neither the log nor a checkpoint tells.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Catalog(change) => change.is_temporary(),
            Self::Table(table, _) => table.is_temporary(),
            Self::Sequence(sequence, _) => sequence.is_temporary(),
        }
    }
}

impl CatalogChange {
    /// Whether it is about what a session has for itself.
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
    /// The steps that outlive their session: those that a record holds.
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

    /// Adds all of a later change.
    pub fn then(&mut self, later: Self) {
        match self.is_empty() {
            true => *self = later,
            false => later.steps.into_iter().for_each(|step| self.push(step)),
        }
    }

    /// The last change of a table, where no definition was changed since.
    fn last_change_of(&mut self, table: TableId) -> Option<&mut TableChange> {
        let is_rows = |step: &&mut ChangeStep| !matches!(step, ChangeStep::Catalog(_));
        self.steps.iter_mut().rev().take_while(is_rows).find_map(|step| match step {
            ChangeStep::Table(id, change) if *id == table => Some(change),
            _ => None,
        })
    }

    /// The tables that outlive their session and whose rows it changes; one may come several times.
    pub fn durable_tables(&self) -> impl Iterator<Item = (TableId, &TableChange)> {
        self.durable_steps().filter_map(|step| match step {
            ChangeStep::Table(table, change) => Some((*table, change)),
            _ => None,
        })
    }
}
