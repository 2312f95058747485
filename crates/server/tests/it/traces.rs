use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use atoll_server::{Collector, ServerOptions, TlsFiles};
use atoll_testkit::{Need, skip};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::rules::certificate;
use crate::support::{TestServer, block_on};

/// How long spans may take to arrive.
const COME_MAX: Duration = Duration::from_secs(30);

/// A collector that stores its requests, over TLS if there is a certificate, and its URL.
fn collector(tls: Option<&TlsFiles>) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
    let encryption = tls.map(|files| Arc::new(encryption(files)));
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let request = match &encryption {
                None => request(stream),
                Some(config) => {
                    let connection =
                        ServerConnection::new(Arc::clone(config)).expect("it is valid");
                    request(StreamOwned::new(connection, stream))
                }
            };
            if let Some(request) = request
                && sender.send(request).is_err()
            {
                return;
            }
        }
    });
    (url, requests)
}

fn encryption(files: &TlsFiles) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(&files.certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they fit")
}

/// Reads and answers a request; None if the connection ends first.
fn request(stream: impl Read + Write) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut head) = (0, Vec::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    assert_eq!(head[0], "POST /v1/traces HTTP/1.1");
    assert!(head.iter().any(|line| line == "content-type: application/json"), "{head:?}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("all of it");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    reader.get_mut().write_all(answer).expect("sent");
    reader.get_mut().flush().expect("sent");
    Some(serde_json::from_slice(&body).expect("JSON"))
}

fn server(url: &str, authorities: Option<&Path>) -> TestServer {
    let collector = Some(Collector::parse(url, authorities).expect(url));
    TestServer::with_options(ServerOptions {
        trusts_all: true,
        collector,
        ..ServerOptions::default()
    })
}

fn spans_of(request: &Value) -> Vec<Value> {
    let of = &request["resourceSpans"][0];
    assert_eq!(of["resource"]["attributes"][0]["value"]["stringValue"], "atoll");
    of["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
}

/// An attribute of a span.
fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().expect("attributes");
    let found = all.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("{key}: {span}"));
    found["value"].as_object().expect("a value").values().next().expect("one").clone()
}

fn nanoseconds(span: &Value, key: &str) -> u64 {
    span[key].as_str().expect(key).parse().expect("a number")
}

#[test]
fn a_collector_gets_statements_with_their_steps_and_operators() {
    let (url, requests) = collector(None);
    let mut server = server(&url, None);
    block_on(async {
        let client = server.connect().await;
        let made =
            "CREATE TABLE t AS SELECT value AS a, value % 10 AS b FROM generate_series(1, 30000)";
        client.batch_execute(made).await.expect("a table");
        let parent = "/*traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/";
        let sql = format!("SELECT b, sum(a) FROM t GROUP BY b ORDER BY 2 {parent}");
        assert!(client.simple_query(&sql).await.expect("rows").len() > 10);
        assert!(client.batch_execute("SELECT 1 % 0").await.is_err());
        client.batch_execute("CREATE ROLE ann PASSWORD 'pencil'").await.expect("a role");
    });
    // The remaining spans are sent when the server stops.
    server.stop();
    let mut spans = Vec::new();
    let by_name = |spans: &[Value], verb: &str| -> Vec<Value> {
        spans.iter().filter(|span| span["name"] == verb && span["kind"] == 2).cloned().collect()
    };
    while by_name(&spans, "CREATE").len() < 2 {
        spans.extend(spans_of(&requests.recv_timeout(COME_MAX).expect("spans")));
    }
    let [query, failed] = by_name(&spans, "SELECT").try_into().expect("two queries");
    assert_eq!(query["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(query["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(attribute(&query, "atoll.rows_read"), "30000");
    assert_eq!(attribute(&query, "atoll.user"), "ann");
    assert!(failed.get("parentSpanId").is_none() && failed["traceId"] != query["traceId"]);
    assert_eq!(
        (&failed["status"]["code"], &attribute(&failed, "db.response.status_code")),
        (&2.into(), &"22012".into())
    );
    assert!(!spans.iter().any(|span| span.to_string().contains("pencil")));
    // All spans of the query form one tree, and its steps lie within its time.
    let of_trace: HashMap<&str, &Value> = spans
        .iter()
        .filter(|span| span["traceId"] == query["traceId"])
        .map(|span| (span["spanId"].as_str().expect("a number"), span))
        .collect();
    let above =
        |span: &Value| of_trace.get(span["parentSpanId"].as_str().expect("a number")).copied();
    let mut steps = Vec::new();
    for span in of_trace.values().filter(|span| span["kind"] == 1) {
        let above = above(span).unwrap_or_else(|| panic!("{span} has no parent"));
        // An operator may begin before its parent is polled.
        assert!(
            nanoseconds(span, "startTimeUnixNano") >= nanoseconds(&query, "startTimeUnixNano"),
            "{span} {query}"
        );
        assert!(
            nanoseconds(span, "startTimeUnixNano") <= nanoseconds(span, "endTimeUnixNano"),
            "{span}"
        );
        if above["spanId"] == query["spanId"] {
            assert!(
                nanoseconds(span, "endTimeUnixNano") <= nanoseconds(above, "endTimeUnixNano"),
                "{span} {above}"
            );
            steps.push(span["name"].as_str().expect("a name"));
        }
    }
    steps.sort_unstable();
    assert_eq!(steps, ["execute", "parse", "plan"]);
    let scan = of_trace.values().find(|span| span["name"] == "ScanExec").expect("the scan");
    assert_eq!(attribute(scan, "atoll.rows"), "30000");
    let tops = std::iter::successors(Some(*scan), |span| match span["kind"] == 2 {
        true => None,
        false => above(span),
    });
    let top = tops.last().expect("the scan itself");
    assert_eq!(top["spanId"], query["spanId"]);
}

#[test]
fn a_collector_over_tls_shows_a_certificate_that_is_trusted() {
    let [own, other] = [0; 2].map(|_| tempfile::tempdir().expect("a directory"));
    let (Some(tls), Some(other)) = (certificate(own.path()), certificate(other.path())) else {
        return skip(Need::Postgresql, "no openssl");
    };
    let (url, requests) = collector(Some(&tls));
    let told = |authorities: &Path| {
        let mut server = server(&url, Some(authorities));
        block_on(async {
            server.connect().await.batch_execute("SELECT 1").await.expect("it runs");
        });
        server.stop();
    };
    told(&other.certificate);
    told(&tls.certificate);
    // The untrusted collector has received nothing.
    let spans = spans_of(&requests.recv_timeout(COME_MAX).expect("spans"));
    assert_eq!(spans.iter().filter(|span| span["kind"] == 2).count(), 1);
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_collector_that_does_not_answer_holds_no_statement_up() {
    // It accepts connections and never responds.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut server =
        server(&format!("http://{}", listener.local_addr().expect("an address")), None);
    block_on(async {
        let client = server.connect().await;
        let begun = Instant::now();
        // More than the queue holds.
        for _ in 0..6000 {
            client.batch_execute("BEGIN").await.expect("begun");
            client.batch_execute("ROLLBACK").await.expect("ended");
            if begun.elapsed() > Duration::from_secs(20) {
                break;
            }
        }
        client.batch_execute("SELECT 1").await.expect("it runs");
    });
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
