//! The script of EXPORT DATABASE, which recreates a database.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{
    Database, DatabaseVersion, Relation, RelationName, SequenceDefinition, StoredStatement,
    is_temporary_schema,
};
use atoll_store::table::{Identity, IdentityKind, TableDefinition, TableVersion};
use datafusion::common::config::SqlParserOptions;
use datafusion::common::{Result, exec_err};

use crate::catalog::{MaterializedView, ObjectComments, domains, user_types};
use crate::role::is_hidden;
use crate::role::rights::Owned;
use crate::session::ddl::create::sequence_of;
use crate::session::ddl::views::views_in_order;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table_text::{
    IndexParts, checked_domain, foreign_key_text, identity_words, unique_text,
};
use atoll_sql_common::names::SCHEMA;
use atoll_sql_common::pg_type::{domain_oid, enum_of, is_varchar, type_of_check};
use atoll_sql_common::user_type::{UserTypes, enum_oid};
use atoll_sql_files::has_interval;

/// What precedes the file of a table.
pub(super) const FROM_FILE: &str = "AS SELECT * FROM '";

/// The file of a table: letters, digits and `_` of its name, and all else by number, so that two tables never share
/// one. It is a Parquet file, or an Arrow file for intervals, some of which Parquet cannot hold.
pub(super) fn file_of(name: &RelationName, table: &TableVersion) -> String {
    let plain = |name: &str| {
        let mut plain = String::with_capacity(name.len());
        for letter in name.chars() {
            match letter.is_alphanumeric() || letter == '_' {
                true => plain.push(letter),
                false => drop(write!(plain, "-{:x}-", u32::from(letter))),
            }
        }
        plain
    };
    let mut columns = table.definition().columns.fields().iter();
    let has_intervals = columns.any(|column| has_interval(column.data_type()));
    let ending = if has_intervals { "arrow" } else { "parquet" };
    format!("{}.{}.{ending}", plain(&name.schema), plain(&name.name))
}

pub(super) fn full(name: &RelationName) -> String {
    format!("{}.{}", quoted(&name.schema), quoted(&name.name))
}

/// The statements that recreate a database.
pub(super) fn load_script(planner: &StatementPlanner, version: &DatabaseVersion) -> Result<String> {
    let mut script = String::new();
    for schema in version.schemas().filter(|schema| &***schema != SCHEMA && is_kept(schema)) {
        line(&mut script, &format!("CREATE SCHEMA {}", quoted(schema)));
    }
    for of in user_types(version).iter().filter(|of| is_kept(&of.schema)) {
        line(&mut script, &of.definition());
    }
    for domain in domains(version).iter().filter(|domain| is_kept(&domain.schema)) {
        line(&mut script, &domain.definition());
    }
    let relations = || version.relations().filter(|(name, _)| is_kept(&name.schema));
    let owned: HashSet<SequenceId> = version
        .tables()
        .flat_map(|(_, table)| table.definition().identities.iter().flatten())
        .filter(|identity| identity.kind != IdentityKind::Serial)
        .map(|identity| identity.sequence)
        .collect();
    let store = planner.database.store();
    let mut made = HashSet::new();
    let types = planner.names.user_types();
    for (name, relation) in relations() {
        if let Relation::Sequence(id) = relation
            && !owned.contains(id)
            && let Some(sequence) = version.sequence(*id)
        {
            let options = options_of(&sequence.definition);
            line(&mut script, &format!("CREATE SEQUENCE {} {options}", full(name)));
            write_last(&mut script, name, store.last_value(*id, sequence));
            made.insert(name.clone());
        }
    }
    let mut materialized = Vec::new();
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && let Some(table) = version.table(*id)
        {
            made.insert(name.clone());
            if MaterializedView::find(version, name)?.is_some() {
                materialized.push((name, table));
                continue;
            }
            write_table(&mut script, name, table, &types);
            write_identities(&mut script, (version, store), (name, table), &mut made)?;
        }
    }
    let is_materialized = |name: &RelationName| materialized.iter().any(|(it, _)| *it == name);
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && !is_materialized(name)
            && let Some(table) = version.table(*id)
        {
            write_indexes(&mut script, name, table.definition());
        }
    }
    for (name, relation) in relations() {
        if let Relation::Table(id) = relation
            && let Some(table) = version.table(*id)
        {
            write_foreign_keys(&mut script, version, name, table.definition());
        }
    }
    let external = relations().filter_map(|(_, relation)| match relation {
        Relation::External(text) => Some(Arc::clone(text)),
        _ => None,
    });
    let mut texts: Vec<_> = external.collect();
    texts.extend(views_in_order(planner, version)?);
    let begins_with = SettingsOfText::default();
    let mut settings = begins_with.clone();
    for text in texts {
        settings = settings.set(SettingsOfText::from_stored(&text), &mut script);
        line(&mut script, text.sql.trim_end_matches([';', ' ', '\n']));
    }
    settings.set(begins_with, &mut script);
    for (name, table) in materialized {
        write_indexes(&mut script, name, table.definition());
    }
    write_comments(&mut script, version);
    Ok(script)
}

