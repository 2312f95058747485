//! Views: a named query, planned anew by every statement that reads it.
//!
//! A view is its text. Its names are resolved when it is read, and `*` is expanded to the columns that exist then, as
//! in DuckDB; unqualified names are looked up in the schema that was the default when the view was made.

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
    /// The statement that created it.
    pub(crate) sql: String,
    schema: SchemaRef,
    default_catalog: String,
    default_schema: String,
    dialect: Dialect,
    /// Whether unquoted names are lowercased.
    is_normalized: bool,
}

impl UnplannedView {
    /// The schema of its unqualified names.
    pub(crate) fn default_schema(&self) -> &str {
        &self.default_schema
    }

    /// The view that a statement creates under these settings; `schema` has its current columns.
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
        // Positions in the view's text are not positions in the statement that reads it.
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
