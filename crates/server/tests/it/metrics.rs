use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use atoll_server::ServerOptions;
use tokio_postgres::error::SqlState;

use crate::support::{TestServer, block_on};

/// Status line and body of the response for a path.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn statements_and_sessions_are_counted() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.simple_query("SELECT 1").await.expect("a row");
        client.query("SELECT 1", &[]).await.expect("a row");
        assert!(client.simple_query("SELECT nothing").await.is_err());
        let metrics = get(server.http, "/metrics");
        for line in [
            "atoll_connections_total 1",
            "atoll_statements_total{outcome=\"done\"} 2",
            "atoll_statements_total{outcome=\"42\"} 1",
            "atoll_statement_duration_seconds_count 3",
            "atoll_sessions{state=\"waiting\"} 1",
        ] {
            assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
        }
        // PREPARE does not count; each execution does once.
        assert_eq!(server.database.activity().finished(), 3);
        for path in ["/healthz", "/readyz"] {
            assert!(get(server.http, path).starts_with("HTTP/1.1 200"), "{path}");
        }
        assert!(get(server.http, "/nothing").starts_with("HTTP/1.1 404"));
    });
}

/// The value of a metric.
fn figure(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.split_once(' ').is_some_and(|it| it.0 == name));
    let value = line.and_then(|line| line.rsplit_once(' ')).map(|(_, value)| value);
    value.unwrap_or_else(|| panic!("{name}\n{metrics}")).parse().expect("a number")
}

#[test]
fn conflicts_memory_and_commits_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ServerOptions { trusts_all: true, ..ServerOptions::default() };
    let server = TestServer::over(options, Some(directory.path().join("db")));
    block_on(async {
        let (one, other) = (server.connect().await, server.connect().await);
        let before = get(server.http, "/metrics");
        let sql = "CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)";
        one.batch_execute(sql).await.expect("a table");
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT v FROM t";
        other.batch_execute(snapshot).await.expect("begun");
        one.batch_execute("UPDATE t SET v = 2 WHERE k = 1").await.expect("changed");
        let error = other.batch_execute("UPDATE t SET v = 3 WHERE k = 1").await;
        assert_eq!(
            error.expect_err("a conflict").code(),
            Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        );
        other.batch_execute("ROLLBACK; BEGIN; UPDATE t SET v = 3 WHERE k = 1").await.expect("held");
        one.batch_execute("SET lock_timeout = 1").await.expect("set");
        let error = one.batch_execute("UPDATE t SET v = 4 WHERE k = 1").await.expect_err("held");
        assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
        let after = get(server.http, "/metrics");
        for kind in ["serialization", "lock"] {
            let name = format!("atoll_conflicts_total{{kind=\"{kind}\"}}");
            assert_eq!(figure(&after, &name), 1.0, "{after}");
        }
        assert!(figure(&after, "atoll_locks") > 0.0, "{after}");
        for name in ["atoll_commits_total", "atoll_log_bytes_total", "atoll_log_syncs_total"] {
            assert!(figure(&after, name) > figure(&before, name), "{name}\n{after}");
        }
        let (memory, limit) = ("atoll_memory_bytes", "atoll_memory_limit_bytes");
        assert!(figure(&after, memory) > 0.0 && figure(&after, limit) >= figure(&after, memory));
        for name in ["atoll_shared_scan_cycles_total", "atoll_read_local_bytes_total"] {
            assert!(figure(&after, name) >= figure(&before, name), "{name}\n{after}");
        }
    });
}
