//! Mapping of Arrow types to PostgreSQL types, and the list of types.

mod text_form;

use std::sync::LazyLock;

use atoll_functions::RangeForm;
use datafusion::arrow::datatypes::{DataType, Field};

use crate::user_type::{enum_array_oid, enum_oid, enum_within};
pub use text_form::{Checked, type_of_check};

/// OIDs of types.
pub mod type_oid {
    #![expect(missing_docs, reason = "each is the number of the type of its name")]
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT2VECTOR: u32 = 22;
    pub const INT4: u32 = 23;
    pub const REGPROC: u32 = 24;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const XID: u32 = 28;
    pub const OIDVECTOR: u32 = 30;
    pub const JSON: u32 = 114;
    pub const CIDR: u32 = 650;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const MACADDR: u32 = 829;
    pub const INET: u32 = 869;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const TIMETZ: u32 = 1266;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
    pub const UUID_ARRAY: u32 = 2951;
    pub const JSONB: u32 = 3802;
    pub const RECORD: u32 = 2249;
    pub const REGCLASS: u32 = 2205;
    pub const REGTYPE: u32 = 2206;
}

use type_oid::{
    BOOL, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, INTERVAL, JSON, NUMERIC, TEXT, TIME,
    TIMESTAMP, TIMESTAMPTZ,
};

/// The OIDs of user-defined types, which are even; that of the type of its arrays follows each.
pub const USER_TYPE_OIDS: std::ops::Range<u32> = 1 << 24..1 << 28;

/// Whether an OID is that of a user-defined type that is not an array.
pub fn is_of_users(oid: u32) -> bool {
    USER_TYPE_OIDS.contains(&oid) && oid.is_multiple_of(2)
}

/// Metadata key of a field whose type Arrow lacks; its value names the type.
const MARK: &str = "ARROW:extension:name";
const OURS: &str = "atoll.pg_type.";
const ARROW_JSON: &str = "arrow.json";

/// A PostgreSQL type with the attributes of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgType {
    /// Its OID in `pg_type`.
    pub oid: u32,
    /// Bytes of a value, or -1 if variable.
    pub length: i16,
    /// The type modifier, or -1.
    pub modifier: i32,
}

impl PgType {
    /// Returns the type of a column.
    pub fn of_field(field: &Field) -> Self {
        match field.metadata().get(MARK).map(String::as_str) {
            Some(ARROW_JSON) => Self::plain(JSON, -1),
            Some(mark) => {
                let name = mark.strip_prefix(OURS);
                if let Some(of) = name.and_then(Self::of_labels) {
                    return of;
                }
                if let Some(of) = name.and_then(Self::of_length) {
                    return of;
                }
                let array = || name?.strip_prefix('_').and_then(TypeEntry::named);
                match (name.and_then(TypeEntry::named), array()) {
                    (Some(entry), _) => Self::plain(entry.oid, entry.length),
                    (None, Some(item)) => Self::plain(item.array, -1),
                    (None, None) => Self::from_data_type(field.data_type()),
                }
            }
            None => Self::from_data_type(field.data_type()),
        }
    }

