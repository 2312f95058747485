//! What names of a database stand for.

use std::fmt;
use std::sync::Arc;

use crate::ids::{SequenceId, TableId};

/// The name of a table, view, sequence or external table: these share one space of names in a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationName {
    /// The schema.
    pub schema: Arc<str>,
    /// The name in it.
    pub name: Arc<str>,
}

impl RelationName {
    /// This name in this schema.
    pub fn new(schema: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

/// Before a number, the name of a schema with what one session has for itself.
const TEMPORARY_SCHEMA: &str = "pg_temp_";

/// The name of the schema that holds what one session has for itself.
pub(crate) fn temporary_schema(number: u64) -> Arc<str> {
    format!("{TEMPORARY_SCHEMA}{number}").into()
}

/// Whether a schema is of a session, and ends with it.
pub fn is_temporary_schema(name: &str) -> bool {
    name.starts_with(TEMPORARY_SCHEMA)
}

impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A table.
    Table(TableId),
    /// A query that each statement that reads it plans anew.
    View(Arc<StoredStatement>),
    /// A sequence of numbers.
    Sequence(SequenceId),
    /// A table that is read from files, by the statement that created it.
    External(Arc<StoredStatement>),
}

impl Relation {
    /// Its kind, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => "table",
            Self::View(_) => "view",
            Self::Sequence(_) => "sequence",
            Self::External(_) => "external table",
        }
    }
}

/// A statement that is planned again when it is needed, and what its text means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStatement {
    /// The text.
    pub sql: Arc<str>,
    /// The schema of names in it that are written without one.
    pub schema: Arc<str>,
    /// Settings of the parser that it was written under.
    pub options: Arc<str>,
}
