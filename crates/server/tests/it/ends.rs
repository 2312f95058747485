use std::io::{Read, Write};
use std::net::TcpStream;

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::support::{ENDLESS, TestServer, block_on};

/// Waits until so many sessions run a statement.
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
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        let startup = b"\0\x03\0\0user\0ann\0database\0atoll\0\0";
        stream.write_all(&(startup.len() as u32 + 4).to_be_bytes()).expect("sent");
        stream.write_all(startup).expect("sent");
        let mut answer = [0; 1];
        stream.read_exact(&mut answer).expect("an answer");
        let query = format!("{ENDLESS}\0");
        stream.write_all(b"Q").expect("sent");
        stream.write_all(&(query.len() as u32 + 4).to_be_bytes()).expect("sent");
        stream.write_all(query.as_bytes()).expect("sent");
        running(&server, 1).await;
        drop(stream);
        running(&server, 0).await;
        assert!(server.database.activity().sessions().is_empty());
    });
}

#[test]
fn sessions_that_wait_are_told_when_the_server_stops() {
    let mut server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        server.stop();
        let error = client.simple_query("SELECT 1").await.expect_err("it has stopped");
        assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
    });
}
