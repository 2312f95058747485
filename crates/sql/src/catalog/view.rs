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
use datafusion::common::config::{ConfigOptions, SqlParserOptions};
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
    sql_parser: SqlParserOptions,
}

impl UnplannedView {
    /// The view that a statement makes under these settings; `schema` has its columns as of now.
    pub(crate) fn new(sql: String, schema: SchemaRef, options: &ConfigOptions) -> Self {
        let default_catalog = options.catalog.default_catalog.clone();
        let default_schema = options.catalog.default_schema.clone();
        let sql_parser = options.sql_parser.clone();
        Self { sql, schema, default_catalog, default_schema, sql_parser }
    }

    /// The view as the store keeps it.
    pub(crate) fn stored(&self) -> StoredStatement {
        let (dialect, normalizes) =
            (self.sql_parser.dialect, self.sql_parser.enable_ident_normalization);
        StoredStatement {
            sql: self.sql.as_str().into(),
            schema: self.default_schema.as_str().into(),
            options: format!("{dialect} {normalizes} {}", self.default_catalog).into(),
        }
    }

    /// The view that [`stored`](Self::stored) gave; its columns are known when it is planned.
    pub(crate) fn from_stored(stored: &StoredStatement) -> Result<Self> {
        let mut sql_parser = SqlParserOptions::default();
        let mut options = stored.options.splitn(3, ' ');
        let mut next = || options.next().unwrap_or_default();
        sql_parser.dialect = next().parse()?;
        sql_parser.enable_ident_normalization = next() != "false";
        let default_catalog = next().to_owned();
        Ok(Self {
            sql: stored.sql.to_string(),
            schema: Arc::new(Schema::empty()),
            default_catalog,
            default_schema: stored.schema.to_string(),
            sql_parser,
        })
    }

    /// Restores the settings that give its text its meaning.
    pub(crate) fn set_options(&self, options: &mut ConfigOptions) {
        options.catalog.default_catalog.clone_from(&self.default_catalog);
        options.catalog.default_schema.clone_from(&self.default_schema);
        options.sql_parser.clone_from(&self.sql_parser);
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
