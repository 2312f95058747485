//! Sizes and facts of the server; arrays and quotes as PostgreSQL's queries write them.

use std::borrow::Cow;
use std::sync::Arc;

use atoll_functions::TextEncoding;
use atoll_functions::temporal::{StatementClock, TemporalStyle, is_temporal};
use datafusion::arrow::array::{Array, AsArray, Int64Array, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use super::Gives::{Bool, Int, Items, Oid, Text};
use super::{Call, Entry, entry, flag, number, pair_fields, text};
use crate::pg_catalog::objects::RelationOf;
use atoll_sql_common::error::SqlState;
use atoll_sql_semantics::arithmetic::convert_in;

pub(super) static ENTRIES: &[Entry] = &[
    entry("pg_relation_size", &[1, 2], Int, 1, table_size),
    entry("pg_table_size", &[1], Int, 1, table_size),
    entry("pg_total_relation_size", &[1], Int, 1, total_size),
    entry("pg_indexes_size", &[1], Int, 1, indexes_size),
    entry("pg_database_size", &[1], Int, 1, database_size),
    entry("pg_tablespace_size", &[1], Int, 1, database_size),
    entry("pg_is_in_recovery", &[0], Bool, 0, no),
    entry("pg_is_other_temp_schema", &[1], Bool, 1, no),
    entry("pg_my_temp_schema", &[0], Oid, 0, own_schema),
    entry("pg_relation_is_updatable", &[2], Int, 2, updatable),
    entry("pg_encoding_to_char", &[1], Text, 1, encoding),
    entry("pg_char_to_encoding", &[1], Int, 1, encoding_number),
    entry("pg_tablespace_location", &[1], Text, 1, nowhere),
    entry("pg_stat_get_numscans", &[1], Int, 1, zero),
    entry("pg_advisory_unlock_all", &[0], Text, 0, unknown),
    entry("inet_server_addr", &[0], Text, 0, unknown),
    entry("inet_client_addr", &[0], Text, 0, unknown),
    entry("inet_server_port", &[0], Int, 0, no_number),
    entry("inet_client_port", &[0], Int, 0, no_number),
    entry("pg_relation_is_publishable", &[1], Bool, 1, publishable),
    entry("getdatabaseencoding", &[0], Text, 0, encoding),
    entry("pg_expanded", &[1], Items, 1, expanded),
    entry("quote_ident", &[1], Text, 1, quote_ident),
    entry("quote_literal", &[1], Text, 1, quote_literal),
    entry("quote_nullable", &[1], Text, 0, quote_nullable),
];

fn no(_: &Call<'_>) -> Result<ScalarValue> {
    flag(false)
}

fn zero(_: &Call<'_>) -> Result<ScalarValue> {
    number(Some(0))
}

/// The schema of the session's temporary tables and views; 0 as long as it has none.
fn own_schema(call: &Call<'_>) -> Result<ScalarValue> {
    let schema = call.objects.path.temporary().and_then(|own| call.objects.schemas.get(own));
    number(Some(schema.copied().unwrap_or(0)))
}

fn no_number(_: &Call<'_>) -> Result<ScalarValue> {
    number(None)
}

fn unknown(_: &Call<'_>) -> Result<ScalarValue> {
    text(None::<String>)
}

fn nowhere(_: &Call<'_>) -> Result<ScalarValue> {
    text(Some(""))
}

fn encoding(call: &Call<'_>) -> Result<ScalarValue> {
    text(Some(match call.int(0) {
        None => "UTF8",
        Some(number) => TextEncoding::numbered(number).map_or("", TextEncoding::name),
    }))
}

fn encoding_number(call: &Call<'_>) -> Result<ScalarValue> {
    let found = TextEncoding::named(&call.text(0).unwrap_or_default());
    number(Some(found.map_or(-1, TextEncoding::number)))
}

/// INSERT, UPDATE and DELETE, of tables.
fn updatable(call: &Call<'_>) -> Result<ScalarValue> {
    let is_table = call.relation(0).is_some_and(|relation| relation.table().is_some());
    number(Some(if is_table { 28 } else { 0 }))
}

fn publishable(call: &Call<'_>) -> Result<ScalarValue> {
    flag(call.relation(0).is_some_and(|relation| relation.table().is_some()))
}

/// The items of a list of numbers, each with its position from 1.
fn expanded(call: &Call<'_>) -> Result<ScalarValue> {
    let ScalarValue::List(list) = &call.args[0] else {
        return Err(SqlState::INVALID_PARAMETER.error(format!("{} expects a list", call.name)));
    };
    let items = cast(&list.value(0), &DataType::Int64)?;
    let places: Int64Array = (1..).take(items.len()).map(Some).collect();
    let pairs = StructArray::new(pair_fields(), vec![items, Arc::new(places)], None);
    let item = Arc::new(Field::new("item", pairs.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([pairs.len()]);
    Ok(ScalarValue::List(Arc::new(ListArray::new(item, offsets, Arc::new(pairs), None))))
}

/// Bytes of a table's rows and of its indexes; `None` if an argument is invalid.
fn sizes(call: &Call<'_>) -> Result<Option<(usize, usize)>> {
    let Some(relation) = call.relation(0) else {
        return match call.text(0) {
            Some(_) => call.missing(SqlState::UNDEFINED_TABLE, "relation", 0),
            None => Ok(None),
        };
    };
    Ok(Some(match &relation.of {
        RelationOf::Table(table) | RelationOf::Materialized { table, .. } => {
            (table.memory_bytes(), table.index_bytes())
        }
        RelationOf::Index { table, .. } => {
            let table = call.objects.relation(*table).and_then(|table| table.table());
            (table.map_or(0, |table| table.index_bytes()), 0)
        }
        _ => (0, 0),
    }))
}

fn bytes(bytes: Option<usize>) -> Result<ScalarValue> {
    number(bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)))
}

fn table_size(call: &Call<'_>) -> Result<ScalarValue> {
    bytes(sizes(call)?.map(|(rows, _)| rows))
}

fn indexes_size(call: &Call<'_>) -> Result<ScalarValue> {
    bytes(sizes(call)?.map(|(_, indexes)| indexes))
}

fn total_size(call: &Call<'_>) -> Result<ScalarValue> {
    bytes(sizes(call)?.map(|(rows, indexes)| rows + indexes))
}

fn database_size(call: &Call<'_>) -> Result<ScalarValue> {
    let tables = call.objects.relations.iter().filter_map(|relation| relation.table());
    bytes(Some(tables.map(|table| table.memory_bytes() + table.index_bytes()).sum()))
}

fn quote_ident(call: &Call<'_>) -> Result<ScalarValue> {
    let name = shown(&call.args[0], call.style)?;
    text(Some(atoll_sql_common::names::quote_identifier(&name).into_owned()))
}

fn quoted(value: &str) -> String {
    let escape = if value.contains('\\') { "E" } else { "" };
    let escaped: Cow<'_, str> = match escape {
        "" => value.into(),
        _ => value.replace('\\', "\\\\").into(),
    };
    format!("{escape}'{}'", escaped.replace('\'', "''"))
}

fn quote_literal(call: &Call<'_>) -> Result<ScalarValue> {
    text(Some(quoted(&shown(&call.args[0], call.style)?)))
}

/// A value as a cast to TEXT writes it.
fn shown(value: &ScalarValue, style: TemporalStyle) -> Result<String> {
    let values = value.to_array()?;
    let of = values.data_type();
    if value.is_null() || !of.is_nested() && !is_temporal(of) {
        return Ok(value.to_string());
    }
    let clock = StatementClock { style, ..StatementClock::default() };
    let texts = convert_in(&values, &DataType::Utf8, false, clock)?;
    Ok(texts.as_string::<i32>().value(0).to_owned())
}

fn quote_nullable(call: &Call<'_>) -> Result<ScalarValue> {
    match call.args[0].is_null() {
        true => text(Some("NULL")),
        false => quote_literal(call),
    }
}
