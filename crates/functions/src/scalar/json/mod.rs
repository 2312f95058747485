//! JSON: text that is parsed where it is asked, as DuckDB's functions do.
//!
//! JSON has no type of its own: it is VARCHAR. What a function here gives is marked as JSON in the metadata
//! of its field, so that `json_array(json_object('a', 1))` nests it; a table does not keep the mark.
//! Numbers keep all their digits. Values of JSONB are kept as the one text that PostgreSQL prints of them: those that
//! are equal are equal texts.
//!
//! | file | what |
//! |---|---|
//! | `value` | a parsed text, and the text of a value |
//! | `parse` | the parser |
//! | `jsonb` | the text of JSONB, and what it refuses |
//! | `normal` | whether a text is that already |
//! | `path` | `$.a[0]`, `/a/0`, and what they find |
//! | `extract` | values out of a text |
//! | `each` | the values of a text one by one |
//! | `elements` | the items of a list, the members of an object |
//! | `inspect` | types, keys, lengths, what contains what |
//! | `write` | values of SQL as JSON |
//! | `build` | `to_json`, `json_object` and what makes texts of texts |
//! | `transform` | JSON as values of SQL |
//! | `change` | JSON with a part changed |
//! | `combine` | operators of JSONB |

mod build;
mod change;
mod combine;
mod each;
mod elements;
mod extract;
mod inspect;
mod jsonb;
mod normal;
mod parse;
mod path;
mod transform;
mod value;
mod write;

use super::entry::Entry;

pub(crate) use build::{GroupedForm, grouped_lists, grouped_objects};
pub use jsonb::canonical_jsonb;

pub(super) static ENTRIES: &[&[Entry]] = &[
    each::ALL,
    elements::ALL,
    extract::ALL,
    inspect::ALL,
    build::ALL,
    transform::ALL,
    change::ALL,
    combine::ALL,
];
