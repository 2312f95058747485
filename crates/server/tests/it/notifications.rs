use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification};

use atoll_server::ServerOptions;

use crate::support::{TestServer, answers, begin, block_on, message};

/// A client, and the notifications that it receives.
struct Listening {
    client: Client,
    heard: UnboundedReceiver<Notification>,
}

impl Listening {
    async fn connect(server: &TestServer, statements: &str) -> Self {
        let mut config = Config::new();
        config.host(server.address.ip().to_string()).port(server.address.port());
        config.user("ann").dbname("atoll");
        let (client, mut connection) = config.connect(NoTls).await.expect("the server answers");
        let (sender, heard) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                if let Ok(AsyncMessage::Notification(notification)) = message {
                    let _ = sender.send(notification);
                }
            }
        });
        client.batch_execute(statements).await.expect("it runs");
        Self { client, heard }
    }

    /// The next notification as `channel: payload`.
    async fn next(&mut self) -> String {
        let heard = tokio::time::timeout(Duration::from_secs(60), self.heard.recv()).await;
        let heard = heard.expect("it arrives").expect("the connection is open");
        format!("{}: {}", heard.channel(), heard.payload())
    }

    /// What arrives up to a last notification that another client sends now.
    async fn all(&mut self, other: &Client) -> Vec<String> {
        other.batch_execute("NOTIFY a, 'last'").await.expect("sent");
        let mut all = Vec::new();
        loop {
            let next = self.next().await;
            if next == "a: last" {
                return all;
            }
            all.push(next);
        }
    }
}

async fn run(client: &Client, statements: &[&str]) {
    for statement in statements {
        client.batch_execute(statement).await.expect(statement);
    }
}

#[test]
fn an_idle_listener_hears_of_commits_at_once() {
    let server = TestServer::start();
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a; LISTEN \"B c\"").await;
        let other = server.connect().await;
        let process: i64 =
            other.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        run(&other, &["NOTIFY a, 'x'"]).await;
        let heard = listening.heard.recv().await.expect("it arrives");
        assert_eq!((heard.channel(), heard.payload()), ("a", "x"));
        assert_eq!(i64::from(heard.process_id()), process);
        let notify = "SELECT pg_notify($1, $2)";
        other.query_one(notify, &[&"B c", &"y"]).await.expect("sent");
        assert_eq!(listening.next().await, "B c: y");
        run(&other, &["NOTIFY b, 'unheard'", "NOTIFY A"]).await;
        assert_eq!(listening.next().await, "a: ");
        let channels = "SELECT * FROM pg_listening_channels() c ORDER BY c";
        let channels = listening.client.query(channels, &[]).await.expect("names");
        assert_eq!(channels.len(), 2);
    });
}

#[test]
fn what_is_rolled_back_is_not_sent_and_equal_notifications_are_sent_once() {
    let server = TestServer::start();
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a").await;
        let other = server.connect().await;
        run(&other, &["BEGIN", "NOTIFY a, 'never'", "ROLLBACK"]).await;
        run(&other, &["BEGIN", "NOTIFY a, '1'", "SAVEPOINT s", "NOTIFY a, 'never'"]).await;
        run(&other, &["SELECT pg_notify('a', 'never')", "ROLLBACK TO s", "NOTIFY a, '2'"]).await;
        run(&other, &["NOTIFY a, '1'", "SAVEPOINT t", "NOTIFY a, '3'", "RELEASE t"]).await;
        run(&other, &["NOTIFY a, '3'", "COMMIT"]).await;
        run(&other, &["NOTIFY a, '4'; NOTIFY a, '5'; NOTIFY a, '4'"]).await;
        assert!(other.batch_execute("NOTIFY a, 'never'; SELECT 1 / 0").await.is_err());
        run(&other, &["BEGIN", "NOTIFY a, 'never'"]).await;
        assert!(other.batch_execute("SELECT 1 / 0").await.is_err());
        run(&other, &["COMMIT", "CREATE TABLE t (a INT PRIMARY KEY)"]).await;
        run(&other, &["INSERT INTO t VALUES (6), (7) RETURNING pg_notify('a', a::text)"]).await;
        let twice = "INSERT INTO t VALUES (8), (7) RETURNING pg_notify('a', a::text)";
        assert!(other.batch_execute(twice).await.is_err());
        run(&other, &["SELECT pg_notify('a', 'none') FROM t WHERE a > 10"]).await;
        run(&other, &["SELECT pg_notify('a', 'once') FROM t"]).await;
        let heard = listening.all(&other).await;
        let numbers = ["1", "2", "3", "4", "5", "6", "7", "once"].map(|it| format!("a: {it}"));
        assert_eq!(heard, numbers);
    });
}

