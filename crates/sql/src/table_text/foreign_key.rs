//! A foreign key as SQL, in PostgreSQL's words and order.

use atoll_sql_common::names::quote_identifier;
use atoll_store::database::{DatabaseVersion, is_temporary_schema};
use atoll_store::table::{Deferral, ForeignKey, ReferentialAction, TableDefinition};

use atoll_sql_common::names::SCHEMA;

/// `FOREIGN KEY (a, b) REFERENCES p(x, y) ON DELETE CASCADE`; the parent is qualified if necessary, or always.
pub(crate) fn foreign_key_text(
    key: &ForeignKey,
    own: &TableDefinition,
    version: &DatabaseVersion,
    with_schema: bool,
) -> String {
    let parent = version.table(key.parent).map(|parent| parent.definition().as_ref());
    let columns = column_names(own, &key.columns);
    let parent_columns =
        parent.map_or_else(String::new, |parent| column_names(parent, &key.parent_columns));
    let name = version.table_name(key.parent).map_or_else(String::new, |name| {
        let table = quote_identifier(&name.name);
        let is_plain = &*name.schema == SCHEMA || is_temporary_schema(&name.schema);
        match is_plain && !with_schema {
            true => table.into_owned(),
            false => format!("{}.{table}", quote_identifier(&name.schema)),
        }
    });
    let mut text = format!("FOREIGN KEY ({columns}) REFERENCES {name}({parent_columns})");
    if key.is_full {
        text.push_str(" MATCH FULL");
    }
    for (when, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != ReferentialAction::NoAction {
            text.push_str(&format!(" ON {when} {}", action_word(action)));
        }
    }
    text.push_str(deferral_words(key.deferral));
    text
}

/// The words of a constraint that say whether its check can be deferred.
pub(super) fn deferral_words(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::Never => "",
        Deferral::InitiallyImmediate => " DEFERRABLE",
        Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
    }
}

fn column_names(definition: &TableDefinition, columns: &[usize]) -> String {
    let fields = columns.iter().filter_map(|at| definition.columns.fields().get(*at));
    let names = fields.map(|field| quote_identifier(field.name()).into_owned());
    names.collect::<Vec<_>>().join(", ")
}

/// `SET NULL`
pub(crate) fn action_word(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}
