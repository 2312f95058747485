//! Metadata marks for fields whose texts are JSON, JSONB, UUIDs or addresses, types that Arrow lacks.

use datafusion::arrow::datatypes::Field;

/// The metadata of a JSON field.
pub(crate) const JSON_MARK: (&str, &str) = ("ARROW:extension:name", "arrow.json");
/// The mark of JSONB columns.
pub(crate) const JSONB_MARK: &str = "atoll.pg_type.jsonb";

/// What precedes the name of a type in a mark.
pub(crate) const MARK_PREFIX: &str = "atoll.pg_type.";

/// The metadata of a UUID field.
pub const UUID_MARK: (&str, &str) = ("ARROW:extension:name", "atoll.pg_type.uuid");

/// What precedes the OID of an ENUM in the mark of its labels.
const LABELS_OF: &str = "enum:";

/// Marks of fields with lists of these types, in addition to those of their items.
const LIST_MARKS: [(&str, &str); 21] = [
    (JSON_MARK.1, "atoll.pg_type._json"),
    (JSONB_MARK, "atoll.pg_type._jsonb"),
    (UUID_MARK.1, "atoll.pg_type._uuid"),
    ("atoll.pg_type.name", "atoll.pg_type._name"),
    ("atoll.pg_type.char", "atoll.pg_type._char"),
    ("atoll.pg_type.inet", "atoll.pg_type._inet"),
    ("atoll.pg_type.cidr", "atoll.pg_type._cidr"),
    ("atoll.pg_type.macaddr", "atoll.pg_type._macaddr"),
    ("atoll.pg_type.timetz", "atoll.pg_type._timetz"),
    ("atoll.pg_type.int4range", "atoll.pg_type._int4range"),
    ("atoll.pg_type.int8range", "atoll.pg_type._int8range"),
    ("atoll.pg_type.numrange", "atoll.pg_type._numrange"),
    ("atoll.pg_type.daterange", "atoll.pg_type._daterange"),
    ("atoll.pg_type.tsrange", "atoll.pg_type._tsrange"),
    ("atoll.pg_type.tstzrange", "atoll.pg_type._tstzrange"),
    ("atoll.pg_type.int4multirange", "atoll.pg_type._int4multirange"),
    ("atoll.pg_type.int8multirange", "atoll.pg_type._int8multirange"),
    ("atoll.pg_type.nummultirange", "atoll.pg_type._nummultirange"),
    ("atoll.pg_type.datemultirange", "atoll.pg_type._datemultirange"),
    ("atoll.pg_type.tsmultirange", "atoll.pg_type._tsmultirange"),
    ("atoll.pg_type.tstzmultirange", "atoll.pg_type._tstzmultirange"),
];

/// Returns the metadata of a list field whose items have a mark.
pub(crate) fn list_mark(item: &Field) -> Option<(&'static str, String)> {
    let mark = item.metadata().get(JSON_MARK.0)?;
    let known = LIST_MARKS.iter().find(|(of_item, _)| of_item == mark);
    let of_list = match known {
        Some((_, of_list)) => (*of_list).to_owned(),
        None => {
            let labels = mark.strip_prefix(MARK_PREFIX).filter(|of| of.starts_with(LABELS_OF))?;
            format!("{MARK_PREFIX}_{labels}")
        }
    };
    Some((JSON_MARK.0, of_list))
}

/// Returns the metadata of the items of a list field that has a mark.
pub(crate) fn item_mark(list: &Field) -> Option<(&'static str, &'static str)> {
    let mark = list.metadata().get(JSON_MARK.0)?;
    let found = LIST_MARKS.iter().find(|(_, of_list)| of_list == mark);
    found.map(|(of_item, _)| (JSON_MARK.0, *of_item))
}

/// Returns the name of a field's type in its mark, if the type is not JSON.
pub(crate) fn mark_of(field: &Field) -> Option<&str> {
    field.metadata().get(JSON_MARK.0)?.strip_prefix(MARK_PREFIX)
}

/// Whether the values of a field, or the items of its lists, are JSON.
pub(crate) fn is_json_field(field: &Field) -> bool {
    let mark = field.metadata().get(JSON_MARK.0);
    mark.is_some_and(|mark| {
        LIST_MARKS[..2].iter().any(|(of_item, of_list)| mark == of_item || mark == of_list)
    })
}

/// Whether they are JSONB.
pub(crate) fn is_jsonb_field(field: &Field) -> bool {
    field.metadata().get(JSON_MARK.0).is_some_and(|mark| mark == JSONB_MARK)
}
