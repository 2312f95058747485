//! Atoll as a key-value engine: a table with a primary key in a directory, and prepared statements.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::arrow::array::{Array, AsArray};
use atoll_sql::arrow::compute::cast;
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{Database, DatabaseOptions, PreparedStatement, Session};

use super::engine::{EngineOptions, KvEngine, KvSession};
use super::records::RecordRun;
use crate::session;
use crate::worker::this_machine;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS kv (key VARCHAR PRIMARY KEY, value BYTEA NOT NULL)";
const PUT: &str = "UPDATE kv SET value = $2 WHERE key = $1";
const GET: &str = "SELECT value FROM kv WHERE key = $1";
const SCAN: &str = "SELECT key, value FROM kv";
const DURABILITY: &str = "SET atoll.durability = 'off'";

/// An open database.
pub(super) struct AtollStore {
    database: Database,
}

impl AtollStore {
    /// Opens the database of a directory, or makes it.
    pub(super) fn open(options: &EngineOptions) -> Result<Self> {
        let (machine, kernel) = this_machine()?;
        let runtime = Runtime::start(Arc::clone(&machine), kernel, RuntimeOptions::default())?;
        let directory = Some(options.directory.clone());
        let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
        let store = Self { database: Database::start(runtime, options)? };
        session::run(&store.database.session()?, DURABILITY)?;
        session::run(&store.database.session()?, TABLE)?;
        Ok(store)
    }
}

impl KvEngine for AtollStore {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn settings(&self) -> String {
        let workers = self.database.runtime().worker_count();
        format!("{workers} workers, atoll.durability = off, prepared statements")
    }

    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        let session = self.database.session()?;
        let prepare = |sql| self.database.runtime().block_on(session.prepare(sql));
        let (put, get) = (prepare(PUT)?, prepare(GET)?);
        Ok(Box::new(AtollSession { put, get, session }))
    }

    fn sync(&self) -> Result<()> {
        self.database.runtime().block_on(self.database.checkpoint())?;
        Ok(())
    }
}

/// A thread's session and its statements.
struct AtollSession {
    session: Session,
    put: PreparedStatement,
    get: PreparedStatement,
}

impl AtollSession {
    fn execute(
        &self,
        statement: &PreparedStatement,
        values: &[ScalarValue],
    ) -> Result<Vec<RecordBatch>> {
        let run = async { statement.execute(values).await?.collect().await };
        Ok(self.session.runtime().block_on(run)?)
    }
}

impl KvSession for AtollSession {
    fn load(&mut self, run: &RecordRun) -> Result<()> {
        let keys = run.iter().map(|(key, _)| std::str::from_utf8(key).ok());
        let keys: ArrayRef = Arc::new(keys.collect::<StringArray>());
        let values: ArrayRef =
            Arc::new(BinaryArray::from_iter_values(run.iter().map(|(_, value)| value)));
        let batch = RecordBatch::try_from_iter([("key", keys), ("value", values)])?;
        let schema = batch.schema();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let sent = sender.try_send(Ok(batch));
        sent.map_err(|_| anyhow!("the channel of a load is full"))?;
        drop(sender);
        let loading = async {
            self.session.insert_batches(("kv", &[]), None, schema, receiver).await?.collect().await
        };
        self.session.runtime().block_on(loading)?;
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let values = [text(key)?, ScalarValue::Binary(Some(value.to_vec()))];
        let done = self.execute(&self.put, &values)?;
        ensure!(done.iter().map(RecordBatch::num_rows).sum::<usize>() == 1, "not one row");
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let batches = self.execute(&self.get, &[text(key)?])?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(bytes(batch.column(0))?.as_binary::<i32>().value(0));
        Ok(true)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for batch in session::run(&self.session, SCAN)? {
            let keys = cast(batch.column(0), &DataType::Utf8)?;
            let values = bytes(batch.column(1))?;
            let pairs = keys.as_string::<i32>().iter().zip(values.as_binary::<i32>());
            for (key, value) in pairs {
                visit(key.context("a NULL key")?.as_bytes(), value.context("a NULL value")?);
            }
        }
        Ok(())
    }
}

fn text(key: &[u8]) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(Some(std::str::from_utf8(key)?.to_owned())))
}

/// A column in the one type that this file reads.
fn bytes(column: &dyn Array) -> Result<ArrayRef> {
    Ok(cast(column, &DataType::Binary)?)
}
