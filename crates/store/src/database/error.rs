//! Why a transaction cannot continue, in PostgreSQL's words and with its codes.

use std::sync::Arc;

use super::apply::ApplyError;
use super::prepared::PreparedError;
use crate::lock::{Deadlock, LockTarget};
use crate::log::LogError;
use crate::record::RecordError;
use crate::table::TableError;

/// Why a statement was refused, or a transaction ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransactionError {
    /// The request would have closed a cycle of transactions that wait for each other.
    #[error("deadlock detected")]
    Deadlock {
        /// Which transaction waits for which.
        circle: Deadlock,
        /// The same as text.
        detail: String,
    },
    /// A repeatable read would have changed what another transaction changed since it began.
    #[error("could not serialize access due to concurrent {0}")]
    Serialization(ConcurrentChange),
    /// A serializable transaction read what another transaction changed since.
    #[error("could not serialize access due to read/write dependencies among transactions")]
    ReadChanged,
    /// A key that already exists.
    #[error("duplicate key value violates unique constraint \"{constraint}\"")]
    UniqueViolation {
        /// The schema of its table.
        schema: String,
        /// The table.
        table: String,
        /// The constraint.
        constraint: String,
        /// Which key, as `(columns)=(values)`.
        key: String,
    },
    /// A row that refers to no other row, or that is still referred to.
    #[error(transparent)]
    ForeignKey(Box<ForeignKeyViolation>),
    /// A row that a referential action changed is refused; what carries out actions knows why.
    #[error("a row changed by a foreign key's action was refused")]
    ActionRefused,
    /// Two parts of a statement change the same row.
    #[error(
        "cannot change a row of \"{table}\" a second time within a statement; another part of it has changed the row"
    )]
    ChangedTwice {
        /// The table.
        table: String,
    },
    /// A table that foreign keys of other tables refer to.
    #[error("cannot drop table {table} because other objects depend on it")]
    StillReferenced {
        /// The table.
        table: String,
        /// The foreign key.
        constraint: String,
        /// Its table.
        child: String,
    },
    /// A table is altered while checks of its constraints are deferred.
    #[error("cannot ALTER TABLE \"{table}\" because it has pending trigger events")]
    PendingChecks {
        /// The table.
        table: String,
    },
    /// SET CONSTRAINTS for a constraint that cannot be deferred.
    #[error("constraint \"{name}\" is not deferrable")]
    NotDeferrable {
        /// Its name.
        name: String,
    },
    /// SET CONSTRAINTS for a constraint that does not exist.
    #[error("constraint \"{name}\" does not exist")]
    UndefinedConstraint {
        /// Its name.
        name: String,
    },
    /// `NOWAIT`, and another transaction holds the lock.
    #[error("could not obtain lock on {what}")]
    LockNotAvailable {
        /// The row or table.
        what: String,
    },
    /// Another transaction held the lock for longer than the lock timeout.
    #[error("canceling statement due to lock timeout: {what} is locked by another transaction")]
    LockTimeout {
        /// The row or table.
        what: String,
    },
    /// A change within `BEGIN READ ONLY`.
    #[error("cannot execute {statement} in a read-only transaction")]
    ReadOnly {
        /// The refused statement.
        statement: String,
    },
    /// The table, view or sequence was dropped or never existed.
    #[error("relation \"{name}\" does not exist")]
    UndefinedRelation {
        /// Its name.
        name: String,
    },
    /// The name is in use.
    #[error("relation \"{name}\" already exists")]
    DuplicateRelation {
        /// The name.
        name: String,
    },
    /// The schema was dropped or never existed.
    #[error("schema \"{name}\" does not exist")]
    UndefinedSchema {
        /// Its name.
        name: String,
    },
    /// The name of the schema is in use.
    #[error("schema \"{name}\" already exists")]
    DuplicateSchema {
        /// The name.
        name: String,
    },
    /// A schema that is not empty.
    #[error("cannot drop schema {schema} because other objects depend on it")]
    SchemaNotEmpty {
        /// The schema.
        schema: String,
        /// Something in it.
        object: String,
    },
    /// `ROLLBACK TO` or `RELEASE` of a savepoint that does not exist.
    #[error("savepoint \"{name}\" does not exist")]
    UndefinedSavepoint {
        /// Its name.
        name: String,
    },
    /// A sequence that has reached its limit.
    #[error("nextval: reached {end} value of sequence \"{name}\" ({limit})")]
    SequenceEnded {
        /// Its name.
        name: String,
        /// `maximum` or `minimum`.
        end: &'static str,
        /// The limit.
        limit: i64,
    },
    /// A statement of two-phase commit.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// Durability is switched back on, which needs a checkpoint first.
    #[error(
        "durability cannot be switched back on before a checkpoint has saved the unlogged changes"
    )]
    CheckpointFirst,
    /// The log refused the record, or stopped.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The change cannot be encoded as a record.
    #[error("{0}")]
    Record(Arc<RecordError>),
    /// The change could not be applied.
    #[error("{0}")]
    Apply(Arc<ApplyError>),
}

/// How a foreign key would have been violated, in PostgreSQL's words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} on table \"{changed}\" violates foreign key constraint \"{constraint}\"{on}", .fault.statement())]
pub struct ForeignKeyViolation {
    /// What is wrong.
    pub fault: ReferenceFault,
    /// The schema of the table that has the constraint.
    pub schema: String,
    /// The table that has the constraint.
    pub table: String,
    /// The constraint.
    pub constraint: String,
    /// The table whose change is refused.
    pub changed: String,
    /// The table that has the constraint, appended to the message if it is not the changed one.
    pub on: String,
    /// Details about the key.
    pub detail: String,
}

