//! Names of types that DataFusion's planner does not support.
//!
//! ```text
//! MAP(VARCHAR, INT[])          a map
//! HUGEINT                      DECIMAL(38, 0)
//! UBIGINT, INT1, SHORT, LONG   integers
//! UUID, JSON, NAME             VARCHAR
//! TIMESTAMP, TIMESTAMPTZ       microseconds, as in PostgreSQL: the years −290,000 to 290,000
//! UNION(a INT, b VARCHAR)      refused: a column for each of them, or a STRUCT
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, DataType as Sql, ExactNumberInfo,
    Ident, ObjectName, ObjectNamePart, Statement, TimezoneInfo,
};

use atoll_functions::RangeForm;
use atoll_sql_common::pg_type::{as_labels, as_oid, as_varchar};
use atoll_sql_common::user_type::{UserTypes, enum_oid};

/// Plans types of DuckDB and PostgreSQL, and those that users created.
#[derive(Debug, Default)]
pub struct SqlTypes {
    /// The types that users created.
    pub user: UserTypes,
}

impl SqlTypes {
    /// The values of a type that a user created.
    fn of_user(&self, sql_type: &Sql) -> Option<DataType> {
        let Sql::Custom(name, modifiers) = sql_type else { return None };
        if self.user.is_empty() || !modifiers.is_empty() {
            return None;
        }
        let part = |part: &ObjectNamePart| {
            let ident = part.as_ident()?;
            Some(match ident.quote_style {
                Some(_) => ident.value.clone(),
                None => ident.value.to_lowercase(),
            })
        };
        let found = match &name.0[..] {
            [name] => self.user.named(None, &part(name)?),
            [.., schema, name] => self.user.named(Some(&part(schema)?), &part(name)?),
            [] => None,
        };
        found.map(|of| of.data_type())
    }
}

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &Sql) -> Result<Option<FieldRef>> {
        if let Sql::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) = sql_type
            && let Some(oid) = self.of_user(element).as_ref().and_then(enum_oid)
        {
            let labels = DataType::new_list(DataType::Utf8View, true);
            return Ok(Some(Arc::new(as_labels(Field::new("", labels, true), oid))));
        }
        if let Some(varchar) = varchar(sql_type) {
            return Ok(Some(varchar));
        }
        let planned = planned(sql_type)?.or_else(|| self.of_user(sql_type));
        let field = planned.map(|data_type| Field::new("", data_type, true));
        Ok(field.map(|field| Arc::new(if is_oid(sql_type) { as_oid(field) } else { field })))
    }
}

/// VARCHAR as the type of a column, which differs from TEXT for clients; elsewhere VARCHAR is TEXT.
pub(super) fn column_varchar() -> Sql {
    let parts = ["pg_catalog", "varchar"].map(Ident::new);
    Sql::Custom(ObjectName::from(parts.to_vec()), Vec::new())
}

/// The field of such a type, or of an array of it.
fn varchar(sql_type: &Sql) -> Option<FieldRef> {
    let of = match sql_type {
        Sql::Custom(..) if *sql_type == column_varchar() => DataType::Utf8View,
        Sql::Array(
            ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::SquareBracket(item, _),
        ) => DataType::new_list(varchar(item)?.data_type().clone(), true),
        _ => return None,
    };
    Some(Arc::new(as_varchar(Field::new("", of, true))))
}

pub(super) fn is_oid(sql_type: &Sql) -> bool {
    match sql_type {
        Sql::Custom(name, _) => name.to_string().eq_ignore_ascii_case("oid"),
        _ => false,
    }
}

/// Gives TIMESTAMPTZ microseconds, as TIMESTAMP has them: nanoseconds end in 2262. The planner of types cannot, since
/// it does not know the session's time zone.
pub(in crate::dialect) fn widen(sql_type: &mut Sql) {
    match sql_type {
        Sql::Timestamp(precision @ None, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            *precision = Some(6);
        }
        Sql::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => widen(element),
        Sql::Struct(fields, _) => {
            fields.iter_mut().for_each(|field| widen(&mut field.field_type));
        }
        _ => {}
    }
}

