//! `CREATE TABLE t (LIKE u INCLUDING INDEXES)`: the indexes of CREATE INDEX of another table. Those of constraints are
//! copied with the constraints.

use std::sync::Arc;

use atoll_sql_common::error::stated_err;
use atoll_store::database::RelationName;
use atoll_store::table::{CatalogIndex, CatalogKeyOf, Index, IndexKey, TableDefinition, Unique};
use datafusion::common::Result;

use super::unused_name;
use crate::session::plan::planner::StatementPlanner;
use crate::table_text::IndexParts;

/// The tables whose indexes a new table gets.
#[derive(Debug, Default)]
pub(in crate::session) struct CopiedIndexes {
    pub(in crate::session) tables: Vec<Arc<TableDefinition>>,
}

impl CopiedIndexes {
    /// Adds the indexes to the definition of the new table.
    pub(in crate::session) fn add_to(
        &self,
        planner: &StatementPlanner,
        at: &RelationName,
        definition: &mut TableDefinition,
    ) -> Result<()> {
        let version = planner.names.stored_version();
        for from in &self.tables {
            for unique in from.uniques.iter().filter(|unique| unique.is_index) {
                let parts = name_parts(&IndexParts::from_unique(unique), from);
                let copy = unique_like(unique, from, definition)?;
                let name = unused_name(&version, at, definition, &parts).into();
                definition.uniques.push(Unique { name, ..copy });
            }
            for index in &from.indexes {
                let parts = name_parts(&IndexParts::from_index(index), from);
                let keys = index.keys.iter().map(|key| {
                    Ok(IndexKey { column: column_like(key.column, from, definition)?, ..*key })
                });
                let included = columns_like(&index.included, from, definition)?;
                let name = unused_name(&version, at, definition, &parts).into();
                let keys = keys.collect::<Result<_>>()?;
                definition.indexes.push(Index { name, keys, included, ..index.clone() });
            }
            for index in &from.catalog_indexes {
                let parts = name_parts(&IndexParts::from_catalog(index), from);
                let name = unused_name(&version, at, definition, &parts).into();
                let mut copy = CatalogIndex { name, ..index.clone() };
                copy.included = columns_like(&index.included, from, definition)?;
                for key in &mut copy.keys {
                    if let CatalogKeyOf::Column(column) = &mut key.of {
                        *column = column_like(*column, from, definition)?;
                    }
                }
                definition.catalog_indexes.push(copy);
            }
        }
        Ok(())
    }
}

/// What the default name of an index says of its columns.
fn name_parts(parts: &IndexParts, definition: &TableDefinition) -> Vec<String> {
    let keys = parts.keys.iter().enumerate().map(|(place, key)| match parts.expression(place) {
        Some(sql) => match sql.split_once('(') {
            Some((function, _)) if !function.is_empty() => function.to_lowercase(),
            _ => "expr".to_owned(),
        },
        None => definition.columns.field(key.column).name().clone(),
    });
    let included = parts.included.iter().map(|at| definition.columns.field(*at).name().clone());
    keys.chain(included).collect()
}

fn unique_like(unique: &Unique, from: &TableDefinition, to: &TableDefinition) -> Result<Unique> {
    let mut copy = unique.clone();
    copy.columns = columns_like(&unique.columns, from, to)?;
    copy.included = columns_like(&unique.included, from, to)?;
    if let Some(condition) = &mut copy.condition {
        let mut read = Vec::new();
        condition.rows.add_columns(&mut read);
        columns_like(&read, from, to)?;
        let number = |column| column_like(column, from, to).ok();
        condition.rows =
            condition.rows.renumbered(&number).unwrap_or_else(|| condition.rows.clone());
    }
    Ok(copy)
}

fn columns_like(
    columns: &[usize],
    from: &TableDefinition,
    to: &TableDefinition,
) -> Result<Vec<usize>> {
    columns.iter().map(|column| column_like(*column, from, to)).collect()
}

/// The number of the column with the same name and type.
fn column_like(column: usize, from: &TableDefinition, to: &TableDefinition) -> Result<usize> {
    let field = from.columns.field(column);
    match to.columns.index_of(field.name()) {
        Ok(at) if to.columns.field(at).data_type() == field.data_type() => Ok(at),
        _ => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "cannot copy an index on column '{}', which has another type in the new table; leave out INCLUDING INDEXES",
            field.name()
        ),
    }
}
