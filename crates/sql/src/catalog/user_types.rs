//! The types that users created. The store keeps each as a text, in a hidden schema, as it keeps comments.

use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation};

use super::Catalogs;
use crate::role::rights::Owned;
use atoll_sql_common::names::TYPES;
use atoll_sql_common::user_type::{EnumType, UserTypes};

impl Catalogs {
    /// The types that users created, by the names that the search path finds.
    pub(crate) fn user_types(&self) -> UserTypes {
        UserTypes::new(user_types(&self.stored_version()), self.path().clone())
    }
}

/// All types of a version that users created.
pub(crate) fn user_types(version: &DatabaseVersion) -> Vec<Arc<EnumType>> {
    let kept = version.relations_of(TYPES).filter_map(|(entry, relation)| {
        let Relation::External(text) = relation else { return None };
        let Some(Owned::Relation(name)) = Owned::of_entry(&entry.name) else { return None };
        EnumType::parse(name.schema, name.name, &text.sql).map(Arc::new)
    });
    kept.collect()
}
