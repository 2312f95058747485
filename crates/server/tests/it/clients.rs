//! psql, pgbench, drivers of other languages and ADBC against the server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use atoll_testkit::{Need, skip};

use crate::support::TestServer;

/// The schema that psql describes.
const SCHEMA: &str = "\
CREATE TABLE t (a INT PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c DECIMAL(10,2) CHECK (c > 0),
    d TIMESTAMPTZ, e INT[], f BIGINT GENERATED ALWAYS AS IDENTITY, UNIQUE (b, c));
CREATE SCHEMA s;
CREATE TABLE s.w (k INT PRIMARY KEY, \"Odd Name\" TEXT);
CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1;
CREATE SEQUENCE q;
CREATE ROLE reader LOGIN;
CREATE ROLE boss SUPERUSER LOGIN IN ROLE reader;
COMMENT ON TABLE t IS 'what is sold';
COMMENT ON COLUMN t.a IS 'its number';
";

/// Commands that must run without an error, whatever they print.
const ANSWERED: &str = "\\d \\d+ \\dS \\dt+ \\dt+:s.* \\d+:t \\d+:v \\d:q \\d:t_pkey \\d:s.w \\l+ \\du+ \\df \\df+ \\da \
    \\dn+ \\dv+ \\di+ \\ds+ \\dT \\dT+ \\dp \\z \\ddp \\db \\db+ \\dx \\dy \\dRp \\dC \\dD \\do \\dA \\dE \\dm \\dP \
    \\des \\dew \\deu \\det \\dF \\drds \\dconfig \\dX \\dc \\dO \\dd \\ddS \\dL \\dL+ \\sv:v \\conninfo \\encoding \\d:pg_class";

fn psql(server: &TestServer, input: &str) -> Option<Output> {
    let port = server.address.port().to_string();
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-q", "-h", "127.0.0.1", "-p", &port, "-U", "ann", "-d", "atoll"]);
    let mut child = { psql }
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("psql reads");
    drop(stdin);
    Some(child.wait_with_output().expect("psql ends"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn psql_shows_notifications() {
    let server = TestServer::start();
    let Some(heard) = psql(&server, "LISTEN a;\nNOTIFY a, 'x';\nNOTIFY a;\n") else {
        return skip(Need::Postgresql, "no psql");
    };
    let (heard, from) = (text(&heard.stdout), "received from server process with PID");
    let told = format!("Asynchronous notification \"a\" with payload \"x\" {from}");
    assert!(heard.contains(&told), "{heard}");
    assert!(heard.contains(&format!("Asynchronous notification \"a\" {from}")), "{heard}");
}

#[test]
fn psql_describes_all_objects() {
    let server = TestServer::start();
    let Some(made) = psql(&server, SCHEMA) else {
        return skip(Need::Postgresql, "no psql");
    };
    assert_eq!(text(&made.stderr), "");
    let answered = ANSWERED.split(' ').map(|command| command.replace(':', " "));
    let all: Vec<String> =
        answered.map(|command| format!("\\warn {command}\n{command}\n")).collect();
    let told = psql(&server, &all.concat()).expect("it is installed");
    let told = text(&told.stderr);
    let failed: Vec<&str> = told.split("\\").filter(|it| it.contains("ERROR")).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for (command, wanted) in [
        (
            "\\d t",
            "Table \"public.t\"\nColumn|Type|Collation|Nullable|Default\na|integer||not null|\n\
             b|text||not null|'x'::text\nc|numeric(10,2)|||\nd|timestamp with time zone|||\ne|integer[]|||\n\
             f|bigint||not null|generated always as identity\nIndexes:\n    \"t_pkey\" PRIMARY KEY, btree (a)\n    \
             \"t_b_c_key\" UNIQUE CONSTRAINT, btree (b, c)\nCheck constraints:\n    \
             \"t_c_check\" CHECK ((c > 0))\n",
        ),
        ("\\dt", "List of relations\nSchema|Name|Type|Owner\npublic|t|table|atoll\n(1 row)\n"),
        ("\\dv", "List of relations\nSchema|Name|Type|Owner\npublic|v|view|atoll\n(1 row)\n"),
        (
            "\\di",
            "List of relations\nSchema|Name|Type|Owner|Table\npublic|t_b_c_key|index|atoll|t\n\
             public|t_pkey|index|atoll|t\n(2 rows)\n",
        ),
        ("\\dn", "List of schemas\nName|Owner\natoll|atoll\npublic|atoll\ns|atoll\n(3 rows)\n"),
        (
            "\\d v",
            "View \"public.v\"\nColumn|Type|Collation|Nullable|Default\na|integer|||\nb|text|||\n",
        ),
        (
            "\\du",
            "List of roles\nRole name|Attributes|Member of\nann|Superuser, Create role, Create DB, Bypass RLS|{}\n\
             atoll|Superuser, Create role, Create DB, Bypass RLS|{}\nboss|Superuser, Create DB, Bypass RLS|{reader}\n\
             reader||{}\n",
        ),
    ] {
        let answer = psql(&server, &format!("{command}\n")).expect("it is installed");
        assert_eq!(text(&answer.stdout), wanted, "{command}: {}", text(&answer.stderr));
    }
    let comments = psql(&server, "\\dt+ t\n\\d+ t\n").expect("it is installed");
    let comments = text(&comments.stdout);
    assert!(comments.contains("what is sold") && comments.contains("its number"), "{comments}");
}

#[test]
fn pgbench_creates_its_tables_and_runs_its_scripts() {
    let server = TestServer::start();
    let port = server.address.port().to_string();
    let pgbench = |flags: &[&str]| {
        let mut pgbench = Command::new("pgbench");
        pgbench.args(["-h", "127.0.0.1", "-p", &port, "-U", "ann"]);
        pgbench.args(flags).arg("atoll").output()
    };
    let Ok(made) = pgbench(&["-i", "-s", "1", "-q"]) else {
        return skip(Need::Postgresql, "no pgbench");
    };
    assert!(made.status.success(), "{}", text(&made.stderr));
    for flags in [
        &["-t", "5", "-c", "2"][..],
        &["-S", "-t", "5", "-M", "prepared"],
        &["-N", "-t", "5", "-M", "extended"],
        &["-i", "-I", "dtGvp"],
    ] {
        let ran = pgbench(flags).expect("it is installed");
        assert!(ran.status.success(), "{flags:?}: {}", text(&ran.stderr));
    }
    for flags in [&["-i", "-I", "f"][..], &["-t", "5", "-c", "2"], &["-i", "-I", "dtgpf"]] {
        let ran = pgbench(flags).expect("it is installed");
        assert!(ran.status.success(), "{flags:?}: {}", text(&ran.stderr));
    }
}

fn script(name: &str) -> PathBuf {
    // If the test binary runs without the sources, there are no scripts, and the test is skipped.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers").join(name)
}

/// Runs a driver's script if its requirements are installed.
fn drive(program: &str, probe: &[&str], before: &[&str], name: &str) {
    drive_at(|server| server.address.port(), program, probe, before, name);
}

/// The same with another protocol's port.
fn drive_at(
    port: impl Fn(&TestServer) -> u16,
    program: &str,
    probe: &[&str],
    before: &[&str],
    name: &str,
) {
    let found = Command::new(program).args(probe).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip(Need::Drivers, format!("{program} {}", probe.join(" ")));
    }
    let server = TestServer::start();
    let ran = Command::new(program)
        .args(before)
        .arg(script(name))
        .arg(port(&server).to_string())
        .output()
        .expect("it is installed");
    assert!(ran.status.success(), "{name}: {}{}", text(&ran.stdout), text(&ran.stderr));
}

/// The Python that `$ATOLL_DRIVERS_PYTHON` names, or the default one.
fn python_program() -> String {
    std::env::var("ATOLL_DRIVERS_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn python(probe: &str, name: &str) {
    drive(&python_program(), &["-c", probe], &[], name);
}

#[test]
fn adbc_works_over_flight_sql() {
    let probe = ["-c", "import adbc_driver_flightsql.dbapi, pyarrow"];
    let port = |server: &TestServer| server.flight.port();
    drive_at(port, &python_program(), &probe, &[], "adbc_flight.py");
}

#[test]
fn psycopg_3_works() {
    python("import psycopg", "psycopg_3.py");
}

#[test]
fn sqlalchemy_reflects_a_schema() {
    python("import psycopg, sqlalchemy", "sqlalchemy_reflection.py");
}

#[test]
fn asyncpg_works() {
    python("import asyncpg", "asyncpg_types.py");
}

#[test]
fn pg8000_works() {
    python("import pg8000.native", "pg8000_values.py");
}

#[test]
fn node_pg_works() {
    drive("node", &["-e", "require('pg')"], &[], "node_pg.js");
}

#[test]
fn pgjdbc_returns_metadata() {
    let jar = std::env::var("ATOLL_PGJDBC")
        .unwrap_or_else(|_| "/usr/share/java/postgresql.jar".to_owned());
    if !Path::new(&jar).exists() {
        return skip(Need::Drivers, format!("no {jar}; ATOLL_PGJDBC names another"));
    }
    drive("java", &["--version"], &["-cp", &jar], "Metadata.java");
}
