use std::io::Write;
use std::net::TcpStream;

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::support::{ENDLESS, TestServer, begin, block_on};

/// Waits until this many sessions run a statement.
pub(crate) async fn running(server: &TestServer, count: usize) {
    let is_running = || {
        let sessions = server.database.activity().sessions();
        sessions.iter().filter(|session| session.is_running).count()
    };
    while is_running() != count {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_statement_is_cancelled_from_another_connection() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let cancel = client.cancel_token();
        let cancelling = async {
            running(&server, 1).await;
            cancel.cancel_query(NoTls).await.expect("it can be asked for");
        };
        let (result, ()) = tokio::join!(client.simple_query(ENDLESS), cancelling);
        let error = result.expect_err("it is cancelled");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        assert!(client.simple_query("SELECT 1").await.is_ok());
    });
}

#[test]
fn the_statement_of_a_client_that_vanishes_ends() {
    let server = TestServer::start();
    block_on(async {
        let mut stream = begin(&server, &[]);
        query(&mut stream, ENDLESS);
        running(&server, 1).await;
        drop(stream);
        running(&server, 0).await;
        while !server.database.activity().sessions().is_empty() {
            tokio::task::yield_now().await;
        }
        let counted = |line| crate::metrics::get(server.http, "/metrics").contains(line);
        while !counted("atoll_statements_total{outcome=\"08\"} 1\n") {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.database.activity().finished(), 1);
    });
}

/// Sends a statement.
fn query(stream: &mut TcpStream, sql: &str) {
    let message = [b"Q", &(sql.len() as u32 + 5).to_be_bytes()[..], sql.as_bytes(), b"\0"].concat();
    stream.write_all(&message).expect("sent");
}

#[test]
fn a_client_that_vanishes_after_sending_much_ahead_is_noticed() {
    let server = TestServer::start();
    block_on(async {
        let mut stream = begin(&server, &[]);
        query(&mut stream, ENDLESS);
        running(&server, 1).await;
        // More than the server reads while a statement runs.
        stream.set_nonblocking(true).expect("it can be set");
        let ahead = vec![b'x'; 1 << 16];
        let mut sent = 0;
        while sent < 4 << 20 {
            match stream.write(&ahead) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && sent > 1 << 20 => {
                    break;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        drop(stream);
        // If the statement does not end, neither does this test.
        while !server.database.activity().sessions().is_empty() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn an_idle_transaction_does_not_delay_the_shutdown() {
    let mut server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("changed");
        let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.expect("it begins");
        let other = server.connect().await;
        other.batch_execute("BEGIN").await.expect("begun");
        server.stop();
        drop(sink);
        for client in [client, other] {
            let error = client.simple_query("SELECT 1").await.expect_err("it has stopped");
            assert!(
                error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN),
                "{error:?}"
            );
        }
    });
}

#[test]
fn idle_sessions_get_an_error_when_the_server_stops() {
    let mut server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        server.stop();
        let error = client.simple_query("SELECT 1").await.expect_err("it has stopped");
        assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
    });
}
