//! Random transactions, folds and checkpoints over a simulated directory, whose power goes, whose calls fail and
//! whose disk fills up, against a model of what was acknowledged.
//!
//! - `model`: what must be in the database, as maps.
//! - `store`: versions, log and checkpoints over a directory, stepped by one thread.
//! - `changes`: transactions of every kind.
//! - `histories`: random ones, whole lives of a directory.
//! - `damage`: flipped bits, missing files, arbitrary bytes; salvage and check.
//! - `faults`: one life, in which each call fails once, in every way.

mod changes;
mod damage;
mod faults;
mod histories;
mod model;
mod store;
