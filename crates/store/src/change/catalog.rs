//! The names of a database and the objects that they refer to.

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
    /// The name in this schema.
    pub fn new(schema: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

/// Prefix of the schemas of sessions; the session's number follows.
const TEMPORARY_SCHEMA: &str = "pg_temp_";

/// The name of the schema of one session's temporary objects.
pub(crate) fn temporary_schema(number: u64) -> Arc<str> {
    format!("{TEMPORARY_SCHEMA}{number}").into()
}

/// Whether a schema belongs to a session and ends with it.
pub fn is_temporary_schema(name: &str) -> bool {
    name.starts_with(TEMPORARY_SCHEMA)
}

impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The object that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A table.
    Table(TableId),
    /// A query that is planned anew by each statement that reads it.
    View(Arc<StoredStatement>),
    /// A sequence of numbers.
    Sequence(SequenceId),
    /// A table read from files, with the statement that created it.
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

/// A statement that is planned again when it is needed, with the settings that give its text meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStatement {
    /// The text.
    pub sql: Arc<str>,
    /// The schema of unqualified names.
    pub schema: Arc<str>,
    /// Settings of the parser under which it was written.
    pub options: Arc<str>,
}
