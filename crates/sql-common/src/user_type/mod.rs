//! Types that users create: `CREATE TYPE mood AS ENUM ('sad', 'ok')`.
//!
//! A value of an ENUM is the code of its label, in the declared order, so that comparing, sorting, grouping, joining,
//! indexing and storing it are those of numbers. Arrow has no user-defined types, and metadata of fields is lost in most
//! expressions; a timestamp's type has a text that Arrow and DataFusion keep everywhere: the time zone. The type of a
//! column of an ENUM is a timestamp in seconds whose time zone is the OID of the ENUM, `enum:16777216`. Arrow does not know
//! this time zone, so that a conversion to or from text that does not know the labels fails. Results have texts:
//!
//! ```text
//! 'ok'::mood, m = 'ok'     text ─ the labels ─▶ code       `sql-semantics/src/enums`
//! SELECT m, m::text        code ─ the labels ─▶ text
//! ```
//!
//! Lists cannot hold them: DataFusion displays the literal of a list by the time zone of its items. An array of an ENUM
//! is a list of labels, whose field is marked with the OID.
//!
//! A value of a domain is one of its base type; only the fields of columns and casts carry a mark with its OID.

mod domain_type;
mod enum_type;

use std::sync::Arc;

use atoll_functions::ENUM_ZONE;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::utils::quote_identifier;

use crate::names::SearchPath;
pub use domain_type::{DomainCheck, DomainType};
pub use enum_type::{EnumType, Label, Neighbor};

/// Returns the type of the columns of an ENUM.
pub fn enum_data_type(oid: u32) -> DataType {
    DataType::Timestamp(TimeUnit::Second, Some(format!("{ENUM_ZONE}{oid}").into()))
}

/// Returns the OID of the ENUM whose values have this type.
pub fn enum_oid(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, Some(zone)) => {
            zone.strip_prefix(ENUM_ZONE)?.parse().ok()
        }
        _ => None,
    }
}

/// Returns the OID of the ENUM within a type: its own, or that of the items of a list.
pub fn enum_within(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => enum_within(item.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|it| enum_within(it.data_type())),
        DataType::Dictionary(_, values) => enum_within(values),
        plain => enum_oid(plain),
    }
}

/// Returns the OID of the type of arrays of an ENUM.
pub fn enum_array_oid(oid: u32) -> u32 {
    oid + 1
}

/// Returns the type in which labels leave the database instead of codes.
pub fn as_texts(data_type: &DataType) -> DataType {
    match data_type {
        plain if enum_oid(plain).is_some() => DataType::Utf8View,
        other => other.clone(),
    }
}

/// The user-defined types that a statement sees.
#[derive(Clone, Debug, Default)]
pub struct UserTypes {
    enums: Arc<[Arc<EnumType>]>,
    domains: Arc<[Arc<DomainType>]>,
    path: SearchPath,
}

atoll_functions::statement_extension!(UserTypes, "user_types");

impl UserTypes {
    /// Creates a list of types; unqualified names are looked up in this path.
    pub fn new(enums: Vec<Arc<EnumType>>, domains: Vec<Arc<DomainType>>, path: SearchPath) -> Self {
        Self { enums: enums.into(), domains: domains.into(), path }
    }

    /// Returns the types in a statement's settings.
    pub fn in_options(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get::<Self>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.enums.is_empty() && self.domains.is_empty()
    }

    /// Returns all ENUMs.
    pub fn enums(&self) -> &[Arc<EnumType>] {
        &self.enums
    }

    /// Returns the ENUM with a name.
    pub fn named(&self, schema: Option<&str>, name: &str) -> Option<&Arc<EnumType>> {
        let within =
            |schema: &str| self.enums.iter().find(|of| &*of.name == name && &*of.schema == schema);
        match schema {
            Some(schema) => within(schema),
            None => self.path.schemas().find_map(|schema| within(schema)),
        }
    }

    /// Returns all domains.
    pub fn domains(&self) -> &[Arc<DomainType>] {
        &self.domains
    }

    /// Returns the domain with a name.
    pub fn domain(&self, schema: Option<&str>, name: &str) -> Option<&Arc<DomainType>> {
        let within = |schema: &str| {
            self.domains.iter().find(|of| &*of.name == name && &*of.schema == schema)
        };
        match schema {
            Some(schema) => within(schema),
            None => self.path.schemas().find_map(|schema| within(schema)),
        }
    }

    /// Returns the domain with an OID.
    pub fn domain_numbered(&self, oid: u32) -> Option<&Arc<DomainType>> {
        self.domains.iter().find(|domain| domain.oid == oid)
    }

    /// Returns the name of a domain, with its schema unless the path finds it.
    pub fn shown_domain(&self, domain: &DomainType) -> String {
        match self.domain(None, &domain.name) {
            Some(found) if found.oid == domain.oid => quote_identifier(&domain.name).into_owned(),
            _ => domain.full_name(),
        }
    }

    /// Returns the ENUM with an OID.
    pub fn numbered(&self, oid: u32) -> Option<&Arc<EnumType>> {
        self.enums.iter().find(|of| of.oid == oid)
    }

    /// Whether the path finds an ENUM by its unqualified name.
    pub fn is_visible(&self, of: &EnumType) -> bool {
        self.named(None, &of.name).is_some_and(|found| found.oid == of.oid)
    }

    /// Implements `format_type` for user-defined types; None for others.
    pub fn format_type(&self, oid: i64) -> Option<String> {
        let oid = u32::try_from(oid).ok()?;
        if let Some(domain) = self.domain_numbered(oid) {
            return Some(self.shown_domain(domain));
        }
        match self.numbered(oid) {
            Some(of) => Some(of.shown(self.is_visible(of))),
            None => {
                let item = self.numbered(oid.checked_sub(1)?)?;
                Some(format!("{}[]", item.shown(self.is_visible(item))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_enums_carry_their_oid() {
        let mood = enum_data_type(16_777_216);
        assert_eq!(enum_oid(&mood), Some(16_777_216));
        let list = DataType::new_list(mood.clone(), true);
        assert_eq!((enum_oid(&list), enum_within(&list)), (None, Some(16_777_216)));
        assert_eq!(as_texts(&mood), DataType::Utf8View);
        let moment = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        assert_eq!(enum_within(&moment), None);
        assert_eq!(as_texts(&moment), moment);
    }
}