/// The settings under which a text was written, with their values.
#[derive(Clone)]
struct SettingsOfText([(&'static str, String); 3]);

impl Default for SettingsOfText {
    fn default() -> Self {
        Self::plain(SCHEMA)
    }
}

impl SettingsOfText {
    fn with(dialect: &str, normalizes: &str, schema: &str) -> Self {
        Self([
            ("datafusion.sql_parser.dialect", dialect.to_owned()),
            ("datafusion.sql_parser.enable_ident_normalization", normalizes.to_owned()),
            ("datafusion.catalog.default_schema", schema.to_owned()),
        ])
    }

    fn plain(schema: &str) -> Self {
        let of = SqlParserOptions::default();
        let normalizes = of.enable_ident_normalization.to_string();
        Self::with(of.dialect.as_ref(), &normalizes, schema)
    }

    fn from_stored(text: &StoredStatement) -> Self {
        match text.options.split(' ').collect::<Vec<_>>()[..] {
            [dialect, normalizes, ..] => Self::with(dialect, normalizes, &text.schema),
            _ => Self::plain(&text.schema),
        }
    }

    /// Writes the settings that differ from these.
    fn set(self, wanted: Self, script: &mut String) -> Self {
        for ((_, before), (name, value)) in self.0.iter().zip(&wanted.0) {
            if before != value {
                line(script, &format!("SET {name} = '{}'", value.replace('\'', "''")));
            }
        }
        wanted
    }
}

/// Writes COMMENT ON statements for all objects.
fn write_comments(script: &mut String, version: &DatabaseVersion) {
    let mut comment = |on: String, text: &str| {
        line(script, &format!("COMMENT ON {on} IS '{}'", text.replace('\'', "''")));
    };
    for schema in version.schemas().filter(|schema| is_kept(schema)) {
        let comments = ObjectComments::for_object(version, &Owned::Schema(schema.to_string()));
        comments.own.iter().for_each(|own| comment(format!("SCHEMA {}", quoted(schema)), own));
    }
    for (name, relation) in version.relations().filter(|(name, _)| is_kept(&name.schema)) {
        let comments = ObjectComments::for_object(version, &Owned::Relation(name.clone()));
        let (kind, full) = (relation.kind().to_uppercase(), full(name));
        comments.own.iter().for_each(|own| comment(format!("{kind} {full}"), own));
        for (column, text) in &comments.columns {
            comment(format!("COLUMN {full}.{}", quoted(column)), text);
        }
        for (constraint, text) in &comments.constraints {
            comment(format!("CONSTRAINT {} ON {full}", quoted(constraint)), text);
        }
    }
}

fn line(script: &mut String, statement: &str) {
    script.push_str(statement);
    script.push_str(";\n");
}

pub(in crate::session) fn options_of(sequence: &SequenceDefinition) -> String {
    let SequenceDefinition { increment, min, max, start, cycle, cache } = sequence;
    let cycle = if *cycle { " CYCLE" } else { "" };
    format!(
        "INCREMENT BY {increment} MINVALUE {min} MAXVALUE {max} START {start} CACHE {cache}{cycle}"
    )
}

/// Restores the position of a sequence.
fn write_last(script: &mut String, name: &RelationName, last: Option<i64>) {
    if let Some(last) = last {
        let name = full(name).replace('\'', "''");
        line(script, &format!("SELECT setval('{name}', {last})"));
    }
}

/// Loads the table from its file, then adds its declarations.
fn write_table(script: &mut String, name: &RelationName, table: &TableVersion, types: &UserTypes) {
    let definition = table.definition();
    let (full, file) = (full(name), file_of(name, table).replace('\'', "''"));
    let placement = definition.placement;
    line(
        script,
        &format!("CREATE TABLE {full} WITH (placement = '{placement}') {FROM_FILE}{file}'"),
    );
    let retyped = definition.columns.fields().iter().filter_map(|field| {
        let (of, list) = match domain_oid(field).and_then(|oid| types.domain_numbered(oid)) {
            Some(domain) => (domain.full_name(), ""),
            None if is_varchar(field) => {
                ("VARCHAR".to_owned(), if field.data_type().is_nested() { "[]" } else { "" })
            }
            None => {
                let is_list = enum_oid(field.data_type()).is_none();
                let of = types.numbered(enum_of(field)?)?.shown(false);
                (of, if is_list { "[]" } else { "" })
            }
        };
        Some(format!("ALTER COLUMN {} SET DATA TYPE {of}{list}", quoted(field.name())))
    });
    let retyped: Vec<String> = retyped.collect();
    if !retyped.is_empty() {
        line(script, &format!("ALTER TABLE {full} {}", retyped.join(", ")));
    }
    let declared = declared(definition);
    if !declared.is_empty() {
        line(script, &format!("ALTER TABLE {full} {}", declared.join(", ")));
    }
}

/// Indexes that are not those of constraints.
fn write_indexes(script: &mut String, name: &RelationName, definition: &TableDefinition) {
    for unique in definition.uniques.iter().filter(|unique| unique.is_index) {
        let parts = IndexParts::from_unique(unique);
        line(script, &parts.create_text(&unique.name, name, definition));
    }
    for index in &definition.indexes {
        let parts = IndexParts::from_index(index);
        line(script, &parts.create_text(&index.name, name, definition));
    }
    for index in &definition.catalog_indexes {
        let parts = IndexParts::from_catalog(index);
        line(script, &parts.create_text(&index.name, name, definition));
    }
}

/// Foreign keys, once all tables exist.
fn write_foreign_keys(
    script: &mut String,
    version: &DatabaseVersion,
    name: &RelationName,
    definition: &TableDefinition,
) {
    for key in &definition.foreign_keys {
        let text = foreign_key_text(key, definition, version, true);
        let (table, key) = (full(name), quoted(&key.name));
        line(script, &format!("ALTER TABLE {table} ADD CONSTRAINT {key} {text}"));
    }
}

/// Identities with the names and positions of their sequences; `made` are the names that exist at this point of the
/// script.
fn write_identities(
    script: &mut String,
    (version, store): (&DatabaseVersion, &Database),
    (table, stored): (&RelationName, &TableVersion),
    made: &mut HashSet<RelationName>,
) -> Result<()> {
    let definition = stored.definition();
    let identities = definition.columns.fields().iter().zip(&definition.identities);
    for (column, identity) in identities {
        let Some(Identity { kind, sequence: id }) = identity else { continue };
        let (Some(sequence), Some(name)) = (version.sequence(*id), version.sequence_name(*id))
        else {
            return exec_err!("sequence {id} of an identity is not there");
        };
        let (full_table, column_name) = (full(table), quoted(column.name()));
        if *kind == IdentityKind::Serial {
            let owned =
                format!("ALTER SEQUENCE {} OWNED BY {full_table}.{column_name}", full(name));
            line(script, &owned);
            continue;
        }
        let kind = identity_words(*kind);
        let options = options_of(&sequence.definition);
        line(
            script,
            &format!(
                "ALTER TABLE {full_table} ALTER COLUMN {column_name} ADD GENERATED {kind} AS IDENTITY ({options})"
            ),
        );
        let given = sequence_of(table, column.name(), |name| made.contains(name));
        if given != *name {
            let rename =
                format!("ALTER SEQUENCE {} RENAME TO {}", full(&given), quoted(&name.name));
            line(script, &rename);
        }
        write_last(script, name, store.last_value(*id, sequence));
        made.insert(name.clone());
    }
    Ok(())
}

fn declared(definition: &TableDefinition) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, field) in definition.columns.fields().iter().enumerate() {
        let column = quoted(field.name());
        if !field.is_nullable() {
            parts.push(format!("ALTER COLUMN {column} SET NOT NULL"));
        }
        if definition.identity(at).is_none()
            && let Some(default) = &definition.defaults[at]
        {
            parts.push(format!("ALTER COLUMN {column} SET DEFAULT {default}"));
        }
    }
    for unique in definition.uniques.iter().filter(|unique| !unique.is_index) {
        let name = quoted(&unique.name);
        parts.push(format!("ADD CONSTRAINT {name} {}", unique_text(unique, definition)));
    }
    let checks = definition.checks.iter();
    let is_of_domain = |check: &str| {
        let mut fields = definition.columns.fields().iter();
        checked_domain(check).is_some()
            || fields.any(|field| {
                domain_oid(field).is_some() && type_of_check(check, field.name()).is_some()
            })
    };
    for check in checks.filter(|check| !is_of_domain(&check.sql)) {
        let mut part = format!("ADD CONSTRAINT {}", quoted(&check.name));
        let _ = write!(part, " CHECK ({})", check.sql);
        parts.push(part);
    }
    parts
}

/// Whether a schema is exported: internal ones and those of sessions are not.
pub(super) fn is_kept(schema: &str) -> bool {
    !is_hidden(schema) && !is_temporary_schema(schema)
}
