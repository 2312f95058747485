//! Wrappers that correct DataFusion's joins where they are wrong or fail.
//!
//! | file | what |
//! |---|---|
//! | `deduplicate` | one side of a semi-, anti- or mark join without repeats |
//! | `merge` | a sort-merge join into which no rule moves a projection |
//! | `key` | keys as bytes, where the sort-merge join compares values wrongly or not at all |
//! | `paced` | a nested-loop join that yields |
//! | `unspilled` | a nested-loop join that does not spill |
//!
//! The rules that plan them are in `rules`.

mod deduplicate;
mod key;
mod merge;
mod paced;
mod unspilled;

pub(crate) use deduplicate::{Deduplicate, DeduplicateExec};
pub(crate) use key::MergeKey;
pub(crate) use merge::MergeJoinExec;
pub(crate) use paced::{PacedLoop, PacedLoopExec, with_paced_filter};
pub(crate) use unspilled::UnspilledLoopExec;
