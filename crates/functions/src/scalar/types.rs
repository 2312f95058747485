//! Type names, and information about the session.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};

use super::call::Call;
use super::entry::{Arguments, Entry, Takes, text};
use super::marks::JSON_MARK;
use super::ranges::RangeForm;
use crate::type_name::{postgres_name, sql_name};

/// Returns a type's name as in `typeof`.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "\"NULL\"".to_owned(),
        other => sql_name(other),
    }
}

/// Returns the type name in a field's mark, in PostgreSQL's spelling.
fn marked_name(field: &Field) -> Option<String> {
    let mark = field.metadata().get(JSON_MARK.0)?;
    let name = if mark == JSON_MARK.1 { "json" } else { mark.strip_prefix("atoll.pg_type.")? };
    let (item, brackets) = match name.strip_prefix('_') {
        Some(item) => (item, "[]"),
        None => (name, ""),
    };
    // Without the length of VARCHAR(3).
    let item = item.split_once('(').map_or(item, |(item, _)| item);
    let item = match item {
        "timetz" => "time with time zone",
        "varchar" => "character varying",
        "bpchar" => "character",
        "char" => "\"char\"",
        "json" | "jsonb" | "oid" | "uuid" | "inet" | "cidr" | "macaddr" | "name" | "regclass"
        | "regproc" | "regtype" => item,
        name if RangeForm::named(name).is_some() => name,
        _ => return None,
    };
    (field.data_type().is_nested() != brackets.is_empty()).then(|| format!("{item}{brackets}"))
}

fn name_of(call: &Call) -> String {
    let of_texts = |name: &String| {
        !["character", "\"char\"", "name", "reg"].iter().any(|start| name.starts_with(start))
    };
    match marked_name(&call.fields[0]).filter(of_texts) {
        Some(name) => name.replace("jsonb", "json").to_uppercase(),
        None => type_name(call.fields[0].data_type()),
    }
}

fn name_in_postgresql(call: &Call) -> String {
    let field = &call.fields[0];
    marked_name(field).unwrap_or_else(|| postgres_name(field.data_type()))
}

fn constant(call: &Call, text: &str) -> Result<ArrayRef> {
    // Not `texts`: the type of NULL is a type too.
    let texts = vec![text; call.rows];
    Ok(std::sync::Arc::new(datafusion::arrow::array::StringArray::from(texts)))
}

/// NULL if no schema of the search path exists.
fn schema(call: &Call) -> Result<ArrayRef> {
    let schema = Some(call.config.catalog.default_schema.as_str()).filter(|it| !it.is_empty());
    let texts = vec![schema; call.rows];
    Ok(std::sync::Arc::new(datafusion::arrow::array::StringArray::from(texts)))
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "atoll".to_owned())
}

const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
const NONE: &[Arguments] = &[Arguments::Are(&[])];

const ALL: &[Entry] = &[
    Entry {
        name: "typeof",
        aliases: &[],
        arguments: "value",
        about: "The name of the type, as DuckDB has it.",
        example: "typeof(1::INTEGER) = 'INTEGER'",
        takes: ANY,
        gives: text,
        volatile: false,
        run: |call| constant(call, &name_of(call)),
    },
    Entry {
        name: "pg_typeof",
        aliases: &[],
        arguments: "value",
        about: "The name of the type in small letters.",
        example: "pg_typeof(1::INTEGER) = 'integer'",
        takes: ANY,
        gives: text,
        volatile: false,
        run: |call| constant(call, &name_in_postgresql(call)),
    },
    Entry {
        name: "current_database",
        aliases: &["current_catalog"],
        arguments: "",
        about: "The name of the database.",
        example: "current_database() = 'atoll'",
        takes: NONE,
        gives: text,
        volatile: false,
        run: |call| constant(call, &call.config.catalog.default_catalog),
    },
    Entry {
        name: "current_schema",
        aliases: &[],
        arguments: "",
        about: "The schema in which names without one are looked up.",
        example: "current_schema() = 'public'",
        takes: NONE,
        gives: text,
        volatile: false,
        run: schema,
    },
    Entry {
        name: "current_user",
        aliases: &["session_user", "current_role", "user"],
        arguments: "",
        about: "The name of the user that the process runs as.",
        example: "current_user()",
        takes: NONE,
        gives: text,
        volatile: false,
        run: |call| constant(call, &user()),
    },
    Entry {
        name: "error",
        aliases: &[],
        arguments: "message",
        about: "Ends the statement with this message.",
        example: "error('no rate for this day')",
        takes: &[Arguments::Are(&[Takes::Text])],
        gives: |_, _| Ok(DataType::Null),
        volatile: true,
        run: |call| match (0..call.rows).find(|&row| !call.is_null(row)) {
            Some(row) => exec_err!("{}", call.text(0).value(row)),
            None => Ok(datafusion::arrow::array::new_null_array(&DataType::Null, call.rows)),
        },
    },
];

pub(super) static ENTRIES: &[&[Entry]] = &[ALL];
