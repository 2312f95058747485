//! Types whose values are stored as texts in a fixed form.

use std::borrow::Cow;
use std::fmt;

use atoll_functions::temporal::StatementClock;
use atoll_functions::{
    FunctionFailure, NetworkType, RangeForm, RangeType, canonical_jsonb, canonical_timetz,
    canonical_uuid, check_json, is_canonical_uuid,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::Ident;

use super::{PgType, type_oid};
use crate::error::stated_err;

/// A type that is stored as text in a fixed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// JSON.
    Json,
    /// JSON too, which clients see as PostgreSQL's JSONB.
    Jsonb,
    /// A UUID.
    Uuid,
    /// INET, CIDR or MACADDR.
    Network(NetworkType),
    /// TIME WITH TIME ZONE.
    Timetz,
    /// A range or multirange.
    Range(RangeForm),
    /// VARCHAR of at most so many characters.
    Varchar(u32),
    /// CHAR of at most so many characters, without spaces at its end.
    Char(u32),
}

impl Checked {
    /// Returns the name of the type in a mark.
    pub(super) fn mark(self) -> String {
        match self {
            Self::Varchar(length) => format!("varchar({length})"),
            Self::Char(length) => format!("bpchar({length})"),
            other => other.to_string().to_lowercase(),
        }
    }

    /// Whether it limits the length of texts.
    pub fn is_length(self) -> bool {
        matches!(self, Self::Varchar(_) | Self::Char(_))
    }

    /// Returns the type of a field's texts, if the type has one text for each value.
    pub fn of_field(field: &Field) -> Option<Self> {
        if field.metadata().is_empty() {
            return None;
        }
        Self::of_oid(PgType::of_field(field).oid)
    }

    /// Returns the type of a column, or of the items of its arrays, if their values are texts of a form.
    pub fn of_column(field: &Field) -> Option<Self> {
        if field.metadata().is_empty() {
            return None;
        }
        let of = PgType::of_field(field);
        let length = u32::try_from(of.modifier - LENGTH_BASE).ok().filter(|length| *length > 0);
        match (PgType::item_of(of.oid).unwrap_or(of.oid), length) {
            (type_oid::VARCHAR, Some(length)) => Some(Self::Varchar(length)),
            (type_oid::BPCHAR, Some(length)) => Some(Self::Char(length)),
            // Structs and maps are JSON for clients.
            (type_oid::JSON, _) if !has_fields(field.data_type()) => Some(Self::Json),
            (oid, _) => Self::of_oid(oid),
        }
    }

    /// Returns the type with this OID or array OID, if the type has one text for each value.
    pub fn of_oid(oid: u32) -> Option<Self> {
        match PgType::item_of(oid).unwrap_or(oid) {
            type_oid::UUID => Some(Self::Uuid),
            type_oid::JSONB => Some(Self::Jsonb),
            type_oid::INET => Some(Self::Network(NetworkType::Inet)),
            type_oid::CIDR => Some(Self::Network(NetworkType::Cidr)),
            type_oid::MACADDR => Some(Self::Network(NetworkType::Macaddr)),
            type_oid::TIMETZ => Some(Self::Timetz),
            oid => PgType::range_of(oid).map(Self::Range),
        }
    }

    /// Returns the stored text for a value that a cast reads; None if the text is already in that form.
    ///
    /// # Errors
    /// If the text is not a value of the type.
    pub fn read(self, text: &str, clock: StatementClock<'_>) -> Result<Option<String>> {
        if self == Self::Json {
            check_json(text).map_err(FunctionFailure::into_datafusion)?;
        }
        self.canonical(text, clock)
    }

