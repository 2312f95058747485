//! Prepared statements and portals: statements with their values.

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{PreparedStatement, QueryResult};
use std::sync::Arc;

use crate::copy::CopyStatement;

/// A statement that a client prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) kind: PreparedKind,
    /// Types of the parameters as the client knows them, by PostgreSQL's numbers.
    pub(super) types: Vec<u32>,
}

/// What a prepared text is.
#[derive(Debug)]
pub(super) enum PreparedKind {
    /// There is nothing in it.
    Empty,
    /// Rows to or from the client.
    Copy(CopyStatement),
    /// Anything else.
    Statement(PreparedStatement),
}

impl Prepared {
    /// The statement; none for a copy or an empty text.
    pub(super) fn statement(&self) -> Option<&PreparedStatement> {
        match &self.kind {
            PreparedKind::Statement(statement) => Some(statement),
            PreparedKind::Empty | PreparedKind::Copy(_) => None,
        }
    }
}

/// A statement with its values.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<ScalarValue>,
    /// The form of each column of the result.
    pub(super) formats: Vec<i16>,
    pub(super) state: PortalState,
}

/// How far a portal is.
#[derive(Debug)]
pub(super) enum PortalState {
    /// It has not begun.
    Bound,
    /// It gives rows; those of the last batch that are left.
    Running(Box<QueryResult>, Option<RecordBatch>),
    /// It has ended, or failed.
    Done,
}
