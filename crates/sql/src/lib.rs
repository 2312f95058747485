//! SQL over tables whose memory has a home.
//!
//! This crate owns the SQL engine: DataFusion with tables in placed memory ([`Session`]), the scan
//! that reads them, the exchange that keeps work at its home, Atoll's aggregates and optimizer
//! rules, and the knowledge base as tables. It is a crate of its own because it is the only library
//! that names DataFusion and Arrow; what others need of Arrow they take from [`arrow`].
//!
//! Modules import those of lower floors only:
//!
//! ```text
//! session                                            statements, from their text to their result
//! system  pg_catalog  session_functions              what a session can read and call
//! catalog  statement_handle  shared_scan  rules      what names mean; passes that many queries share
//! table  role  usage  files                          rows that are written; rights; readers and writers of files
//! database                                           what sessions share
//! sql_to_plan  rewrite  client_settings  activity    from a syntax tree to a plan; who is connected
//! parse  type_resolution  volatile  compiled  watch  statements; values of statements that are kept
//! dialect  arithmetic  scan  exchange  group  join   what people type; operators
//! names  syntax  error  settings  operator  memory   what all of them use
//! ```

pub mod activity;
mod admission;
mod advisory;
mod arithmetic;
mod catalog;
mod client_settings;
mod compiled;
mod database;
mod dialect;
mod error;
mod exchange;
mod extensions;
mod files;
mod float;
mod functions;
mod group;
mod join;
mod lab;
mod logical;
mod memory;
mod names;
mod offload;
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
mod session_functions;
mod settings;
mod shared_scan;
mod shared_transaction;
mod sql_to_plan;
mod statement_handle;
mod syntax;
mod system;
mod table;
mod table_text;
mod task;
mod timezone;
pub mod tpch;
mod trace;
mod type_resolution;
mod usage;
mod volatile;
mod watch;

pub use arithmetic::{is_ambiguous as is_ambiguous_within, quoted as quoted_within};
pub use atoll_functions::{array_items, canonical_jsonb, canonical_uuid, temporal};
pub use atoll_store as store;
pub use client_settings::POSTGRESQL_VERSION;
pub use database::{Database, DatabaseOptions};
pub use datafusion;
pub use datafusion::arrow;
pub use dialect::column_type;
pub use error::{SourcePosition, SqlError, SqlState, ViolatedConstraint, value_message};
pub use files::{CsvForm, unescaped};
pub use group::GroupExec;
pub use parse::{copies_from_stdin, copy_from_file, copy_to_file};
pub use pg_type::{PgType, sql_type, type_oid};
pub use role::{Identity, Role, ScramVerifier};
pub use scan::ScanProgress;
pub use session::{
    ColumnOrigin, ColumnOrigins, PlannedQuery, PlanningTimes, PreparedStatement, QueryResult,
    Session, Splitter, Statement, TransactionState, split_statements,
};
pub use settings::{AggregateMethod, AtollOptions, ColumnNames, JoinMethod};
pub use syntax::{begins_with, split_first_word};
pub use trace::{OperatorSteps, StatementSteps};
pub use usage::DatabaseUsage;
pub use watch::{StatementFigures, StatementWait, StatementWatch, WaitGuard};
