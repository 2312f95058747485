//! Files in FROM: by name, and by functions such as `read_csv('*.csv', delim = ';')`.
//!
//! ```text
//! name or call ─▶ found (names, globs, lists) ─▶ kind (ending, content) ─▶ csv, json, …: parts
//!                                                                          │
//!                 FilesTable: scans of the parts, one after the other ◀────┘  + hive, filename
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | `call` | functions in FROM: their arguments |
//! | `open` | opens files as a table |
//! | `listing` | `glob`, `read_text`, `read_blob`, `sniff_csv`, `parquet_schema`, … |

mod call;
mod listing;
mod open;

pub use call::{FileNames, expand};
