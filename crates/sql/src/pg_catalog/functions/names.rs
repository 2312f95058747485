//! Conversions between names and OIDs: `regclass('t')`, `to_regtype('int')`, `pg_get_userbyid(10)`.
//!
//! `'t'::regclass` is `regclass('t')`, a number; its output is `regclassout(…)`, a name.

use atoll_sql_common::names::quote_identifier;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};

use super::Gives::{Bool, Oid, Text, Texts};
use super::{Call, Entry, entry, flag, number, text};
use crate::pg_catalog::contents::{function_name, function_oid, role_oid};
use crate::pg_catalog::objects::name_parts;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::PG_CATALOG_SCHEMA;
use atoll_sql_common::pg_type::{PgType, format_type, type_named};
use atoll_sql_common::user_type::enum_array_oid;

pub(super) static ENTRIES: &[Entry] = &[
    entry("regclass", &[1], Oid, 1, regclass),
    entry("to_regclass", &[1], Oid, 1, to_regclass),
    entry("regclassout", &[1], Text, 1, regclassout),
    entry("regtype", &[1], Oid, 1, regtype),
    entry("to_regtype", &[1], Oid, 1, to_regtype),
    entry("regtypeout", &[1], Text, 1, regtypeout),
    entry("regproc", &[1], Oid, 1, regproc),
    entry("to_regproc", &[1], Oid, 1, regproc),
    entry("regprocout", &[1], Text, 1, regprocout),
    entry("regnamespace", &[1], Oid, 1, regnamespace),
    entry("to_regnamespace", &[1], Oid, 1, to_regnamespace),
    entry("regnamespaceout", &[1], Text, 1, regnamespaceout),
    entry("regrole", &[1], Oid, 1, regrole),
    entry("to_regrole", &[1], Oid, 1, regrole),
    entry("regroleout", &[1], Text, 1, regroleout),
    entry("pg_get_userbyid", &[1], Text, 1, user_by_id),
    entry("format_type", &[2], Text, 1, typed),
    entry("pg_table_is_visible", &[1], Bool, 1, is_visible),
    entry("pg_type_is_visible", &[1], Bool, 1, is_type_visible),
    entry("pg_function_is_visible", &[1], Bool, 1, yes),
    entry("pg_operator_is_visible", &[1], Bool, 1, yes),
    entry("pg_opclass_is_visible", &[1], Bool, 1, yes),
    entry("pg_opfamily_is_visible", &[1], Bool, 1, yes),
    entry("pg_collation_is_visible", &[1], Bool, 1, yes),
    entry("pg_conversion_is_visible", &[1], Bool, 1, yes),
    entry("pg_statistics_obj_is_visible", &[1], Bool, 1, yes),
    entry("pg_ts_config_is_visible", &[1], Bool, 1, yes),
    entry("pg_ts_dict_is_visible", &[1], Bool, 1, yes),
    entry("pg_ts_parser_is_visible", &[1], Bool, 1, yes),
    entry("pg_ts_template_is_visible", &[1], Bool, 1, yes),
    entry("current_schemas", &[1], Texts, 1, current_schemas),
    entry("oidvectortypes", &[1], Text, 1, types_of_vector),
];

fn yes(_: &Call<'_>) -> Result<ScalarValue> {
    flag(true)
}

/// A number given as such or as digits.
fn given_number(call: &Call<'_>) -> Option<i64> {
    match call.text(0) {
        Some(text) if text.trim() == "-" => Some(0),
        Some(text) => text.trim().parse().ok(),
        None => call.int(0),
    }
}

fn regclass(call: &Call<'_>) -> Result<ScalarValue> {
    match (given_number(call), call.relation(0)) {
        (Some(oid), _) => number(Some(oid)),
        (None, Some(relation)) => number(Some(relation.oid)),
        (None, None) => call.missing(SqlState::UNDEFINED_TABLE, "relation", 0),
    }
}

