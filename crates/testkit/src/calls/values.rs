//! SQL types and their values: ordinary, empty and extreme ones.

/// A type with its values as SQL casts or constructors.
pub(super) struct HostileType {
    /// Its name in casts.
    pub(super) name: &'static str,
    pub(super) family: Family,
    values: &'static [&'static str],
}

/// The family of a type, which names of arguments indicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Flag,
    Whole,
    Number,
    Text,
    Bytes,
    Moment,
    Interval,
    List,
    Struct,
    Map,
}

use Family::{Bytes, Flag, Interval, List, Map, Moment, Number, Struct, Text, Whole};

const fn ty(name: &'static str, family: Family, values: &'static [&'static str]) -> HostileType {
    HostileType { name, family, values }
}

impl HostileType {
    /// The number of its values, including NULL.
    pub(super) fn count(&self) -> usize {
        self.values.len() + 1
    }

    /// A value as an expression; NULL comes after the last one.
    pub(super) fn value(&self, at: usize) -> String {
        let text = self.values.get(at).copied().unwrap_or("NULL");
        format!("CAST({text} AS {})", self.name)
    }
}

/// All types.
pub(super) const TYPES: &[HostileType] = &[
    ty("BOOLEAN", Flag, &["true", "false"]),
    ty("TINYINT", Whole, &["1", "-128", "127"]),
    ty("SMALLINT", Whole, &["2", "-32768", "32767"]),
    ty("INTEGER", Whole, &["3", "0", "-1", "-2147483648", "2147483647"]),
    ty("BIGINT", Whole, &["2", "0", "-1", "'-9223372036854775808'", "9223372036854775807"]),
    ty("UBIGINT", Whole, &["1", "0", "'18446744073709551615'"]),
    ty("HUGEINT", Number, &["5", "'99999999999999999999999999999999999999'"]),
    ty("REAL", Number, &["1.5", "'NaN'", "'-Infinity'", "'-0.0'", "'3.4e38'"]),
    ty(
        "DOUBLE",
        Number,
        &["0.5", "'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "'1.7e308'", "'5e-324'", "1e18"],
    ),
    ty("DECIMAL(4,1)", Number, &["1.5", "-999.9", "0"]),
    ty("DECIMAL(38,3)", Number, &["2.125", "'99999999999999999999999999999999999.999'"]),
    ty("DECIMAL(38,38)", Number, &["'0.00000000000000000000000000000000000001'", "0"]),
    ty(
        "VARCHAR",
        Text,
        &[
            "'a,b'",
            "''",
            "'Zürich 東京 🙂'",
            "'%_\\\\'",
            "'['",
            "'{\"a\": [1, {\"b\": null}]}'",
            "'$.a[0]'",
            "'1'",
            "'-1e400'",
            "'2024-02-30'",
            "'year'",
            "'%Y-%m-%d %'",
            "'(a|b)+'",
            "repeat('x', 300)",
        ],
    ),
    ty("BYTEA", Bytes, &["'\\x00ff'", "''"]),
    ty("UUID", Text, &["'00000000-0000-0000-0000-000000000000'"]),
    ty("JSON", Text, &["'{\"a\": 1}'", "'[]'", "'null'", "'\"x\"'"]),
    ty("JSONB", Text, &["'{\"a\": [1, 2]}'", "'[1, \"a\"]'", "'1e3'"]),
    ty(
        "DATE",
        Moment,
        &[
            "'2024-02-29'",
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'4713-01-01 BC'",
        ],
    ),
    ty("TIME", Moment, &["'12:34:56.789'", "'00:00'", "'23:59:59.999999'"]),
    ty(
        "TIMESTAMP",
        Moment,
        &[
            "'2024-02-29 12:00:00.5'",
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'294246-12-31'",
            "'4713-01-01 BC'",
        ],
    ),
    ty(
        "TIMESTAMPTZ",
        Moment,
        &["'2024-03-31 01:30:00+00'", "'infinity'", "'0001-01-01 00:00:00+00'"],
    ),
    ty(
        "INTERVAL",
        Interval,
        &[
            "'1 day'",
            "'0'",
            "'-1 month 1 day'",
            "'178000000 years'",
            "'-2147483648 days'",
            "'0.000001 seconds'",
        ],
    ),
    ty("INTEGER[]", List, &["[3, 1, NULL]", "[]", "[2147483647]", "[NULL]"]),
    ty("INTEGER[][]", List, &["[[1], [], NULL, [2, NULL]]", "[]"]),
    ty("DOUBLE[]", List, &["[1.5, -2]", "[]"]),
    ty("VARCHAR[]", List, &["['b', 'a', NULL, '']", "[]"]),
    ty("DATE[]", List, &["[DATE '2024-01-01', NULL]"]),
    ty("INTEGER[2]", List, &["[1, 2]", "[NULL, 2]"]),
    ty("STRUCT(a INTEGER, b VARCHAR)", Struct, &["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}"]),
    ty("STRUCT(a INTEGER, b INTEGER[])[]", List, &["[{'a': 1, 'b': [2]}, NULL]", "[]"]),
    ty("MAP(VARCHAR, INTEGER)", Map, &["MAP {'a': 1, 'b': NULL}", "MAP {}"]),
    ty("MAP(INTEGER[], INTEGER)", Map, &["MAP([[0], [2, 0]], [10, 9])", "MAP {}"]),
];

/// Names of arguments, and their families.
const NAMES: &[(&str, Family)] = &[
    ("list", List),
    ("array", List),
    ("map", Map),
    ("struct", Struct),
    ("row", Struct),
    ("interval", Interval),
    ("date", Moment),
    ("time", Moment),
    ("moment", Moment),
    ("bytes", Bytes),
    ("blob", Bytes),
    ("binary", Bytes),
    ("condition", Flag),
    ("flag", Flag),
    ("count", Whole),
    ("start", Whole),
    ("stop", Whole),
    ("length", Whole),
    ("index", Whole),
    ("place", Whole),
    ("digits", Whole),
    ("integer", Whole),
    ("number", Number),
    ("numeric", Number),
    ("base", Number),
    ("share", Number),
    ("percentile", Number),
    ("text", Text),
    ("str", Text),
    ("json", Text),
    ("path", Text),
    ("pattern", Text),
    ("regex", Text),
    ("part", Text),
    ("format", Text),
    ("separator", Text),
    ("delimiter", Text),
    ("name", Text),
    ("key", Text),
];

/// The family that an argument's name indicates.
pub(super) fn told_by(name: &str) -> Option<Family> {
    let name = name.to_lowercase();
    NAMES.iter().find(|(part, _)| name.contains(part)).map(|(_, family)| *family)
}
