//! Systems in a program of ours, whose threads are the clients: Atoll in this program again, others in Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use atoll_sys::signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::dbms::clients::{DbmsOutcome, DbmsWork};
use crate::dbms::data::DbmsData;
use crate::dbms::dialect::Dialect;
use crate::dbms::schema::{DbmsTable, literal};
use crate::dbms::system::{DbmsEngine, InstanceOptions, SystemName};
use crate::dbms::systems::directory;
use crate::programs::own_command;
use crate::protocol::Answer;
use crate::rivals::RivalProcess;

const SCRIPT: &str = concat!(
    include_str!("../../../rivals/serving.py"),
    include_str!("../../../rivals/dbms_engine.py")
);

/// Atoll's number in the lab, whose guests set it.
const LAB: &str = "ATOLL_LAB";

/// A line in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::dbms) enum EmbeddedRequest {
    /// Make the tables.
    Load(Vec<LoadStep>),
    /// Run a statement.
    Answer(String),
    /// Run the clients.
    Run(DbmsWork),
}

/// A step of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(in crate::dbms) enum LoadStep {
    /// A statement.
    Statement(String),
    /// Rows of a file, which the program inserts: table, number of columns, file.
    Rows(String, usize, PathBuf),
}

/// A line out: the system runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dbms) struct Started {
    pub(in crate::dbms) engine: String,
    pub(in crate::dbms) version: String,
}

/// A line out: the tables are there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::dbms) struct DbmsLoaded {
    pub(in crate::dbms) loaded: bool,
}

/// A process.
pub(in crate::dbms) struct Embedded {
    system: SystemName,
    process: RivalProcess,
    version: String,
    settings: String,
}

impl Embedded {
    /// Atoll.
    pub(in crate::dbms) fn atoll(options: InstanceOptions) -> Result<Self> {
        let mut command = own_command()?;
        command.args(["dbms-worker", "--threads", &options.threads.to_string()]);
        if options.is_placed {
            command.arg("--placed");
        }
        if let (Some(number), Some(_)) = (options.lab, std::env::var_os(LAB)) {
            command.env(LAB, format!("{number},tables"));
        }
        Self::start(SystemName::Atoll, command, &options)
    }

    /// One that Python has.
    pub(in crate::dbms) fn python(system: SystemName, options: InstanceOptions) -> Result<Self> {
        let python = python(system, options.python.as_deref())?;
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT, system.name()]).arg(options.threads.to_string());
        command.arg(&options.directory);
        if system == SystemName::Monetdb {
            command.arg(libraries()?);
        }
        Self::start(system, command, &options)
    }

    fn start(system: SystemName, mut command: Command, options: &InstanceOptions) -> Result<Self> {
        let name = system.name();
        let mut process = RivalProcess::start(name, &mut command, options.patience)?;
        let started = process.receive::<Started>()?.map_err(|error| anyhow!("{error}"))?;
        let settings = match system {
            SystemName::Sqlite => "file in memory-mapped pages, no synchronisation".to_owned(),
            _ => format!("{} threads, in memory", options.threads),
        };
        Ok(Self { system, process, version: started.version, settings })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &EmbeddedRequest) -> Result<T> {
        let reply = self.process.ask::<T>(&json!(request))?;
        reply.map_err(|error| anyhow!("{error}"))
    }

    fn steps(&self, data: &DbmsData) -> Vec<LoadStep> {
        let mut steps = Vec::new();
        for table in data.tables() {
            let (name, dialect) = (table.name, self.system.dialect());
            let is_monetdb = self.system == SystemName::Monetdb;
            if dialect == Dialect::Postgres && !is_monetdb && !table.is_written() {
                let parquet = literal(&data.parquet(name));
                let create = format!("CREATE TABLE {name} AS SELECT * FROM {parquet}");
                steps.push(LoadStep::Statement(create));
                continue;
            }
            steps.push(LoadStep::Statement(table.create(dialect)));
            if data.is_filled(name) {
                steps.push(self.fill(table, data));
            }
            let keys = match dialect {
                Dialect::Sqlite => table.indexes(),
                Dialect::Clickhouse => Vec::new(),
                _ => table.written_key().into_iter().collect(),
            };
            steps.extend(keys.into_iter().map(LoadStep::Statement));
        }
        if self.system == SystemName::Sqlite {
            steps.push(LoadStep::Statement("ANALYZE".to_owned()));
        }
        steps
    }

    /// Puts the rows into a table that is there.
    fn fill(&self, table: &DbmsTable, data: &DbmsData) -> LoadStep {
        let name = table.name;
        let (parquet, text) = (literal(&data.parquet(name)), literal(&data.text(name)));
        LoadStep::Statement(match self.system {
            SystemName::Sqlite => {
                return LoadStep::Rows(name.to_owned(), table.width(), data.text(name));
            }
            SystemName::Monetdb => {
                format!("COPY INTO {name} FROM {text} USING DELIMITERS '|', E'\\n', '\"'")
            }
            SystemName::Clickhouse => {
                format!("INSERT INTO {name} SELECT * FROM file({parquet}, Parquet)")
            }
            _ => format!("INSERT INTO {name} SELECT * FROM {parquet}"),
        })
    }
}

