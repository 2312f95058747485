//! JSON: text that functions parse when called, as in DuckDB.
//!
//! JSON has no Arrow type: it is VARCHAR. The field of a JSON result is marked as JSON in its metadata,
//! so that `json_array(json_object('a', 1))` nests it; a table does not store the mark.
//! Numbers keep all their digits. JSONB values are stored as the text that PostgreSQL prints, so that
//! equal values are equal texts, but for zeros at the end of a number's fraction.
//!
//! | file | contents |
//! |---|---|
//! | `value` | a parsed text, and the text of a value |
//! | `parse` | the parser |
//! | `jsonb` | the text of JSONB, and its limits |
//! | `normal` | whether a text already is JSONB |
//! | `order` | JSONB as bytes in its order |
//! | `path` | `$.a[0]`, `/a/0`, and their matches |
//! | `extract` | values from a text |
//! | `each` | the values of a text one by one |
//! | `elements` | the items of a list, the members of an object |
//! | `inspect` | types, keys, lengths, containment |
//! | `write` | SQL values to JSON |
//! | `build` | `to_json`, `json_object` and functions from text to text |
//! | `transform` | JSON to SQL values |
//! | `change` | changes to parts of JSON |
//! | `combine` | JSONB operators |
//! | `jsonpath` | SQL/JSON paths |

mod build;
mod change;
mod combine;
mod each;
mod elements;
mod extract;
mod inspect;
mod jsonb;
mod jsonpath;
mod normal;
mod order;
mod parse;
mod path;
mod transform;
mod value;
mod write;

use super::entry::Entry;

pub(crate) use build::{GroupedForm, grouped_lists, grouped_objects};
pub use jsonb::{canonical_jsonb, check_json};
pub(in crate::scalar) use order::write_number_order;

pub(super) static ENTRIES: &[&[Entry]] = &[
    each::ALL,
    elements::ALL,
    extract::ALL,
    inspect::ALL,
    build::ALL,
    transform::ALL,
    change::ALL,
    combine::ALL,
    order::ALL,
    jsonpath::ALL,
];
