//! Types, functions, and the few operator classes, methods and collations that there are.

use std::sync::Arc;

use atoll_store::database::{Relation, RelationName};
use datafusion::catalog::Session;
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

use super::domains;
use super::relations::{BTREE, DEFAULT_COLLATION, INDEX_METHODS, OPERATORS};
use super::roles::role_oid;
use crate::pg_catalog::functions::function_names;
use crate::pg_catalog::listed_functions;
use crate::pg_catalog::objects::PgObjects;
use crate::pg_catalog::oid::{OWNER, Oid, OidSpace, PG_CATALOG};
use crate::pg_catalog::routine_texts::{ANY, mode, result_oid, result_type, type_oid};
use crate::pg_catalog::rows::{Datum, Rows};
use crate::role::rights::{Owned, is_temporary_entry};
use atoll_sql_common::names::CATALOG;
use atoll_sql_common::pg_type::TYPES;
use atoll_sql_common::user_type::{EnumType, enum_array_oid};
use atoll_sql_parse::parse::Routine;

/// The functions that read and write arrays, by which clients recognize array types.
pub(in crate::pg_catalog) const ARRAY_FUNCTIONS: [(&str, Oid); 4] =
    [("array_in", 750), ("array_out", 751), ("array_recv", 2400), ("array_send", 2401)];

pub(super) fn types(objects: &PgObjects, rows: &mut Rows) {
    built_in_types(rows);
    for of in objects.types.enums() {
        user_type(objects, of, rows);
    }
    domains::types(objects, rows);
}

