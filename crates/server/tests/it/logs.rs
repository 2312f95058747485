use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use atoll_server::{LogOptions, LogTarget, ServerOptions};
use serde_json::Value;

use crate::console::{log_in as log_in_to_console, post, status};
use crate::login::{as_owner, log_in};
use crate::support::{TestServer, block_on};

/// A server that logs all statements as slow, and the audit log, to files in a directory.
fn started(directory: &Path) -> TestServer {
    let target = |name: &str| LogTarget::File(directory.join(name));
    let slow = Some((Duration::ZERO, target("slow.json")));
    let logs = LogOptions { slow, audit: Some(target("audit.json")), ..LogOptions::default() };
    let server = TestServer::with_options(ServerOptions { logs, ..ServerOptions::default() });
    let roles =
        ["CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'b'", "CREATE ROLE ann LOGIN PASSWORD 'a'"];
    block_on(as_owner(&server, &roles));
    server
}

/// The lines of a log.
fn lines(directory: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join(name)).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// The lines of an event, or of statements with this prefix.
fn having<'a>(lines: &'a [Value], key: &str, begins: &str) -> Vec<&'a Value> {
    let is_it = |line: &&Value| line[key].as_str().is_some_and(|it| it.starts_with(begins));
    lines.iter().filter(is_it).collect()
}

#[test]
fn slow_statements_are_logged_with_their_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = started(directory.path());
    block_on(async {
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        boss.batch_execute("SET application_name = 'till'").await.expect("set");
        boss.simple_query("SELECT value FROM range(5)").await.expect("rows");
        boss.query("SELECT value FROM range(7) WHERE value >= $1", &[&0_i64]).await.expect("rows");
        boss.batch_execute("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2), (3)")
            .await
            .expect("rows");
        boss.simple_query("SELECT nothing FROM nowhere").await.expect_err("there is no table");
    });
    server.stop();
    let slow = lines(directory.path(), "slow.json");
    let of = |begins: &str| having(&slow, "statement", begins)[0].clone();
    let five = of("SELECT value FROM range(5)");
    assert_eq!((&five["rows"], &five["result"]), (&5.into(), &"ok".into()), "{five}");
    assert_eq!((&five["role"], &five["application"]), (&"boss".into(), &"till".into()));
    assert!(five["session"].is_u64() && five["duration_ms"].is_number(), "{five}");
    assert!(five["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{five}");
    assert_eq!(of("SELECT value FROM range(7)")["rows"], 7);
    assert_eq!(of("CREATE TABLE t")["rows"], 3, "one, and two");
    assert_eq!(of("SELECT nothing")["result"], "42P01");
}

#[test]
fn fast_statements_are_not_logged() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("slow.json");
    let slow = Some((Duration::from_secs(3600), LogTarget::File(path)));
    let logs = LogOptions { slow, ..LogOptions::default() };
    let server = TestServer::with_options(ServerOptions {
        logs,
        trusts_all: true,
        ..ServerOptions::default()
    });
    block_on(async { drop(server.connect().await.simple_query("SELECT 1").await) });
    assert_eq!(lines(directory.path(), "slow.json").len(), 0);
}

#[test]
fn audited_events_are_logged() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = started(directory.path());
    let backup = directory.path().join("backup");
    block_on(async {
        assert!(log_in(&server, "ann", "guess").await.is_err());
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        boss.batch_execute("SELECT 1; /* x */ CREATE TABLE t (a INT); SELECT 2").await.expect("t");
        boss.execute("GRANT SELECT ON t TO ann", &[]).await.expect("granted");
        boss.execute("ALTER TABLE t ADD COLUMN b INT", &[]).await.expect("altered");
        boss.batch_execute("PREPARE p AS CREATE TABLE u AS SELECT 1 AS a").await.expect("u");
        let backup = format!("BACKUP DATABASE TO '{}'", backup.display());
        let backed_up = boss.batch_execute(&backup).await;
        assert!(backed_up.is_err(), "the database is in memory");
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        ann.batch_execute("DROP TABLE t").await.expect_err("it is not hers");
        ann.execute("DROP TABLE t", &[]).await.expect_err("it is not hers");
        ann.batch_execute("SELECT pg_terminate_backend(1)").await.expect_err("not hers");
        boss.batch_execute("KILL 4000000000").await.expect("there is none");
    });
    server.stop();
    let audit = lines(directory.path(), "audit.json");
    let refused = having(&audit, "result", "28P01")[0];
    assert_eq!((&refused["event"], &refused["role"]), (&"login".into(), &"ann".into()));
    assert!(refused["reason"].as_str().is_some_and(|it| it.contains("password")), "{refused}");
    let logins = having(&audit, "event", "login");
    assert_eq!(logins.len(), 3, "{audit:?}");
    assert_eq!((&logins[1]["over"], &logins[1]["tls"]), (&"postgres".into(), &false.into()));
    assert_eq!(having(&audit, "event", "logout").len(), 2, "{audit:?}");
    for (event, begins, result, role) in [
        ("definition", "CREATE TABLE t", "ok", "boss"),
        ("grant", "GRANT", "ok", "boss"),
        ("definition", "ALTER TABLE", "ok", "boss"),
        ("definition", "PREPARE p", "ok", "boss"),
        ("definition", "DROP TABLE t", "42501", "ann"),
        ("kill", "SELECT pg_terminate", "42501", "ann"),
        ("kill", "KILL", "ok", "boss"),
    ] {
        let found = having(&audit, "statement", begins);
        let is_it = |line: &&&Value| line["event"] == event && line["result"] == result;
        let line = found.iter().find(is_it).unwrap_or_else(|| panic!("{begins}: {audit:?}"));
        assert_eq!(line["role"], role, "{line}");
        assert!(line["session"].is_u64() && line["address"].is_string(), "{line}");
    }
    assert_eq!(having(&audit, "statement", "DROP TABLE t").len(), 2, "{audit:?}");
    assert_eq!(having(&audit, "event", "backup").len(), 1, "{audit:?}");
    assert!(having(&audit, "statement", "SELECT 1").is_empty(), "{audit:?}");
    assert!(having(&audit, "statement", "SELECT 2").is_empty(), "{audit:?}");
}

