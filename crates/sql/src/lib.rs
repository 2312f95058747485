//! SQL over tables whose memory has a home.
//!
//! This crate owns the SQL engine: DataFusion with tables in placed memory ([`Session`]), the scan
//! that reads them, the exchange that keeps work at its home, Atoll's aggregates and optimizer
//! rules, and the knowledge base as tables. It is a crate of its own because it is the only library
//! that names DataFusion and Arrow; what others need of Arrow they take from [`arrow`].

pub mod activity;
mod admission;
mod arithmetic;
mod catalog;
mod database;
mod dialect;
mod error;
mod exchange;
mod files;
mod float;
mod functions;
mod group;
mod join;
mod lab;
mod logical;
mod memory;
mod operator;
mod parse;
mod pg_catalog;
mod pg_type;
mod rewrite;
mod role;
mod rules;
mod sample;
mod scan;
mod session;
mod settings;
mod shared_scan;
mod sql_to_plan;
mod system;
mod table;
mod task;
mod timezone;
pub mod tpch;
mod trace;
mod type_resolution;
mod volatile;
mod watch;

pub use arithmetic::{is_ambiguous as is_ambiguous_within, quoted as quoted_within};
pub use atoll_functions::{array_items, canonical_jsonb, canonical_uuid, temporal};
pub use atoll_store as store;
pub use database::{Database, DatabaseOptions, DatabaseUsage};
pub use datafusion;
pub use datafusion::arrow;
pub use dialect::column_type;
pub use error::{SourcePosition, SqlError, SqlState, ViolatedConstraint, value_message};
pub use files::{CsvForm, unescaped};
pub use group::GroupExec;
pub use parse::{begins_with, copies_from_stdin, copy_from_file, copy_to_file, split_first_word};
pub use pg_type::{PgType, sql_type, type_oid};
pub use role::{Identity, Role, ScramVerifier};
pub use scan::ScanProgress;
pub use session::{
    ColumnOrigin, ColumnOrigins, POSTGRESQL_VERSION, PlannedQuery, PlanningTimes,
    PreparedStatement, QueryResult, Session, Splitter, Statement, TransactionState,
    split_statements,
};
pub use settings::{AggregateMethod, AtollOptions, ColumnNames, JoinMethod};
pub use trace::{OperatorSteps, StatementSteps};
pub use watch::{StatementFigures, StatementWait, StatementWatch, WaitGuard};