#[test]
fn listening_begins_and_ends_with_commits() {
    let server = TestServer::start();
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a").await;
        let other = server.connect().await;
        run(&listening.client, &["BEGIN", "LISTEN b", "UNLISTEN a", "ROLLBACK"]).await;
        run(&other, &["NOTIFY b, 'unheard'", "NOTIFY a, '1'"]).await;
        run(&listening.client, &["BEGIN", "LISTEN b", "SAVEPOINT s", "LISTEN c"]).await;
        run(&listening.client, &["ROLLBACK TO s", "COMMIT"]).await;
        run(&other, &["NOTIFY c, 'unheard'", "NOTIFY b, '2'"]).await;
        assert_eq!(listening.all(&other).await, ["a: 1", "b: 2"]);
        run(&listening.client, &["UNLISTEN b"]).await;
        run(&other, &["NOTIFY b, 'unheard'"]).await;
        run(&listening.client, &["DISCARD ALL"]).await;
        run(&other, &["NOTIFY a, 'unheard'"]).await;
        run(&listening.client, &["LISTEN b", "UNLISTEN *"]).await;
        run(&other, &["NOTIFY b, 'unheard'"]).await;
        run(&listening.client, &["LISTEN a"]).await;
        assert!(listening.all(&other).await.is_empty());
    });
}

#[test]
fn a_listener_in_a_transaction_hears_when_it_has_ended() {
    let server = TestServer::start();
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a; LISTEN b").await;
        let other = server.connect().await;
        for end in ["COMMIT", "ROLLBACK"] {
            run(&listening.client, &["BEGIN", "SELECT 1"]).await;
            run(&other, &["NOTIFY a, 'x'"]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            run(&listening.client, &["SELECT 1"]).await;
            assert!(listening.heard.try_recv().is_err(), "not before {end}");
            run(&listening.client, &[end]).await;
            assert_eq!(listening.next().await, "a: x");
        }
        // What is sent to a channel that the transaction leaves is not heard.
        run(&listening.client, &["BEGIN", "UNLISTEN b"]).await;
        run(&other, &["NOTIFY b, 'unheard'"]).await;
        run(&listening.client, &["COMMIT"]).await;
        assert!(listening.all(&other).await.is_empty());
    });
}

#[test]
fn a_session_hears_itself_before_it_is_ready_again() {
    let server = TestServer::start();
    let query = |sql: &str| message(b'Q', format!("{sql}\0").as_bytes());
    let answer = answers(&server, &[query("LISTEN a"), query("NOTIFY a, 'own'")]);
    let at = |wanted: &[u8]| answer.windows(wanted.len()).rposition(|window| window == wanted);
    let (tag, heard) = (at(b"NOTIFY\0").expect("a tag"), at(b"a\0own\0").expect("it is heard"));
    let ready = at(b"Z\0\0\0\x05I").expect("it is ready");
    assert!(tag < heard && heard < ready);
    // The process is that of BackendKeyData, the first number after the length.
    let key = answer.windows(5).position(|window| window == b"K\0\0\0\x0c").expect("a key");
    assert_eq!(answer[key + 5..key + 9], answer[heard - 4..heard]);
    // The same by the extended protocol, within one group.
    let parse = |sql: &str| message(b'P', format!("\0{sql}\0\0\0").as_bytes());
    let bind = || message(b'B', &[0; 8]);
    let execute = || message(b'E', &[0; 5]);
    let group = [
        parse("LISTEN a"),
        bind(),
        execute(),
        parse("NOTIFY a, 'grouped'"),
        bind(),
        execute(),
        message(b'S', b""),
    ];
    let answer = answers(&server, &group);
    let at = |wanted: &[u8]| answer.windows(wanted.len()).rposition(|window| window == wanted);
    let heard = at(b"a\0grouped\0").expect("it is heard");
    assert!(at(b"NOTIFY\0").expect("a tag") < heard);
    assert!(heard < at(b"Z\0\0\0\x05I").expect("it is ready"));
}

