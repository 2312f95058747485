//! Runs the clients of the DBMSs as programs: no client library is linked, and passwords stay where the clients look
//! for them (`~/.pgpass`, `~/.my.cnf`).

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Adapter, AdapterCalls, AdapterError, KnobSetting, work_file};

/// Connection timeout of a client, seconds.
const CONNECT_SECONDS: &str = "5";
/// The settings of PostgreSQL.
const POSTGRES: [&str; 2] = ["max_parallel_workers", "max_parallel_workers_per_gather"];
/// Contents of DuckDB's file before the number.
const DUCKDB: &str = "SET threads = ";

/// The clients of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveAdapters;

impl AdapterCalls for LiveAdapters {
    fn settings(&self, adapter: &Adapter) -> Result<Vec<KnobSetting>, AdapterError> {
        match adapter {
            Adapter::Postgres(_) => postgres_settings(adapter),
            Adapter::MariaDb(_) | Adapter::MySql(_) => mysql_settings(adapter),
            Adapter::Atoll(_) => {
                let shown = client(adapter, &["SHOW atoll.cores".to_owned()])?;
                let value = shown.rsplit('|').next().map(|word| word.trim().to_owned());
                Ok(vec![KnobSetting { name: "atoll.cores".to_owned(), value }])
            }
            Adapter::DuckDb(file) => {
                let value = duckdb_value(file).map_err(|reason| adapter.error(reason))?;
                Ok(vec![KnobSetting { name: "threads".to_owned(), value }])
            }
        }
    }

    fn set(&self, adapter: &Adapter, settings: &[KnobSetting]) -> Result<(), AdapterError> {
        match adapter {
            Adapter::DuckDb(file) => {
                let value = settings.first().and_then(|setting| setting.value.as_deref());
                write_duckdb(file, value)
                    .map_err(|error| adapter.error(format!("{}: {error}", file.display())))
            }
            _ => client(adapter, &statements(adapter, settings)).map(|_| ()),
        }
    }

    fn work(&self, adapter: &Adapter) -> Result<f64, AdapterError> {
        let text = match adapter {
            Adapter::Postgres(_) => ask(adapter, "SELECT sum(xact_commit) FROM pg_stat_database"),
            Adapter::MariaDb(_) | Adapter::MySql(_) => {
                ask(adapter, "SHOW GLOBAL STATUS LIKE 'Questions'")
            }
            Adapter::Atoll(_) => ask(adapter, "SELECT statements FROM atoll.database"),
            Adapter::DuckDb(file) => {
                let file = work_file(file);
                let read = fs::read_to_string(&file);
                read.map_err(|error| adapter.error(format!("{}: {error}", file.display())))
            }
        }?;
        let number = text.split_whitespace().last().and_then(|word| word.parse::<f64>().ok());
        number.filter(|number| number.is_finite()).ok_or_else(|| {
            let found: String = text.trim().chars().take(40).collect();
            adapter.error(format!("expected a number as its counter, found '{found}'"))
        })
    }
}

/// Settings from `ALTER SYSTEM` only: a reset restores what other files set.
fn postgres_settings(adapter: &Adapter) -> Result<Vec<KnobSetting>, AdapterError> {
    let query = format!(
        "SELECT name, setting FROM pg_file_settings WHERE name IN ('{}') AND sourcefile LIKE \
         '%postgresql.auto.conf' ORDER BY seqno",
        POSTGRES.join("', '")
    );
    let found = ask(adapter, &query)?;
    let value = |name: &str| {
        let mut rows = found.lines().filter_map(|line| line.split_once('|'));
        rows.rfind(|(of, _)| *of == name).map(|(_, value)| value.to_owned())
    };
    Ok(POSTGRES.map(|name| KnobSetting { name: name.to_owned(), value: value(name) }).into())
}

/// The thread pool's size if connections share one, else the limit of concurrent InnoDB threads.
fn mysql_settings(adapter: &Adapter) -> Result<Vec<KnobSetting>, AdapterError> {
    let found = ask(
        adapter,
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('thread_handling', 'thread_pool_size', \
         'innodb_thread_concurrency')",
    )?;
    mysql_knob(&found).map(|knob| vec![knob]).ok_or_else(|| {
        adapter.error(
            "it has no knob for threads: start it with thread_handling = pool-of-threads, so that \
             thread_pool_size counts",
        )
    })
}