#[test]
fn console_events_are_logged_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = started(directory.path());
    assert_eq!(log_in_to_console(server.http, "boss", "x"), None);
    let cookie = log_in_to_console(server.http, "boss", "b").expect("her password");
    let sql = r#"{"sql": "CREATE TABLE t (a INT); SELECT value FROM range(3)"}"#;
    assert_eq!(status(&post(server.http, "/api/query", &cookie, sql)), "200");
    assert_eq!(status(&post(server.http, "/api/logout", &cookie, "{}")), "200");
    let audit = lines(directory.path(), "audit.json");
    let events: Vec<_> = audit.iter().map(|line| (&line["event"], &line["result"])).collect();
    let (login, ok) = (Value::from("login"), Value::from("ok"));
    let (refused, definition, logout) = ("28P01".into(), "definition".into(), "logout".into());
    let wanted = [(&login, &refused), (&login, &ok), (&definition, &ok), (&logout, &ok)];
    assert_eq!(events, wanted, "{audit:?}");
    let slow = lines(directory.path(), "slow.json");
    assert_eq!((&slow[0]["application"], &slow[0]["rows"]), (&"console".into(), &3.into()));
}

/// Statements with the password `very secret`; some of them fail.
const PASSWORDS: [&str; 9] = [
    "ALTER ROLE boss PASSWORD 'very secret'",
    "/* a /* b */ c */ ALTER ROLE boss -- d\n PASSWORD 'very secret'",
    "alter user boss with encrypted password 'very secret'",
    "SELECT 1; ALTER ROLE boss PASSWORD 'very secret'; SELECT 2",
    "ALTER ROLE boss PASSWORD $$very secret$$",
    "ALTER ROLE boss PASSWORD $q$very secret$q$ NONSENSE",
    "ALTER ROLE boss PASSWORD/**/E'very secret'",
    "CREATE ROLE eve LOGIN PASSWORD 'very secret' NONSENSE",
    "PREPARE p AS ALTER ROLE boss PASSWORD 'very secret'",
];

#[test]
fn passwords_are_in_no_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = started(directory.path());
    let cookie = log_in_to_console(server.http, "boss", "b").expect("her password");
    block_on(async {
        let boss = log_in(&server, "boss", "b").await.expect("boss");
        for sql in PASSWORDS {
            let _ = boss.simple_query(sql).await;
            let _ = boss.query(sql, &[]).await;
        }
        let long = format!("/* {} */ {}", "x".repeat(20_000), PASSWORDS[0]);
        let _ = boss.simple_query(&long).await;
        assert!(log_in(&server, "boss", "not very secret").await.is_err());
    });
    for sql in PASSWORDS {
        let body = serde_json::json!({ "sql": sql }).to_string();
        post(server.http, "/api/query", &cookie, &body);
    }
    server.stop();
    for name in ["slow.json", "audit.json"] {
        let text = std::fs::read_to_string(directory.path().join(name)).expect("a log");
        assert!(text.contains("PASSWORD"), "{name}: the statements are there");
        assert!(!text.contains("secret"), "{name}: {text}");
    }
    let audit = lines(directory.path(), "audit.json");
    assert!(having(&audit, "event", "role").len() >= PASSWORDS.len(), "{audit:?}");
}

#[test]
fn files_are_private_and_reopened_after_a_rename() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = started(directory.path());
    let (path, old) = (directory.path().join("audit.json"), directory.path().join("audit.1"));
    let mode = std::fs::metadata(&path).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    block_on(async { drop(log_in(&server, "ann", "a").await.expect("ann")) });
    std::fs::rename(&path, &old).expect("renamed");
    block_on(async { drop(log_in(&server, "boss", "x").await.expect_err("wrong")) });
    server.reloader.reopen_logs().expect("opened");
    block_on(async { drop(log_in(&server, "boss", "y").await.expect_err("wrong")) });
    let (before, after) =
        (lines(directory.path(), "audit.1"), lines(directory.path(), "audit.json"));
    assert_eq!(having(&before, "result", "28P01").len(), 1, "{before:?}");
    assert_eq!(having(&after, "result", "28P01").len(), 1, "{after:?}");
}

#[test]
fn a_log_that_cannot_be_opened_prevents_the_start() {
    let server = TestServer::start();
    let logs =
        LogOptions { audit: Some(LogTarget::File("/proc/audit".into())), ..LogOptions::default() };
    let options = ServerOptions { logs, ..ServerOptions::default() };
    let bound = block_on(atoll_server::Server::bind(server.database.clone(), options));
    let error = bound.expect_err("there is no such file").to_string();
    assert!(error.contains("/proc/audit"), "{error}");
}
