//! Rows that foreign keys change, for the store: CASCADE, SET NULL and SET DEFAULT.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::{ActionRows, ReferentialActions};
use atoll_store::table::TableDefinition;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;
use parking_lot::Mutex;

use super::{PlacedTable, WriteRules};

/// The rules for rows of other tables that a statement changes through foreign keys.
#[derive(Debug)]
pub(crate) struct PlannedActions {
    tables: HashMap<TableId, ActedTable>,
}

/// A table some of whose rows change.
#[derive(Debug)]
pub(crate) struct ActedTable {
    /// Without its rows.
    pub(crate) table: PlacedTable,
    pub(crate) rules: WriteRules,
    /// The defaults of columns that SET DEFAULT may set.
    pub(crate) defaults: Vec<(usize, Arc<dyn PhysicalExpr>)>,
}

impl PlannedActions {
    pub(crate) fn new(tables: HashMap<TableId, ActedTable>) -> Self {
        Self { tables }
    }
}

impl ActedTable {
    fn written(&self, mut columns: Vec<ArrayRef>, defaults: &[usize]) -> Result<Vec<ArrayRef>> {
        let schema = self.table.written_schema();
        if !defaults.is_empty() {
            let rows = RecordBatch::try_new(Arc::clone(&schema), columns.clone())?;
            for (at, value) in self.defaults.iter().filter(|(at, _)| defaults.contains(at)) {
                columns[*at] = value.evaluate(&rows)?.into_array(rows.num_rows())?;
            }
        }
        let rows = RecordBatch::try_new(schema, columns)?;
        Ok(self.rules.complete(&self.table, rows)?.columns().to_vec())
    }
}

/// The actions of one change, and the reason why a row was refused.
pub(super) struct RunningActions<'a> {
    planned: Option<&'a PlannedActions>,
    failure: Mutex<Option<DataFusionError>>,
}

impl<'a> RunningActions<'a> {
    pub(super) fn new(planned: Option<&'a PlannedActions>) -> Self {
        Self { planned, failure: Mutex::new(None) }
    }

    /// The reason why a row was refused.
    pub(super) fn failure(self) -> DataFusionError {
        let failure = self.failure.into_inner();
        failure.unwrap_or_else(|| internal_datafusion_err!("a row was refused without a reason"))
    }
}

impl ReferentialActions for RunningActions<'_> {
    fn written(
        &self,
        table: TableId,
        definition: &TableDefinition,
        columns: Vec<ArrayRef>,
        defaults: &[usize],
    ) -> ActionRows {
        let acted = self.planned.and_then(|planned| planned.tables.get(&table));
        let Some(acted) = acted.filter(|acted| **acted.table.definition() == *definition) else {
            return ActionRows::Unknown;
        };
        match acted.written(columns, defaults) {
            Ok(columns) => ActionRows::Written(columns),
            Err(error) => {
                *self.failure.lock() = Some(error);
                ActionRows::Refused
            }
        }
    }
}
