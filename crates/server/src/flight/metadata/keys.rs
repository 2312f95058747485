//! Primary keys of tables. Foreign keys are available only in `information_schema`: the lists of exported and imported
//! keys are empty.

use std::sync::Arc;

use arrow_flight::sql::CommandGetPrimaryKeys;
use atoll_sql::Session;
use atoll_sql::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use atoll_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{CATALOG, failed, rows};
use crate::wire::ErrorFields;

/// The primary key columns of tables with a name, in order, in the given schema or in any.
const PRIMARY: &str = "\
    SELECT k.table_schema, k.column_name, k.constraint_name, k.ordinal_position \
    FROM information_schema.key_column_usage k JOIN information_schema.table_constraints c \
    ON c.constraint_name = k.constraint_name AND c.table_schema = k.table_schema AND c.table_name = k.table_name \
    WHERE c.constraint_type = 'PRIMARY KEY' AND k.table_name = $1 AND ($2 IS NULL OR k.table_schema = $2) \
    ORDER BY k.table_schema, k.ordinal_position";

/// The result columns for primary keys.
pub(in crate::flight) fn primary_schema() -> SchemaRef {
    let text = |name, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The result columns for foreign keys.
pub(in crate::flight) fn foreign_schema() -> SchemaRef {
    let text = |name, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// The columns of a table's primary key.
pub(in crate::flight) async fn primary_keys(
    engine: &Session,
    command: CommandGetPrimaryKeys,
) -> Result<RecordBatch, ErrorFields> {
    let CommandGetPrimaryKeys { catalog, db_schema, table } = command;
    let is_here = catalog.is_none_or(|catalog| catalog == CATALOG);
    let found: Vec<[String; 4]> = match is_here {
        true => rows(engine, PRIMARY, &[Some(table.clone()), db_schema]).await?,
        false => Vec::new(),
    };
    let text = |value: &dyn Fn(&[String; 4]) -> String| -> ArrayRef {
        Arc::new(found.iter().map(|row| Some(value(row))).collect::<StringArray>())
    };
    let places: Int32Array = found.iter().map(|row| row[3].parse::<i32>().ok()).collect();
    let columns: Vec<ArrayRef> = vec![
        text(&|_| CATALOG.to_owned()),
        text(&|row| row[0].clone()),
        text(&|_| table.clone()),
        text(&|row| row[1].clone()),
        text(&|row| row[2].clone()),
        Arc::new(places),
    ];
    RecordBatch::try_new(primary_schema(), columns).map_err(|error| failed(error.into()))
}
