//! Rows that CASCADE, SET NULL and SET DEFAULT change: they satisfy the declarations of their table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::table::{ReferentialAction, TableDefinition};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{ResolvedTableReference, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr as AstExpr, Value};

use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::table::{ActedTable, PlacedTable, PlannedActions};
use atoll_sql_common::names::CATALOG;
use atoll_sql_parse::syntax::parsed_expr;

impl StatementPlanner {
    /// The plans of the referential actions of a change of a table's rows, for rows that refer to them, directly or
    /// not; `None` if no foreign key changes values.
    pub(in crate::session) async fn referential_actions(
        &self,
        state: &SessionState,
        table: TableId,
    ) -> Result<Option<Arc<PlannedActions>>> {
        let version = self.names.stored_version();
        let mut reached = BTreeSet::from([table]);
        let (mut next, mut acted) = (vec![table], BTreeSet::new());
        while let Some(parent) = next.pop() {
            for (child, _, key) in version.references_to(parent) {
                if reached.insert(child) {
                    next.push(child);
                }
                if key.updates_rows() {
                    acted.insert(child);
                }
            }
        }
        let mut planned = HashMap::new();
        for child in acted {
            let (Some(stored), Some(name)) = (version.table(child), version.table_name(child))
            else {
                continue;
            };
            let at = ResolvedTableReference {
                catalog: CATALOG.into(),
                schema: Arc::clone(&name.schema),
                table: Arc::clone(&name.name),
            };
            let runtime = self.workers.runtime().clone();
            let table = PlacedTable::new(at, child, Arc::clone(stored), runtime).without_rows()?;
            planned.insert(child, self.acted_table(state, table).await?);
        }
        Ok((!planned.is_empty()).then(|| Arc::new(PlannedActions::new(planned))))
    }

    async fn acted_table(&self, state: &SessionState, table: PlacedTable) -> Result<ActedTable> {
        let name = quoted(&table.at().table);
        let rules = self.write_rules(state, &table, &name, None).await?;
        let columns = defaulted_columns(table.definition());
        let types: Vec<DataType> = columns.iter().map(|at| table.type_of(*at)).collect();
        let texts = columns.iter().map(|at| table.definition().defaults[*at].as_deref());
        let exprs = texts.map(|text| match text {
            Some(text) => parsed_expr(text),
            None => Ok(AstExpr::value(Value::Null)),
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        let what = "a default that SET DEFAULT gives";
        let defaults = self.expressions_of_rows(state, &table, exprs, &types, what).await?;
        let defaults = columns.into_iter().zip(defaults).collect();
        Ok(ActedTable { table, rules, defaults })
    }
}

/// The columns that are set to their defaults.
fn defaulted_columns(definition: &TableDefinition) -> Vec<usize> {
    let sets = |action| action == ReferentialAction::SetDefault;
    let keys = definition.foreign_keys.iter();
    let keys = keys.filter(|key| sets(key.on_delete) || sets(key.on_update));
    let columns: BTreeSet<usize> = keys.flat_map(|key| key.columns.iter().copied()).collect();
    columns.into_iter().collect()
}
