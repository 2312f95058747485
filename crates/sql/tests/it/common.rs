//! Sessions on live and fake machines, and results as text.

use std::sync::Arc;

use atoll_placement::{Kernel, LiveKernel, Strategy};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::{DatabaseOptions, Session, SqlError};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, Machine};

/// A session on the machine the test runs on.
pub(crate) fn live() -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    session(machine, Arc::new(LiveKernel::new()), DatabaseOptions::default())
}

/// A session on a fake machine whose kernel is simulated.
pub(crate) fn fake(machine: Machine, placement: Strategy) -> Session {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    session(machine, kernel, DatabaseOptions { placement, ..DatabaseOptions::default() })
}

/// A session on any machine.
pub(crate) fn session(
    machine: Arc<Machine>,
    kernel: Arc<dyn Kernel>,
    options: DatabaseOptions,
) -> Session {
    let runtime =
        Runtime::start(machine, kernel, RuntimeOptions::default()).expect("the pools start");
    Session::new(runtime, options).expect("the session starts")
}

/// Runs one statement to its end.
pub(crate) fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, SqlError> {
    session.runtime().block_on(async { session.run(sql).await?.collect().await })
}

/// A session with this many workers and this memory on the machine the test runs on.
pub(crate) fn with_workers(threads: usize, limit: Bytes) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
    let runtime = Runtime::start(machine, Arc::new(LiveKernel::new()), options);
    let options = DatabaseOptions { memory_limit: limit, ..DatabaseOptions::default() };
    Session::new(runtime.expect("the pools start"), options).expect("the session starts")
}

/// Runs one statement that has to succeed, and returns its rows as texts; NULL is `NULL`.
pub(crate) fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let batches = run(session, sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
    batches.iter().flat_map(texts).collect()
}

/// The rows of a batch as texts.
pub(crate) fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).expect("every type has a text"))
        .collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// This crate's folder, as cargo reports it at run time: checkouts may share a target directory.
pub(crate) fn crate_folder() -> String {
    std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")
}

/// The Python that `$ATOLL_PYTHON` names, or the installed one.
pub(crate) fn python() -> String {
    std::env::var("ATOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}
