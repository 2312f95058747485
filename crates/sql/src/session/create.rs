//! `CREATE TABLE`: loads the rows first, then puts the table in place of the old one, whose name is
//! missing for the moment between the two.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_placement::Strategy;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, exec_err, not_impl_err};
use datafusion::logical_expr::CreateMemoryTable;

use super::Session;
use super::execute::plan_physical;
use crate::table::load::load;
use crate::table::{PlacedTable, stored_schema};

impl Session {
    /// Creates the table; the number of rows it has, or none where it existed already and the
    /// statement allows that.
    pub(super) async fn create_table(
        &self,
        create: CreateMemoryTable,
        strategy: Strategy,
    ) -> Result<Option<usize>> {
        let name = create.name.clone();
        if create.temporary {
            return not_impl_err!(
                "CREATE TEMPORARY TABLE; every table lives as long as its session"
            );
        }
        if !create.constraints.is_empty() || !create.column_defaults.is_empty() {
            return not_impl_err!("constraints and defaults of columns; leave them out");
        }
        if self.context.table_exist(name.clone())? {
            match (create.if_not_exists, create.or_replace) {
                (true, true) => {
                    return exec_err!("IF NOT EXISTS and OR REPLACE exclude each other");
                }
                (true, false) => return Ok(None),
                (false, false) => return exec_err!("Table '{name}' already exists"),
                (false, true) => {}
            }
        }
        unique_names(create.input.schema().as_arrow())?;
        let plan = plan_physical(self, &create.input).await?;
        let schema = stored_schema(&plan.schema());
        let destination = self.destination(strategy);
        let context = self.context.task_ctx();
        let chunks = load(plan, context, &self.runtime, &destination, &schema, 0).await?;
        let table =
            PlacedTable::new(&name.to_string(), self.runtime.clone(), destination, schema, chunks);
        let rows = table.snapshot().rows;
        // Queries that run keep the old table's chunks; from here on planning finds the new one.
        self.register(name, table)?;
        Ok(Some(rows))
    }
}

fn unique_names(schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(Arc::clone(field).name().clone())) {
        Some(twice) => {
            exec_err!("duplicate column name '{}'; rename one of the two with AS", twice.name())
        }
        None => Ok(()),
    }
}
