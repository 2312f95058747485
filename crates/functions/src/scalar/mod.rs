//! Scalar functions that DataFusion lacks, or has with another meaning: DuckDB's, by theme.
//!
//! Each function is an entry of a table ([`Entry`]): its names, a sentence, an example, what it takes and
//! gives, and the loop over its rows. `entry` makes a DataFusion function of it, `call` hands its arguments
//! to the loop.
//!
//! | file | what |
//! |---|---|
//! | `alias` | other names for DataFusion's functions |
//! | `civil` | days and microseconds as years, months, days |
//! | `parts`, `dates`, `buckets` | what a date says, the distance of two, intervals of time |
//! | `intervals` | intervals times numbers |
//! | `strftime`, `strptime` | dates to text and back |
//! | `template` | likewise by PostgreSQL's templates |
//! | `number` | numbers to text and back by PostgreSQL's templates |
//! | `printf`, `spec` | numbers and texts to text |
//! | `texts`, `slices`, `similar`, `patterns`, `bytes` | strings, their parts, how alike they are, regular expressions, encodings |
//! | `hashes` | md5, sha256 and their kin |
//! | `numbers` | integers and floats |
//! | `types` | typeof, and functions about the session |
//! | `lists`, `aggregated` | lists, and the aggregates of their elements |
//! | `structs` | structs and maps |
//! | `uuids` | UUIDs |
//! | `json` | JSON |

mod alias;
mod call;
mod civil;
mod entry;

mod aggregated;
mod buckets;
mod bytes;
mod dates;
mod encode;
mod hashes;
mod intervals;
mod json;
mod lists;
mod number;
mod numbers;
mod parts;
mod patterns;
mod printf;
mod similar;
mod slices;
mod spec;
mod strftime;
mod strptime;
mod structs;
mod template;
mod texts;
mod types;
mod uuids;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;

pub use encode::bytes_of_text;
pub(super) use entry::{Arguments, Entry, Takes};
pub(super) use json::{grouped_lists, grouped_objects};

/// All entries, theme by theme.
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        parts::ENTRIES,
        dates::ENTRIES,
        buckets::ENTRIES,
        intervals::ENTRIES,
        strftime::ENTRIES,
        strptime::ENTRIES,
        printf::ENTRIES,
        texts::ENTRIES,
        slices::ENTRIES,
        similar::ENTRIES,
        patterns::ENTRIES,
        bytes::ENTRIES,
        encode::ENTRIES,
        hashes::ENTRIES,
        numbers::ENTRIES,
        number::ENTRIES,
        types::ENTRIES,
        json::ENTRIES,
        lists::ENTRIES,
        aggregated::ENTRIES,
        structs::ENTRIES,
        uuids::ENTRIES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .flatten()
}

/// The function of this name.
pub(super) fn named(name: &str) -> Option<Arc<ScalarUDF>> {
    entries().find(|entry| entry.name == name).map(|entry| Arc::new(entry.function()))
}

/// Registers the functions, and the other names of DataFusion's.
pub(super) fn register(context: &SessionContext) {
    alias::register(context);
    for entry in entries() {
        context.register_udf(entry.function());
    }
    template::register(context);
}