    /// Maps an Arrow type. Types that PostgreSQL lacks become the next wider one, or JSON.
    pub fn from_data_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::plain(BOOL, 1),
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => Self::plain(INT2, 2),
            DataType::UInt16 | DataType::Int32 => Self::plain(INT4, 4),
            DataType::UInt32 | DataType::Int64 => Self::plain(INT8, 8),
            DataType::UInt64 => Self::numeric(20, 0),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => Self::numeric(*precision, *scale),
            DataType::Float16 | DataType::Float32 => Self::plain(FLOAT4, 4),
            DataType::Float64 => Self::plain(FLOAT8, 8),
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::plain(BYTEA, -1),
            DataType::Date32 | DataType::Date64 => Self::plain(DATE, 4),
            DataType::Time32(_) | DataType::Time64(_) => Self::plain(TIME, 8),
            DataType::Timestamp(_, None) => Self::plain(TIMESTAMP, 8),
            DataType::Timestamp(_, Some(_)) => match enum_oid(data_type) {
                Some(oid) => Self::plain(oid, ENUM_LENGTH),
                None => Self::plain(TIMESTAMPTZ, 8),
            },
            DataType::Interval(_) | DataType::Duration(_) => Self::plain(INTERVAL, 16),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::list(item)
            }
            DataType::Struct(_) | DataType::Map(..) => Self::plain(JSON, -1),
            DataType::Dictionary(_, values) => Self::from_data_type(values),
            DataType::RunEndEncoded(_, values) => Self::of_field(values),
            _ => Self::plain(TEXT, -1),
        }
    }

    fn plain(oid: u32, length: i16) -> Self {
        Self { oid, length, modifier: -1 }
    }

    fn numeric(precision: u8, scale: i8) -> Self {
        let modifier = (i32::from(precision) << 16 | (i32::from(scale) & 0x7ff)) + 4;
        Self { oid: NUMERIC, length: -1, modifier }
    }

    /// A list of lists is an array of several dimensions, whose type is that of arrays of one.
    fn list(item: &Field) -> Self {
        let oid = Self::of_field(item).oid;
        if Self::item_of(oid).is_some() {
            return Self::plain(oid, -1);
        }
        if is_of_users(oid) {
            return Self::plain(enum_array_oid(oid), -1);
        }
        let item = TypeEntry::numbered(oid);
        match item.map(|item| item.array) {
            None | Some(0) => Self::plain(JSON, -1),
            Some(oid) => Self::plain(oid, -1),
        }
    }

    /// VARCHAR or CHAR with a length, or lists of them, by the name in its mark.
    fn of_length(name: &str) -> Option<Self> {
        let (of, length) = name.strip_suffix(')')?.split_once('(')?;
        let modifier = length.parse::<i32>().ok()?.checked_add(4)?;
        let oid = match of.strip_prefix('_') {
            Some(item) => TypeEntry::named(item)?.array,
            None => TypeEntry::named(of)?.oid,
        };
        Some(Self { oid, length: -1, modifier })
    }

    /// The type of labels of an ENUM, or of lists of them, by the name in their mark.
    fn of_labels(name: &str) -> Option<Self> {
        let oid = |name: &str| name.strip_prefix(LABELS_OF)?.parse::<u32>().ok();
        match name.strip_prefix('_') {
            Some(item) => Some(Self::plain(enum_array_oid(oid(item)?), -1)),
            None => Some(Self::plain(oid(name)?, ENUM_LENGTH)),
        }
    }

    /// Returns the OID of the array type with these elements.
    pub fn array_of(item: u32) -> Option<u32> {
        if is_of_users(item) {
            return Some(enum_array_oid(item));
        }
        TypeEntry::numbered(item).map(|entry| entry.array).filter(|array| *array != 0)
    }

    /// Returns the name of a field's type in its mark, unless the mark also has a length, labels or a domain, or is VARCHAR:
    /// expressions of texts are TEXT.
    pub fn mark_of(field: &Field) -> Option<String> {
        match field.metadata().get(MARK)?.as_str() {
            _ if is_varchar(field) => None,
            ARROW_JSON => Some("json".to_owned()),
            mark => {
                let name = mark.strip_prefix(OURS)?;
                (!name.contains(['(', ':'])).then(|| name.to_owned())
            }
        }
    }

    /// Returns the item field of a list whose element type Arrow lacks.
    pub fn marked_items(field: &Field) -> Option<Field> {
        let name = field.metadata().get(MARK)?.strip_prefix(OURS)?.strip_prefix('_')?;
        match field.data_type() {
            DataType::List(item) => {
                let item = item.as_ref().clone();
                Some(marked(item, name))
            }
            _ => None,
        }
    }

    /// Returns the type of ranges or multiranges with this OID.
    pub fn range_of(oid: u32) -> Option<RangeForm> {
        let entry = TypeEntry::numbered(oid).filter(|entry| entry.is_range())?;
        RangeForm::named(entry.name)
    }

    /// Returns the element type's OID of an array type.
    pub fn item_of(array: u32) -> Option<u32> {
        if let Some(item) = array.checked_sub(1).filter(|item| is_of_users(*item)) {
            return Some(item);
        }
        let found = TYPES.iter().find(|entry| entry.array == array && array != 0);
        found.map(|entry| entry.oid)
    }
}

