//! Views of `information_schema` that DataFusion lacks.

use super::DATABASE_NAME;
use crate::pg_catalog::objects::{ConstraintKind, PgConstraint, PgObjects, PgRelation, RelationOf};
use crate::pg_catalog::rows::{Datum, Rows};

/// The constraints, with their tables.
fn all(objects: &PgObjects) -> impl Iterator<Item = (&PgConstraint, &PgRelation)> {
    objects.constraints.iter().map(|it| (it, &objects.relations[it.table]))
}

/// Names and places, from 1, of a constraint's columns.
fn columns(constraint: &PgConstraint, table: &PgRelation) -> Vec<(usize, String)> {
    let Some(version) = table.table() else { return Vec::new() };
    let fields = version.definition().columns.fields();
    let names = constraint.columns.iter().filter_map(|at| fields.get(*at));
    names.enumerate().map(|(at, field)| (at + 1, field.name().clone())).collect()
}

pub(super) fn constraints(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
        let kind = match constraint.kind {
            ConstraintKind::Primary => "PRIMARY KEY",
            ConstraintKind::Unique => "UNIQUE",
            ConstraintKind::Check => "CHECK",
        };
        rows.add([
            ("constraint_catalog", DATABASE_NAME.into()),
            ("constraint_schema", (&table.schema_name).into()),
            ("constraint_name", (&constraint.name).into()),
            ("table_catalog", DATABASE_NAME.into()),
            ("table_schema", (&table.schema_name).into()),
            ("table_name", (&table.name).into()),
            ("constraint_type", kind.into()),
            ("is_deferrable", "NO".into()),
            ("initially_deferred", "NO".into()),
            ("enforced", "YES".into()),
        ]);
    }
}

pub(super) fn key_columns(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
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
        }
    }
}

pub(super) fn constraint_columns(objects: &PgObjects, rows: &mut Rows) {
    for (constraint, table) in all(objects) {
        for (_, column) in columns(constraint, table) {
            rows.add([
                ("table_catalog", DATABASE_NAME.into()),
                ("table_schema", (&table.schema_name).into()),
                ("table_name", (&table.name).into()),
                ("column_name", column.into()),
                ("constraint_catalog", DATABASE_NAME.into()),
                ("constraint_schema", (&table.schema_name).into()),
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
