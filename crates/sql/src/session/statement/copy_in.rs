//! COPY FROM the client: inserts the rows that it sends.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{ResolvedTableReference, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Insert, ObjectName, Query, SetExpr, Statement as Ast, TableFactor, TableObject,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::mpsc::Receiver;

use crate::role::rights::Right;
use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::StatementTag;
use crate::session::statement::query_result::QueryResult;
use atoll_sql_common::error::{SqlError, SqlState};
use atoll_sql_common::names::plain;
use atoll_sql_common::pg_type::{PgType, sql_type, type_oid};
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_parse::parse::is_copy;
use atoll_sql_parse::syntax::parsed_expr;
use atoll_sql_semantics::enums::labelled_schema;

/// The name of the rows while they are inserted, which no table has.
const ROWS: &str = "rows of the client\u{1}";

impl Session {
    /// The columns for which a client sends values: those named, in their order, or all of the table.
    ///
    /// # Errors
    /// If there is no such table or column, or the user may not insert into it.
    pub fn copy_columns<'a>(
        &'a self,
        table: &'a str,
        names: &'a [String],
    ) -> BoxFuture<'a, std::result::Result<SchemaRef, SqlError>> {
        Box::pin(async move {
            let unfinished = self.unfinished();
            let columns = self.try_copy_columns(table, names).await;
            unfinished.ended(&columns);
            columns.map_err(|error| SqlError::new(error, "").with_near_names(|| self.table_names()))
        })
    }

    async fn try_copy_columns(&self, table: &str, names: &[String]) -> Result<SchemaRef> {
        let transaction = self.statement_transaction()?;
        let statement = self.parse(&insertion(table, names, "VALUES (0)"))?.statement;
        let planner = self.planner(&transaction, false).await?;
        let (at, columns) = planner.inserted_columns(&statement)?;
        let Some(found) = planner.names.table(&at)? else {
            let message = format!("relation \"{}\" does not exist", plain(&at));
            return Err(SqlState::UNDEFINED_TABLE.error(message));
        };
        planner.check_right(Right::Insert, &at)?;
        let schema = labelled_schema(&found.schema());
        if columns.is_empty() {
            return Ok(schema);
        }
        let named = |name: &String| {
            schema.index_of(name).map_err(|_| {
                let message =
                    format!("column \"{name}\" of relation \"{}\" does not exist", at.table);
                SqlState::UNDEFINED_COLUMN.error(message)
            })
        };
        let columns = columns.iter().map(named).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(schema.project(&columns)?))
    }

    /// Inserts batches from a channel until it is closed, into columns of a table, or all of them if none are named.
    /// Their columns are cast to the table's. Rows that do not meet the condition, which is that of WHERE, are left out.
    /// An error in the channel ends the statement.
    pub fn insert_batches<'a>(
        &'a self,
        (table, columns): (&'a str, &'a [String]),
        condition: Option<&'a str>,
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch>>,
    ) -> BoxFuture<'a, std::result::Result<QueryResult, SqlError>> {
        Box::pin(async move {
            let unfinished = self.unfinished();
            let result = async {
                let rows = match condition {
                    Some(condition) => self.rows_that_meet(condition, table, columns).await?,
                    None => format!("SELECT * FROM {}", quoted(ROWS)),
                };
                let sql = insertion(table, columns, &rows);
                self.try_insert_batches(&sql, schema, batches).await
            };
            let result = result.await;
            unfinished.ended(&result);
            result.map_err(|error| SqlError::new(error, "").with_near_names(|| self.table_names()))
        })
    }

    /// The query of the rows that meet a condition over columns of the table, whose types it needs.
    async fn rows_that_meet(
        &self,
        condition: &str,
        table: &str,
        columns: &[String],
    ) -> Result<String> {
        let condition = parsed_expr(condition)?;
        let fields = self.try_copy_columns(table, columns).await?;
        let types = self.names().user_types();
        let typed = fields.fields().iter().map(|field| {
            let name = quoted(field.name());
            match type_name(field, &types) {
                Some(of) => format!("CAST({name} AS {of}) AS {name}"),
                None => name.to_string(),
            }
        });
        let (typed, rows) = (typed.collect::<Vec<_>>().join(", "), quoted(ROWS));
        let name = quoted(&last_name(table)?);
        Ok(format!("SELECT * FROM (SELECT {typed} FROM {rows}) AS {name} WHERE {condition}"))
    }

    async fn try_insert_batches(
        &self,
        sql: &str,
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch>>,
    ) -> Result<QueryResult> {
        let transaction = self.statement_transaction()?;
        let statement = self.parse(sql)?.statement;
        let planner = self.planner(&transaction, true).await?;
        let rows = ClientRows { schema: Arc::clone(&schema), batches: Mutex::new(Some(batches)) };
        let rows = StreamingTable::try_new(schema, vec![Arc::new(rows)])?;
        planner.names.hide(ROWS, Arc::new(rows));
        let plan = planner.plan(statement).await?;
        let result = self.write(planner, plan, sql).await?;
        Ok(result.tagged(StatementTag::written("COPY")))
    }
}

