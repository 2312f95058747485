//! pg_dump and pg_restore: a database moves to another server, and one of PostgreSQL 15 moves here.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use atoll_testkit::{Need, skip};

use crate::support::TestServer;

/// What a dump of PostgreSQL 15 looks like; the same objects as in [`OBJECTS`].
const OF_POSTGRESQL: &str = include_str!("dump/postgresql15.sql");

/// Objects of all kinds that a dump can hold, with rows.
const OBJECTS: &str = include_str!("dump/objects.sql");

/// Compared between servers, besides their dumps.
const CONTENTS: [&str; 8] = [
    "SELECT * FROM customer ORDER BY id",
    "SELECT * FROM orders ORDER BY id",
    "SELECT * FROM line ORDER BY order_id, pos",
    "SELECT * FROM stock.item ORDER BY id",
    "SELECT * FROM stock.move ORDER BY id",
    "SELECT * FROM stock.over_big ORDER BY name",
    "SELECT sequencename, last_value, increment_by, max_value FROM pg_sequences ORDER BY 1",
    "SELECT pg_get_serial_sequence('customer', 'id'), pg_get_serial_sequence('orders', 'id')",
];

fn command(server: &TestServer, program: &str, flags: &[&str]) -> Command {
    let port = server.address.port().to_string();
    let mut command = Command::new(program);
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", "ann", "-d", "atoll"]).args(flags);
    command
}

/// Runs a program with an input; `None` if it is not installed.
fn run(server: &TestServer, program: &str, flags: &[&str], input: &[u8]) -> Option<Output> {
    let mut child = command(server, program, flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it is written").expect("it is read");
    Some(output)
}

/// The output of a program, which must succeed without a word.
fn quiet(output: &Output, what: &str) -> Vec<u8> {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{what}: {told}");
    output.stdout.clone()
}

fn psql(server: &TestServer, input: &[u8], what: &str) -> String {
    let flags = ["-X", "-q", "-A", "-v", "ON_ERROR_STOP=1"];
    let output = run(server, "psql", &flags, input).expect("it is installed");
    String::from_utf8_lossy(&quiet(&output, what)).into_owned()
}

fn dump(server: &TestServer, flags: &[&str]) -> Vec<u8> {
    let output = run(server, "pg_dump", flags, b"").expect("it is installed");
    // Dumps of data alone warn of tables that refer to themselves.
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !told.contains("error"), "pg_dump {flags:?}: {told}");
    output.stdout
}

/// A plain dump without the lines that are different each time.
fn comparable(server: &TestServer) -> String {
    let text = String::from_utf8(dump(server, &[])).expect("it is UTF-8");
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    lines.collect::<Vec<_>>().join("\n")
}

fn contents(server: &TestServer) -> Vec<String> {
    let query = |sql: &&str| psql(server, format!("{sql};\n").as_bytes(), sql);
    CONTENTS.iter().map(query).collect()
}

fn is_installed() -> bool {
    ["pg_dump", "pg_restore", "psql"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok())
}

#[test]
fn a_database_moves_by_all_kinds_of_dumps() {
    if !is_installed() {
        return skip(Need::Postgresql, "no pg_dump");
    }
    let first = TestServer::start();
    psql(&first, OBJECTS.as_bytes(), "objects");
    let (wanted, rows) = (comparable(&first), contents(&first));
    assert!(wanted.contains("COPY public.customer (id, name"), "{wanted}");
    assert!(!wanted.contains("atoll.bandwidth"), "{wanted}");
    for flags in [&[][..], &["--inserts"], &["--column-inserts", "--no-owner"]] {
        let second = TestServer::start();
        psql(&second, &dump(&first, flags), &format!("{flags:?}"));
        assert_eq!(comparable(&second), wanted, "{flags:?}");
        assert_eq!(contents(&second), rows, "{flags:?}");
    }
    let third = TestServer::start();
    let archive = dump(&first, &["-Fc"]);
    let restored = run(&third, "pg_restore", &["--exit-on-error"], &archive);
    quiet(&restored.expect("it is installed"), "pg_restore");
    assert_eq!(comparable(&third), wanted);
    assert_eq!(contents(&third), rows);
    let fourth = TestServer::start();
    psql(&fourth, &dump(&first, &["--schema-only"]), "schema");
    psql(&fourth, &dump(&first, &["--data-only"]), "data");
    assert_eq!(contents(&fourth), rows);
    let fifth = TestServer::start();
    psql(&fifth, &dump(&first, &["-t", "customer"]), "one table");
    assert_eq!(psql(&fifth, b"SELECT count(*) FROM customer;\n", "count"), "count\n3\n(1 row)\n");
}

#[test]
fn a_dump_of_postgresql_loads() {
    if !is_installed() {
        return skip(Need::Postgresql, "no pg_dump");
    }
    let (first, second) = (TestServer::start(), TestServer::start());
    psql(&first, OBJECTS.as_bytes(), "objects");
    psql(&second, b"CREATE ROLE postgres SUPERUSER;\n", "role");
    psql(&second, OF_POSTGRESQL.as_bytes(), "dump");
    assert_eq!(contents(&second), contents(&first));
    let next = "INSERT INTO customer (name) VALUES ('new') RETURNING id;\n\
                INSERT INTO orders (customer_id) VALUES (1) RETURNING id;\n";
    let answer = psql(&second, next.as_bytes(), "numbers");
    assert_eq!(answer, "id\n4\n(1 row)\nid\n3\n(1 row)\n");
}
