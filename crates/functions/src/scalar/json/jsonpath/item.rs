//! A value that a path finds or computes.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;

use super::super::jsonb;
use super::super::value::{Json, JsonFailure, quote};
use super::tree::Relation;

/// A value; part of a JSON value, or computed.
#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    Json(&'a Json<'a>),
    Null,
    Flag(bool),
    Number(BigDecimal),
    Text(String),
    /// What `.keyvalue()` returns for a member: its key and value, and the number of its object.
    Member(&'a str, &'a Json<'a>, usize),
}

/// What a predicate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(super) fn of(flag: bool) -> Self {
        if flag { Self::True } else { Self::False }
    }
}

impl<'a> Item<'a> {
    pub(super) fn number(&self) -> Option<BigDecimal> {
        match self {
            Self::Json(Json::Number(digits)) => digits.parse().ok(),
            Self::Number(number) => Some(number.clone()),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Json(Json::Text(text)) => Some(text),
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self {
            Self::Json(Json::Flag(flag)) | Self::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(Json::Null) | Self::Null)
    }

    /// Returns the items of a list.
    pub(super) fn items(&self) -> Option<&'a [Json<'a>]> {
        match self {
            Self::Json(Json::List(items)) => Some(items),
            _ => None,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Json(Json::Object(_)) | Self::Member(..))
    }

    /// Returns the value of a key of an object.
    pub(super) fn member(&self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Json(json), key) => json.get(key).map(Self::Json),
            (Self::Member(name, ..), "key") => Some(Self::Text((*name).to_owned())),
            (Self::Member(_, value, _), "value") => Some(Self::Json(value)),
            (Self::Member(_, _, object), "id") => Some(Self::Number((*object as u64).into())),
            _ => None,
        }
    }

    /// Returns the values within a list or an object; None for others.
    pub(super) fn values(&self) -> Option<Vec<Self>> {
        match self {
            Self::Json(Json::List(items)) => Some(items.iter().map(Self::Json).collect()),
            Self::Json(Json::Object(pairs)) => {
                Some(pairs.iter().map(|(_, value)| Self::Json(value)).collect())
            }
            Self::Member(..) => ["id", "key", "value"].iter().map(|key| self.member(key)).collect(),
            _ => None,
        }
    }

    /// Returns the name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Json(json) => json.kind(),
            Self::Null => "null",
            Self::Flag(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Member(..) => "object",
        }
    }

    /// Compares two items; only scalars of one type have an order, and null only differs from others.
    pub(super) fn is(&self, relation: Relation, other: &Self) -> Truth {
        let order = match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) | (false, true) => return Truth::of(relation == Relation::NotEqual),
            (false, false) => match self.order(other) {
                Some(order) => order,
                None => return Truth::Unknown,
            },
        };
        Truth::of(match relation {
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::AtMost => order.is_le(),
            Relation::Greater => order.is_gt(),
            Relation::AtLeast => order.is_ge(),
        })
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        if let (Some(left), Some(right)) = (self.flag(), other.flag()) {
            return Some(left.cmp(&right));
        }
        if let (Some(left), Some(right)) = (self.text(), other.text()) {
            return Some(left.cmp(right));
        }
        Some(self.number()?.cmp(&other.number()?))
    }

    /// Writes the item as JSONB.
    pub(super) fn write(&self, out: &mut String) -> Result<(), JsonFailure> {
        match self {
            Self::Json(json) => jsonb::write(json, out)?,
            Self::Null => out.push_str("null"),
            Self::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => out.push_str(&number.to_plain_string()),
            Self::Text(text) => quote(text, out),
            Self::Member(name, value, object) => {
                out.push_str(&format!("{{\"id\": {object}, \"key\": "));
                quote(name, out);
                out.push_str(", \"value\": ");
                jsonb::write(value, out)?;
                out.push('}');
            }
        }
        Ok(())
    }
}
