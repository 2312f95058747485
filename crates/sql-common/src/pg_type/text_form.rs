//! Types whose values are stored as texts in a fixed form.

use std::borrow::Cow;

use atoll_functions::{FunctionFailure, canonical_jsonb, canonical_uuid, is_canonical_uuid};
use datafusion::arrow::datatypes::Field;
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
}

impl Checked {
    /// Returns the SQL name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Jsonb => "JSONB",
            Self::Uuid => "UUID",
        }
    }

    /// Returns the type of a field's texts, if the type has one text for each value.
    pub fn of_field(field: &Field) -> Option<Self> {
        if field.metadata().is_empty() {
            return None;
        }
        Self::of_oid(PgType::of_field(field).oid)
    }

    /// Returns the type with this OID or array OID, if the type has one text for each value.
    pub fn of_oid(oid: u32) -> Option<Self> {
        match PgType::item_of(oid).unwrap_or(oid) {
            type_oid::UUID => Some(Self::Uuid),
            type_oid::JSONB => Some(Self::Jsonb),
            _ => None,
        }
    }

    /// Returns the stored text for a value of the type; None if the text is already in that form.
    ///
    /// # Errors
    /// If the text is not a value of the type.
    pub fn canonical(self, text: &str) -> Result<Option<String>> {
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
        }
    }

    /// Returns the function that checks its texts.
    pub fn test(self) -> &'static str {
        match self {
            Self::Json => "json_valid",
            Self::Jsonb => "jsonb_valid",
            // A lookup by canonical form does not find a UUID in another form.
            Self::Uuid => "uuid_valid",
        }
    }
}

/// Returns the type of a column that has this CHECK constraint; None if the constraint is another.
pub fn type_of_check(sql: &str, column: &str) -> Option<Checked> {
    let is_of = |checked: &Checked| {
        let inner = sql.strip_prefix(checked.test()).and_then(|rest| rest.strip_prefix('('));
        let inner = inner.and_then(|rest| rest.strip_suffix(')'));
        inner.is_some_and(|name| {
            name == column || name == Ident::with_quote('"', column).to_string()
        })
    };
    [Checked::Json, Checked::Jsonb, Checked::Uuid].into_iter().find(is_of)
}
