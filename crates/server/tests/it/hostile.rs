use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use atoll_server::ServerOptions;

use crate::support::{TestServer, block_on};

const STARTUP: &[u8] = b"\0\0\0\x21\0\x03\0\0user\0ann\0database\0atoll\0\0";

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Sends bytes, and reads until the server closes the connection or waits for more.
fn send(server: &TestServer, bytes: &[u8]) {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    // The server may have closed it already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

#[test]
fn bytes_that_are_not_the_protocol_end_their_connection_alone() {
    let server = TestServer::start();
    let mut numbers = Numbers(0x5eed);
    for round in 0..200 {
        let length = numbers.next() as usize % 200;
        let random: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        send(&server, &random);
        let mut after_startup = STARTUP.to_vec();
        after_startup.extend_from_slice(&random);
        send(&server, &after_startup);
        // Messages of known kinds with random bodies.
        let mut known = STARTUP.to_vec();
        let kind = b"QPBDECHSdcfpX"[round % 13];
        known.extend_from_slice(&message(kind, &random));
        known.extend_from_slice(&message(b'S', b""));
        send(&server, &known);
    }
    for end in 0..STARTUP.len() {
        send(&server, &STARTUP[..end]);
    }
    for huge in [b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"B\x0f\xff\xff\xff"] {
        send(&server, &[STARTUP, huge].concat());
    }
    block_on(async {
        let client = server.connect().await;
        assert!(client.simple_query("SELECT 1").await.is_ok());
        drop(client);
        while !server.database.activity().sessions().is_empty() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn deep_statements_are_errors() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let deep = format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000));
        assert!(client.simple_query(&deep).await.is_err());
        assert!(client.prepare(&deep).await.is_err());
        let wide = format!("SELECT {}", vec!["1"; 500].join(" + "));
        assert!(client.prepare(&wide).await.is_ok());
        assert!(client.simple_query("SELECT 1").await.is_ok());
    });
}

#[test]
fn clients_that_never_log_in_take_no_places() {
    let server = TestServer::of(ServerOptions { connections_max: 1, ..ServerOptions::default() });
    let silent = || {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.write_all(STARTUP).expect("sent");
        // It asks for a password.
        stream.read_exact(&mut [0]).expect("an answer");
        stream
    };
    let _silent: Vec<TcpStream> = std::iter::repeat_with(silent).take(8).collect();
    block_on(async {
        let owner = server.database.session().expect("a session");
        owner.run("CREATE ROLE ann LOGIN PASSWORD 'pencil'").await.expect("created");
        let mut config = tokio_postgres::Config::new();
        config.host(server.address.ip().to_string()).port(server.address.port());
        config.user("ann").password("pencil").dbname("atoll");
        let (_client, connection) = config.connect(tokio_postgres::NoTls).await.expect("a place");
        tokio::spawn(connection);
        let second = config.connect(tokio_postgres::NoTls).await.err().expect("there is one place");
        assert_eq!(second.code().map(|state| state.code()), Some("53300"), "{second:?}");
    });
}
