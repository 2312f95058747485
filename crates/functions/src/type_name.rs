//! Type names for people: those of DuckDB and of PostgreSQL.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::quote_identifier;

/// The beginning of the time zone that stands for an ENUM in the type of its values.
pub const ENUM_ZONE: &str = "enum:";

/// Returns the SQL name of a type.
pub fn sql_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float16 | DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BLOB",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Timestamp(_, Some(zone)) if zone.starts_with(ENUM_ZONE) => "ENUM",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        other => return nested_name(other),
    };
    name.to_owned()
}

/// Returns PostgreSQL's name of a type, as `pg_typeof` and `format_type` write it; DuckDB's for types that it lacks.
pub(crate) fn postgres_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "unknown",
        DataType::Float64 => "double precision",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        of if of.is_decimal() => "numeric",
        // An array of several dimensions has the type of one.
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let item = postgres_name(item.data_type());
            return format!("{}[]", item.trim_end_matches("[]"));
        }
        DataType::Dictionary(_, values) => return postgres_name(values),
        DataType::RunEndEncoded(_, values) => return postgres_name(values.data_type()),
        other => return sql_name(other).to_lowercase(),
    };
    name.to_owned()
}

fn nested_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => format!("{}[]", sql_name(item.data_type())),
        DataType::FixedSizeList(item, size) => format!("{}[{size}]", sql_name(item.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                format!("{} {}", quote_identifier(field.name()), sql_name(field.data_type()))
            });
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types = fields.iter().map(|field| sql_name(field.data_type()));
                format!("MAP({})", types.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        },
        DataType::Dictionary(_, values) => sql_name(values),
        DataType::RunEndEncoded(_, values) => sql_name(values.data_type()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::datatypes::{Field, TimeUnit};

    #[test]
    fn types_have_duckdbs_names() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let list = DataType::List(field("item", DataType::Int32).into());
        assert_eq!(sql_name(&list), "INTEGER[]");
        let fields = vec![field("a", DataType::Utf8View), field("b c", list)];
        assert_eq!(
            sql_name(&DataType::Struct(fields.into())),
            "STRUCT(a VARCHAR, \"b c\" INTEGER[])"
        );
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(sql_name(&zoned), "TIMESTAMP WITH TIME ZONE");
        assert_eq!(sql_name(&DataType::Decimal128(10, 2)), "DECIMAL(10,2)");
    }

    #[test]
    fn types_have_postgresqls_names() {
        let list = DataType::new_list(DataType::new_list(DataType::Utf8, true), true);
        for (of, name) in [
            (DataType::Decimal128(10, 2), "numeric"),
            (DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp without time zone"),
            (DataType::Int64, "bigint"),
            (list, "text[]"),
        ] {
            assert_eq!(postgres_name(&of), name);
        }
    }
}