#[test]
fn notifications_arrive_in_the_order_of_commits() {
    const CLIENTS: usize = 4;
    const EACH: usize = 40;
    let home = tempfile::tempdir().expect("a directory");
    let options = ServerOptions { trusts_all: true, ..ServerOptions::default() };
    let server = TestServer::over(options, Some(home.path().join("data")));
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a").await;
        let other = server.connect().await;
        run(&other, &["CREATE TABLE counter (n INT)", "INSERT INTO counter VALUES (0)"]).await;
        // The row's lock orders the commits. A statement that waited for it runs again.
        let mut counting = Vec::new();
        for _ in 0..CLIENTS {
            let client = server.connect().await;
            counting.push(tokio::spawn(async move {
                for _ in 0..EACH {
                    let sql = "UPDATE counter SET n = n + 1 RETURNING pg_notify('a', n::text)";
                    client.batch_execute(sql).await.expect("it counts");
                }
            }));
        }
        for counted in counting {
            counted.await.expect("it ends");
        }
        let heard = listening.all(&other).await;
        let wanted: Vec<String> = (1..=CLIENTS * EACH).map(|n| format!("a: {n}")).collect();
        assert_eq!(heard, wanted);
    });
}

#[test]
fn a_slow_listener_is_disconnected_and_stalls_no_writer() {
    let server = TestServer::start();
    let mut slow = begin(&server, &[]);
    let query = |sql: &str| message(b'Q', format!("{sql}\0").as_bytes());
    slow.write_all(&query("LISTEN a")).expect("sent");
    slow.write_all(&query("BEGIN")).expect("sent");
    wait_for(&mut slow, b"BEGIN\0Z\0\0\0\x05T");
    let much = "SELECT pg_notify('a', repeat('x', 7000) || i) FROM generate_series(1, 2000) s(i)";
    block_on(async {
        let mut listening = Listening::connect(&server, "LISTEN a").await;
        let other = server.connect().await;
        for _ in 0..3 {
            run(&other, &[much]).await;
            assert_eq!(listening.all(&other).await.len(), 2000);
        }
        let too_much = much.replace("2000", "3000");
        let error = other.batch_execute(&too_much).await.expect_err("it is too much");
        assert_eq!(error.code(), Some(&SqlState::PROGRAM_LIMIT_EXCEEDED));
        assert!(listening.all(&other).await.is_empty());
    });
    slow.write_all(&query("SELECT 1")).expect("sent");
    wait_for(&mut slow, b"SELECT 1\0Z\0\0\0\x05T");
    slow.write_all(&query("COMMIT")).expect("sent");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("it ends");
    let text = String::from_utf8_lossy(&rest);
    assert!(text.contains("COMMIT") && text.contains("C54000"), "{text}");
}

fn wait_for(stream: &mut TcpStream, end: &[u8]) {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(end) {
        let count = stream.read(&mut piece).expect("an answer");
        assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn a_lost_listener_is_forgotten() {
    let server = TestServer::start();
    block_on(async {
        let listening = Listening::connect(&server, "LISTEN a").await;
        drop(listening);
        let mut later = Listening::connect(&server, "LISTEN a").await;
        let other = server.connect().await;
        run(&other, &["NOTIFY a, 'x'"]).await;
        assert_eq!(later.next().await, "a: x");
    });
}
