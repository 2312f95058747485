//! SQL over tables with NUMA-aware memory placement.
//!
//! This crate owns the database and its sessions: the catalog, writable tables, roles, shared scans, `pg_catalog` and
//! the knowledge base as tables. Parser, semantics, operators and files are separate crates (`sql-parse`,
//! `sql-semantics`, `sql-exec`, `sql-files`, on `sql-common`); other crates take what they need of them, and of Arrow,
//! from here.
//!
//! Modules import only from lower layers:
//!
//! ```text
//! session                                        statements, from their text to their result
//! system  pg_catalog  session_functions          what a session can read and call
//! catalog  statement_handle  shared_scan         what names mean; passes that many queries share
//! table  role  usage                             rows that are written; rights
//! database                                       what sessions share
//! client_settings  activity  compiled            settings and sessions of clients; statements that are kept
//! shared_transaction                             what all of them use
//! advisory  notifications  table_text            locks and notifications of clients; texts of definitions
//! ```

pub mod activity;
mod advisory;
mod catalog;
mod client_settings;
mod compiled;
mod database;
mod notifications;
mod pg_catalog;
mod role;
mod session;
mod session_functions;
mod shared_scan;
mod shared_transaction;
mod statement_handle;
mod system;
mod table;
mod table_text;
pub mod tpch;
mod usage;

pub use atoll_functions::{
    ArrayItem, EncodingError, FunctionFailure, NetworkType, RangeBound, RangeForm, RangeNumber,
    RangePoint, RangeSet, RangeType, TextDecoder, TextEncoding, canonical_jsonb, canonical_timetz,
    canonical_uuid, is_array_item_quoted, nested_array_items, temporal, without_exponent,
};
pub use atoll_sql_common::error::{
    SourcePosition, SqlError, SqlState, ViolatedConstraint, value_message,
};
pub use atoll_sql_common::extensions::Extensions;
pub use atoll_sql_common::pg_type::{PgType, format_type, is_of_users, sql_type, type_oid};
pub use atoll_sql_common::settings::{AggregateMethod, AtollOptions, ColumnNames, JoinMethod};
pub use atoll_sql_exec::group::GroupExec;
pub use atoll_sql_exec::scan::ScanProgress;
pub use atoll_sql_exec::trace::{OperatorSteps, StatementSteps};
pub use atoll_sql_exec::watch::{StatementFigures, StatementWait, StatementWatch, WaitGuard};
pub use atoll_sql_files::{CsvForm, unescaped};
pub use atoll_sql_parse::dialect::column_type;
pub use atoll_sql_parse::parse::{copies_from_stdin, copy_from_file, copy_to_file};
pub use atoll_sql_parse::syntax::{
    begins_with, is_at_end, is_word, next_name, next_word, offset, parser_of, split_first_word,
    within_parentheses,
};
pub use atoll_sql_semantics::arithmetic::{
    is_ambiguous as is_ambiguous_within, quoted as quoted_within,
};
pub use atoll_store as store;
pub use client_settings::POSTGRESQL_VERSION;
pub use database::{Database, DatabaseOptions};
pub use datafusion;
pub use datafusion::arrow;
pub use notifications::Notification;
pub use pg_catalog::shown_function;
pub use role::{Identity, Role, ScramVerifier};
pub use session::{
    ColumnOrigin, ColumnOrigins, DeclaredType, KeptRows, PlannedQuery, PlanningTimes,
    PreparedStatement, QueryResult, Session, Splitter, Statement, TransactionState,
    split_statements,
};
pub use usage::DatabaseUsage;