fn mysql_knob(variables: &str) -> Option<KnobSetting> {
    let value = |name: &str| {
        let mut rows = variables.lines().filter_map(|line| line.split_once('\t'));
        rows.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let is_pool = value("thread_handling").is_some_and(|way| way != "one-thread-per-connection");
    let knob = |name: &str| {
        value(name).map(|value| KnobSetting { name: name.to_owned(), value: Some(value) })
    };
    let pool = if is_pool { knob("thread_pool_size") } else { None };
    pool.or_else(|| knob("innodb_thread_concurrency"))
}

/// The statements that set settings of a DBMS with SQL; each is run separately.
fn statements(adapter: &Adapter, settings: &[KnobSetting]) -> Vec<String> {
    let quoted = |value: &str| format!("'{}'", value.replace('\'', "''"));
    let statement = |KnobSetting { name, value }: &KnobSetting| match (adapter, value) {
        (Adapter::Postgres(_), Some(value)) => {
            format!("ALTER SYSTEM SET {name} = {}", quoted(value))
        }
        (Adapter::Postgres(_), None) => format!("ALTER SYSTEM RESET {name}"),
        (Adapter::Atoll(_), Some(value)) => format!("SET {name} = {}", quoted(value)),
        (Adapter::Atoll(_), None) => format!("RESET {name}"),
        (_, Some(value)) => format!("SET GLOBAL {name} = {value}"),
        (_, None) => format!("SET GLOBAL {name} = DEFAULT"),
    };
    let mut all: Vec<String> = settings.iter().map(statement).collect();
    if matches!(adapter, Adapter::Postgres(_)) {
        all.push("SELECT pg_reload_conf()".to_owned());
    }
    all
}

fn ask(adapter: &Adapter, statement: &str) -> Result<String, AdapterError> {
    client(adapter, &[statement.to_owned()])
}

/// Runs statements with the DBMS's client; returns its output.
fn client(adapter: &Adapter, statements: &[String]) -> Result<String, AdapterError> {
    let (program, mut command) = match adapter {
        Adapter::Postgres(how) | Adapter::Atoll(how) => ("psql", psql(how, statements)),
        Adapter::MariaDb(how) => ("mariadb", mysql("mariadb", how, statements)),
        Adapter::MySql(how) => ("mysql", mysql("mysql", how, statements)),
        Adapter::DuckDb(_) => return Err(adapter.error("it takes its settings from a file")),
    };
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => adapter.error(format!("its client {program} is not installed")),
        _ => adapter.error(format!("{program}: {error}")),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
            Err(adapter.error(format!("{program}: {said}")))
        }
    }
}

fn psql(how: &str, statements: &[String]) -> Command {
    let mut command = Command::new("psql");
    command.args(["-X", "-w", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    command.env("PGCONNECT_TIMEOUT", CONNECT_SECONDS);
    if !how.is_empty() {
        command.arg("-d").arg(how);
    }
    // Each in its own transaction, as ALTER SYSTEM requires.
    for statement in statements {
        command.arg("-c").arg(statement);
    }
    command
}

fn mysql(program: &str, how: &str, statements: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(how.split_whitespace());
    command.args(["--batch", "--skip-column-names"]);
    command.arg(format!("--connect-timeout={CONNECT_SECONDS}"));
    command.arg("-e").arg(statements.join("; "));
    command
}

/// The value that the hook wrote to its file; `None` before the first.
fn duckdb_value(file: &Path) -> Result<Option<String>, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    let value = text.trim().trim_end_matches(';').strip_prefix(DUCKDB);
    let value = value.filter(|value| value.parse::<u32>().is_ok());
    match value {
        Some(value) => Ok(Some(value.to_owned())),
        None => Err(format!(
            "{} holds something other than '{DUCKDB}N;'; name a separate file",
            file.display()
        )),
    }
}

/// Replaces the file atomically; without a value, removes it.
fn write_duckdb(file: &Path, value: Option<&str>) -> io::Result<()> {
    let Some(value) = value else {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, format!("{DUCKDB}{value};\n"))?;
    fs::rename(&part, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: Option<&str>) -> KnobSetting {
        KnobSetting { name: name.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn each_dbms_gets_its_own_statements() {
        let settings = [setting("a", Some("4")), setting("b", None)];
        let of = |text: &str| statements(&Adapter::named(text).unwrap(), &settings);
        assert_eq!(
            of("postgres:"),
            ["ALTER SYSTEM SET a = '4'", "ALTER SYSTEM RESET b", "SELECT pg_reload_conf()"]
        );
        assert_eq!(of("mariadb:"), ["SET GLOBAL a = 4", "SET GLOBAL b = DEFAULT"]);
        assert_eq!(of("atoll:"), ["SET a = '4'", "RESET b"]);
    }

    #[test]
    fn the_thread_pool_counts_where_connections_share_it() {
        let pool = "thread_handling\tpool-of-threads\nthread_pool_size\t16\n";
        assert_eq!(mysql_knob(pool), Some(setting("thread_pool_size", Some("16"))));
        let alone = "innodb_thread_concurrency\t0\nthread_handling\tone-thread-per-connection\n\
            thread_pool_size\t16\n";
        assert_eq!(mysql_knob(alone), Some(setting("innodb_thread_concurrency", Some("0"))));
        let none = "thread_handling\tone-thread-per-connection\nthread_pool_size\t16";
        assert_eq!(mysql_knob(none), None);
    }

    #[test]
    fn the_file_of_duckdb_is_written_read_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("threads.sql");
        let adapter = Adapter::DuckDb(file.clone());
        let before = LiveAdapters.settings(&adapter).unwrap();
        assert_eq!(before, [setting("threads", None)]);
        LiveAdapters.set(&adapter, &adapter.wanted(&before, 3)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "SET threads = 3;\n");
        assert_eq!(LiveAdapters.settings(&adapter).unwrap(), [setting("threads", Some("3"))]);
        assert!(LiveAdapters.work(&adapter).unwrap_err().reason.contains("threads.sql.work"));
        fs::write(home.path().join("threads.sql.work"), "41\n").unwrap();
        assert_eq!(LiveAdapters.work(&adapter), Ok(41.0));
        LiveAdapters.set(&adapter, &before).unwrap();
        assert!(!file.exists());
        fs::write(&file, "CREATE TABLE t (a INT)").unwrap();
        assert!(LiveAdapters.settings(&adapter).unwrap_err().reason.contains("something other"));
    }
}
