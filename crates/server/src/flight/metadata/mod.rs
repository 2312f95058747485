//! Catalogs, schemas and tables, as drivers request them.

pub(super) mod info;
pub(super) mod keys;
pub(super) mod types;

use std::collections::HashMap;
use std::time::Duration;

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::GetCatalogsBuilder;
use arrow_flight::sql::{CommandGetDbSchemas, CommandGetTables};
use atoll_sql::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use atoll_sql::arrow::compute::cast;
use atoll_sql::arrow::datatypes::{DataType, Field, Schema};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DeclaredType, Session, SqlError, sql_type};

use crate::connection::timed_out;
use crate::error_fields::error_fields;
use crate::flight::rows::sent_schema;
use crate::flight::transaction::quoted;
use crate::wire::ErrorFields;

/// The name of the database, the only catalog.
pub(in crate::flight) const CATALOG: &str = "atoll";

/// Kinds of tables.
pub(in crate::flight) const TABLE_TYPES: [&str; 3] = ["SYSTEM TABLE", "TABLE", "VIEW"];

/// How long reading them may take.
const TIME_MAX: Duration = Duration::from_secs(30);

const SCHEMAS: &str = "SELECT nspname FROM pg_catalog.pg_namespace";

/// Tables and views whose schema and name match the given patterns.
const TABLES: &str = "\
    SELECT n.nspname, c.relname, CASE WHEN n.nspname IN ('pg_catalog', 'information_schema', 'atoll') \
    THEN 'SYSTEM TABLE' WHEN c.relkind = 'v' THEN 'VIEW' ELSE 'TABLE' END \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'v') AND ($1 IS NULL OR n.nspname LIKE $1) AND ($2 IS NULL OR c.relname LIKE $2)";

/// Flight SQL's keys of column metadata.
const CATALOG_NAME: &str = "ARROW:FLIGHT:SQL:CATALOG_NAME";
const SCHEMA_NAME: &str = "ARROW:FLIGHT:SQL:SCHEMA_NAME";
const TABLE_NAME: &str = "ARROW:FLIGHT:SQL:TABLE_NAME";
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";

/// The catalogs.
pub(in crate::flight) fn catalogs() -> Result<RecordBatch, ErrorFields> {
    let mut builder = GetCatalogsBuilder::new();
    builder.append(CATALOG);
    builder.build().map_err(failed)
}

/// The schemas.
pub(in crate::flight) async fn schemas(
    engine: &Session,
    command: CommandGetDbSchemas,
) -> Result<RecordBatch, ErrorFields> {
    let mut builder = command.into_builder();
    for [name] in rows(engine, SCHEMAS, &[]).await? {
        builder.append(CATALOG, name);
    }
    builder.build().map_err(failed)
}

/// The tables and views.
pub(in crate::flight) async fn tables(
    engine: &Session,
    command: CommandGetTables,
) -> Result<RecordBatch, ErrorFields> {
    let (of_schema, of_table) =
        (command.db_schema_filter_pattern.clone(), command.table_name_filter_pattern.clone());
    let (types, has_columns) = (command.table_types.clone(), command.include_schema);
    let is_here = command.catalog.as_deref().is_none_or(|catalog| catalog == CATALOG);
    let mut builder = command.into_builder();
    let found = match is_here {
        true => rows(engine, TABLES, &[of_schema, of_table]).await?,
        false => Vec::new(),
    };
    for [schema, table, kind] in found {
        if !types.is_empty() && !types.contains(&kind) {
            continue;
        }
        let columns = match has_columns {
            true => columns(engine, &schema, &table).await,
            false => Schema::empty(),
        };
        builder.append(CATALOG, &schema, &table, kind, &columns).map_err(failed)?;
    }
    builder.build().map_err(failed)
}

/// The columns of a table; None if the role may not read it.
async fn columns(engine: &Session, schema: &str, table: &str) -> Schema {
    let sql = format!("SELECT * FROM {}.{}", quoted(schema), quoted(table));
    let Ok(statement) = engine.prepare(&sql).await else { return Schema::empty() };
    let Some(columns) = statement.columns() else { return Schema::empty() };
    let sent = sent_schema(columns);
    let named = sent.fields().iter().zip(columns.fields()).map(|(sent, field)| {
        let names = [
            (CATALOG_NAME, CATALOG.to_owned()),
            (SCHEMA_NAME, schema.to_owned()),
            (TABLE_NAME, table.to_owned()),
            (TYPE_NAME, sql_type(field)),
        ];
        let names = names.map(|(key, name)| (key.to_owned(), name));
        let field = sent.as_ref().clone().with_nullable(field.is_nullable());
        field.with_metadata(HashMap::from(names))
    });
    Schema::new(named.collect::<Vec<Field>>())
}

/// The rows of a query over text columns, with these parameters.
pub(in crate::flight) async fn rows<const COLUMNS: usize>(
    engine: &Session,
    sql: &str,
    values: &[Option<String>],
) -> Result<Vec<[String; COLUMNS]>, ErrorFields> {
    let wrong = |error: SqlError| error_fields(&error, sql, 0);
    let read = async {
        let types = vec![DeclaredType::from(Some(DataType::Utf8)); values.len()];
        let statement = engine.prepare_as(sql, &types).await.map_err(wrong)?;
        let values: Vec<_> = values.iter().cloned().map(ScalarValue::Utf8).collect();
        let result = statement.execute(&values).await.map_err(wrong)?;
        let mut all = Vec::new();
        for batch in result.collect().await.map_err(wrong)? {
            let columns = batch.columns().iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let value = |column: usize, row| {
                columns.get(column).map_or_else(String::new, |text| text.value(row).to_owned())
            };
            all.extend((0..batch.num_rows()).map(|row| std::array::from_fn(|at| value(at, row))));
        }
        Ok(all)
    };
    tokio::time::timeout(TIME_MAX, read).await.unwrap_or_else(|_| Err(timed_out()))
}

fn text(column: &ArrayRef) -> Result<StringArray, ErrorFields> {
    let text = cast(column, &DataType::Utf8).map_err(|error| failed(error.into()))?;
    Ok(text.as_string::<i32>().clone())
}

/// An internal error.
pub(in crate::flight) fn failed(error: FlightError) -> ErrorFields {
    ErrorFields::error("XX000", format!("cannot send metadata: {error}"))
}