    /// Returns the stored text for a value of the type; None if the text is already in that form. The clock has the
    /// session's time zone, which that of a time in a range is by default.
    ///
    /// # Errors
    /// If the text is not a value of the type.
    pub fn canonical(self, text: &str, clock: StatementClock<'_>) -> Result<Option<String>> {
        match self {
            Self::Json => Ok(None),
            Self::Jsonb => match canonical_jsonb(text).map_err(FunctionFailure::into_datafusion)? {
                Cow::Owned(other) => Ok(Some(other)),
                Cow::Borrowed(_) => Ok(None),
            },
            Self::Uuid if is_canonical_uuid(text) => Ok(None),
            Self::Uuid => match canonical_uuid(text) {
                Some(uuid) => Ok(Some(uuid)),
                None => stated_err!(
                    INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type uuid: '{text}'"
                ),
            },
            Self::Network(of) => {
                let canonical = of.canonical(text).map_err(FunctionFailure::into_datafusion)?;
                Ok((canonical != text).then_some(canonical))
            }
            Self::Range(of) => {
                let canonical =
                    of.canonical(text, clock).map_err(FunctionFailure::into_datafusion)?;
                Ok((canonical != text).then_some(canonical))
            }
            // Only a cast takes the session's zone, which is another on another day.
            Self::Timetz => {
                let canonical = canonical_timetz(text, StatementClock::default())
                    .map_err(FunctionFailure::into_datafusion)?;
                Ok((canonical != text).then_some(canonical))
            }
            Self::Varchar(length) => match fitting(text, length) {
                Some(fitting) => Ok((fitting.len() < text.len()).then(|| fitting.to_owned())),
                None => stated_err!(
                    STRING_DATA_RIGHT_TRUNCATION,
                    "value too long for type character varying({length})"
                ),
            },
            Self::Char(length) => match fitting(text.trim_end_matches(' '), length) {
                Some(fitting) => Ok((fitting.len() < text.len()).then(|| fitting.to_owned())),
                None => stated_err!(
                    STRING_DATA_RIGHT_TRUNCATION,
                    "value too long for type character({length})"
                ),
            },
        }
    }

    /// Returns the function that checks its texts.
    pub fn test(self) -> &'static str {
        match self {
            Self::Json => "json_valid",
            Self::Jsonb => "jsonb_valid",
            // A lookup by canonical form does not find a UUID in another form.
            Self::Uuid => "uuid_valid",
            Self::Timetz => "timetz_valid",
            Self::Range(of) => of.test(),
            Self::Network(NetworkType::Inet) => "inet_valid",
            Self::Network(NetworkType::Cidr) => "cidr_valid",
            Self::Network(NetworkType::Macaddr) => "macaddr_valid",
            Self::Varchar(_) => "varchar_valid",
            Self::Char(_) => "char_valid",
        }
    }

    /// Returns the function whose bytes are in the order of the type; None if the texts are, or if the type has no order.
    pub fn order(self) -> Option<&'static str> {
        match self {
            Self::Jsonb => Some("jsonb_order"),
            Self::Network(NetworkType::Inet | NetworkType::Cidr) => Some("inet_order"),
            Self::Timetz => Some("timetz_order"),
            Self::Range(of) => Some(of.order()),
            Self::Json
            | Self::Uuid
            | Self::Network(NetworkType::Macaddr)
            | Self::Varchar(_)
            | Self::Char(_) => None,
        }
    }

    /// Returns the function that casts the type to TEXT; None if that is the text of a value.
    pub fn to_text(self) -> Option<&'static str> {
        match self {
            Self::Network(NetworkType::Inet) => Some("inet_text"),
            Self::Range(RangeForm { of: RangeType::Tstz, .. }) => Some("range_text"),
            _ => None,
        }
    }

    /// Returns the types that are not limits of lengths.
    pub fn types() -> impl Iterator<Item = Self> {
        use NetworkType::{Cidr, Inet, Macaddr};
        let [inet, cidr, macaddr] = [Inet, Cidr, Macaddr].map(Self::Network);
        let types = [Self::Json, Self::Jsonb, Self::Uuid, inet, cidr, macaddr, Self::Timetz];
        types.into_iter().chain(RangeForm::all().map(Self::Range))
    }

    /// Finds a type that is not a limit of lengths by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::types().find(|form| form.to_string().eq_ignore_ascii_case(name))
    }

    /// Whether equal values may have several texts: numbers in JSONB and in ranges keep zeros at the end of their fraction.
    pub fn has_many_texts(self) -> bool {
        matches!(self, Self::Jsonb | Self::Range(RangeForm { of: RangeType::Num, .. }))
    }

    /// Returns the argument of the function that checks texts after the text.
    pub fn length(self) -> Option<u32> {
        match self {
            Self::Varchar(length) | Self::Char(length) => Some(length),
            Self::Json
            | Self::Jsonb
            | Self::Uuid
            | Self::Network(_)
            | Self::Timetz
            | Self::Range(_) => None,
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json => f.write_str("JSON"),
            Self::Jsonb => f.write_str("JSONB"),
            Self::Uuid => f.write_str("UUID"),
            Self::Network(of) => f.write_str(&of.name().to_uppercase()),
            Self::Timetz => f.write_str("TIMETZ"),
            Self::Range(of) => f.write_str(&of.name().to_uppercase()),
            Self::Varchar(length) => write!(f, "VARCHAR({length})"),
            Self::Char(length) => write!(f, "CHAR({length})"),
        }
    }
}

