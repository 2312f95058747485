//! Joins on equal keys.
//!
//! | Variant | Where | For |
//! |---|---|---|
//! | direct | `radix/direct.rs` | unique keys in a dense range: an array of payloads by key |
//! | one table | `radix/whole.rs` | a smaller side that fits the caches: one hash table for all workers |
//! | pieces | `radix/pieces.rs` | everything else: both sides partitioned into pieces whose tables fit a cache |
//! | [`mpsm`] | `mpsm/` | sorted runs, merged through any shuffle (Li et al. 2013, section 4.2) |
//!
//! [`hash_join`] picks one of the first three by the keys. Null keys match nothing. Pairs go to a [`Matches`] of each
//! worker in blocks of payloads: row numbers, or a 64-bit column that is carried along and so never gathered.
//! [`hash_join_batches`] returns record batches.

mod batches;
mod input;
mod keys;
mod kind;
mod matches;
pub mod mpsm;
mod radix;
mod report;

pub use batches::hash_join_batches;
pub use input::{JoinInput, Payload};
pub use kind::JoinKind;
pub use matches::{Matches, RowPairs};
pub use radix::hash_join;
pub use report::{BuildSide, JoinReport, JoinVariant, Joined};
