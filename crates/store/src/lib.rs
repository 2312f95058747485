//! The storage engine: tables in memory on their home nodes, and their files on disk, so that
//! acknowledged commits survive a power cut.
//!
//! - [`database`]: all names and tables as one value, and the changes that make the next one.
//! - [`table`]: tables as chunks of columns.
//! - [`backup`]: a copy of a data directory, even while it is written.
//! - [`checkpoint`]: a version of the database on disk.
//! - [`chunk_file`]: chunks as files.
//! - [`clock_scan`]: one pass over a table that answers a batch of queries.
//! - [`data_file`]: the envelope of all files except the log.
//! - [`durable`]: an open database with a data directory.
//! - [`files`]: the layer below all disk access, and the live directory.
//! - [`lock`]: locks of transactions, waited for without blocking a thread.
//! - [`log`]: one sequence of checksummed records; recovery, group commit.
//! - [`open`]: opening a data directory and recovering the newest version.
//! - [`record`]: the changes of a transaction, as bytes of the log.
//! - [`simulated`]: a directory in memory for tests, whose power can be cut and whose calls can fail.
//!
//! It is a crate of its own because durability is tested on files that are cut off at any moment
//! and on calls that fail one by one, without an SQL engine: it knows no queries and starts no workers.

#![forbid(unsafe_code)]

pub mod backup;
mod change;
pub mod checkpoint;
pub mod chunk_file;
pub mod clock_scan;
mod codec;
pub mod data_file;
pub mod database;
mod database_id;
pub mod durable;
pub mod files;
mod ids;
pub mod lock;
pub mod log;
pub mod open;
pub mod record;
pub mod simulated;
pub mod table;
pub mod workers;

pub use codec::DecodeError;
pub use database_id::DatabaseId;
pub use ids::{ChunkFileId, Epoch, RowId, SequenceId, TableId};
