//! A statement with its parameter values.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::{Schema, SchemaRef};
use atoll_sql::{
    DeclaredType, PreparedStatement, QueryResult, Session, SqlError, TransactionState, begins_with,
};

use super::parameters::Parameters;
use super::query::{Waiting, WaitingRows};
use super::rows::sent_schema;
use super::session::FlightSession;
use super::transaction::refuse_control;
use crate::connection::rows_of_tag;
use crate::error_fields::error_fields;
use crate::wire::ErrorFields;

/// First words of read-only statements.
const READS: [&str; 12] = [
    "select",
    "with",
    "values",
    "table",
    "from",
    "show",
    "explain",
    "describe",
    "desc",
    "summarize",
    "pivot",
    "unpivot",
];

/// A statement, planned for the types of its parameters, and their values.
#[derive(Clone)]
pub(super) struct BoundStatement {
    session: Arc<FlightSession>,
    sql: Arc<str>,
    pub(super) statement: Arc<PreparedStatement>,
    types: Vec<DeclaredType>,
    parameters: Parameters,
}

/// The outcome of a statement: how many rows it changed, and the rows that it returns.
struct Outcome {
    count: i64,
    /// The columns as they are sent.
    schema: SchemaRef,
    rows: Vec<RecordBatch>,
}

impl BoundStatement {
    /// Plans a statement without parameters, or whose parameters come later.
    pub(super) async fn plan(session: Arc<FlightSession>, sql: &str) -> Result<Self, ErrorFields> {
        let statement = plan(&session, sql, &[]).await?;
        let (types, parameters) = (Vec::new(), Parameters::default());
        Ok(Self { session, sql: sql.into(), statement, types, parameters })
    }

    /// Binds values. If the statement does not determine its parameters' types, the client's types are used.
    pub(super) async fn bind(self, parameters: Parameters) -> Result<Self, ErrorFields> {
        let types: Vec<_> = parameters.types().into_iter().map(DeclaredType::from).collect();
        let (given, wanted) = (types.len(), self.statement.parameter_types().len());
        if given != wanted {
            let message = format!("expected {wanted} parameter values, found {given}");
            return Err(ErrorFields::error("08P01", message));
        }
        let statement = match types == self.types {
            true => self.statement,
            false => plan(&self.session, &self.sql, &types).await?,
        };
        Ok(Self { statement, types, parameters, ..self })
    }

    /// The columns of its rows as they are sent; None if it returns no rows.
    pub(super) fn columns(&self) -> SchemaRef {
        self.statement
            .columns()
            .map_or_else(|| Arc::new(Schema::empty()), |columns| sent_schema(columns))
    }

    /// Its rows, to be fetched. A statement that changes something runs now: clients that expect no rows fetch none.
    pub(super) async fn waiting(self) -> Result<Waiting, ErrorFields> {
        let schema = self.columns();
        let is_query = begins_with(&self.sql, &READS) || self.sql.trim_start().starts_with('(');
        let (schema, rows) = match is_query && !schema.fields().is_empty() {
            true => (schema, WaitingRows::Planned(self.statement, self.parameters)),
            false => {
                let Outcome { schema, rows, .. } = self.carry_out().await?;
                (schema, WaitingRows::Ready(rows))
            }
        };
        Ok(Waiting { session: self.session, sql: self.sql, schema, rows })
    }

    /// Runs it; returns how many rows it changed.
    pub(super) async fn update(&self) -> Result<i64, ErrorFields> {
        Ok(self.carry_out().await?.count)
    }

    /// Runs it for each row of values, for all of them or for none.
    async fn carry_out(&self) -> Result<Outcome, ErrorFields> {
        let running = self.session.begin(&self.sql)?;
        let engine = &self.session.engine;
        let is_alone = self.parameters.runs() <= 1;
        let rows = Arc::clone(&running.rows);
        let carrying_out = async {
            let outcome = match is_alone || engine.transaction_state() != TransactionState::Idle {
                true => self.run(&self.statement).await?,
                false => self.run_as_one(&engine.with_own_transaction()).await?,
            };
            rows.store(outcome.count.unsigned_abs(), Ordering::Relaxed);
            Ok(outcome)
        };
        running.finish(carrying_out).await
    }

    /// Runs it for all rows in one transaction, which is rolled back unless it completes.
    async fn run_as_one(&self, engine: &Session) -> Result<Outcome, ErrorFields> {
        let failed = |error: SqlError| error_fields(&error, &self.sql, 0);
        engine.run("BEGIN").await.map_err(failed)?;
        let statement = engine.prepare_as(&self.sql, &self.types).await.map_err(failed)?;
        let outcome = self.run(&statement).await?;
        engine.run("COMMIT").await.map_err(failed)?;
        Ok(outcome)
    }

    async fn run(&self, statement: &PreparedStatement) -> Result<Outcome, ErrorFields> {
        let failed = |error: SqlError| error_fields(&error, &self.sql, 0);
        let mut outcome = Outcome::new();
        for values in self.parameters.rows() {
            let result = statement.execute(&values?).await.map_err(failed)?;
            outcome.add(result).await.map_err(failed)?;
        }
        Ok(outcome)
    }
}

impl Outcome {
    fn new() -> Self {
        Self { count: 0, schema: Arc::new(Schema::empty()), rows: Vec::new() }
    }

    async fn add(&mut self, mut result: QueryResult) -> Result<(), SqlError> {
        let has_rows = !result.is_told_by_tag();
        if has_rows {
            self.schema = sent_schema(result.schema());
        }
        while let Some(batch) = result.next().await? {
            if has_rows {
                self.rows.push(batch);
            }
        }
        self.count = self.count.saturating_add(affected(&result.tag()));
        Ok(())
    }
}

/// The row count in a tag.
pub(super) fn affected(tag: &str) -> i64 {
    let words = tag.split_once(": ").map_or(tag, |(words, _)| words);
    i64::try_from(rows_of_tag(words)).unwrap_or(i64::MAX)
}

/// Runs a text to completion; returns how many rows it changed.
pub(super) async fn update(session: &Arc<FlightSession>, sql: &str) -> Result<i64, ErrorFields> {
    refuse_control(sql)?;
    let running = session.begin(sql)?;
    let failed = |error: SqlError| error_fields(&error, sql, 0);
    let rows = Arc::clone(&running.rows);
    let updating = async {
        let mut outcome = Outcome::new();
        let result = session.engine.run(sql).await.map_err(failed)?;
        outcome.add(result).await.map_err(failed)?;
        rows.store(outcome.count.unsigned_abs(), Ordering::Relaxed);
        Ok(outcome.count)
    };
    running.finish(updating).await
}

/// Plans a statement. `types` are the client's types of its parameters.
async fn plan(
    session: &Arc<FlightSession>,
    sql: &str,
    types: &[DeclaredType],
) -> Result<Arc<PreparedStatement>, ErrorFields> {
    refuse_control(sql)?;
    let running = session.begin(sql)?;
    let failed = |error: SqlError| error_fields(&error, sql, 0);
    let planning = async { session.engine.prepare_as(sql, types).await.map_err(failed) };
    match running.unless_ended(planning).await {
        Ok(statement) => {
            running.planned();
            Ok(Arc::new(statement))
        }
        Err(error) => {
            running.end(Some(&error));
            Err(error)
        }
    }
}
