//! DataFusion's joins where they are wrong or fail, made right from outside.
//!
//! | file | what |
//! |---|---|
//! | `merge` | a sort-merge join into which no rule moves a projection |
//! | `key` | keys as bytes, where the sort-merge join compares values wrongly or not at all |
//! | `unspilled` | a nested-loop join that does not spill |
//!
//! The rules that plan them are in `rules`.

mod key;
mod merge;
mod unspilled;

pub(crate) use key::MergeKey;
pub(crate) use merge::MergeJoinExec;
pub(crate) use unspilled::UnspilledLoopExec;
