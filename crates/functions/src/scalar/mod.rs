//! Scalar functions that DataFusion lacks, or has with another meaning: DuckDB's, by theme.
//!
//! Each function is an entry of a table ([`Entry`]): its names, a sentence, an example, what it takes and
//! gives, and the loop over its rows. `entry` makes a DataFusion function of it, `call` hands its arguments
//! to the loop.
//!
//! | file | what |
//! |---|---|
//! | `marks` | what tells JSON, JSONB and UUIDs from other texts |
//! | `alias` | other names for DataFusion's functions |
//! | `civil` | days and microseconds as years, months, days |
//! | `parts`, `extract`, `dates`, `buckets` | what a date says, the distance of two, intervals of time |
//! | `finite` | functions of DataFusion that `infinity` is kept from |
//! | `intervals` | intervals times numbers, and of their parts |
//! | `spans` | what lies between timestamps, and series of them |
//! | `clock`, `zones` | the time of a statement, and the time elsewhere |
//! | `strftime`, `strptime` | dates to text and back |
//! | `template` | likewise by PostgreSQL's templates |
//! | `number` | numbers to text and back by PostgreSQL's templates |
//! | `printf`, `spec` | numbers and texts to text |
//! | `texts`, `slices`, `similar`, `patterns`, `bytes` | strings, their parts, how alike they are, regular expressions, encodings |
//! | `similar_to` | patterns of SIMILAR TO |
//! | `regex_compiled` | their options, and the last one compiled |
//! | `regex_words` | regular expressions as PostgreSQL's programs write them |
//! | `regex_places` | where they are found, and how often |
//! | `regex_replace` | replacing what they find, whether they find something, and its groups |
//! | `encodings` | texts in other encodings, and with escapes |
//! | `bits` | bytes and bits of BLOBs |
//! | `hashes` | md5, sha256 and their kin |
//! | `numbers`, `angles` | integers and floats, angles in degrees |
//! | `decimals` | the cast to NUMERIC without digits |
//! | `types` | typeof, and functions about the session |
//! | `lists`, `arrays`, `aggregated` | lists, PostgreSQL's functions of arrays, and the aggregates of their elements |
//! | `structs` | structs and maps |
//! | `substr` | parts of texts |
//! | `uuids` | UUIDs |
//! | `json` | JSON |

mod alias;
mod call;
mod civil;
mod entry;
mod marks;

mod aggregated;
mod angles;
mod arrays;
mod bits;
mod buckets;
mod bytes;
mod clock;
mod dates;
mod decimals;
mod encode;
mod encodings;
mod extract;
mod finite;
mod hashes;
mod intervals;
mod json;
mod lists;
mod number;
mod numbers;
mod parts;
mod patterns;
mod printf;
mod regex_compiled;
mod regex_places;
mod regex_replace;
mod regex_words;
mod rounded;
mod similar;
mod similar_to;
mod slices;
mod spans;
mod spec;
mod strftime;
mod strptime;
mod structs;
pub(super) mod substr;
mod template;
mod texts;
mod truncated;
mod types;
mod uuids;
mod zones;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;

pub(super) use civil::days_of_month;
pub use civil::{MONTHS, WEEKDAYS};
pub use clock::StatementStart;
pub use decimals::{UNTOLD_SCALE, WrittenNumber};
pub use encode::bytes_of_text;
pub(super) use entry::{Arguments, Entry, Takes};
pub(super) use extract::DATE_PART;
pub(super) use intervals::interval_times;
pub use json::canonical_jsonb;
pub(super) use json::{GroupedForm, grouped_lists, grouped_objects};
pub use marks::UUID_MARK;
pub(super) use marks::{JSON_MARK, JSONB_MARK, is_json_field, is_jsonb_field, list_mark};
pub use regex_words::regex_of;
pub use uuids::{canonical_uuid, is_canonical_uuid};

/// All entries, theme by theme.
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        parts::ENTRIES,
        dates::ENTRIES,
        buckets::ENTRIES,
        intervals::ENTRIES,
        spans::ENTRIES,
        strftime::ENTRIES,
        strptime::ENTRIES,
        printf::ENTRIES,
        texts::ENTRIES,
        slices::ENTRIES,
        similar::ENTRIES,
        patterns::ENTRIES,
        regex_places::ENTRIES,
        regex_replace::ENTRIES,
        similar_to::ENTRIES,
        bytes::ENTRIES,
        encode::ENTRIES,
        encodings::ENTRIES,
        bits::ENTRIES,
        hashes::ENTRIES,
        numbers::ENTRIES,
        angles::ENTRIES,
        decimals::ENTRIES,
        number::ENTRIES,
        types::ENTRIES,
        json::ENTRIES,
        lists::ENTRIES,
        arrays::ENTRIES,
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
    context.register_udf(substr::function());
    for entry in entries() {
        context.register_udf(entry.function());
    }
    template::register(context);
    clock::register(context);
    extract::register(context);
    zones::register(context);
    finite::register(context);
    rounded::register(context);
    truncated::register(context);
}
