//! Views: a query under a name, planned anew by every statement that reads it.
//!
//! A view is its text. The names in it mean what they mean when it is read, and `*` stands for the
//! columns that are there then, as in DuckDB; names without a schema are looked up in the schema
//! that was the default when the view was made.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::{ConfigOptions, SqlParserOptions};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::Statement as Ast;

/// A view that is not planned yet.
#[derive(Clone, Debug)]
pub(crate) struct UnplannedView {
    /// The statement that made it.
    pub(crate) statement: Ast,
    /// The statement as text.
    pub(crate) definition: Option<String>,
    schema: SchemaRef,
    default_catalog: String,
    default_schema: String,
    sql_parser: SqlParserOptions,
}

impl UnplannedView {
    /// The view that `statement` makes under these settings; `schema` has its columns as of now.
    pub(crate) fn new(
        statement: Ast,
        definition: Option<String>,
        schema: SchemaRef,
        options: &ConfigOptions,
    ) -> Self {
        let default_catalog = options.catalog.default_catalog.clone();
        let default_schema = options.catalog.default_schema.clone();
        let sql_parser = options.sql_parser.clone();
        Self { statement, definition, schema, default_catalog, default_schema, sql_parser }
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
        self.definition.as_deref()
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
