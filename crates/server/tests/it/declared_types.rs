//! The declared types of parameters in the answers: raw messages, since drivers choose the types themselves.

use crate::support::{TestServer, answers, message};

/// Parse, Bind, Describe, Execute and Sync of a statement with one parameter as text, and an answer in this format.
fn run(sql: &str, oid: u32, value: &str, format: u8) -> Vec<u8> {
    let parse = [b"\0", sql.as_bytes(), b"\0\0\x01", &oid.to_be_bytes()].concat();
    let length = (value.len() as u32).to_be_bytes();
    let formats = [0, 1, 0, format];
    let bind = [b"\0\0\0\0\0\x01", &length[..], value.as_bytes(), &formats].concat();
    [
        message(b'P', &parse),
        message(b'B', &bind),
        message(b'D', b"P\0"),
        message(b'E', &[0; 5]),
        message(b'S', b""),
    ]
    .concat()
}

/// The bodies of messages of a kind.
fn bodies(mut answer: &[u8], kind: u8) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let [of, length @ ..] = answer {
        let length = u32::from_be_bytes(length[..4].try_into().expect("a length")) as usize;
        if *of == kind {
            found.push(&answer[5..1 + length]);
        }
        answer = &answer[1 + length..];
    }
    found
}

/// The type and the value of the only column of each row.
fn column(answer: &[u8]) -> (u32, Vec<u8>) {
    let text = String::from_utf8_lossy(answer).into_owned();
    let described = bodies(answer, b'T').pop().unwrap_or_else(|| panic!("{text}"));
    let name = described[2..].iter().position(|byte| *byte == 0).expect("a name");
    let oid = described[2 + name + 7..][..4].try_into().expect("a type");
    let row = bodies(answer, b'D').pop().unwrap_or_else(|| panic!("{text}"));
    (u32::from_be_bytes(oid), row[6..].to_vec())
}

/// The answers are PostgreSQL's.
#[test]
fn an_answer_has_the_declared_type() {
    let server = TestServer::start();
    for (oid, value, text, binary) in [
        (114, "{\"a\": 1}", "{\"a\": 1}", b"{\"a\": 1}".as_slice()),
        (3802, "{\"a\":1}", "{\"a\": 1}", b"\x01{\"a\": 1}"),
        (869, "10.0.0.1", "10.0.0.1", b"\x02\x20\0\x04\x0a\0\0\x01"),
        (650, "10.0.0.0/8", "10.0.0.0/8", b"\x02\x08\x01\x04\x0a\0\0\0"),
        (829, "08:00:2B:01:02:03", "08:00:2b:01:02:03", b"\x08\0\x2b\x01\x02\x03"),
        (26, "7", "7", b"\0\0\0\x07"),
        (
            199,
            "{\"[1]\"}",
            "{[1]}",
            b"\0\0\0\x01\0\0\0\0\0\0\0\x72\0\0\0\x01\0\0\0\x01\0\0\0\x03[1]",
        ),
    ] {
        for sql in ["SELECT $1", "SELECT $1 AS a", "(SELECT $1)"] {
            let answer = answers(&server, &[run(sql, oid, value, 0), run(sql, oid, value, 1)]);
            let found = bodies(&answer, b'D').len();
            assert_eq!(found, 2, "{sql} {oid}: {}", String::from_utf8_lossy(&answer));
            assert_eq!(column(&answer), (oid, binary.to_vec()), "{sql}");
            let answer = answers(&server, &[run(sql, oid, value, 0)]);
            assert_eq!(column(&answer), (oid, text.as_bytes().to_vec()), "{sql}");
        }
    }
    let typed = answers(&server, &[run("SELECT pg_typeof($1)::TEXT", 3802, "[]", 0)]);
    assert_eq!(column(&typed), (25, b"jsonb".to_vec()));
    let cast = answers(&server, &[run("SELECT $1::TEXT", 199, "{\"{\\\"a\\\":1}\"}", 0)]);
    assert_eq!(column(&cast), (25, b"{\"{\\\"a\\\":1}\"}".to_vec()));
}

#[test]
fn an_answer_has_the_declared_enum() {
    let server = TestServer::start();
    let created = message(b'Q', b"CREATE TYPE mood AS ENUM ('sad', 'ok')\0");
    let asked = message(b'Q', b"SELECT oid FROM pg_type WHERE typname = 'mood'\0");
    let (_, oid) = column(&answers(&server, &[created, asked]));
    let oid: u32 = String::from_utf8(oid).expect("digits").parse().expect("a number");
    for format in [0, 1] {
        let answer = answers(&server, &[run("SELECT $1", oid, "ok", format)]);
        assert_eq!(column(&answer), (oid, b"ok".to_vec()));
    }
    let array = answers(&server, &[run("SELECT $1", oid + 1, "{ok,sad}", 0)]);
    assert_eq!(column(&array), (oid + 1, b"{ok,sad}".to_vec()));
    for sql in ["SELECT $1", "SELECT $1::TEXT"] {
        let refused = answers(&server, &[run(sql, oid, "glad", 0)]);
        let fields = bodies(&refused, b'E').pop().expect("an error");
        let fields = String::from_utf8_lossy(fields).into_owned();
        assert!(fields.contains("22P02") && fields.contains("enum mood"), "{fields}");
    }
}