fn to_regclass(call: &Call<'_>) -> Result<ScalarValue> {
    number(call.relation(0).map(|relation| relation.oid))
}

/// The name of a relation, qualified if the search path does not find it.
fn regclassout(call: &Call<'_>) -> Result<ScalarValue> {
    match call.relation(0) {
        Some(relation) => text(Some(call.objects.shown_name(relation))),
        None => shown_number(call),
    }
}

/// An OID without a name is shown as a number.
fn shown_number(call: &Call<'_>) -> Result<ScalarValue> {
    let oid = call.int(0).unwrap_or(0);
    text(Some(if oid == 0 { "-".to_owned() } else { oid.to_string() }))
}

/// The OID of the type that an argument names, built in or a user's.
fn type_oid(call: &Call<'_>) -> Option<i64> {
    let name = call.text(0)?;
    if let Some(oid) = type_named(&name) {
        return Some(oid);
    }
    let (item, is_array) = match name.trim().strip_suffix("[]") {
        Some(item) => (item, true),
        None => (name.as_str(), false),
    };
    let parts = name_parts(item)?;
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] | [_, schema, name] => (Some(schema.as_str()), name),
        _ => return None,
    };
    // `"pg_catalog"."int4"[]`
    if schema.is_none_or(|schema| schema == PG_CATALOG_SCHEMA)
        && let Some(oid) = type_named(&format!("{name}{}", if is_array { "[]" } else { "" }))
    {
        return Some(oid);
    }
    let types = &call.objects.types;
    if let Some(domain) = types.domain(schema, name).filter(|_| !is_array) {
        return Some(domain.oid.into());
    }
    let found = types.named(schema, name)?;
    Some(if is_array { enum_array_oid(found.oid) } else { found.oid }.into())
}

/// The name of a type, built in or a user's.
fn type_text(call: &Call<'_>, oid: i64, modifier: i32) -> String {
    let of_user = call.objects.types.format_type(oid);
    of_user.unwrap_or_else(|| format_type(oid, modifier))
}

fn regtype(call: &Call<'_>) -> Result<ScalarValue> {
    match given_number(call).or_else(|| type_oid(call)) {
        Some(oid) => number(Some(oid)),
        None => call.missing(SqlState::UNDEFINED_OBJECT, "type", 0),
    }
}

fn to_regtype(call: &Call<'_>) -> Result<ScalarValue> {
    number(type_oid(call))
}

fn regtypeout(call: &Call<'_>) -> Result<ScalarValue> {
    let oid = call.int(0).unwrap_or(0);
    match type_text(call, oid, -1) {
        unknown if unknown == "???" => shown_number(call),
        name => text(Some(name)),
    }
}

fn regproc(call: &Call<'_>) -> Result<ScalarValue> {
    let named = || {
        let parts = name_parts(&call.text(0)?)?;
        Some(function_oid(parts.last()?))
    };
    number(given_number(call).or_else(named))
}

/// The name of a function in the catalog by its OID, or the number; `-` for 0, as PostgreSQL shows `regproc`.
pub fn shown_function(oid: i64) -> String {
    match oid {
        0 => "-".to_owned(),
        oid => function_name(oid).unwrap_or_else(|| oid.to_string()),
    }
}

fn regprocout(call: &Call<'_>) -> Result<ScalarValue> {
    match call.text(0) {
        Some(name) => text(Some(name)),
        None => text(call.int(0).map(shown_function)),
    }
}

fn schema_of(call: &Call<'_>) -> Option<i64> {
    let parts = name_parts(&call.text(0)?)?;
    call.objects.schemas.get(parts.first()?.as_str()).copied()
}

fn regnamespace(call: &Call<'_>) -> Result<ScalarValue> {
    match given_number(call).or_else(|| schema_of(call)) {
        Some(oid) => number(Some(oid)),
        None => call.missing(SqlState::UNDEFINED_SCHEMA, "schema", 0),
    }
}

