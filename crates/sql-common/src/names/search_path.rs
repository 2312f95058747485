//! The schemas that are searched for unqualified names, as in PostgreSQL's `search_path`.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, RelationName, is_temporary_schema};

use super::{PG_CATALOG_SCHEMA, SCHEMA, TEMPORARY};

/// Stands for the schema named after the user.
pub const USER: &str = "$user";

/// Schemas in search order.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    listed: Arc<[Arc<str>]>,
    /// The schema of the session's temporary tables, if names may mean those: it comes first unless it is
    /// listed.
    temporary: Option<Arc<str>>,
}

impl SearchPath {
    /// Creates a path of these schemas, in which `pg_temp` is the schema of the session's temporary tables.
    pub fn new(listed: Vec<Arc<str>>, temporary: Option<Arc<str>>) -> Self {
        let named = |schema: Arc<str>| match &temporary {
            Some(own) if &*schema == TEMPORARY => Arc::clone(own),
            _ => schema,
        };
        Self { listed: listed.into_iter().map(named).collect(), temporary }
    }

    /// Returns the schema of temporary tables.
    pub fn temporary(&self) -> Option<&Arc<str>> {
        self.temporary.as_ref()
    }

    /// Returns the listed schemas.
    pub fn listed(&self) -> &[Arc<str>] {
        &self.listed
    }

    /// Returns the schema of temporary tables if it is not listed.
    pub fn before_listed(&self) -> Option<&Arc<str>> {
        self.temporary.as_ref().filter(|own| !self.listed.contains(own))
    }

    /// Returns all schemas in search order.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<str>> {
        self.before_listed().into_iter().chain(self.listed.iter())
    }

    /// Returns the schema in which unqualified names are created.
    pub fn created_in(&self) -> Option<&Arc<str>> {
        self.listed.iter().find(|schema| !is_temporary_schema(schema))
    }

    /// Returns the schema that the store uses for unqualified names.
    pub fn relation(&self, version: &DatabaseVersion, name: &str) -> Option<RelationName> {
        let mut names = self.schemas().map(|schema| RelationName::new(Arc::clone(schema), name));
        names.find(|name| version.relation(name).is_some())
    }
}

/// Returns the first schema of a path, without checking which schemas exist.
pub fn first_schema(path: &str) -> String {
    let mut schemas = schemas_in(path).filter(|schema| schema != USER && schema != TEMPORARY);
    schemas.next().unwrap_or_else(|| SCHEMA.to_owned())
}

/// Returns the schemas of a path except `pg_catalog`, whose tables are always found.
pub fn schemas_in(path: &str) -> impl Iterator<Item = String> {
    let mut letters = path.chars().peekable();
    let mut schemas = Vec::new();
    while letters.peek().is_some() {
        schemas.push(next_schema(&mut letters));
    }
    schemas.into_iter().filter(|schema| !schema.is_empty() && schema != PG_CATALOG_SCHEMA)
}

/// Returns the name before the next comma: in lower case, unless quoted.
fn next_schema(letters: &mut Peekable<Chars<'_>>) -> String {
    let (mut name, mut is_quoted) = (String::new(), false);
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => break,
            letter if is_quoted => name.push(letter),
            letter if letter.is_whitespace() => {}
            letter => name.extend(letter.to_lowercase()),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_path_are_folded_unless_they_are_quoted() {
        let schemas = |path| schemas_in(path).collect::<Vec<_>>();
        assert_eq!(schemas("a, Public,\"B c\""), ["a", "public", "B c"]);
        assert_eq!(schemas("\"a, \"\"b\"\"\",pg_catalog"), ["a, \"b\""]);
        assert!(schemas("\"\"").is_empty());
        assert_eq!(first_schema("\"$user\", pg_temp, s, public"), "s");
        assert_eq!(first_schema(""), "public");
    }
}
