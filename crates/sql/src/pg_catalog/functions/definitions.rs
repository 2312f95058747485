//! The definitions of constraints, indexes and views, and descriptions of objects.

use atoll_sql_common::names::quote_identifier;
use atoll_store::database::Relation;
use datafusion::common::{Result, ScalarValue};

use super::Gives::{Bool, Text};
use super::{Call, Entry, entry, flag, text};
use crate::catalog::ObjectComments;
use crate::pg_catalog::contents::definition_of_check;
use crate::pg_catalog::definition;
use crate::pg_catalog::objects::PgRelation;
use crate::pg_catalog::oid::OidSpace;
use crate::pg_catalog::routine_texts;
use crate::role::rights::Owned;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::parse::Routine;

pub(super) static ENTRIES: &[Entry] = &[
    entry("pg_get_expr", &[2, 3], Text, 1, expression),
    entry("pg_get_constraintdef", &[1, 2], Text, 1, constraint),
    entry("pg_get_indexdef", &[1, 3], Text, 1, index),
    entry("pg_get_viewdef", &[1, 2], Text, 1, view),
    entry("pg_get_ruledef", &[1, 2], Text, 1, nothing),
    entry("pg_get_triggerdef", &[1, 2], Text, 1, nothing),
    entry("pg_get_partkeydef", &[1], Text, 1, nothing),
    entry("pg_get_statisticsobjdef_columns", &[1], Text, 1, nothing),
    entry("pg_get_function_arguments", &[1], Text, 1, arguments),
    entry("pg_get_function_identity_arguments", &[1], Text, 1, identity_arguments),
    entry("pg_get_function_result", &[1], Text, 1, routine_result),
    entry("pg_get_function_sqlbody", &[1], Text, 1, nothing),
    entry("pg_get_functiondef", &[1], Text, 1, macro_text),
    entry("pg_get_serial_sequence", &[2], Text, 2, serial_sequence),
    entry("obj_description", &[1, 2], Text, 1, description),
    entry("col_description", &[2], Text, 2, column_description),
    entry("shobj_description", &[2], Text, 0, nothing),
    entry("pg_index_column_has_property", &[3], Bool, 3, index_property),
    entry("pg_index_has_property", &[2], Bool, 2, index_property),
    entry("pg_indexam_has_property", &[2], Bool, 2, index_property),
];

fn nothing(_: &Call<'_>) -> Result<ScalarValue> {
    text(None::<String>)
}

/// The comment on a relation or schema.
fn description(call: &Call<'_>) -> Result<ScalarValue> {
    let wanted = |catalog: &str| call.text(1).is_none_or(|it| it == catalog);
    let relation = call.relation(0).filter(|_| wanted("pg_class")).map(PgRelation::owned);
    let schema = || {
        let schema = call.objects.schema_name(call.int(0)?).filter(|_| wanted("pg_namespace"))?;
        Some(Owned::Schema(schema.to_string()))
    };
    let of = relation.or_else(schema);
    text(of.and_then(|of| ObjectComments::for_object(&call.objects.version, &of).own))
}

/// The comment on a column, by its number from 1.
fn column_description(call: &Call<'_>) -> Result<ScalarValue> {
    let comment = || {
        let relation = call.relation(0)?;
        let at = usize::try_from(call.int(1)?).ok()?.checked_sub(1)?;
        let column = relation.table()?.definition().columns.fields().get(at)?.name().clone();
        ObjectComments::for_object(&call.objects.version, &relation.owned()).columns.remove(&column)
    };
    text(comment())
}

/// Defaults and checks are kept as text.
fn expression(call: &Call<'_>) -> Result<ScalarValue> {
    text(call.text(0))
}

fn constraint(call: &Call<'_>) -> Result<ScalarValue> {
    let found = call.int(0).and_then(|oid| call.objects.constraint(oid));
    let objects = call.objects;
    let of_domain = || definition_of_check(objects, call.int(0)?);
    let of_table =
        found.map(|(constraint, table)| definition::constraint(objects, constraint, table));
    text(of_table.or_else(of_domain))
}

fn index(call: &Call<'_>) -> Result<ScalarValue> {
    let column = call.int(1).and_then(|column| usize::try_from(column).ok()).unwrap_or(0);
    let is_pretty = call.int(2) == Some(1);
    let found = call.relation(0);
    text(found.and_then(|it| definition::index(call.objects, it, column, is_pretty)))
}

fn view(call: &Call<'_>) -> Result<ScalarValue> {
    text(call.relation(0).and_then(|relation| definition::view(call.objects, relation)))
}

/// The name and the text of the macro with an OID.
fn macro_of(call: &Call<'_>) -> Option<(String, String)> {
    let wanted = call.int(0)?;
    call.objects.version.relations().find_map(|(at, relation)| {
        let Relation::External(statement) = relation else { return None };
        let schema = call.objects.schemas.get(&at.schema)?;
        let is_it = OidSpace::Function.named(*schema, &at.name) == wanted;
        is_it.then(|| (at.name.to_string(), statement.sql.to_string()))
    })
}

fn macro_text(call: &Call<'_>) -> Result<ScalarValue> {
    text(macro_of(call).map(|(_, sql)| sql))
}

fn routine_of(call: &Call<'_>) -> Option<Routine> {
    Routine::parse(&macro_of(call)?.1).ok()?
}

fn routine_result(call: &Call<'_>) -> Result<ScalarValue> {
    text(routine_of(call).and_then(|routine| routine_texts::result(&routine)))
}

fn arguments(call: &Call<'_>) -> Result<ScalarValue> {
    match routine_of(call) {
        Some(routine) => text(Some(routine_texts::arguments(&routine, true))),
        None => macro_arguments(call),
    }
}

fn identity_arguments(call: &Call<'_>) -> Result<ScalarValue> {
    match routine_of(call) {
        Some(routine) => text(Some(routine_texts::arguments(&routine, false))),
        None => macro_arguments(call),
    }
}

/// The text between the parentheses after a macro's name.
fn macro_arguments(call: &Call<'_>) -> Result<ScalarValue> {
    let arguments = macro_of(call).and_then(|(name, sql)| {
        let behind = &sql[sql.to_lowercase().find(&name.to_lowercase())? + name.len()..];
        let (_, inside) = behind.split_once('(')?;
        Some(inside.split_once(')')?.0.trim().to_owned())
    });
    text(Some(arguments.unwrap_or_default()))
}

/// The sequence that numbers a column.
fn serial_sequence(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(relation) = call.relation(0) else {
        return call.missing(SqlState::UNDEFINED_TABLE, "relation", 0);
    };
    let column = call.text(1).unwrap_or_default();
    let found = relation.table().and_then(|table| {
        let definition = table.definition();
        let at = definition.columns.index_of(&column).ok()?;
        let identity = definition.identities.get(at).copied().flatten()?;
        let oid = OidSpace::Sequence.numbered(identity.sequence.get());
        let sequence = call.objects.relation(oid)?;
        let (schema, name) = (&sequence.schema_name, &sequence.name);
        Some(format!("{}.{}", quote_identifier(schema), quote_identifier(name)))
    });
    text(found)
}

/// Indexes are ordered, as B-trees are.
fn index_property(call: &Call<'_>) -> Result<ScalarValue> {
    let property = call.text(call.args.len() - 1).unwrap_or_default();
    let has = ["asc", "nulls_last", "orderable", "can_order", "can_unique", "can_multi_col"];
    flag(has.contains(&property.as_str()))
}
