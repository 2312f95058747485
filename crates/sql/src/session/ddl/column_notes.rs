//! The attributes of a table's columns that DESCRIBE shows besides their types.

use atoll_store::table::{TableDefinition, Unique};
use datafusion::datasource::TableProvider;

use crate::table::PlacedTable;
use crate::table_text::{generated_sql, identity_words};
use atoll_sql_parse::dialect::ColumnNotes;

/// The declared attributes of each column of a stored table: its key, its default and how its values are generated.
pub(in crate::session) fn column_notes(table: &dyn TableProvider) -> Option<Vec<ColumnNotes>> {
    let definition = table.downcast_ref::<PlacedTable>()?.definition();
    Some((0..definition.columns.fields().len()).map(|at| notes(definition, at)).collect())
}

fn notes(definition: &TableDefinition, column: usize) -> ColumnNotes {
    let is_of = |unique: &&Unique| unique.is_plain() && unique.columns.contains(&column);
    let mut keys = definition.uniques.iter().filter(is_of);
    let is_alone = |unique: &&Unique| unique.columns.len() == 1;
    let key = match definition.uniques.iter().filter(is_of).any(|key| key.is_primary) {
        true => Some("PRI"),
        false => keys.find(is_alone).map(|_| "UNI"),
    };
    let default = definition.defaults[column].as_deref();
    if let Some(identity) = definition.identity(column) {
        let kind = identity_words(identity.kind);
        let extra = Some(format!("GENERATED {kind} AS IDENTITY"));
        return ColumnNotes { key, default: None, extra };
    }
    let computed = default.and_then(generated_sql);
    let default = default.filter(|_| computed.is_none()).map(str::to_owned);
    let extra = computed.map(|of| format!("GENERATED ALWAYS AS ({of})"));
    ColumnNotes { key, default, extra }
}
