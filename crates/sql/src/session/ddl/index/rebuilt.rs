//! Indexes computed anew from columns that got other types.

use std::sync::Arc;

use atoll_sql_common::error::SqlState;
use atoll_store::table::{CatalogIndex, Index, KeyOrder, TableDefinition, Unique};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::Expr;

use super::declared::{
    DeclaredIndexKey, KeyOf, catalog_index, ordered_index, unique_index, unsupported,
};
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;

/// The parts of an index by the names of its columns.
pub(in crate::session) struct RebuiltIndex {
    /// For each key its column, or the one that its expression reads.
    pub(in crate::session) columns: Vec<String>,
    /// For each key its expression; may be shorter.
    pub(in crate::session) expressions: Vec<Option<Expr>>,
    pub(in crate::session) included: Vec<String>,
    pub(in crate::session) condition: Option<Expr>,
}

/// An index that is not unique, as the store keeps it.
pub(in crate::session) enum KeptIndex {
    Ordered(Index),
    Catalog(CatalogIndex),
}

impl StatementPlanner {
    /// A unique index with the same parts over a table.
    pub(in crate::session) async fn rebuilt_unique(
        &self,
        table: &PlacedTable,
        unique: Unique,
        parts: RebuiltIndex,
    ) -> Result<Unique> {
        let orders = unique
            .keys()
            .into_iter()
            .map(|key| KeyOrder { descending: key.descending, nulls_first: key.nulls_first });
        let keys = self.rebuilt_keys(table, &parts, orders.collect(), &unique.operator_classes);
        let condition = match &parts.condition {
            Some(condition) => Some(self.unique_condition(table, condition).await?),
            None => None,
        };
        Ok(Unique {
            condition,
            included: numbers(table.definition(), &parts.included)?,
            nulls_not_distinct: unique.nulls_not_distinct,
            ..unique_index(unique.name, keys.await?)?
        })
    }

    /// An index with the same parts over a table.
    pub(in crate::session) async fn rebuilt_index(
        &self,
        table: &PlacedTable,
        index: Index,
        parts: RebuiltIndex,
    ) -> Result<KeptIndex> {
        let orders = index
            .keys
            .iter()
            .map(|key| KeyOrder { descending: key.descending, nulls_first: key.nulls_first });
        let keys = self.rebuilt_keys(table, &parts, orders.collect(), &index.operator_classes);
        let keys = keys.await?;
        let condition = match &parts.condition {
            Some(condition) => Some(self.checked_condition(table, condition).await?.0),
            None => None,
        };
        let definition = table.definition();
        let included = numbers(definition, &parts.included)?;
        let method = if index.is_hash { "hash" } else { "btree" };
        Ok(match unsupported(method, &keys, definition) {
            None => KeptIndex::Ordered(Index {
                included,
                condition,
                is_hash: index.is_hash,
                ..ordered_index(index.name, keys)?
            }),
            Some(_) => KeptIndex::Catalog(CatalogIndex {
                included,
                condition,
                ..catalog_index(index.name, method, keys)
            }),
        })
    }

    async fn rebuilt_keys(
        &self,
        table: &PlacedTable,
        parts: &RebuiltIndex,
        orders: Vec<KeyOrder>,
        classes: &[Option<Arc<str>>],
    ) -> Result<Vec<DeclaredIndexKey>> {
        let mut keys = Vec::with_capacity(orders.len());
        let columns = numbers(table.definition(), &parts.columns)?;
        for (place, (column, order)) in columns.into_iter().zip(orders).enumerate() {
            let of = match parts.expressions.get(place).and_then(Option::as_ref) {
                Some(expr) => self.expression_key(table, expr).await?,
                None => KeyOf::Column(column),
            };
            let operator_class = classes.get(place).cloned().flatten();
            keys.push(DeclaredIndexKey { of, order, operator_class });
        }
        Ok(keys)
    }
}

fn numbers(definition: &TableDefinition, names: &[String]) -> Result<Vec<usize>> {
    let number = |name: &String| {
        let found = definition.columns.index_of(name);
        found.map_err(|_| {
            SqlState::UNDEFINED_COLUMN
                .error(format!("column \"{name}\" of an index does not exist"))
        })
    };
    names.iter().map(number).collect()
}
