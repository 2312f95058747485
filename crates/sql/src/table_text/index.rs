//! The text of CREATE INDEX.

use atoll_sql_common::names::quote_identifier;
use atoll_store::database::RelationName;
use atoll_store::table::{Index, IndexKey, TableDefinition, Unique};

/// The statement that creates an index that is not unique.
pub(crate) fn index_text(index: &Index, at: &RelationName, definition: &TableDefinition) -> String {
    let Index { name, keys, included } = index;
    create_index_text(name, false, at, definition, (keys, included))
}

/// The statement that creates a unique index.
pub(crate) fn unique_index_text(
    unique: &Unique,
    at: &RelationName,
    definition: &TableDefinition,
) -> String {
    let key = |column: &usize| IndexKey { column: *column, descending: false, nulls_first: false };
    let keys: Vec<IndexKey> = unique.columns.iter().map(key).collect();
    create_index_text(&unique.name, true, at, definition, (&keys, &[]))
}

/// `CREATE INDEX i ON s.t USING btree (a, b DESC) INCLUDE (c)`
pub(crate) fn create_index_text(
    name: &str,
    is_unique: bool,
    at: &RelationName,
    definition: &TableDefinition,
    (keys, included): (&[IndexKey], &[usize]),
) -> String {
    let column = |column: usize| {
        let field = definition.columns.fields().get(column);
        field.map(|field| quote_identifier(field.name()).into_owned()).unwrap_or_default()
    };
    let key = |key: &IndexKey| {
        let order = match (key.descending, key.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        format!("{}{order}", column(key.column))
    };
    let mut text = format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({})",
        if is_unique { "UNIQUE " } else { "" },
        quote_identifier(name),
        quote_identifier(&at.schema),
        quote_identifier(&at.name),
        keys.iter().map(key).collect::<Vec<_>>().join(", ")
    );
    if !included.is_empty() {
        let columns: Vec<String> = included.iter().map(|at| column(*at)).collect();
        text.push_str(&format!(" INCLUDE ({})", columns.join(", ")));
    }
    text
}