fn to_regnamespace(call: &Call<'_>) -> Result<ScalarValue> {
    number(schema_of(call))
}

fn regnamespaceout(call: &Call<'_>) -> Result<ScalarValue> {
    match call.objects.schema_name(call.int(0).unwrap_or(0)) {
        Some(name) => text(Some(quote_identifier(name))),
        None => shown_number(call),
    }
}

fn regrole(call: &Call<'_>) -> Result<ScalarValue> {
    let named = || Some(role_oid(name_parts(&call.text(0)?)?.first()?));
    number(given_number(call).or_else(named))
}

/// The name of the role with an OID.
fn role_name(call: &Call<'_>) -> Option<String> {
    let oid = call.int(0)?;
    call.roles().find(|name| role_oid(name) == oid)
}

fn regroleout(call: &Call<'_>) -> Result<ScalarValue> {
    match role_name(call) {
        Some(name) => text(Some(quote_identifier(&name))),
        None => shown_number(call),
    }
}

fn user_by_id(call: &Call<'_>) -> Result<ScalarValue> {
    let unknown = || format!("unknown (OID={})", call.int(0).unwrap_or(0));
    text(Some(role_name(call).unwrap_or_else(unknown)))
}

fn typed(call: &Call<'_>) -> Result<ScalarValue> {
    let modifier = call.int(1).and_then(|modifier| i32::try_from(modifier).ok());
    text(Some(type_text(call, call.int(0).unwrap_or(0), modifier.unwrap_or(-1))))
}

/// The types of an oidvector: `integer, text`.
fn types_of_vector(call: &Call<'_>) -> Result<ScalarValue> {
    let types: Vec<String> = match &call.args[0] {
        ScalarValue::List(list) => {
            let oids = cast(&list.value(0), &DataType::Int64)?;
            let oids = oids.as_primitive::<Int64Type>();
            oids.iter().map(|oid| type_text(call, oid.unwrap_or(0), -1)).collect()
        }
        other => {
            let oids = other.to_string();
            let oids = oids.split_whitespace().map(|oid| oid.parse().unwrap_or(0));
            oids.map(|oid| type_text(call, oid, -1)).collect()
        }
    };
    text(Some(types.join(", ")))
}

/// Built-in types are always visible.
fn is_type_visible(call: &Call<'_>) -> Result<ScalarValue> {
    let oid = call.int(0).and_then(|oid| u32::try_from(oid).ok());
    let types = &call.objects.types;
    if let Some(domain) = oid.and_then(|oid| types.domain_numbered(oid)) {
        return flag(types.shown_domain(domain) == quote_identifier(&domain.name));
    }
    let of = oid.and_then(|oid| types.numbered(PgType::item_of(oid).unwrap_or(oid)));
    flag(of.is_none_or(|of| types.is_visible(of)))
}

fn is_visible(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(relation) = call.relation(0) else { return Ok(ScalarValue::Boolean(None)) };
    flag(call.objects.finds(relation))
}

/// The existing schemas of the search path, with implicit ones on request.
fn current_schemas(call: &Call<'_>) -> Result<ScalarValue> {
    let path = &call.objects.path;
    let listed = path.listed().iter().map(|schema| &**schema);
    let before = path.before_listed().map(|own| &**own).into_iter().chain([PG_CATALOG_SCHEMA]);
    let with_all = call.args[0] == ScalarValue::Boolean(Some(true));
    let schemas = before.filter(|_| with_all).chain(listed);
    let schemas = schemas.filter(|schema| call.objects.has_schema(schema));
    let schemas = schemas.map(ScalarValue::from).collect::<Vec<_>>();
    let list =
        ScalarValue::new_list_nullable(&schemas, &datafusion::arrow::datatypes::DataType::Utf8);
    Ok(ScalarValue::List(list))
}
