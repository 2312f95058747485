//! Scalar functions that DataFusion lacks, or defines differently: DuckDB's, by topic.
//!
//! Each function is a table entry ([`Entry`]): its names, a sentence, an example, argument and
//! result types, and the loop over its rows. `entry` converts it to a DataFusion function, `call` passes the arguments
//! to the loop.
//!
//! | file | contents |
//! |---|---|
//! | `marks` | marks that distinguish JSON, JSONB and UUIDs from other texts |
//! | `alias` | other names for DataFusion's functions |
//! | `time` | dates, times, intervals; their parts, formats and zones |
//! | `text` | strings, substrings, similarity; regular expressions and SIMILAR TO; `printf` |
//! | `binary` | bytes and bits of BLOBs, hashes, encodings, UUIDs |
//! | `numeric` | integers, floats and decimals, angles; PostgreSQL's number formats |
//! | `nested` | lists, PostgreSQL's array functions, aggregates over elements; structs and maps |
//! | `types` | typeof, and functions about the session |
//! | `json` | JSON |
//! | `network` | addresses of hosts, networks and hardware |
//! | `ranges` | ranges and multiranges |

mod alias;
mod binary;
mod call;
mod entry;
mod marks;
mod nested;
mod numeric;
pub(super) mod text;
mod time;

mod json;
mod network;
pub(super) mod ranges;
mod types;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;

pub use binary::encode::bytes_of_text;
pub use binary::uuids::{canonical_uuid, is_canonical_uuid};
pub use entry::gives_type;
pub(super) use entry::{Arguments, Entry, Takes};
pub(super) use json::{GroupedForm, grouped_lists, grouped_objects};
pub use json::{canonical_jsonb, check_json};
pub use marks::UUID_MARK;
pub(super) use marks::{
    JSON_MARK, JSONB_MARK, MARK_PREFIX, is_json_field, is_jsonb_field, item_mark, list_mark,
    mark_of,
};
pub use network::NetworkType;
pub use numeric::decimals::{UNTOLD_SCALE, WrittenNumber};
pub use ranges::{RangeBound, RangeForm, RangeNumber, RangePoint, RangeSet, RangeType};
pub use text::regex_words::regex_of;
pub use time::clock::StatementStart;
pub(super) use time::extract::DATE_PART;
pub(super) use time::intervals::interval_times;
pub use time::zoned_times::canonical_timetz;

/// All entries, by topic.
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        time::parts::ENTRIES,
        time::dates::ENTRIES,
        time::digits::ENTRIES,
        time::buckets::ENTRIES,
        time::intervals::ENTRIES,
        time::spans::ENTRIES,
        time::strftime::ENTRIES,
        time::strptime::ENTRIES,
        time::zoned_times::ENTRIES,
        text::printf::ENTRIES,
        text::texts::ENTRIES,
        text::slices::ENTRIES,
        text::similar::ENTRIES,
        text::patterns::ENTRIES,
        text::regex_places::ENTRIES,
        text::regex_replace::ENTRIES,
        text::similar_to::ENTRIES,
        binary::bytes::ENTRIES,
        binary::encode::ENTRIES,
        binary::encodings::ENTRIES,
        binary::bits::ENTRIES,
        binary::hashes::ENTRIES,
        numeric::numbers::ENTRIES,
        numeric::angles::ENTRIES,
        numeric::decimals::ENTRIES,
        numeric::templates::ENTRIES,
        types::ENTRIES,
        json::ENTRIES,
        nested::lists::ENTRIES,
        nested::arrays::ENTRIES,
        nested::elements::ENTRIES,
        nested::aggregated::ENTRIES,
        nested::structs::ENTRIES,
        binary::uuids::ENTRIES,
        network::ENTRIES,
        ranges::ENTRIES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .flatten()
}

/// Finds a function by name.
pub(super) fn named(name: &str) -> Option<Arc<ScalarUDF>> {
    entries().find(|entry| entry.name == name).map(|entry| Arc::new(entry.function()))
}

/// Registers the functions, and aliases of DataFusion's.
pub(super) fn register(context: &SessionContext) {
    alias::register(context);
    context.register_udf(text::substr::function());
    for entry in entries() {
        context.register_udf(entry.function());
    }
    time::template::register(context);
    time::clock::register(context);
    time::extract::register(context);
    time::zones::register(context);
    time::finite::register(context);
    numeric::rounded::register(context);
    numeric::truncated::register(context);
    ranges::register(context);
}
