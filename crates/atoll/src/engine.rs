//! Startup of `sql`, `serve` and `demo`: the machine, the pools, a session.

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::sync::Arc;

use atoll_placement::{LiveKernel, heap_allocated};
use atoll_runtime::{Runtime, RuntimeError, RuntimeOptions};
use atoll_sql::datafusion::error::DataFusionError;
use atoll_sql::{Database, DatabaseOptions, Session};
use atoll_tools::exit::{CommandError, Exit};
use atoll_topology::Bytes;

use crate::cli::EngineArgs;
use crate::memory::limit_default;

/// A session on this machine.
pub(crate) struct Engine {
    /// The session.
    pub(crate) session: Session,
    /// Memory limit for tables and queries together.
    pub(crate) memory_limit: Bytes,
}

impl Engine {
    /// Discovers the machine, starts the pools, and opens a session on them.
    pub(crate) fn start(
        args: &EngineArgs,
        data: Option<PathBuf>,
        salvage: bool,
    ) -> Result<Self, CommandError> {
        let options = DatabaseOptions { directory: data, salvage, ..DatabaseOptions::default() };
        let (database, memory_limit) = start_database(args, options)?;
        let session = database.session().map_err(failed)?;
        Ok(Self { session, memory_limit })
    }
}

/// Discovers the machine, starts the pools and opens a database on them; returns it with the memory limit.
pub(crate) fn start_database(
    args: &EngineArgs,
    options: DatabaseOptions,
) -> Result<(Database, Bytes), CommandError> {
    // Every batch that an exchange spills is a file. If the limit cannot be raised, it stays.
    let _ = atoll_sys::raise_open_files();
    // Discovery reads the affinity of this thread, so it must run before any thread is bound.
    let known = atoll_tools::topo::live()?;
    let machine = Arc::new(known.machine);
    let memory_limit = args.memory_limit.unwrap_or_else(|| limit_default(&machine));
    let threads =
        RuntimeOptions { threads: args.threads, strict: args.strict, ..RuntimeOptions::default() };
    let kernel = Arc::new(LiveKernel::new());
    let runtime = Runtime::start(machine, kernel, threads).map_err(not_started)?;
    let options = DatabaseOptions {
        memory_limit,
        spill_directory: args.spill_dir.clone(),
        placement: args.placement,
        strict: args.strict,
        on_recovery: Some(|progress| {
            // Ignored: a process without stderr cannot show progress.
            let _ = writeln!(stderr(), "recovery: {progress}");
        }),
        facts: known.facts,
        heap: Some(heap_allocated),
        ..options
    };
    Ok((Database::start(runtime, options).map_err(failed)?, memory_limit))
}

fn failed(error: DataFusionError) -> CommandError {
    CommandError::with(Exit::Own, error.message())
}

fn not_started(error: RuntimeError) -> CommandError {
    let exit = match error {
        RuntimeError::NotBound { .. } => Exit::Placement,
        _ => Exit::Own,
    };
    CommandError::with(exit, error)
}
