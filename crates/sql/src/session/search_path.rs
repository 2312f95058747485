//! `search_path`: the schemas in which names without one are looked up, in turn; what is made under such a name goes to
//! the first of them that exists.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use datafusion::common::config::CatalogOptions;

use super::Session;
use super::parameters::SEARCH_PATH;
use crate::catalog::{CATALOG, Catalogs, SCHEMA, SearchPath, TEMPORARY};
use crate::pg_catalog::PG_CATALOG_SCHEMA;

/// Stands for the schema that is called like the user.
const USER: &str = "$user";

impl Session {
    /// The search path, with schemas that do not exist.
    pub(super) fn search_path(&self) -> SearchPath {
        let listed = self.listed_schemas(&self.catalog_options());
        SearchPath::new(listed, self.catalogs.temporary_schema().cloned())
    }

    /// The settings that say what names without a schema mean.
    pub(super) fn catalog_options(&self) -> CatalogOptions {
        let state = self.context.state_ref();
        let state = state.read();
        state.config_options().catalog.clone()
    }

    /// Has these names and settings follow the search path.
    pub(super) fn follow_search_path(&self, names: &mut Catalogs, options: &mut CatalogOptions) {
        names.set_path(self.listed_schemas(options));
        if options.default_catalog == CATALOG {
            let schema = names.path().created_in();
            options.default_schema = schema.map(ToString::to_string).unwrap_or_default();
        }
    }

    fn listed_schemas(&self, options: &CatalogOptions) -> Vec<Arc<str>> {
        if options.default_catalog != CATALOG {
            return Vec::new();
        }
        let path = self.parameters.get(SEARCH_PATH).unwrap_or_default();
        // The engine's own setting may have been set since.
        if options.default_schema != first_schema(&path) {
            return vec![options.default_schema.as_str().into()];
        }
        let user = &self.identity().user;
        let named = |schema: String| -> Arc<str> {
            if schema == USER { Arc::from(&**user) } else { schema.into() }
        };
        schemas_in(&path).map(named).collect()
    }
}

/// The first schema of a path, as far as that tells without knowing which there are.
pub(super) fn first_schema(path: &str) -> String {
    let mut schemas = schemas_in(path).filter(|schema| schema != USER && schema != TEMPORARY);
    schemas.next().unwrap_or_else(|| SCHEMA.to_owned())
}

/// The schemas of a path but for `pg_catalog`, whose tables are found without it.
fn schemas_in(path: &str) -> impl Iterator<Item = String> {
    let mut letters = path.chars().peekable();
    let mut schemas = Vec::new();
    while letters.peek().is_some() {
        schemas.push(next_schema(&mut letters));
    }
    schemas.into_iter().filter(|schema| !schema.is_empty() && schema != PG_CATALOG_SCHEMA)
}

/// The name before the next comma: in lower case, but for what is in quotes.
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