/// Marks a field with a type that Arrow lacks.
pub fn marked(field: Field, name: &str) -> Field {
    if name == "json" {
        return as_json(field);
    }
    field.with_metadata([(MARK.to_owned(), format!("{OURS}{name}"))].into())
}

/// The OID in the mark of a field that holds labels of an ENUM follows this.
const LABELS_OF: &str = "enum:";

/// The bytes of a value of an ENUM, as PostgreSQL counts them.
const ENUM_LENGTH: i16 = 4;

/// Marks a field of texts, or of lists of texts, as labels of an ENUM.
pub fn as_labels(field: Field, oid: u32) -> Field {
    let list = if field.data_type().is_nested() { "_" } else { "" };
    let name = format!("{list}{}", labels_name(oid));
    marked(field, &name)
}

/// Returns the name of the labels of an ENUM in a mark.
pub fn labels_name(oid: u32) -> String {
    format!("{LABELS_OF}{oid}")
}

/// Returns the OID of the ENUM whose labels are the items of a field's arrays.
pub fn array_of_enum(field: &Field) -> Option<u32> {
    match field.data_type() {
        DataType::List(_) if !field.metadata().is_empty() => {
            let item = PgType::item_of(PgType::of_field(field).oid)?;
            is_of_users(item).then_some(item)
        }
        _ => None,
    }
}

/// Returns the OID of the ENUM of a field's values, or of the items of its arrays.
pub fn enum_of(field: &Field) -> Option<u32> {
    enum_within(field.data_type()).or_else(|| array_of_enum(field))
}

/// The OID in the mark of a field of a domain follows this.
const OF_DOMAIN: &str = "domain:";

/// Marks a field as a domain. Its values are, and clients see, the base type.
pub fn as_domain(field: Field, oid: u32) -> Field {
    marked(field, &format!("{OF_DOMAIN}{oid}"))
}

/// Returns the OID of a field's domain.
pub fn domain_oid(field: &Field) -> Option<u32> {
    field.metadata().get(MARK)?.strip_prefix(OURS)?.strip_prefix(OF_DOMAIN)?.parse().ok()
}

/// Marks a field as OIDs.
pub fn as_oid(field: Field) -> Field {
    marked(field, "oid")
}

/// Whether the numbers of a field are OIDs.
pub fn is_oid(field: &Field) -> bool {
    field.data_type().is_integer()
        && !field.metadata().is_empty()
        && PgType::of_field(field).oid == type_oid::OID
}

/// Marks a field of texts, or of lists of texts, as VARCHAR; without a mark it is TEXT.
pub fn as_varchar(field: Field) -> Field {
    let list = if field.data_type().is_nested() { "_" } else { "" };
    marked(field, &format!("{list}varchar"))
}

/// Whether a field is VARCHAR without a length, or lists of it.
pub fn is_varchar(field: &Field) -> bool {
    let mark = field.metadata().get(MARK).and_then(|mark| mark.strip_prefix(OURS));
    matches!(mark, Some("varchar" | "_varchar"))
}

/// Whether the mark of a field is that of its type, without a constraint: arrays of an ENUM, OIDs and VARCHAR.
pub fn is_marked_by_type(field: &Field) -> bool {
    array_of_enum(field).is_some() || is_oid(field) || is_varchar(field)
}

/// Marks a field as texts of a type.
pub fn as_checked(of: Checked, field: Field) -> Field {
    marked(field, &of.mark())
}

