//! Views of `information_schema` that DataFusion lacks.

use super::{DATABASE_NAME, domains};
use atoll_store::table::Deferral;

use crate::pg_catalog::objects::{
    ConstraintKind, PgConstraint, PgObjects, PgReference, PgRelation, RelationOf,
};
use crate::pg_catalog::rows::{Datum, Rows};
use crate::role::rights::{ObjectRights, PUBLIC, Right};
use crate::table_text::action_word;

/// The constraints, with their tables.
fn all(objects: &PgObjects) -> impl Iterator<Item = (&PgConstraint, &PgRelation)> {
    objects.constraints.iter().map(|it| (it, &objects.relations[it.table]))
}

/// Names and places, from 1, of a constraint's columns.
fn columns(constraint: &PgConstraint, table: &PgRelation) -> Vec<(usize, String)> {
    named(&constraint.columns, table)
}

fn named(columns: &[usize], table: &PgRelation) -> Vec<(usize, String)> {
    let Some(version) = table.table() else { return Vec::new() };
    let fields = version.definition().columns.fields();
    let names = columns.iter().filter_map(|at| fields.get(*at));
    names.enumerate().map(|(at, field)| (at + 1, field.name().clone())).collect()
}

pub(super) fn constraints(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
        let kind = match constraint.kind {
            ConstraintKind::Primary => "PRIMARY KEY",
            ConstraintKind::Unique => "UNIQUE",
            ConstraintKind::Check => "CHECK",
            ConstraintKind::Foreign => "FOREIGN KEY",
        };
        let yes_or_no = |is: bool| if is { "YES" } else { "NO" };
        let is_deferrable = constraint.deferral != Deferral::Never;
        let is_deferred = constraint.deferral == Deferral::InitiallyDeferred;
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&table.schema_name).into()),
            ("constraint_name", (&constraint.name).into()),
            ("table_catalog", DATABASE_NAME.into()),
            ("table_schema", (&table.schema_name).into()),
            ("table_name", (&table.name).into()),
            ("constraint_type", kind.into()),
            ("is_deferrable", yes_or_no(is_deferrable).into()),
            ("initially_deferred", yes_or_no(is_deferred).into()),
            ("enforced", "YES".into()),
        ]);
    }
}

pub(super) fn key_columns(objects: &PgObjects, rows: &mut Rows) {
    let keys = all(objects).filter(|(constraint, _)| constraint.kind != ConstraintKind::Check);
    for (constraint, table) in keys {
        for (at, column) in columns(constraint, table) {
            rows.add([
                ("constraint_catalog", DATABASE_NAME.into()),
                ("constraint_schema", (&table.schema_name).into()),
                ("constraint_name", (&constraint.name).into()),
                ("table_catalog", DATABASE_NAME.into()),
                ("table_schema", (&table.schema_name).into()),
                ("table_name", (&table.name).into()),
                ("column_name", column.into()),
                ("ordinal_position", at.into()),
            ]);
            if let Some(at) = place_in_unique(objects, constraint, at - 1) {
                rows.set("position_in_unique_constraint", at.into());
            }
        }
    }
}

/// The position, from 1, of the referenced column in the unique constraint that a foreign key's column refers to.
fn place_in_unique(objects: &PgObjects, constraint: &PgConstraint, at: usize) -> Option<usize> {
    let PgReference { key, unique, .. } = constraint.references.as_ref()?;
    let unique = &objects.constraints[(*unique)?];
    let column = key.parent_columns.get(at)?;
    unique.columns.iter().position(|other| other == column).map(|place| place + 1)
}

/// Foreign keys with the constraints that they refer to.
pub(super) fn references(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
        let Some(PgReference { key, parent, unique }) = &constraint.references else { continue };
        let unique = unique.map(|unique| &objects.constraints[unique].name);
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&table.schema_name).into()),
            ("constraint_name", (&constraint.name).into()),
            ("unique_constraint_catalog", DATABASE_NAME.into()),
            ("unique_constraint_schema", (&objects.relations[*parent].schema_name).into()),
            ("unique_constraint_name", unique.into()),
            ("match_option", if key.is_full { "FULL" } else { "NONE" }.into()),
            ("update_rule", action_word(key.on_update).into()),
            ("delete_rule", action_word(key.on_delete).into()),
        ]);
    }
}

/// The columns that constraints use: those that a foreign key refers to.
pub(super) fn constraint_columns(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, own) in all(objects) {
        let (table, columns) = match &constraint.references {
            Some(PgReference { key, parent, .. }) => {
                let parent = &objects.relations[*parent];
                (parent, named(&key.parent_columns, parent))
            }
            None => (own, columns(constraint, own)),
        };
        for (_, column) in columns {
            rows.add([
                ("table_catalog", DATABASE_NAME.into()),
                ("table_schema", (&table.schema_name).into()),
                ("table_name", (&table.name).into()),
                ("column_name", column.into()),
                ("constraint_catalog", DATABASE_NAME.into()),
                ("constraint_schema", (&own.schema_name).into()),
                ("constraint_name", (&constraint.name).into()),
            ]);
        }
    }
}

pub(super) fn checks(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
        let check: Datum = match &constraint.check {
            Some(check) => check.into(),
            None => continue,
        };
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&table.schema_name).into()),
            ("constraint_name", (&constraint.name).into()),
            ("check_clause", check),
        ]);
    }
    for (domain, check) in domains::checks(objects) {
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&domain.schema).into()),
            ("constraint_name", (&check.name).into()),
            ("check_clause", (&check.sql).into()),
        ]);
    }
}

/// The rights on tables and views: those of their owners, and granted ones.
pub(super) fn privileges(objects: &PgObjects, rows: &mut Rows) {
    for relation in super::user_relations(objects) {
        let is_read = matches!(relation.of, RelationOf::Table(_) | RelationOf::View(_));
        if !is_read {
            continue;
        }
        let (object, owner) = (relation.owned(), objects.owner_of(relation));
        let rights = ObjectRights::for_object(&objects.version, &object);
        let own = object.rights(&objects.version).iter().map(|right| (owner.clone(), *right, true));
        let granted = rights.grants.iter().flat_map(|(role, rights)| {
            rights.iter().map(|(right, with_option)| (role.clone(), *right, *with_option))
        });
        for (role, right, with_option) in own.chain(granted) {
            let grantee = if role == PUBLIC { "PUBLIC".to_owned() } else { role };
            rows.add([
                ("grantor", (&*owner).into()),
                ("grantee", grantee.into()),
                ("table_catalog", DATABASE_NAME.into()),
                ("table_schema", (&relation.schema_name).into()),
                ("table_name", (&relation.name).into()),
                ("privilege_type", right.word().into()),
                ("is_grantable", if with_option { "YES" } else { "NO" }.into()),
                ("with_hierarchy", if right == Right::Select { "YES" } else { "NO" }.into()),
            ]);
        }
    }
}

pub(super) fn sequences(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Sequence(state) = &relation.of else { continue };
        let definition = &state.definition;
        rows.add([
            ("sequence_catalog", DATABASE_NAME.into()),
            ("sequence_schema", (&relation.schema_name).into()),
            ("sequence_name", (&relation.name).into()),
            ("data_type", "bigint".into()),
            ("numeric_precision", 64_i64.into()),
            ("numeric_precision_radix", 2_i64.into()),
            ("start_value", definition.start.to_string().into()),
            ("minimum_value", definition.min.to_string().into()),
            ("maximum_value", definition.max.to_string().into()),
            ("increment", definition.increment.to_string().into()),
            ("cycle_option", if definition.cycle { "YES" } else { "NO" }.into()),
        ]);
    }
}
