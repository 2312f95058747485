//! Views: a query under a name, planned anew by every statement that reads it.
//!
//! A view is its text. The names in it mean what they mean when it is read, and `*` stands for the
//! columns that are there then, as in DuckDB; names without a schema are looked up in the schema
//! that was the default when the view was made.

use std::sync::Arc;

use async_trait::async_trait;
use atoll_store::database::StoredStatement;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::{ConfigOptions, Dialect};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A view that is not planned yet.
#[derive(Clone, Debug)]
pub(crate) struct UnplannedView {
    /// The statement that made it.
    pub(crate) sql: String,
    schema: SchemaRef,
    default_catalog: String,
    default_schema: String,
    dialect: Dialect,
    /// Whether names without quotes are lowered.
    is_normalized: bool,
}

impl UnplannedView {
    /// The view that a statement makes under these settings; `schema` has its columns as of now.
    pub(crate) fn new(sql: String, schema: SchemaRef, options: &ConfigOptions) -> Self {
        Self {
            sql,
            schema,
            default_catalog: options.catalog.default_catalog.clone(),
            default_schema: options.catalog.default_schema.clone(),
            dialect: options.sql_parser.dialect,
            is_normalized: options.sql_parser.enable_ident_normalization,
        }
    }

    /// The view as the store keeps it.
    pub(crate) fn stored(&self) -> StoredStatement {
        StoredStatement {
            sql: self.sql.as_str().into(),
            schema: self.default_schema.as_str().into(),
            options: format!("{} {} {}", self.dialect, self.is_normalized, self.default_catalog)
                .into(),
        }
    }

    /// The view that [`stored`](Self::stored) gave; its columns are known when it is planned.
    pub(crate) fn from_stored(stored: &StoredStatement) -> Result<Self> {
        let mut options = stored.options.splitn(3, ' ');
        let mut next = || options.next().unwrap_or_default();
        let dialect = next().parse()?;
        let is_normalized = next() != "false";
        let default_catalog = next().to_owned();
        Ok(Self {
            sql: stored.sql.to_string(),
            schema: Arc::new(Schema::empty()),
            default_catalog,
            default_schema: stored.schema.to_string(),
            dialect,
            is_normalized,
        })
    }

    /// Restores the settings that give its text its meaning.
    pub(crate) fn set_options(&self, options: &mut ConfigOptions) {
        options.catalog.default_catalog.clone_from(&self.default_catalog);
        options.catalog.default_schema.clone_from(&self.default_schema);
        options.sql_parser.dialect = self.dialect;
        options.sql_parser.enable_ident_normalization = self.is_normalized;
        // Places in the view's text are none in the text of the statement that reads it.
        options.sql_parser.collect_spans = false;
    }
}

#[async_trait]
impl TableProvider for UnplannedView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        Some(&self.sql)
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("views can only be read by statements that a session runs")
    }
}