impl StatementPlanner {
    /// The table of an INSERT, and the columns that it names.
    fn inserted_columns(
        &self,
        statement: &Parsed,
    ) -> Result<(ResolvedTableReference, Vec<String>)> {
        let Parsed::Statement(ast) = statement else { return internal_err!("not an INSERT") };
        let Ast::Insert(Insert { table: TableObject::TableName(table), columns, .. }) =
            ast.as_ref()
        else {
            return internal_err!("not an INSERT");
        };
        let last = |name: &ObjectName| {
            let last = name.0.last().and_then(|part| part.as_ident());
            last.map_or_else(String::new, |ident| self.normalized(ident))
        };
        Ok((self.resolve_in(&self.state, table)?, columns.iter().map(last).collect()))
    }
}

/// Whether a statement inserts rows of a file or a client, whose columns are cast to the table's in any case.
pub(in crate::session) fn copies(statement: &Parsed) -> bool {
    let Parsed::Statement(ast) = statement else { return false };
    matches!(ast.as_ref(), Ast::Insert(insert) if inserts_copied(insert))
}

/// Whether an INSERT is that of a COPY, which writes the values of identities as they are given.
pub(in crate::session) fn inserts_copied(insert: &Insert) -> bool {
    is_copy(insert) || reads_client(insert).is_some()
}

fn reads_client(insert: &Insert) -> Option<()> {
    selects_client(insert.source.as_ref()?)
}

fn selects_client(query: &Query) -> Option<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    match &select.from.first()?.relation {
        TableFactor::Table { name, .. } => (name.0.last()?.as_ident()?.value == ROWS).then_some(()),
        TableFactor::Derived { subquery, .. } => selects_client(subquery),
        _ => None,
    }
}

/// The type of a column in SQL; `None` for structs and maps, which only their texts have.
fn type_name(field: &Field, types: &UserTypes) -> Option<String> {
    let of = PgType::of_field(field);
    let is_json = of.oid == type_oid::JSON && field.metadata().is_empty();
    let own = types.format_type(of.oid.into());
    own.or_else(|| (!is_json).then(|| sql_type(field)))
}

/// The name of a table without its schema.
fn last_name(table: &str) -> Result<String> {
    let name = Parser::new(&GenericDialect {}).try_with_sql(table)?.parse_object_name(false)?;
    let last = name.0.last().and_then(|part| part.as_ident());
    Ok(last.map_or_else(String::new, |ident| match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }))
}

/// A statement that inserts rows into columns of a table, or all of them if none are named.
fn insertion(table: &str, columns: &[String], rows: &str) -> String {
    match columns.is_empty() {
        true => format!("INSERT INTO {table} {rows}"),
        false => format!("INSERT INTO {table} ({}) {rows}", columns.join(", ")),
    }
}

/// Batches that are read once.
struct ClientRows {
    schema: SchemaRef,
    batches: Mutex<Option<Receiver<Result<RecordBatch>>>>,
}

impl fmt::Debug for ClientRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientRows")
    }
}

impl PartitionStream for ClientRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.batches.lock().take();
        let next = |mut batches: Option<Receiver<Result<RecordBatch>>>| async move {
            let batch = batches.as_mut()?.recv().await?;
            Some((batch, batches))
        };
        let batches = futures::stream::unfold(batches, next);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