/// The violation of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceFault {
    /// A row refers to a key that does not exist, or is NULL in part under MATCH FULL.
    NoParent,
    /// A removed key is still referred to.
    HasChildren,
}

impl ReferenceFault {
    fn statement(self) -> &'static str {
        match self {
            Self::NoParent => "insert or update",
            Self::HasChildren => "update or delete",
        }
    }
}

/// The concurrent change of another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrentChange {
    /// Gave the row other values, or the table another definition.
    Update,
    /// Removed the row.
    Delete,
}

impl std::fmt::Display for ConcurrentChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}

impl From<ApplyError> for TransactionError {
    fn from(error: ApplyError) -> Self {
        Self::Apply(Arc::new(error))
    }
}

impl From<RecordError> for TransactionError {
    fn from(error: RecordError) -> Self {
        Self::Record(Arc::new(error))
    }
}

impl From<TableError> for TransactionError {
    fn from(error: TableError) -> Self {
        ApplyError::Table(error).into()
    }
}

impl TransactionError {
    /// The SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Deadlock { .. } => "40P01",
            Self::Serialization(_) | Self::ReadChanged => "40001",
            Self::UniqueViolation { .. } => "23505",
            Self::ForeignKey(_) => "23503",
            Self::ActionRefused => "XX000",
            Self::ChangedTwice { .. } => "21000",
            Self::StillReferenced { .. } => "2BP01",
            Self::PendingChecks { .. } => "55006",
            Self::NotDeferrable { .. } => "42809",
            Self::UndefinedConstraint { .. } => "42704",
            Self::LockNotAvailable { .. } | Self::LockTimeout { .. } => "55P03",
            Self::ReadOnly { .. } => "25006",
            Self::UndefinedRelation { .. } => "42P01",
            Self::DuplicateRelation { .. } => "42P07",
            Self::UndefinedSchema { .. } => "3F000",
            Self::DuplicateSchema { .. } => "42P06",
            Self::SchemaNotEmpty { .. } => "2BP01",
            Self::UndefinedSavepoint { .. } => "3B001",
            Self::SequenceEnded { .. } => "2200H",
            Self::Prepared(error) => error.sqlstate(),
            Self::CheckpointFirst => "55000",
            Self::Log(LogError::NoSpace(_)) => "53100",
            Self::Log(LogError::TooLarge { .. }) => "54000",
            Self::Log(_) => "58030",
            Self::Record(error) => match &**error {
                RecordError::Type(_) => "0A000",
                _ => "XX000",
            },
            Self::Apply(error) => match &**error {
                ApplyError::Misfit(_) => "XX000",
                ApplyError::Table(error) => table_sqlstate(error),
            },
        }
    }

    /// The message, in one line.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The details, if any.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Deadlock { detail, .. } => Some(detail.clone()),
            Self::UniqueViolation { key, .. } => Some(format!("Key {key} already exists.")),
            Self::ForeignKey(violation) => Some(violation.detail.clone()),
            Self::StillReferenced { table, constraint, child } => {
                Some(format!("constraint {constraint} on table {child} depends on table {table}"))
            }
            Self::SchemaNotEmpty { schema, object } => {
                Some(format!("{object} depends on schema {schema}"))
            }
            _ => None,
        }
    }

    /// The hint, if any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Deadlock { .. } | Self::Serialization(_) => Some("Repeat the transaction."),
            Self::ReadChanged => Some("The transaction might succeed if retried."),
            Self::SchemaNotEmpty { .. } | Self::StillReferenced { .. } => {
                Some("Use DROP ... CASCADE to drop the dependent objects too.")
            }
            Self::Log(LogError::NoSpace(_)) => {
                Some("Free space on that disk and repeat the change.")
            }
            Self::Prepared(error) => error.hint(),
            Self::CheckpointFirst => Some("Make a checkpoint while commits are paused."),
            _ => None,
        }
    }
}

fn table_sqlstate(error: &TableError) -> &'static str {
    match error {
        TableError::Values(_) => "22000",
        TableError::Memory(_) => "53200",
        TableError::Null { .. } => "23502",
        TableError::Duplicate { .. } => "23505",
        TableError::Unsupported { .. } => "0A000",
        TableError::NoHome(_) => "55000",
        TableError::DamagedRow { .. } | TableError::Misfit { .. } => "XX000",
    }
}

/// A lock as messages name it; `name` gives the name of a table.
pub(super) fn describe_lock(
    target: &LockTarget,
    name: impl Fn(crate::TableId) -> String,
) -> String {
    match target {
        LockTarget::Commits => "the order of commits".to_owned(),
        LockTarget::Name(_) => "a name in the catalog".to_owned(),
        LockTarget::Sequence(id) | LockTarget::SequenceAhead(id) => format!("sequence {id}"),
        LockTarget::Table(table) => format!("relation \"{}\"", name(*table)),
        LockTarget::Key { table, .. } => format!("a key in relation \"{}\"", name(*table)),
        LockTarget::Row(table, _) => format!("row in relation \"{}\"", name(*table)),
    }
}

/// Which transaction waits for which, one line each.
pub(super) fn describe_circle(
    circle: &Deadlock,
    name: impl Fn(crate::TableId) -> String,
) -> String {
    let circle = &circle.circle;
    let line = |at: usize| {
        let (waiter, target) = &circle[at];
        let (holder, _) = &circle[(at + 1) % circle.len()];
        let what = describe_lock(target, &name);
        format!("Transaction {waiter} waits for {what}; blocked by transaction {holder}.")
    };
    (0..circle.len()).map(line).collect::<Vec<_>>().join("\n")
}
