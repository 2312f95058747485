//! The storage engine: tables in memory with a home, and what of them is on disk, so that what was
//! acknowledged is there after a power cut.
//!
//! [`table`] holds tables as chunks of columns. [`files`] is the layer through which everything reaches the disk: a trait, the live directory behind
//! it, and what each call promises.
//!
//! It is a crate of its own because durability is tested on files that are cut off at any moment
//! and on calls that fail one by one, without an SQL engine: it knows no query and starts no worker.

#![forbid(unsafe_code)]

pub mod files;
pub mod table;
