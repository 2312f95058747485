use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::{TestServer, block_on};

/// Status line and body of what a path gives.
fn get(address: SocketAddr, path: &str) -> String {
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
        for path in ["/healthz", "/readyz"] {
            assert!(get(server.http, path).starts_with("HTTP/1.1 200"), "{path}");
        }
        assert!(get(server.http, "/nothing").starts_with("HTTP/1.1 404"));
    });
}
