//! Files in FROM: by name, and by functions such as `read_csv('*.csv', delim = ';')`.
//!
//! ```text
//! name or call ─▶ found (names, globs, lists) ─▶ kind (ending, content) ─▶ csv, json, …: parts
//!                                                                          │
//!                 FilesTable: scans of the parts, one after the other ◀────┘  + hive, filename
//! ```
//!
//! | module | what it sees to |
//! |---|---|
//! | `call` | functions in FROM: their arguments |
//! | `options` | options by name |
//! | `found`, `glob` | the files that are there |
//! | `kind` | what a file is |
//! | `hive` | columns of which directories tell the values |
//! | `table` | the table over all of them |
//! | `batches` | scans of files whose rows we make ourselves |
//! | `listing` | `glob`, `read_text`, `read_blob`, `sniff_csv`, `parquet_schema`, … |

mod batches;
mod call;
mod found;
mod glob;
mod hive;
mod kind;
mod listing;
mod open;
mod table;

pub(crate) use batches::{BatchSource, Batches, until_failure};
pub use call::{FileNames, expand};
pub(crate) use found::SourceFile;
pub(crate) use open::TypeNames;
pub(crate) use table::{FilesPart, PartReader};