/// Marks a field as JSON.
pub fn as_json(field: Field) -> Field {
    field.with_metadata([(MARK.to_owned(), ARROW_JSON.to_owned())].into())
}

/// Marks a field as lists of values of a type.
pub fn as_list_of(item: Checked, field: Field) -> Field {
    marked(field, &format!("_{}", item.mark()))
}

/// Whether the texts of a field are UUIDs.
pub fn is_uuid(field: &Field) -> bool {
    let metadata = field.metadata();
    !metadata.is_empty() && PgType::of_field(field).oid == type_oid::UUID
}

/// A row of `pg_type`.
#[derive(Debug)]
pub struct TypeEntry {
    /// Its name in `pg_type`.
    pub name: &'static str,
    /// Its OID.
    pub oid: u32,
    /// The OID of its array type, or 0.
    pub array: u32,
    /// Bytes of a value; -1 if variable.
    pub length: i16,
    /// `typtype`.
    pub kind: &'static str,
    /// `typcategory`.
    pub category: &'static str,
    /// `typispreferred`.
    pub is_preferred: bool,
    /// Its SQL name.
    pub(crate) sql: &'static str,
}

/// All types except arrays.
pub static TYPES: LazyLock<Vec<TypeEntry>> = LazyLock::new(|| {
    let lines = include_str!("types.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(TypeEntry::of_line).collect()
});

impl TypeEntry {
    fn of_line(line: &'static str) -> Option<Self> {
        let mut words = line.splitn(8, ' ');
        let name = words.next()?;
        Some(Self {
            name,
            oid: words.next()?.parse().ok()?,
            array: words.next()?.parse().ok()?,
            length: words.next()?.parse().ok()?,
            kind: words.next()?,
            category: words.next()?,
            is_preferred: words.next()? == "P",
            sql: words.next().unwrap_or(name),
        })
    }

    /// Whether it is a type of ranges or multiranges.
    pub fn is_range(&self) -> bool {
        matches!(self.kind, "r" | "m")
    }

    /// Finds a type by its name in `pg_type`.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|entry| entry.name == name)
    }

    /// Finds a type by its OID.
    pub fn numbered(oid: u32) -> Option<&'static Self> {
        TYPES.iter().find(|entry| entry.oid == oid)
    }
}

/// Implements `format_type`.
pub fn format_type(oid: i64, modifier: i32) -> String {
    let Ok(oid) = u32::try_from(oid) else { return "???".to_owned() };
    if oid == 0 {
        return "-".to_owned();
    }
    let (item, brackets) = match PgType::item_of(oid) {
        Some(item) => (item, "[]"),
        None => (oid, ""),
    };
    let Some(entry) = TypeEntry::numbered(item) else { return "???".to_owned() };
    let digits = match item {
        NUMERIC if modifier >= 4 => {
            let packed = modifier - 4;
            format!("({},{})", packed >> 16, packed & 0x7ff)
        }
        type_oid::VARCHAR | type_oid::BPCHAR if modifier >= 4 => format!("({})", modifier - 4),
        _ => String::new(),
    };
    format!("{}{digits}{brackets}", entry.sql)
}

/// Returns the SQL type of a column: `numeric(10,2)`.
pub fn sql_type(field: &Field) -> String {
    let of = PgType::of_field(field);
    format_type(of.oid.into(), of.modifier)
}

/// Returns the name of a column's type in `information_schema`: SQL's, without digits and lengths.
pub fn information_type(field: &Field) -> String {
    let oid = PgType::of_field(field).oid;
    match PgType::item_of(oid) {
        Some(_) => "ARRAY".to_owned(),
        None => format_type(oid.into(), -1),
    }
}

/// Returns the name of a column's type in `pg_type`.
pub fn type_name(field: &Field) -> String {
    let oid = PgType::of_field(field).oid;
    match (TypeEntry::numbered(oid), PgType::item_of(oid).and_then(TypeEntry::numbered)) {
        (Some(entry), _) => entry.name.to_owned(),
        (None, Some(item)) => format!("_{}", item.name),
        (None, None) => oid.to_string(),
    }
}

