//! The files that a table reads, and how their rows come.
//!
//! | module | what it sees to |
//! |---|---|
//! | `found`, `glob` | the files that are there |
//! | `kind` | what a file is |
//! | `hive` | columns of which directories tell the values |
//! | `type_names` | types by the names that SQL has for them |
//! | `table` | the table over all of them |
//! | `batches` | scans of files whose rows we make ourselves |

mod batches;
pub(crate) mod found;
mod glob;
pub(crate) mod hive;
pub(crate) mod kind;
pub(crate) mod table;
mod type_names;

pub(crate) use batches::{BatchSource, Batches, until_failure};
pub(crate) use found::SourceFile;
pub(crate) use glob::is_pattern;
pub(crate) use table::{FilesPart, PartReader};
pub(crate) use type_names::TypeNames;