/// The same in the columns of a table.
pub(in crate::dialect) fn widen_columns(statement: &mut Statement) {
    match statement {
        Statement::CreateTable(create) => {
            create.columns.iter_mut().for_each(|column| widen(&mut column.data_type));
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddColumn { column_def, .. } => {
                        widen(&mut column_def.data_type);
                    }
                    AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDataType { data_type, .. },
                        ..
                    } => widen(data_type),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// The type of a name; `None` if DataFusion's planner supports it.
fn planned(sql_type: &Sql) -> Result<Option<DataType>> {
    Ok(Some(match sql_type {
        Sql::Map(key, value) => map(inside(key)?, inside(value)?),
        Sql::Union(_) => {
            return not_impl_err!(
                "type UNION is not supported; make a column for each of its members, or a STRUCT of them"
            );
        }
        Sql::Enum(..) => {
            return not_impl_err!(
                "type ENUM is not supported; use VARCHAR with CHECK (column IN ('a', 'b'))"
            );
        }
        Sql::Bit(_) | Sql::BitVarying(_) | Sql::VarBit(_) => {
            return not_impl_err!("type BIT is not supported; use BLOB or an integer");
        }
        Sql::Time(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            return not_impl_err!(
                "type TIME WITH TIME ZONE of less than microseconds is not supported; use TIMETZ"
            );
        }
        Sql::HugeInt | Sql::UHugeInt | Sql::Int128 | Sql::UInt128 => DataType::Decimal128(38, 0),
        Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::UInt32 => DataType::UInt32,
        Sql::USmallInt | Sql::UInt16 => DataType::UInt16,
        Sql::UTinyInt | Sql::UInt8 => DataType::UInt8,
        Sql::Int16 => DataType::Int16,
        Sql::Int32 | Sql::MediumInt(_) | Sql::SignedInteger => DataType::Int32,
        Sql::Int64 | Sql::Signed => DataType::Int64,
        Sql::Float32 => DataType::Float32,
        Sql::Float64 => DataType::Float64,
        Sql::Float(digits) => float(digits)?,
        Sql::Date32 => DataType::Date32,
        Sql::Character(_)
        | Sql::CharacterVarying(_)
        | Sql::CharVarying(_)
        | Sql::Nvarchar(_)
        | Sql::CharacterLargeObject(_)
        | Sql::CharLargeObject(_)
        | Sql::Clob(_)
        | Sql::TinyText
        | Sql::MediumText
        | Sql::LongText
        | Sql::Uuid
        | Sql::JSON
        | Sql::JSONB => DataType::Utf8View,
        Sql::Blob(_)
        | Sql::Binary(_)
        | Sql::Varbinary(_)
        | Sql::Bytes(_)
        | Sql::TinyBlob
        | Sql::MediumBlob
        | Sql::LongBlob => DataType::Binary,
        Sql::Dec(digits) => return decimal(digits).map(Some),
        Sql::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp(unit(*precision), None)
        }
        Sql::Datetime(precision) | Sql::TimestampNtz(precision) => {
            DataType::Timestamp(unit(*precision), None)
        }
        Sql::Time(Some(_), _) => DataType::Time64(TimeUnit::Nanosecond),
        // Microseconds are all that PostgreSQL keeps.
        Sql::Interval { fields: None, precision: Some(6..) } => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        Sql::Interval { fields: None, precision: Some(digits) } => {
            return not_impl_err!(
                "columns of INTERVAL({digits}) are not supported; use INTERVAL, and round values: '1.23 s'::INTERVAL({digits})"
            );
        }
        Sql::Custom(name, modifiers) if modifiers.is_empty() => {
            return Ok(custom(&name.to_string()));
        }
        Sql::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
            "bpchar" | "text" => DataType::Utf8View,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

/// The name of a type in SQL, as columns are declared.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "UTINYINT".to_owned(),
        DataType::UInt16 => "USMALLINT".to_owned(),
        DataType::UInt32 => "UINTEGER".to_owned(),
        DataType::UInt64 => "UBIGINT".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BYTEA".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(..) if enum_oid(data_type).is_some() => "ENUM".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => format!("{}[]", type_name(element.data_type())),
        DataType::FixedSizeList(element, size) => {
            format!("{}[{size}]", type_name(element.data_type()))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                format!("{} {}", quote_identifier(field.name()), type_name(field.data_type()))
            });
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types = fields.iter().map(|field| type_name(field.data_type()));
                format!("MAP({})", types.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        },
        DataType::Dictionary(_, values) => type_name(values),
        other => other.to_string(),
    }
}

fn custom(name: &str) -> Option<DataType> {
    Some(match name.to_ascii_lowercase().as_str() {
        "uinteger" => DataType::UInt32,
        "int1" => DataType::Int8,
        "short" => DataType::Int16,
        "long" | "oid" | "xid" | "cid" => DataType::Int64,
        "logical" => DataType::Boolean,
        "bpchar" | "name" | "uuid" | "\"char\"" | "cstring" | "pg_node_tree" | "jsonpath"
        | "inet" | "cidr" | "macaddr" => DataType::Utf8View,
        "varint" | "bignum" => DataType::Decimal256(76, 0),
        "timestamp_s" => DataType::Timestamp(TimeUnit::Second, None),
        "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "timestamp_us" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        name if RangeForm::named(name).is_some() => DataType::Utf8View,
        _ => return None,
    })
}

fn unit(precision: Option<u64>) -> TimeUnit {
    match precision {
        Some(0) => TimeUnit::Second,
        Some(1..=3) => TimeUnit::Millisecond,
        Some(7..) => TimeUnit::Nanosecond,
        None | Some(_) => TimeUnit::Microsecond,
    }
}

fn decimal(digits: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => (38, 10),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale.unsigned_abs() <= precision => {
            Ok(DataType::Decimal128(precision, scale))
        }
        (Ok(precision @ 39..=76), Ok(scale)) if scale.unsigned_abs() <= precision => {
            Ok(DataType::Decimal256(precision, scale))
        }
        _ => plan_err!(
            "DECIMAL({precision},{scale}): expected 1 to 76 digits, and no more after the point"
        ),
    }
}

/// FLOAT by the bits of its significand, as PostgreSQL has it; DataFusion's is always REAL.
fn float(bits: &ExactNumberInfo) -> Result<DataType> {
    match bits {
        ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => Ok(DataType::Float64),
        ExactNumberInfo::Precision(1..=24) => Ok(DataType::Float32),
        other => plan_err!("FLOAT{other}: expected 1 to 53 bits, as in FLOAT(24)"),
    }
}

/// A type within a map, for which DataFusion's planner is not used.
fn inside(sql_type: &Sql) -> Result<DataType> {
    if let Some(data_type) = planned(sql_type)? {
        return Ok(data_type);
    }
    Ok(match sql_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) => DataType::Int64,
        Sql::Real | Sql::Float4 => DataType::Float32,
        Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 => DataType::Float64,
        Sql::Varchar(_) | Sql::Char(_) | Sql::Text | Sql::String(_) => DataType::Utf8View,
        Sql::Date => DataType::Date32,
        Sql::Time(..) => DataType::Time64(TimeUnit::Nanosecond),
        Sql::Bytea => DataType::Binary,
        Sql::Numeric(digits) | Sql::Decimal(digits) => decimal(digits)?,
        Sql::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, None),
        ) => DataType::new_list(inside(element)?, true),
        Sql::Struct(fields, _) => {
            let fields = fields.iter().enumerate().map(|(at, field)| {
                let name = field.field_name.as_ref().map_or_else(
                    || format!("c{at}"),
                    |name| match name.quote_style {
                        Some(_) => name.value.clone(),
                        None => name.value.to_lowercase(),
                    },
                );
                Ok(Field::new(name, inside(&field.field_type)?, true))
            });
            DataType::Struct(fields.collect::<Result<_>>()?)
        }
        other => return not_impl_err!("type {other} is not supported inside MAP"),
    })
}

fn map(key: DataType, value: DataType) -> DataType {
    // DataFusion looks keys up by literals of this type.
    let key = if key == DataType::Utf8View { DataType::Utf8 } else { key };
    let fields = [Field::new("key", key, false), Field::new("value", value, true)];
    let entries = Field::new("entries", DataType::Struct(fields.into_iter().collect()), false);
    DataType::Map(Arc::new(entries), false)
}
