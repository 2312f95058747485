//! The console's API: responses and refusals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use atoll_server::ServerOptions;
use atoll_testkit::{Need, lasting_address, skip};

use crate::login::as_owner;
use crate::support::{ENDLESS, TestServer, block_on};

/// The roles of the tests.
const ROLES: [&str; 3] = [
    "CREATE ROLE ann LOGIN PASSWORD 'pencil'",
    "CREATE TABLE sale AS SELECT value AS a FROM range(100000)",
    "CREATE TABLE secret AS SELECT 1 AS a",
];

/// Names of Chromium programs.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Sends bytes, and reads the whole response.
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let mut answer = Vec::new();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(request);
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

fn request(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(address, text.as_bytes())
}

/// A request as the page sends it.
pub(crate) fn post(address: SocketAddr, path: &str, cookie: &str, body: &str) -> String {
    let headers = format!("X-Atoll-Console: 1\r\nOrigin: http://{address}\r\nCookie: {cookie}\r\n");
    request(address, "POST", path, &headers, body)
}

pub(crate) fn get(address: SocketAddr, path: &str, cookie: &str) -> String {
    request(address, "GET", path, &format!("X-Atoll-Console: 1\r\nCookie: {cookie}\r\n"), "")
}

pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// Logs in; returns the cookie.
pub(crate) fn log_in(address: SocketAddr, user: &str, password: &str) -> Option<String> {
    let body = format!(r#"{{"user": "{user}", "password": "{password}"}}"#);
    let answer = post(address, "/api/login", "", &body);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "))?;
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; "), "{cookie}");
    cookie.split(';').next().map(str::to_owned)
}

/// A server with roles, and the cookie of one.
fn started() -> (TestServer, String) {
    let server = TestServer::with_passwords();
    block_on(as_owner(&server, &ROLES));
    block_on(as_owner(&server, &["GRANT SELECT ON sale TO ann"]));
    let cookie = log_in(server.http, "ann", "pencil").expect("it is her password");
    (server, cookie)
}

#[test]
fn the_page_is_served_and_loads_nothing_from_other_sites() {
    let server = TestServer::start();
    for path in ["/", "/console/main.js", "/console/console.css", "/console/machine.svg"] {
        let answer = request(server.http, "GET", path, "", "");
        assert_eq!(status(&answer), "200", "{path}: {answer}");
        let policy = "content-security-policy: default-src 'none'; script-src 'self';";
        assert!(answer.contains(policy), "{path}: {answer}");
    }
    let answer = get(server.http, "/api/session", "");
    assert!(answer.contains(r#""has_password":false"#), "{answer}");
}

#[test]
fn a_log_in_needs_the_password_and_ends_when_it_changes() {
    let (server, cookie) = started();
    for (user, password) in [("ann", "pencils"), ("eve", "pencil"), ("ann", "")] {
        assert_eq!(log_in(server.http, user, password), None, "{user}");
    }
    for path in ["/api/session", "/api/machine", "/api/watch/tables", "/console/machine.svg"] {
        assert_eq!(status(&get(server.http, path, &cookie)), "200", "{path}");
        assert_eq!(status(&get(server.http, path, "")), "401", "{path}");
        let forged = format!("{}0", &cookie[..cookie.len() - 1]);
        let other = get(server.http, path, &forged);
        assert!(forged == cookie || status(&other) == "401", "{path}");
    }
    block_on(as_owner(&server, &["ALTER ROLE ann PASSWORD 'chalk'"]));
    assert_eq!(status(&get(server.http, "/api/session", &cookie)), "401");
    let cookie = log_in(server.http, "ann", "chalk").expect("it is her password now");
    assert_eq!(status(&post(server.http, "/api/logout", &cookie, "{}")), "200");
    assert_eq!(status(&get(server.http, "/api/session", &cookie)), "401");
}

#[test]
fn guessing_is_refused() {
    let server = TestServer::with_passwords();
    block_on(as_owner(&server, &ROLES));
    let wrong = r#"{"user": "ann", "password": "x"}"#;
    for _ in 0..10 {
        assert_eq!(status(&post(server.http, "/api/login", "", wrong)), "401");
    }
    assert_eq!(status(&post(server.http, "/api/login", "", wrong)), "429");
    assert_eq!(log_in(server.http, "ann", "pencil"), None);
}

#[test]
fn requests_that_another_site_could_make_are_refused() {
    let server = TestServer::start();
    let (at, body) = (server.http, r#"{"sql": "SELECT 1"}"#);
    let own = "X-Atoll-Console: 1\r\n";
    assert_eq!(status(&request(at, "POST", "/api/query", "", body)), "403");
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let headers = format!("{own}Origin: {origin}\r\n");
        assert_eq!(status(&request(at, "POST", "/api/query", &headers, body)), "403", "{origin}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", ""] {
        let text =
            format!("GET /api/session HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{own}\r\n");
        let answer = exchange(at, text.as_bytes());
        assert_ne!(status(&answer), "200", "{host}: {answer}");
    }
    assert_eq!(status(&request(at, "POST", "/api/query", own, body)), "200");
}

#[test]
fn statements_return_rows_tags_and_errors_with_positions() {
    let (server, cookie) = started();
    let query = |sql: &str| {
        let body = format!(r#"{{"sql": "{sql}"}}"#);
        post(server.http, "/api/query", &cookie, &body)
    };
    let answer = query("SELECT 1.5 AS n, 'a' AS t, NULL AS u; SELECT count(*) FROM sale");
    for part in [r#""rows":[["1.5","a",null]]"#, r#""rows":[["100000"]]"#, r#""more":false"#] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let answer = query("SELECT a FROM sale ORDER BY a");
    assert!(answer.contains(r#"["999"]],"more":true"#), "{}", &answer[answer.len() - 200..]);
    let answer = query("SELECT 1; SELECT nothing FROM sale");
    assert_eq!(status(&answer), "400", "{answer}");
    for part in [r#""position":18"#, r#""state":"42703""#, r#""rows":[["1"]]"#] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let answer = query("BEGIN; SELECT 1");
    assert!(answer.contains("rolled back"), "{answer}");
    let answer = query("SELECT * FROM secret");
    assert!(answer.contains(r#""state":"42501""#), "{answer}");
}

#[test]
fn plans_are_trees() {
    let (server, cookie) = started();
    let explain = |body: &str| post(server.http, "/api/explain", &cookie, body);
    let answer =
        explain(r#"{"sql": "SELECT a % 7, count(*) FROM sale GROUP BY 1", "analyze": true}"#);
    assert_eq!(status(&answer), "200", "{answer}");
    for part in [r#""name":"ScanExec""#, r#""bytes_local":"#, r#""homes":"["#, r#""depth":1"#] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let answer = explain(r#"{"sql": "SELECT nothing FROM sale", "analyze": true}"#);
    assert!(answer.contains(r#""position":8"#), "{answer}");
    assert_eq!(status(&explain(r#"{"sql": "SELECT 1; SELECT 2"}"#)), "400");
}

#[test]
fn a_statement_ends_when_it_is_cancelled_or_its_request_goes_away() {
    let server = TestServer::start();
    let sessions = || server.database.activity().sessions();
    let running = || loop {
        if let Some(session) = sessions().iter().find(|session| session.is_running) {
            return session.number;
        }
        std::thread::yield_now();
    };
    let body = format!(r#"{{"sql": "{ENDLESS}"}}"#);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| post(server.http, "/api/query", "", &body));
        let cancel = format!(r#"{{"session": {}}}"#, running());
        let answer = post(server.http, "/api/cancel", "", &cancel);
        assert!(answer.contains(r#""cancelled":true"#), "{answer}");
        asked.join().expect("an answer")
    });
    assert!(answer.contains(r#""state":"57014""#), "{answer}");
    let mut stream = TcpStream::connect(server.http).expect("it listens");
    let (at, length) = (server.http, body.len());
    let head = format!(
        "POST /api/query HTTP/1.1\r\nHost: {at}\r\nX-Atoll-Console: 1\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).expect("sent");
    running();
    drop(stream);
    while !sessions().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn any_request_gets_an_answer() {
    let (server, cookie) = started();
    let deep = "[".repeat(5000);
    let long = format!(r#"{{"sql": "{}"}}"#, "x".repeat(2 << 20));
    for path in ["/api/query", "/api/explain", "/api/cancel", "/api/login"] {
        for body in
            ["", "{", "[]", "{}", r#"{"sql": 7}"#, r#"{"session": -1}"#, "\u{0}", &deep, &long]
        {
            let answer = post(server.http, path, &cookie, body);
            let is_refused = answer.is_empty() || status(&answer).starts_with('4');
            assert!(is_refused, "{path} {}: {answer}", &body[..body.len().min(20)]);
        }
    }
    for sql in ["", ";", "\\u0000", "SELECT '", "EXPLAIN", "COPY sale FROM STDIN", "ROLLBACK"] {
        for path in ["/api/query", "/api/explain"] {
            let answer = post(server.http, path, &cookie, &format!(r#"{{"sql": "{sql}"}}"#));
            assert!(["200", "400"].contains(&status(&answer)), "{path} {sql}: {answer}");
        }
    }
    for path in ["/api/nothing", "/api/watch/nothing", "/api/watch/%00", "/nothing"] {
        let answer = get(server.http, path, &cookie);
        assert!(status(&answer).starts_with('4'), "{path}: {answer}");
    }
    assert_eq!(status(&get(server.http, "/api/session", &cookie)), "200");
}

/// A server on a port that the kernel does not hand out, so that another server can reuse it.
fn on_fixed_port() -> (TestServer, SocketAddr) {
    let address = lasting_address();
    (with_console(address), address)
}

fn with_console(address: SocketAddr) -> TestServer {
    let server =
        TestServer::with_options(ServerOptions { http: Some(address), ..ServerOptions::default() });
    block_on(as_owner(&server, &ROLES));
    block_on(as_owner(&server, &["GRANT SELECT ON sale TO ann"]));
    server
}

#[test]
fn a_browser_uses_the_console_over_a_restart_of_the_server() {
    let is_there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !BROWSERS.into_iter().any(is_there) || !is_there("python3") {
        return skip(Need::Drivers, "no Chromium, or no python3");
    }
    let (mut server, address) = on_fixed_port();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/console.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(address.port().to_string());
    let child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it is installed");
    let mut told = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("text");
    if line == "restart\n" {
        server.stop();
        server = with_console(address);
        let mut stdin = child.stdin.take().expect("it is piped");
        // The browser may have failed meanwhile; its status shows that.
        let _ = stdin.write_all(b"done\n");
    }
    let ran = child.wait_with_output().expect("it ends");
    drop(server);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
