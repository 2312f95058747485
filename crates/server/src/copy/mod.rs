//! COPY between a table and a client: `COPY t FROM STDIN`, `COPY t TO STDOUT`.
//!
//! | file | what |
//! |---|---|
//! | `statement` | the statement and its options |
//! | `read` | rows out of text and CSV, in pieces of any size |
//! | `write` | rows as text and CSV |

mod read;
mod statement;
mod write;

pub(crate) use read::CopyReader;
pub(crate) use statement::{CopyDirection, CopyStatement};
pub(crate) use write::{write_header, write_rows};

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyForm {
    pub(crate) is_csv: bool,
    pub(crate) delimiter: u8,
    /// What stands for NULL.
    pub(crate) null: Vec<u8>,
    /// Whether the first line has the names of the columns.
    pub(crate) header: bool,
    pub(crate) quote: u8,
    /// What stands before a quote within quotes.
    pub(crate) escape: u8,
}

impl CopyForm {
    /// PostgreSQL's text: tabs between values, `\N` for NULL.
    pub(crate) fn text() -> Self {
        let null = b"\\N".to_vec();
        Self { is_csv: false, delimiter: b'\t', null, header: false, quote: 0, escape: 0 }
    }

    /// PostgreSQL's CSV: nothing for NULL.
    pub(crate) fn csv() -> Self {
        let null = Vec::new();
        Self { is_csv: true, delimiter: b',', null, header: false, quote: b'"', escape: b'"' }
    }
}