/// Returns the type modifier that a declaration such as `NUMERIC(10, 2)` or `VARCHAR(3)` gives, or -1.
pub fn declared_modifier(declared: &str) -> i32 {
    let digits = || {
        let (_, digits) = declared.trim().strip_suffix(')')?.split_once('(')?;
        digits
            .split(',')
            .map(|number| number.trim().parse::<i32>().ok())
            .collect::<Option<Vec<_>>>()
    };
    let oid = type_named(declared).and_then(|oid| u32::try_from(oid).ok());
    match (oid, digits().as_deref()) {
        (Some(NUMERIC), Some([precision])) => (precision << 16) + 4,
        (Some(NUMERIC), Some([precision, scale])) => (precision << 16 | scale & 0x7ff) + 4,
        (Some(type_oid::VARCHAR | type_oid::BPCHAR), Some([length])) => length + 4,
        _ => -1,
    }
}

/// Returns the OID of the type with this SQL or PostgreSQL name, if it exists.
pub fn type_named(name: &str) -> Option<i64> {
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(item) => (item.trim(), true),
        None => (name, false),
    };
    let plain = match name.find('(') {
        Some(open) => name[..open].trim(),
        None => name,
    };
    let lower = plain.to_lowercase();
    let unquoted = lower.trim_matches('"');
    let (unquoted, is_array) = match unquoted.strip_prefix('_') {
        Some(item) if !is_array => (item, true),
        _ => (unquoted, is_array),
    };
    let short = match unquoted {
        "int" => "int4",
        "decimal" => "numeric",
        "double" => "float8",
        "float" => "float8",
        other => other,
    };
    let is_named = |entry: &&TypeEntry| entry.name == short || entry.sql == lower;
    let entry = TYPES.iter().find(is_named)?;
    match is_array {
        true if entry.array == 0 => None,
        true => Some(entry.array.into()),
        false => Some(entry.oid.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_names_and_written_as_in_sql() {
        for (name, oid, sql) in [
            ("int", 23, "integer"),
            ("pg_catalog.int8", 20, "bigint"),
            ("character varying(20)", 1043, "character varying"),
            ("timestamp with time zone", 1184, "timestamp with time zone"),
            ("_text", 1009, "text[]"),
            ("numeric(10, 2)[]", 1231, "numeric[]"),
            ("\"char\"", 18, "\"char\""),
        ] {
            assert_eq!(type_named(name), Some(oid), "{name}");
            assert_eq!(format_type(oid, -1), sql, "{name}");
        }
        let uuid = as_checked(Checked::Uuid, Field::new("id", DataType::Utf8View, true));
        let (key, mark) = atoll_functions::UUID_MARK;
        assert_eq!(uuid.metadata().get(key).map(String::as_str), Some(mark));
        assert!(is_uuid(&uuid) && !is_uuid(&Field::new("id", DataType::Utf8View, true)));
        assert_eq!(type_named("nothing"), None);
        let lists = Field::new("ids", DataType::new_list(DataType::Utf8View, true), true);
        for (of, name) in
            [(Checked::Uuid, "uuid"), (Checked::Json, "json"), (Checked::Jsonb, "jsonb")]
        {
            let marked = as_list_of(of, lists.clone());
            assert_eq!(sql_type(&marked), format!("{name}[]"));
            let item = PgType::marked_items(&marked).expect("items");
            assert_eq!(sql_type(&item), name);
        }
        assert_eq!(PgType::marked_items(&lists), None);
        let decimal = PgType::from_data_type(&DataType::Decimal128(10, 2));
        assert_eq!(format_type(decimal.oid.into(), decimal.modifier), "numeric(10,2)");
        assert_eq!(format_type(0, -1), "-");
    }
}