impl DbmsEngine for Embedded {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn process(&self) -> (u32, i32) {
        (self.process.pid(), signal::KILL)
    }

    fn load(&mut self, data: &DbmsData) -> Result<()> {
        self.ask::<DbmsLoaded>(&EmbeddedRequest::Load(self.steps(data))).map(|_| ())
    }

    fn answer(&mut self, sql: &str) -> Result<Answer> {
        self.ask(&EmbeddedRequest::Answer(sql.to_owned()))
    }

    fn run(&mut self, work: &DbmsWork) -> Result<DbmsOutcome> {
        self.ask(&EmbeddedRequest::Run(work.clone()))
    }
}

/// Where `setup` keeps the Python of this benchmark.
pub(in crate::dbms) fn environment() -> Result<PathBuf> {
    Ok(directory()?.join("python"))
}

/// Where `setup` keeps MonetDB's libraries.
pub(in crate::dbms) fn libraries() -> Result<PathBuf> {
    Ok(directory()?.join("monetdb"))
}

/// Whether `setup` has installed a system.
pub(in crate::dbms) fn is_installed(system: SystemName) -> bool {
    if system == SystemName::Monetdb {
        return libraries().is_ok_and(|directory| directory.is_dir());
    }
    environment().is_ok_and(|directory| directory.join(format!("{}.txt", system.name())).is_file())
}

/// What a guest of the lab needs for systems in Python.
pub(in crate::dbms) struct PackedPython {
    pub(in crate::dbms) program: PathBuf,
    /// Files and directories of its packages.
    pub(in crate::dbms) packages: Vec<PathBuf>,
}

/// Python says where it is itself, where the files of DuckDB's package are, and its environment.
const PYTHON_SAYS: &str = "import os, sys; print(sys.executable)";
const DUCKDB_SAYS: &str = "; from importlib.metadata import distribution; it = distribution('duckdb'); \
     names = {file.parts[0] for file in it.files} - {'..'}; \
     [print(it.locate_file(name)) for name in sorted(names)]; \
     print(os.path.join(sys.prefix, 'pyvenv.cfg'))";

/// The Python of these systems; `None` if all of them do without.
///
/// # Errors
/// When it is missing, or a package of it.
pub(in crate::dbms) fn packed_python(
    systems: &[SystemName],
    named: Option<&Path>,
) -> Result<Option<PackedPython>> {
    let duckdb = systems.contains(&SystemName::Duckdb).then_some(SystemName::Duckdb);
    let sqlite = systems.contains(&SystemName::Sqlite).then_some(SystemName::Sqlite);
    let Some(system) = duckdb.or(sqlite) else { return Ok(None) };
    let program = python(system, named)?;
    let more = if system == SystemName::Duckdb { DUCKDB_SAYS } else { "" };
    let said = Command::new(&program).arg("-c").arg([PYTHON_SAYS, more].concat()).output();
    let said = said.with_context(|| format!("{} does not start", program.display()))?;
    ensure!(said.status.success(), "{} has no {}", program.display(), system.name());
    let text = String::from_utf8(said.stdout).context("a path is not UTF-8")?;
    let mut files = text.lines().map(PathBuf::from).filter(|file| file.exists());
    let program = files.next().context("Python does not say where it is")?;
    Ok(Some(PackedPython { program, packages: files.collect() }))
}

/// The Python that has a system: the one that is named, that of `setup`, or any, for SQLite and MonetDB's libraries.
fn python(system: SystemName, named: Option<&Path>) -> Result<PathBuf> {
    let name = system.name();
    let python = match system {
        SystemName::Monetdb => {
            is_installed(system).then(|| named.unwrap_or(Path::new("python3")).to_owned())
        }
        SystemName::Sqlite => Some(named.unwrap_or(Path::new("python3")).to_owned()),
        _ if named.is_some() => named.map(Path::to_owned),
        _ => is_installed(system).then(environment).transpose()?.map(|it| it.join("bin/python3")),
    };
    let hint = match system {
        SystemName::Monetdb => "",
        _ => ", --python names a Python with it",
    };
    python.with_context(|| {
        format!("{name} is not installed; 'atoll bench dbms setup {name}' installs it{hint}")
    })
}
