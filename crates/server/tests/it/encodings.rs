//! Clients whose texts are not UTF-8.

use crate::support::{TestServer, answers, message};

/// A statement as bytes.
fn query(sql: &[u8]) -> Vec<u8> {
    message(b'Q', &[sql, &[0]].concat())
}

/// Parse, Bind, Execute and Sync of a statement with a parameter of a type; formats are 0 for text, 1 for binary.
fn bound(sql: &[u8], oid: u32, format: u16, value: &[u8]) -> Vec<u8> {
    let parse = [&[0], sql, &[0], &1_u16.to_be_bytes()[..], &oid.to_be_bytes()].concat();
    let mut bind = vec![0, 0];
    for number in [1, format, 1] {
        bind.extend_from_slice(&number.to_be_bytes());
    }
    bind.extend_from_slice(&(value.len() as u32).to_be_bytes());
    bind.extend_from_slice(value);
    for number in [1, format] {
        bind.extend_from_slice(&number.to_be_bytes());
    }
    [message(b'P', &parse), message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', &[])]
        .concat()
}

/// The values of all rows in what a server sent.
fn rows(mut answer: &[u8]) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    while let [kind, length @ ..] = answer {
        let length = u32::from_be_bytes(length[..4].try_into().unwrap()) as usize;
        let body = &answer[5..1 + length];
        if *kind == b'D' {
            let size = u32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
            rows.push(body[6..6 + size].to_vec());
        }
        answer = &answer[1 + length..];
    }
    rows
}

fn has(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}

fn latin1(messages: &[Vec<u8>]) -> Vec<u8> {
    let server = TestServer::start();
    let first = [query(b"SET client_encoding = 'iso-8859-1'")];
    answers(&server, &[&first, messages].concat())
}

#[test]
fn statements_values_names_and_errors_are_in_the_encoding_of_the_client() {
    let answer = latin1(&[
        query(b"CREATE TABLE caf\xe9 (\xfc VARCHAR)"),
        query(b"INSERT INTO caf\xe9 VALUES ('\xe9t\xe9'), (NULL), ('ete')"),
        query(b"SELECT length(\xfc) FROM caf\xe9 WHERE \xfc LIKE '_t\xe9'"),
        query(b"SELECT \xfc FROM caf\xe9 WHERE \xfc IS NOT NULL"),
        query(b"SELECT pg_client_encoding()"),
        query(b"SELECT * FROM \xe0"),
        query(b"SELECT chr(8364)"),
        query(b"SELECT 'after'"),
        query(b"SET client_encoding = UTF8"),
        query("SELECT 'é'".as_bytes()),
    ]);
    let wanted: [&[u8]; 6] = [b"3", b"\xe9t\xe9", b"ete", b"LATIN1", b"after", "é".as_bytes()];
    assert_eq!(rows(&answer), wanted);
    assert!(has(&answer, b"client_encoding\0LATIN1\0"), "it is reported");
    assert!(has(&answer, b"T\0\0\0\x1a\0\x01\xfc\0"), "the name of a column");
    assert!(has(&answer, b"relation \"\xe0\" does not exist"), "an error");
    let untranslatable = b"C22P05\0Mcharacter with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent";
    assert!(has(&answer, untranslatable), "{:?}", String::from_utf8_lossy(&answer));
}

#[test]
fn parameters_are_converted_in_both_formats() {
    let (text, jsonb, bytea) = (25, 3802, 17);
    let answer = latin1(&[
        bound(b"SELECT $1 || '\xe0'", text, 0, b"\xe9"),
        bound(b"SELECT $1 || '\xe0'", text, 1, b"\xe9"),
        bound(b"SELECT $1::jsonb", jsonb, 1, b"\x01\"\xe9\""),
        bound(b"SELECT $1", bytea, 1, b"\xe9\xff"),
        bound(b"SELECT length($1)::text", text, 0, "é".as_bytes()),
    ]);
    let wanted: [&[u8]; 5] = [b"\xe9\xe0", b"\xe9\xe0", b"\x01\"\xe9\"", b"\xe9\xff", b"2"];
    assert_eq!(rows(&answer), wanted, "{:?}", String::from_utf8_lossy(&answer));
}

#[test]
fn copy_converts_lines_that_arrive_in_pieces_and_takes_an_encoding_of_its_own() {
    let copied = |options: &str, pieces: &[&[u8]]| {
        let start = query(format!("COPY t FROM STDIN {options}").as_bytes());
        let data = pieces.iter().map(|piece| message(b'd', piece));
        [start, data.collect::<Vec<_>>().concat(), message(b'c', &[])].concat()
    };
    let answer = latin1(&[
        query(b"CREATE TABLE t (a VARCHAR)"),
        copied("", &[b"\xe9", b"t\xe9\n"]),
        copied("(ENCODING 'SJIS')", &[b"\x93", b"\xfa\x96\x7b\n"]),
        copied("(FORMAT csv, ENCODING 'utf-8')", &["\"à\"\n".as_bytes()]),
        copied("(ENCODING 'EUC_JP')", &[b"\xc6\n"]),
        query(b"COPY (SELECT a FROM t WHERE length(a) <> 2) TO STDOUT"),
        query(b"COPY (SELECT a FROM t WHERE length(a) = 2) TO STDOUT (ENCODING 'EUC_JP')"),
        query(b"COPY t TO STDOUT (ENCODING 'klingon')"),
        query(b"COPY t TO STDOUT"),
    ]);
    for line in
        [&b"d\0\0\0\x08\xe9t\xe9\n"[..], b"d\0\0\0\x06\xe0\n", b"d\0\0\0\x09\xc6\xfc\xcb\xdc\n"]
    {
        assert!(has(&answer, line), "{line:?} in {:?}", String::from_utf8_lossy(&answer));
    }
    assert!(has(&answer, b"C22021\0Minvalid byte sequence for encoding \"EUC_JP\""));
    assert!(has(&answer, b"argument to option \"encoding\" must be a valid encoding name"));
    assert!(has(&answer, b"C22P05\0"), "Japanese has no equivalent in Latin 1");
}
