//! The catalog tables and their columns: those of PostgreSQL 15, empty unless something fills them.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

use super::oid::Oid;
use atoll_sql_common::pg_type::marked;

/// A table of a schema that PostgreSQL has.
#[derive(Debug)]
pub(super) struct DeclaredTable {
    pub(super) name: &'static str,
    pub(super) oid: Oid,
    /// The columns that PostgreSQL documents.
    pub(super) schema: SchemaRef,
    /// The columns that are read: the same, then `tableoid` if rows have OIDs.
    pub(super) read: SchemaRef,
}

/// The OID of the table that a row is in. PostgreSQL leaves it out of `*`, which cannot be done here.
pub(super) const TABLE_OID: &str = "tableoid";

/// The tables of `pg_catalog`, by name.
pub(super) static PG_TABLES: LazyLock<Vec<DeclaredTable>> =
    LazyLock::new(|| declared(include_str!("columns.txt")));

/// The tables of `information_schema`, by name.
pub(super) static INFORMATION_TABLES: LazyLock<Vec<DeclaredTable>> =
    LazyLock::new(|| declared(include_str!("information.txt")));

/// The table with a name.
pub(super) fn find(tables: &'static [DeclaredTable], name: &str) -> Option<&'static DeclaredTable> {
    let at = tables.binary_search_by(|table| table.name.cmp(name)).ok()?;
    tables.get(at)
}

impl DeclaredTable {
    /// Whether it is a view in PostgreSQL.
    pub(super) fn is_view(&self) -> bool {
        self.oid >= 12_000
    }
}

/// The tables of a text: each begins a line, and continues in lines that begin with a blank.
fn declared(text: &'static str) -> Vec<DeclaredTable> {
    let mut tables: Vec<(&str, Oid, Vec<Field>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            let (Some(name), Some(oid)) = (words.next(), words.next()) else { continue };
            tables.push((name, oid.parse().unwrap_or(0), Vec::new()));
        }
        if let Some((_, _, fields)) = tables.last_mut() {
            fields.extend(words.filter_map(column));
        }
    }
    let mut tables: Vec<DeclaredTable> = { tables.into_iter() }
        .map(|(name, oid, fields)| {
            let mut read = fields.clone();
            if read.first().is_some_and(|first| first.name() == "oid") {
                read.push(field(TABLE_OID, "oid", false));
            }
            let (schema, read) = (Arc::new(Schema::new(fields)), Arc::new(Schema::new(read)));
            DeclaredTable { name, oid, schema, read }
        })
        .collect();
    tables.sort_by_key(|table| table.name);
    tables
}

/// `name:type` or `name:type?`
fn column(word: &str) -> Option<Field> {
    let (name, data_type) = word.split_once(':')?;
    Some(field(name, data_type.trim_end_matches('?'), data_type.ends_with('?')))
}

/// A column of a PostgreSQL type. Numbers and flags are not nullable unless declared so.
fn field(name: &str, data_type: &str, is_nullable: bool) -> Field {
    if let Some(item) = data_type.strip_prefix('_') {
        return Field::new(name, DataType::List(Arc::new(field("item", item, true))), true);
    }
    let plain = |of: DataType| Field::new(name, of, is_nullable);
    match data_type {
        "bool" => plain(DataType::Boolean),
        "int2" => plain(DataType::Int16),
        "int4" => plain(DataType::Int32),
        "int8" => plain(DataType::Int64),
        "float4" => plain(DataType::Float32),
        "float8" => plain(DataType::Float64),
        "oid" | "regproc" | "regclass" | "regtype" | "xid" => {
            marked(plain(DataType::Int64), data_type)
        }
        "name" | "char" => marked(plain(DataType::Utf8), data_type),
        "int2vector" | "oidvector" => {
            let item = field("item", data_type.trim_end_matches("vector"), true);
            marked(Field::new(name, DataType::List(Arc::new(item)), true), data_type)
        }
        "timestamptz" => {
            let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            Field::new(name, zoned, true)
        }
        "interval" => Field::new(name, DataType::Interval(IntervalUnit::MonthDayNano), true),
        "numeric" => Field::new(name, DataType::Decimal128(38, 0), true),
        "bytea" => Field::new(name, DataType::Binary, true),
        // Addresses are texts: they have no binary form here.
        "text" | "inet" => Field::new(name, DataType::Utf8, true),
        _ => marked(Field::new(name, DataType::Utf8, true), data_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_sql_common::pg_type::PgType;

    #[test]
    fn tables_have_postgresqls_numbers_and_types() {
        let class = find(&PG_TABLES, "pg_class").expect("it is declared");
        assert_eq!(class.oid, 1259);
        let of = |column: &str| {
            PgType::of_field(class.schema.field_with_name(column).expect("it is a column")).oid
        };
        assert_eq!([of("oid"), of("relname"), of("relkind"), of("reloptions")], [26, 19, 18, 1009]);
        assert!(find(&PG_TABLES, "pg_tables").is_some_and(DeclaredTable::is_view));
        assert!(find(&PG_TABLES, "pg_nothing").is_none());
        for table in PG_TABLES.iter().chain(INFORMATION_TABLES.iter()) {
            assert!(table.oid > 0 && !table.schema.fields().is_empty(), "{}", table.name);
        }
    }
}
