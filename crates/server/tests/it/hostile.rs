use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use atoll_server::ServerOptions;

use crate::support::{STARTUP, TestServer, block_on, message};

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Sends bytes, and returns what the server answers until it closes the connection.
fn send(server: &TestServer, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    // The server may have closed it already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the connection is still open after a minute; it was sent {bytes:?}");
        }
        // The connection may be reset, since not all data was read.
        _ => answer,
    }
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

/// Values of every kind in binary form, with their type names and OIDs.
const VALUES: [(&str, u32, &[u8]); 13] = [
    ("int2", 21, &[0, 7]),
    ("int8", 20, &[0, 0, 0, 0, 0, 0, 0, 7]),
    ("float8", 701, &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
    ("numeric", 1700, &[0, 2, 0, 0, 0, 0, 0, 2, 0, 1, 0x13, 0x88]),
    ("date", 1082, &[0, 0, 0x22, 0x3d]),
    ("timestamptz", 1184, &[0, 2, 0xa4, 0xfb, 0x30, 0x90, 0, 0]),
    ("text", 25, b"text"),
    ("bytea", 17, &[0, 255]),
    ("bool", 16, &[1]),
    (
        "int4[]",
        1007,
        &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 9],
    ),
    ("interval", 1186, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]),
    ("uuid", 2950, b"0123456789abcdef"),
    ("json", 114, b"{\"a\": [1]}"),
];

/// A statement with all of them as parameters and results.
fn extended() -> Vec<u8> {
    let casts = VALUES.iter().enumerate().map(|(at, (of, ..))| format!("${}::{of}", at + 1));
    let mut parse = format!("\0SELECT {}\0", casts.collect::<Vec<_>>().join(", ")).into_bytes();
    parse.extend_from_slice(&(VALUES.len() as u16).to_be_bytes());
    let mut bind = b"\0\0\0\x01\0\x01".to_vec();
    bind.extend_from_slice(&(VALUES.len() as u16).to_be_bytes());
    for (_, oid, value) in VALUES {
        parse.extend_from_slice(&oid.to_be_bytes());
        bind.extend_from_slice(&(value.len() as u32).to_be_bytes());
        bind.extend_from_slice(value);
    }
    bind.extend_from_slice(b"\0\x01\0\x01");
    let (describe, execute) = (message(b'D', b"P\0"), message(b'E', b"\0\0\0\0\0"));
    [message(b'P', &parse), message(b'B', &bind), describe, execute, message(b'S', b"")].concat()
}

fn copy(options: &str, data: &[u8]) -> Vec<u8> {
    let sql = format!("COPY t FROM STDIN ({options})\0");
    [message(b'Q', sql.as_bytes()), message(b'd', data), message(b'c', b"")].concat()
}

/// Valid conversations.
fn conversations() -> [Vec<u8>; 5] {
    let mut binary = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in 0..3 {
        binary.extend_from_slice(b"\0\x02\0\0\0\x04\0\0\0");
        binary.extend_from_slice(&[row, 0, 0, 0, 1, b'x']);
    }
    binary.extend_from_slice(b"\xff\xff");
    let simple = b"BEGIN; INSERT INTO t VALUES (1, 'a'); SELECT * FROM t LIMIT 9; ROLLBACK\0";
    [
        message(b'Q', simple),
        extended(),
        copy("FORMAT binary", &binary),
        copy("FORMAT csv, HEADER", b"k,v\n1,\"a\"\"b\"\n2,\n\"3\",\"x\ny\"\n"),
        copy("HEADER match", b"k\tv\n1\ta\\tb\n2\t\\N\n\\.\n"),
    ]
}

/// SQLSTATEs of the errors in an answer.
fn sqlstates(mut answer: &[u8]) -> Vec<String> {
    let mut codes = Vec::new();
    while let Some((header, rest)) = answer.split_at_checked(5) {
        let length = u32::from_be_bytes(header[1..].try_into().expect("four bytes")) as usize;
        let Some((body, rest)) = rest.split_at_checked(length - 4) else { break };
        if header[0] == b'E' {
            let fields = body.split(|byte| *byte == 0);
            let code = fields.filter_map(|field| field.strip_prefix(b"C")).next();
            codes.push(String::from_utf8_lossy(code.unwrap_or(b"none")).into_owned());
        }
        answer = rest;
    }
    codes
}

#[test]
fn conversations_with_damage_are_answered_without_internal_errors() {
    let server = TestServer::start();
    let set_up = "CREATE TABLE t (k INT, v TEXT)";
    block_on(async { server.connect().await.batch_execute(set_up).await.expect("a table") });
    let mut numbers = Numbers(0xda3a6e);
    for conversation in conversations() {
        let whole = sqlstates(&send(&server, &[STARTUP, &conversation].concat()));
        assert_eq!(whole, [""; 0], "{}", String::from_utf8_lossy(&conversation));
        for _ in 0..200 {
            let mut damaged = conversation.clone();
            for _ in 0..=numbers.next() % 3 {
                damage(&mut damaged, &mut numbers);
            }
            let codes = sqlstates(&send(&server, &[STARTUP, &damaged].concat()));
            let is_told = codes.iter().all(|code| code != "XX000" && code != "none");
            assert!(is_told, "{codes:?} for {:?}", damaged.escape_ascii().to_string());
        }
    }
    block_on(async { server.connect().await.batch_execute("SELECT 1").await.expect("it runs") });
}

fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.next() as usize % bytes.len();
    match numbers.next() % 5 {
        0 => bytes[at] = numbers.next() as u8,
        1 => bytes[at] ^= 1 << (numbers.next() % 8),
        2 => bytes.truncate(at.max(1)),
        3 => drop(bytes.remove(at)),
        _ => bytes.insert(at, [0, 0xff, 0x7f][numbers.next() as usize % 3]),
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
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
fn clients_that_never_log_in_use_no_connections() {
    let server =
        TestServer::with_options(ServerOptions { connections_max: 1, ..ServerOptions::default() });
    let silent = || {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.write_all(STARTUP).expect("sent");
        // The server asks for a password.
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
        let (_client, connection) =
            config.connect(tokio_postgres::NoTls).await.expect("a connection");
        tokio::spawn(connection);
        let second = config.connect(tokio_postgres::NoTls).await.err().expect("the limit is one");
        assert_eq!(second.code().map(|state| state.code()), Some("53300"), "{second:?}");
    });
}