/// The rows of an ENUM and of the type of its arrays.
fn user_type(objects: &PgObjects, of: &EnumType, rows: &mut Rows) {
    let Some(schema) = objects.schemas.get(&of.schema).copied() else { return };
    let name = RelationName::new(Arc::clone(&of.schema), Arc::clone(&of.name));
    let owner = role_oid(&objects.owner(&Owned::Relation(name)));
    let (oid, array) = (i64::from(of.oid), i64::from(enum_array_oid(of.oid)));
    let functions = |kind: &str| {
        ["in", "out", "recv", "send"].map(|suffix| function_oid(&format!("{kind}_{suffix}")))
    };
    for is_array in [false, true] {
        let [input, output, receive, send] = functions(if is_array { "array" } else { "enum" });
        rows.add([
            ("oid", if is_array { array } else { oid }.into()),
            ("typname", format!("{}{}", if is_array { "_" } else { "" }, of.name).into()),
            ("typnamespace", schema.into()),
            ("typowner", owner.into()),
            ("typlen", if is_array { -1_i64 } else { 4 }.into()),
            ("typbyval", (!is_array).into()),
            ("typtype", if is_array { "b" } else { "e" }.into()),
            ("typcategory", if is_array { "A" } else { "E" }.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typelem", if is_array { oid } else { 0 }.into()),
            ("typarray", if is_array { 0 } else { array }.into()),
            ("typinput", input.into()),
            ("typoutput", output.into()),
            ("typreceive", receive.into()),
            ("typsend", send.into()),
            ("typalign", "i".into()),
            ("typstorage", if is_array { "x" } else { "p" }.into()),
            ("typtypmod", (-1_i64).into()),
        ]);
    }
}

/// The rows of `pg_enum`.
pub(super) fn labels(objects: &PgObjects, rows: &mut Rows) {
    for of in objects.types.enums() {
        for (at, label) in of.labels.iter().enumerate() {
            rows.add([
                ("oid", OidSpace::Name.named(of.oid.into(), &label.code.to_string()).into()),
                ("enumtypid", i64::from(of.oid).into()),
                ("enumsortorder", ((at + 1) as f64).into()),
                ("enumlabel", (&label.text).into()),
            ]);
        }
    }
}

fn built_in_types(rows: &mut Rows) {
    for entry in TYPES.iter() {
        let function = |suffix: &str| function_oid(&io_function(entry.name, suffix));
        rows.add([
            ("oid", i64::from(entry.oid).into()),
            ("typname", entry.name.into()),
            ("typnamespace", PG_CATALOG.into()),
            ("typowner", OWNER.into()),
            ("typlen", i64::from(entry.length).into()),
            ("typbyval", matches!(entry.length, 1 | 2 | 4 | 8).into()),
            ("typtype", entry.kind.into()),
            ("typcategory", entry.category.into()),
            ("typispreferred", entry.is_preferred.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typelem", item_of_vector(entry.name).into()),
            ("typarray", i64::from(entry.array).into()),
            ("typinput", function("in").into()),
            ("typoutput", function("out").into()),
            ("typreceive", function("recv").into()),
            ("typsend", function("send").into()),
            ("typalign", "i".into()),
            ("typstorage", if entry.length == -1 { "x" } else { "p" }.into()),
            ("typtypmod", (-1_i64).into()),
            ("typcollation", if entry.category == "S" { DEFAULT_COLLATION } else { 0 }.into()),
        ]);
    }
    for entry in TYPES.iter().filter(|entry| entry.array != 0) {
        let function = |name: &str| function_oid(name);
        rows.add([
            ("oid", i64::from(entry.array).into()),
            ("typname", format!("_{}", entry.name).into()),
            ("typnamespace", PG_CATALOG.into()),
            ("typowner", OWNER.into()),
            ("typlen", (-1_i64).into()),
            ("typtype", if entry.is_range() { "b" } else { entry.kind }.into()),
            ("typcategory", "A".into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typelem", i64::from(entry.oid).into()),
            ("typinput", function("array_in").into()),
            ("typoutput", function("array_out").into()),
            ("typreceive", function("array_recv").into()),
            ("typsend", function("array_send").into()),
            ("typalign", "i".into()),
            ("typstorage", "x".into()),
            ("typtypmod", (-1_i64).into()),
        ]);
    }
}

/// The types of ranges: their own OIDs, those of their bounds and of multiranges, and the start of the names of their
/// functions where these exist: integers and dates have a canonical form.
const RANGES: [(Oid, Oid, Oid, Option<&str>); 6] = [
    (3904, 23, 4451, Some("int4range")),
    (3906, 1700, 4532, None),
    (3908, 1114, 4533, None),
    (3910, 1184, 4534, None),
    (3912, 1082, 4535, Some("daterange")),
    (3926, 20, 4536, Some("int8range")),
];

/// The rows of `pg_range`.
pub(super) fn ranges(rows: &mut Rows) {
    for (oid, subtype, multirange, canonical) in RANGES {
        let canonical = canonical.map_or(0, |name| function_oid(&format!("{name}_canonical")));
        rows.add([
            ("rngtypid", oid.into()),
            ("rngsubtype", subtype.into()),
            ("rngmultitypid", multirange.into()),
            ("rngcollation", 0_i64.into()),
            ("rngsubopc", OPERATORS.into()),
            ("rngcanonical", canonical.into()),
            ("rngsubdiff", 0_i64.into()),
        ]);
    }
}

fn item_of_vector(name: &str) -> Oid {
    match name {
        "int2vector" => 21,
        "oidvector" => 26,
        "name" => 18,
        _ => 0,
    }
}

/// The OID of a function.
pub(in crate::pg_catalog) fn function_oid(name: &str) -> Oid {
    let array = ARRAY_FUNCTIONS.iter().find(|(array, _)| *array == name);
    array.map_or_else(|| OidSpace::Function.named(PG_CATALOG, name), |(_, oid)| *oid)
}

/// The function that reads or writes values of a type: `int4in`, `date_in`.
fn io_function(of: &str, suffix: &str) -> String {
    // Types of PostgreSQL's first years have no underscore.
    const PLAIN: [&str; 24] = [
        "aclitem",
        "bool",
        "bpchar",
        "bytea",
        "char",
        "cid",
        "float4",
        "float8",
        "int2",
        "int2vector",
        "int4",
        "int8",
        "name",
        "oid",
        "oidvector",
        "text",
        "tid",
        "tsquery",
        "tsvector",
        "unknown",
        "varchar",
        "xid",
        "xid8",
        "gtsvector",
    ];
    match of {
        "money" => format!("cash_{suffix}"),
        "polygon" => format!("poly_{suffix}"),
        of if of.ends_with("multirange") => format!("multirange_{suffix}"),
        of if of.ends_with("range") => format!("range_{suffix}"),
        "refcursor" => format!("text{suffix}"),
        of if PLAIN.contains(&of) || of.starts_with("reg") => format!("{of}{suffix}"),
        of => format!("{of}_{suffix}"),
    }
}

/// The name of the function with an OID, if a type uses it.
pub(in crate::pg_catalog) fn function_name(oid: Oid) -> Option<String> {
    if let Some((name, _)) = ARRAY_FUNCTIONS.iter().find(|(_, array)| *array == oid) {
        return Some((*name).to_owned());
    }
    let of_types = TYPES.iter().flat_map(|entry| {
        ["in", "out", "recv", "send"].map(|suffix| io_function(entry.name, suffix))
    });
    let of_enums = ["in", "out", "recv", "send"].map(|suffix| format!("enum_{suffix}"));
    let of_domains = ["in", "recv"].map(|suffix| format!("domain_{suffix}"));
    let of_catalog = function_names().map(|(name, _)| name.to_owned());
    let of_ranges = RANGES.iter().filter_map(|(.., name)| Some(format!("{}_canonical", (*name)?)));
    { of_types }
        .chain(of_ranges)
        .chain(of_enums)
        .chain(of_domains)
        .chain(of_catalog)
        .find(|name| function_oid(name) == oid)
}

pub(super) fn functions(objects: &PgObjects, session: &dyn Session, rows: &mut Rows) {
    for (name, oid) in ARRAY_FUNCTIONS {
        function(oid, name, PG_CATALOG, "f", 1, rows);
    }
    for (name, count) in function_names() {
        function(function_oid(name), name, PG_CATALOG, "f", count, rows);
    }
    for listed in listed_functions(session) {
        let (kind, within) = match listed.kind {
            "aggregate" => ("a", 1),
            "window" => ("w", 2),
            "table" => ("f", 3),
            _ => ("f", 0),
        };
        let oid = match within {
            0 => function_oid(&listed.name),
            within => OidSpace::Function.named(within, &listed.name),
        };
        let count = listed.arguments.split(", ").filter(|it| !it.is_empty()).count();
        function(oid, &listed.name, PG_CATALOG, kind, count, rows);
    }
    for (at, relation) in objects.version.relations() {
        let Some(schema) = objects.schemas.get(&at.schema) else { continue };
        if let Relation::External(text) = relation
            && !is_temporary_entry(at)
        {
            let oid = OidSpace::Function.named(*schema, &at.name);
            match Routine::parse(&text.sql) {
                Ok(Some(of)) => {
                    let owner = role_oid(&objects.owner(&Owned::Relation(at.clone())));
                    routine((oid, *schema, owner), &of, rows);
                }
                _ => function(oid, &at.name, *schema, "f", 0, rows),
            }
        }
    }
}

/// The rows of `information_schema.routines`: the database's own functions and procedures.
pub(super) fn routines(objects: &PgObjects, rows: &mut Rows) {
    for (at, relation) in objects.version.relations() {
        let Some(schema) = objects.schemas.get(&at.schema) else { continue };
        let Relation::External(text) = relation else { continue };
        let Ok(Some(of)) = Routine::parse(&text.sql) else { continue };
        let (name, oid) = (of.own_name(), OidSpace::Function.named(*schema, &at.name));
        let data_type = if of.is_procedure { None } else { Some(result_type(&of)) };
        let is_own = data_type.is_some() && result_oid(&of) == ANY;
        let data_type = if is_own { Some("USER-DEFINED".to_owned()) } else { data_type };
        rows.add([
            ("specific_catalog", CATALOG.into()),
            ("specific_schema", at.schema.as_ref().into()),
            ("specific_name", format!("{name}_{oid}").into()),
            ("routine_catalog", CATALOG.into()),
            ("routine_schema", at.schema.as_ref().into()),
            ("routine_name", name.into()),
            ("routine_type", if of.is_procedure { "PROCEDURE" } else { "FUNCTION" }.into()),
            ("data_type", data_type.map_or(Datum::Null, Into::into)),
            ("routine_body", "EXTERNAL".into()),
            ("routine_definition", of.body.clone().into()),
            ("external_language", if of.is_block { "PLPGSQL" } else { "SQL" }.into()),
            ("parameter_style", "GENERAL".into()),
            ("is_deterministic", if of.is_immutable { "YES" } else { "NO" }.into()),
            ("sql_data_access", "MODIFIES".into()),
            ("schema_level_routine", "YES".into()),
            ("max_dynamic_result_sets", 0_i64.into()),
            ("security_type", "INVOKER".into()),
        ]);
    }
}

/// The row of a function or procedure.
fn routine((oid, schema, owner): (Oid, Oid, Oid), of: &Routine, rows: &mut Rows) {
    let types = of.inputs().map(|it| type_oid(&it.of)).collect();
    let has_modes = of.outputs().next().is_some();
    let has_names = of.parameters.iter().any(|it| it.name.is_some());
    let all = of.parameters.iter().map(|it| type_oid(&it.of).into()).collect();
    let modes = of.parameters.iter().map(|it| mode(it).into()).collect();
    let names = of.parameters.iter().map(|it| it.name.clone().unwrap_or_default().into());
    let names = names.collect();
    let only = |is_there: bool, list| if is_there { Datum::List(list) } else { Datum::Null };
    let volatility = match (of.is_immutable, of.is_volatile) {
        (true, _) => "i",
        (_, true) => "v",
        _ => "s",
    };
    rows.add([
        ("oid", oid.into()),
        ("proname", of.own_name().into()),
        ("pronamespace", schema.into()),
        ("proowner", owner.into()),
        ("prolang", if of.is_block { PLPGSQL } else { SQL }.into()),
        ("prokind", if of.is_procedure { "p" } else { "f" }.into()),
        ("proisstrict", of.is_strict.into()),
        ("proretset", of.returns_set().into()),
        ("provolatile", volatility.into()),
        ("proparallel", "u".into()),
        ("pronargs", of.inputs().count().into()),
        ("pronargdefaults", of.inputs().filter(|it| it.default.is_some()).count().into()),
        ("prorettype", result_oid(of).into()),
        ("proargtypes", types),
        ("proallargtypes", only(has_modes, all)),
        ("proargmodes", only(has_modes, modes)),
        ("proargnames", only(has_names, names)),
        ("prosrc", of.body.clone().into()),
    ]);
}

fn function(oid: Oid, name: &str, schema: Oid, kind: &str, count: usize, rows: &mut Rows) {
    rows.add([
        ("oid", oid.into()),
        ("proname", name.into()),
        ("pronamespace", schema.into()),
        ("proowner", OWNER.into()),
        ("prolang", if schema == PG_CATALOG { INTERNAL } else { SQL }.into()),
        ("prokind", kind.into()),
        ("provolatile", "s".into()),
        ("proparallel", "s".into()),
        ("pronargs", count.into()),
        ("prorettype", 2276_i64.into()),
        ("proargtypes", (0..count).map(|_| 2276_i64).collect()),
        ("prosrc", name.into()),
    ]);
}

/// Languages of functions.
const INTERNAL: Oid = 12;
const SQL: Oid = 14;
const PLPGSQL: Oid = 13700;

pub(super) fn languages(rows: &mut Rows) {
    for (oid, name) in [(INTERNAL, "internal"), (SQL, "sql"), (PLPGSQL, "plpgsql")] {
        rows.add([("oid", oid.into()), ("lanname", name.into()), ("lanowner", OWNER.into())]);
    }
}

/// The rows of `pg_get_keywords()`.
pub(super) fn keywords(rows: &mut Rows) {
    for word in ALL_KEYWORDS {
        rows.add([
            ("word", word.to_lowercase().into()),
            ("catcode", "U".into()),
            ("catdesc", "unreserved".into()),
        ]);
    }
}

pub(super) fn collations(rows: &mut Rows) {
    for (oid, name) in [(DEFAULT_COLLATION, "default"), (950, "C"), (951, "POSIX")] {
        rows.add([
            ("oid", oid.into()),
            ("collname", name.into()),
            ("collnamespace", PG_CATALOG.into()),
            ("collowner", OWNER.into()),
            ("collprovider", if name == "default" { "d" } else { "c" }.into()),
            ("collisdeterministic", true.into()),
            ("collencoding", (-1_i64).into()),
            ("collcollate", "C".into()),
            ("collctype", "C".into()),
        ]);
    }
}

pub(super) fn access_methods(rows: &mut Rows) {
    rows.add([("oid", 2_i64.into()), ("amname", "heap".into()), ("amtype", "t".into())]);
    for (name, oid) in INDEX_METHODS {
        rows.add([("oid", oid.into()), ("amname", name.into()), ("amtype", "i".into())]);
    }
}

pub(super) fn operator_classes(rows: &mut Rows) {
    rows.add([
        ("oid", OPERATORS.into()),
        ("opcmethod", BTREE.into()),
        ("opcname", "any_ops".into()),
        ("opcnamespace", PG_CATALOG.into()),
        ("opcowner", OWNER.into()),
        ("opcintype", 2276_i64.into()),
        ("opcdefault", true.into()),
    ]);
}