/// What the modifier of a type with a length adds to it.
const LENGTH_BASE: i32 = 4;

fn has_fields(of: &DataType) -> bool {
    match of {
        DataType::List(item) => has_fields(item.data_type()),
        of => matches!(of, DataType::Struct(_) | DataType::Map(..)),
    }
}

/// The text without those spaces at its end that are beyond so many characters; None if it is longer.
fn fitting(text: &str, length: u32) -> Option<&str> {
    let length = length as usize;
    // A text has no more characters than bytes.
    let Some((end, _)) = (text.len() > length).then(|| text.char_indices().nth(length)).flatten()
    else {
        return Some(text);
    };
    text[end..].bytes().all(|byte| byte == b' ').then(|| &text[..end])
}

/// Returns the type of a column that has this CHECK constraint; None if the constraint is another.
pub fn type_of_check(sql: &str, column: &str) -> Option<Checked> {
    let (test, arguments) = sql.strip_suffix(')')?.split_once('(')?;
    let of_length = |of: fn(u32) -> Checked| {
        let (name, length) = arguments.rsplit_once(", ")?;
        Some((of(length.parse().ok()?), name))
    };
    let (checked, name) = match test {
        "varchar_valid" => of_length(Checked::Varchar)?,
        "char_valid" => of_length(Checked::Char)?,
        test => (Checked::types().find(|of| of.test() == test)?, arguments),
    };
    // The name is as the statement wrote it.
    let is_it = name == column
        || name.to_lowercase() == column
        || name == Ident::with_quote('"', column).to_string();
    is_it.then_some(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_characters_and_cut_spaces() {
        let text = |form: Checked, text: &str| {
            form.canonical(text, StatementClock::default()).map_err(drop)
        };
        assert_eq!(text(Checked::Varchar(3), "abc"), Ok(None));
        assert_eq!(text(Checked::Varchar(3), "äöü"), Ok(None));
        assert_eq!(text(Checked::Varchar(3), "ab   "), Ok(Some("ab ".to_owned())));
        assert_eq!(text(Checked::Varchar(3), "abcd"), Err(()));
        assert_eq!(text(Checked::Varchar(3), "äöüß"), Err(()));
        assert_eq!(text(Checked::Char(3), "ab   "), Ok(Some("ab".to_owned())));
        assert_eq!(text(Checked::Char(3), "abc "), Ok(Some("abc".to_owned())));
        assert_eq!(text(Checked::Char(3), "abcd"), Err(()));
    }

    #[test]
    fn checks_tell_the_types_of_columns() {
        assert_eq!(type_of_check("varchar_valid(a, 3)", "a"), Some(Checked::Varchar(3)));
        assert_eq!(type_of_check("char_valid(\"A, 1\", 3)", "A, 1"), Some(Checked::Char(3)));
        assert_eq!(type_of_check("varchar_valid(a, 3)", "b"), None);
        assert_eq!(type_of_check("uuid_valid(a)", "a"), Some(Checked::Uuid));
        let inet = Checked::Network(NetworkType::Inet);
        assert_eq!(type_of_check("inet_valid(a)", "a"), Some(inet));
    }
}
