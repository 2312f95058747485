//! The views over relations that people read: `pg_tables`, `pg_views`, …

use std::sync::Arc;

use atoll_store::database::{Relation, RelationName};

use super::relations::sequence_type;
use super::user_relations;
use crate::database::Database;
use crate::pg_catalog::definition;
use crate::pg_catalog::objects::{PgObjects, RelationOf};
use crate::pg_catalog::rows::Rows;

pub(super) fn tables(objects: &PgObjects, rows: &mut Rows) {
    for relation in objects.relations.iter().filter(|relation| relation.kind() == "r") {
        let has_indexes = relation.table().is_some_and(|table| table.definition().has_indexes());
        rows.add([
            ("schemaname", (&relation.schema_name).into()),
            ("tablename", (&relation.name).into()),
            ("tableowner", objects.owner_of(relation).into()),
            ("hasindexes", has_indexes.into()),
        ]);
    }
}

pub(super) fn views(objects: &PgObjects, rows: &mut Rows) {
    for relation in objects.relations.iter().filter(|relation| relation.kind() == "v") {
        rows.add([
            ("schemaname", (&relation.schema_name).into()),
            ("viewname", (&relation.name).into()),
            ("viewowner", objects.owner_of(relation).into()),
            ("definition", definition::view(objects, relation).into()),
        ]);
    }
}

pub(super) fn materialized_views(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Materialized { table, made } = &relation.of else { continue };
        rows.add([
            ("schemaname", (&relation.schema_name).into()),
            ("matviewname", (&relation.name).into()),
            ("matviewowner", objects.owner_of(relation).into()),
            ("hasindexes", table.definition().has_indexes().into()),
            ("ispopulated", made.is_populated.into()),
            ("definition", definition::view(objects, relation).into()),
        ]);
    }
}

pub(super) fn indexes(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Index { table, .. } = &relation.of else { continue };
        let Some(table) = objects.relation(*table) else { continue };
        rows.add([
            ("schemaname", (&relation.schema_name).into()),
            ("tablename", (&table.name).into()),
            ("indexname", (&relation.name).into()),
            ("indexdef", definition::index(objects, relation, 0, false).into()),
        ]);
    }
}

pub(super) fn sequences(objects: &PgObjects, database: &Database, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Sequence(state) = &relation.of else { continue };
        let definition = &state.definition;
        let (schema, name) = (Arc::clone(&relation.schema_name), Arc::clone(&relation.name));
        let last = match objects.version.relation(&RelationName::new(schema, name)) {
            Some(Relation::Sequence(id)) => database.store().last_value(*id, state),
            _ => state.last,
        };
        rows.add([
            ("schemaname", (&relation.schema_name).into()),
            ("sequencename", (&relation.name).into()),
            ("sequenceowner", objects.owner_of(relation).into()),
            ("data_type", sequence_type(objects, relation, definition).into()),
            ("start_value", definition.start.into()),
            ("min_value", definition.min.into()),
            ("max_value", definition.max.into()),
            ("increment_by", definition.increment.into()),
            ("cycle", definition.cycle.into()),
            ("cache_size", i64::from(definition.cache).into()),
            ("last_value", last.into()),
        ]);
    }
}

pub(super) fn table_statistics(objects: &PgObjects, rows: &mut Rows) {
    for relation in user_relations(objects) {
        let Some(table) = relation.table() else { continue };
        rows.add([
            ("relid", relation.oid.into()),
            ("schemaname", (&relation.schema_name).into()),
            ("relname", (&relation.name).into()),
            ("n_live_tup", table.rows().into()),
            ("n_dead_tup", table.deleted_rows().into()),
        ]);
    }
}

/// Which tables there are: blocks are not counted.
pub(super) fn table_reads(objects: &PgObjects, rows: &mut Rows) {
    for relation in user_relations(objects).filter(|relation| relation.table().is_some()) {
        rows.add([
            ("relid", relation.oid.into()),
            ("schemaname", (&relation.schema_name).into()),
            ("relname", (&relation.name).into()),
        ]);
    }
}

pub(super) fn index_statistics(objects: &PgObjects, rows: &mut Rows) {
    for relation in &objects.relations {
        let RelationOf::Index { table, .. } = &relation.of else { continue };
        let Some(table) = objects.relation(*table) else { continue };
        rows.add([
            ("relid", table.oid.into()),
            ("indexrelid", relation.oid.into()),
            ("schemaname", (&relation.schema_name).into()),
            ("relname", (&table.name).into()),
            ("indexrelname", (&relation.name).into()),
        ]);
    }
}
