//! Atoll in a program of ours, whose threads are the clients.

use std::io::{BufRead, Write};
use std::sync::Arc;

use anyhow::{Context, Result};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::{Database, DatabaseOptions, Session};
use clap::Args;
use serde::Serialize;

use super::clients::{DbmsClient, drive, row_sum};
use super::systems::embedded::{DbmsLoaded, EmbeddedRequest, LoadStep, Started};
use crate::check::Check;
use crate::protocol::{Answer, Failed};
use crate::session;
use crate::worker::{this_machine, values};

/// Arguments of the worker.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DbmsWorkerArgs {
    /// Workers of the database
    #[arg(long)]
    threads: usize,
    /// Leave memory to the policy of the process
    #[arg(long)]
    placed: bool,
}

/// Starts, and answers until the input ends.
///
/// # Errors
/// If the output is closed.
pub(crate) fn serve(
    args: &DbmsWorkerArgs,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<()> {
    let database = match start(args) {
        Ok(database) => database,
        Err(error) => return reply(output, &Failed { error: format!("{error:#}") }),
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    reply(output, &Started { engine: "atoll".to_owned(), version })?;
    for line in input.lines() {
        let line = line.context("cannot read the requests")?;
        let request = serde_json::from_str(&line).context("not a request");
        match request.and_then(|request| respond(&database, args, &request)) {
            Ok(answer) => reply(output, &answer)?,
            Err(error) => reply(output, &Failed { error: format!("{error:#}") })?,
        }
    }
    Ok(())
}

fn start(args: &DbmsWorkerArgs) -> Result<Database> {
    let (machine, kernel) = this_machine()?;
    let options = RuntimeOptions { threads: Some(args.threads), ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(&machine), kernel, options)?;
    Ok(Database::start(runtime, DatabaseOptions::default())?)
}

fn respond(
    database: &Database,
    args: &DbmsWorkerArgs,
    request: &EmbeddedRequest,
) -> Result<serde_json::Value> {
    Ok(match request {
        EmbeddedRequest::Load(steps) => {
            load(&database.session()?, args, steps)?;
            serde_json::to_value(DbmsLoaded { loaded: true })?
        }
        EmbeddedRequest::Answer(sql) => {
            let (columns, values) =
                values::from_batches(&session::run(&database.session()?, sql)?)?;
            serde_json::to_value(Answer { columns, values, ..Answer::default() })?
        }
        EmbeddedRequest::Run(work) => {
            let connect = || Ok(AtollClient(database.session()?));
            serde_json::to_value(drive(connect, work, None)?)?
        }
    })
}

fn load(session: &Session, args: &DbmsWorkerArgs, steps: &[LoadStep]) -> Result<()> {
    if args.placed {
        session::run(session, "SET atoll.placement = 'default'")?;
    }
    for step in steps {
        if let LoadStep::Statement(sql) = step {
            session::run(session, sql).with_context(|| sql.clone())?;
        }
    }
    Ok(())
}

struct AtollClient(Session);

impl DbmsClient for AtollClient {
    fn run(&mut self, sql: &str, is_summed: bool) -> Result<Check> {
        let batches = session::run(&self.0, sql)?;
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        let mut check = Check { rows: rows as u64, checksum: 0 };
        if is_summed {
            let (_, rows) = values::from_batches(&batches)?;
            let sum = |row: &Vec<Option<String>>| row_sum(format!("{row:?}").as_bytes());
            check.checksum = rows.iter().map(sum).fold(0, u64::wrapping_add);
        }
        Ok(check)
    }
}

/// One line, at once.
fn reply(output: &mut impl Write, message: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(message).context("a reply cannot be written as JSON")?;
    writeln!(output, "{line}").and_then(|()| output.flush()).context("the benchmark has ended")
}
