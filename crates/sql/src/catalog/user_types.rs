//! The types that users created. The store keeps each as a text, in a hidden schema, as it keeps comments.

use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation};

use super::Catalogs;
use crate::role::rights::Owned;
use atoll_sql_common::names::TYPES;
use atoll_sql_common::user_type::{DomainType, EnumType, UserTypes};

impl Catalogs {
    /// The types that users created, by the names that the search path finds.
    pub(crate) fn user_types(&self) -> UserTypes {
        let version = self.stored_version();
        UserTypes::new(user_types(&version), domains(&version), self.path().clone())
    }
}

/// All ENUMs of a version.
pub(crate) fn user_types(version: &DatabaseVersion) -> Vec<Arc<EnumType>> {
    kept(version, EnumType::parse)
}

/// All domains of a version.
pub(crate) fn domains(version: &DatabaseVersion) -> Vec<Arc<DomainType>> {
    kept(version, DomainType::parse)
}

/// The types of a version that can be parsed, by their schemas, names and texts.
fn kept<T>(
    version: &DatabaseVersion,
    parse: impl Fn(Arc<str>, Arc<str>, &str) -> Option<T>,
) -> Vec<Arc<T>> {
    let kept = version.relations_of(TYPES).filter_map(|(entry, relation)| {
        let Relation::External(text) = relation else { return None };
        let Some(Owned::Relation(name)) = Owned::of_entry(&entry.name) else { return None };
        parse(name.schema, name.name, &text.sql).map(Arc::new)
    });
    kept.collect()
}
