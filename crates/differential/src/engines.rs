//! The engines' processes: started when they are needed, and again when one is lost.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::outcome::EngineOutcome;
use crate::postgres::Postgres;
use crate::setting::{ProcessSetting, Setting};
use atoll_bench::rivals::{self, SqlEngine};

/// The engine that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EngineKey {
    Duckdb,
    Atoll(ProcessSetting),
}

/// The reference engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Against {
    /// DuckDB, in its own process
    #[default]
    Duckdb,
    /// PostgreSQL, the server that PGHOST, PGPORT and PGUSER name
    Postgresql,
}

impl Against {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Duckdb => "DuckDB",
            Self::Postgresql => "PostgreSQL",
        }
    }
}

/// Processes by their settings at start.
pub(crate) struct Engines {
    program: PathBuf,
    /// The Python that has DuckDB.
    python: PathBuf,
    patience: Duration,
    /// The reference session, if the reference is PostgreSQL.
    postgres: Option<Postgres>,
    running: HashMap<EngineKey, RunningEngine>,
}

struct RunningEngine {
    engine: SqlEngine,
    /// What made its tables; None if that failed halfway.
    setup: Option<Vec<String>>,
}

/// Processes that may wait at a time: each has its threads and its tables.
const RUNNING_MAX: usize = 12;

impl Engines {
    /// Atoll and DuckDB.
    pub(crate) fn new(program: PathBuf, python: PathBuf, patience: Duration) -> Self {
        Self { program, python, patience, postgres: None, running: HashMap::new() }
    }

    /// Atoll and PostgreSQL.
    pub(crate) fn with_postgres(program: PathBuf, patience: Duration) -> Result<Self> {
        let postgres = Some(Postgres::start(patience)?);
        Ok(Self { postgres, ..Self::alone(program, patience) })
    }

    /// Atoll alone.
    pub(crate) fn alone(program: PathBuf, patience: Duration) -> Self {
        Self::new(program, PathBuf::new(), patience)
    }

    /// The reference answer over the tables that `setup` makes.
    pub(crate) fn right(&mut self, setup: &[String], sql: &str) -> EngineOutcome {
        match &mut self.postgres {
            Some(postgres) => postgres.ask(setup, sql),
            None => self.ask(EngineKey::Duckdb, setup.to_vec(), sql),
        }
    }

    /// Atoll's answer under a setting.
    pub(crate) fn atoll(
        &mut self,
        setting: &Setting,
        setup: &[String],
        sql: &str,
    ) -> EngineOutcome {
        let statements = setting.statements().into_iter().chain(setup.iter().cloned());
        self.ask(EngineKey::Atoll(setting.process), statements.collect(), sql)
    }

    fn ask(&mut self, key: EngineKey, setup: Vec<String>, sql: &str) -> EngineOutcome {
        let outcome = self.try_ask(key, setup, sql);
        outcome.unwrap_or_else(|error| {
            self.running.remove(&key);
            EngineOutcome::Lost(format!("{error:#}"))
        })
    }

    fn try_ask(&mut self, key: EngineKey, setup: Vec<String>, sql: &str) -> Result<EngineOutcome> {
        if !self.running.contains_key(&key) {
            if self.running.len() >= RUNNING_MAX {
                self.running.retain(|key, _| *key == EngineKey::Duckdb);
            }
            let engine = SqlEngine::start(key.name(), &mut self.command(key), self.patience)?;
            self.running.insert(key, RunningEngine { engine, setup: None });
        }
        let Some(running) = self.running.get_mut(&key) else {
            return Ok(EngineOutcome::Lost("not started".to_owned()));
        };
        if running.setup.as_ref() != Some(&setup) {
            running.setup = None;
            if let Err(error) = running.engine.reset(&setup)? {
                return Ok(EngineOutcome::Error(format!("cannot create the tables: {error}")));
            }
            running.setup = Some(setup);
        }
        Ok(match running.engine.ask(0, sql)? {
            Ok(answer) => EngineOutcome::Rows(answer),
            Err(error) => EngineOutcome::Error(error),
        })
    }

    fn command(&self, key: EngineKey) -> Command {
        match key {
            EngineKey::Atoll(setting) => setting.command(&self.program),
            EngineKey::Duckdb => {
                let mut command = Command::new(&self.python);
                command.args(["-c", rivals::DUCKDB_SCRIPT, "--threads", "1"]);
                command
            }
        }
    }
}

impl EngineKey {
    fn name(self) -> &'static str {
        match self {
            Self::Duckdb => "duckdb",
            Self::Atoll(_) => "atoll",
        }
    }
}
