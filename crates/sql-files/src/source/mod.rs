//! The files that a table reads, and how they are read.
//!
//! | module | responsibility |
//! |---|---|
//! | `found`, `glob` | the files that a name or pattern matches |
//! | `kind` | the kind of a file |
//! | `hive` | columns whose values are in directory names |
//! | `type_names` | types by the names that SQL has for them |
//! | `table` | the table over all files |
//! | `batches` | scans of files that Atoll reads itself |

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
