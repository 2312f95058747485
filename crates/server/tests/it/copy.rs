use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::support::{TestServer, answers, block_on, message};

/// Sends data in pieces; returns the number of inserted rows.
async fn copy_in(
    client: &Client,
    sql: &str,
    data: impl AsRef<[u8]>,
) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    futures::pin_mut!(sink);
    for piece in data.as_ref().chunks(7) {
        sink.send(Bytes::copy_from_slice(piece)).await?;
    }
    sink.finish().await
}

async fn bytes_out(client: &Client, sql: &str) -> Vec<u8> {
    let stream = client.copy_out(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let pieces: Vec<Bytes> = stream.try_collect().await.expect("all of it");
    pieces.concat()
}

async fn copy_out(client: &Client, sql: &str) -> String {
    String::from_utf8(bytes_out(client, sql).await).expect("it is text")
}

#[test]
fn rows_round_trip() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let table = "CREATE TABLE t (a INT, b TEXT, c BLOB, d DOUBLE, e DATE, f BOOLEAN)";
        client.batch_execute(table).await.expect("a table");
        let text = "1\tx\\ty\\\\\t\\\\x00ff\t0.5\t2024-02-29\tt\n2\t\\N\t\\N\t\\N\t\\N\t\\N\n";
        assert_eq!(copy_in(&client, "COPY t FROM STDIN", text).await.expect("rows"), 2);
        assert_eq!(copy_out(&client, "COPY t TO STDOUT").await, text);
        let csv = "a,b\n3,\"x,\"\"y\"\"\n\"\n4,\n5,\"\"\n";
        let sql = "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)";
        assert_eq!(copy_in(&client, sql, csv).await.expect("rows"), 3);
        let sql = "COPY (SELECT a, b FROM t WHERE a > 2 ORDER BY a) TO STDOUT WITH CSV HEADER";
        assert_eq!(copy_out(&client, sql).await, csv);
    });
}

#[test]
fn options_name_columns_of_csv() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a TEXT, b TEXT, c CHAR(3))").await.expect("a table");
        let sql = "COPY t FROM STDIN (FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))";
        assert_eq!(copy_in(&client, sql, ",\"\",\nx,y,z\n").await.expect("rows"), 2);
        let sql = "COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE (a), NULL '-')";
        assert_eq!(copy_out(&client, sql).await, "\"\",-,-\n\"x\",y,z  \n");
        let sql = "COPY t FROM STDIN (FORMAT csv, FORCE_NULL (d))";
        let refused = copy_in(&client, sql, "").await.expect_err("there is no column d");
        assert_eq!(refused.code(), Some(&SqlState::INVALID_COLUMN_REFERENCE));
    });
}

#[test]
fn a_copy_that_fails_leaves_nothing_and_the_connection_usable() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT PRIMARY KEY)").await.expect("a table");
        for (data, state) in
            [("1\n2\t3\n", SqlState::BAD_COPY_FILE_FORMAT), ("1\n1\n", SqlState::UNIQUE_VIOLATION)]
        {
            let error = copy_in(&client, "COPY t FROM STDIN", data).await.expect_err(data);
            assert_eq!(error.code(), Some(&state), "{error:?}");
        }
        assert!(copy_in(&client, "COPY t FROM STDIN", "x\n").await.is_err());
        assert!(client.batch_execute("COPY nowhere FROM STDIN").await.is_err());
        assert_eq!(copy_out(&client, "COPY t TO STDOUT").await, "");
    });
}

#[test]
fn a_large_copy_is_one_statement() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a BIGINT)").await.expect("a table");
        let sink = client.copy_in("COPY t FROM STDIN").await.expect("it begins");
        futures::pin_mut!(sink);
        for part in 0..10 {
            let lines: String = (0..5000).map(|at| format!("{}\n", part * 5000 + at)).collect();
            sink.send(Bytes::from(lines)).await.expect("sent");
        }
        assert_eq!(sink.finish().await.expect("rows"), 50_000);
        let row = client.query_one("SELECT sum(a)::BIGINT FROM t", &[]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), 50_000 * 49_999 / 2);
    });
}

/// Columns of all types that PostgreSQL formats in its own way, with two values each.
const COLUMNS: [(&str, &str, &str); 24] = [
    ("BOOLEAN", "true", "false"),
    ("TINYINT", "-128", "127"),
    ("UTINYINT", "0", "255"),
    ("SMALLINT", "-32768", "1"),
    ("USMALLINT", "65535", "0"),
    ("INT", "-2147483648", "7"),
    ("UINTEGER", "4294967295", "0"),
    ("BIGINT", "-9223372036854775808", "9223372036854775807"),
    ("UBIGINT", "18446744073709551615", "0"),
    ("HUGEINT", "-99999999999999999999999999999999999999", "0"),
    ("REAL", "0.5", "'NaN'"),
    ("DOUBLE", "1e300", "'-Infinity'"),
    ("DECIMAL(10, 2)", "-12345678.90", "0.01"),
    ("DECIMAL(38, 10)", "1234567890123456789012345678.0123456789", "10000"),
    ("TEXT", "'ä\t\\'", "''"),
    ("VARCHAR(3)", "'abc'", "'a'"),
    ("BLOB", "'\\x00ff'", "''"),
    ("DATE", "'2024-02-29'", "'0001-01-01'"),
    ("TIME", "'23:59:59.999999'", "'00:00'"),
    ("TIMESTAMP", "'1969-12-31 23:59:59.5'", "'9999-12-31'"),
    ("TIMESTAMPTZ", "'2024-02-29 01:02:03+00'", "'1970-01-01 00:00:00+00'"),
    ("INTERVAL", "INTERVAL '14 months -3 days 1.5 seconds'", "INTERVAL '0 days'"),
    ("INT[]", "[1, NULL, 3]", "[]"),
    ("TEXT[]", "['a', NULL, 'b,c']", "[]"),
];

#[test]
fn binary_rows_of_all_types_round_trip() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for (number, (of, one, other)) in COLUMNS.into_iter().enumerate() {
            let (from, to) = (format!("f{number}"), format!("t{number}"));
            client
                .batch_execute(&format!(
                    "CREATE TABLE {from} (n INT, v {of}); CREATE TABLE {to} (n INT, v {of});
                     INSERT INTO {from} VALUES (1, {one}), (2, NULL), (3, {other})"
                ))
                .await
                .unwrap_or_else(|error| panic!("{of}: {error:?}"));
            let rows = |table: &str| format!("COPY (FROM {table} ORDER BY n) TO STDOUT");
            let data = bytes_out(&client, &format!("{} (FORMAT binary)", rows(&from))).await;
            let sql = format!("COPY {to} FROM STDIN (FORMAT binary)");
            let count = copy_in(&client, &sql, &data).await;
            assert_eq!(count.unwrap_or_else(|error| panic!("{of}: {error:?}")), 3, "{of}");
            let (sent, back) =
                (copy_out(&client, &rows(&from)).await, copy_out(&client, &rows(&to)).await);
            assert_eq!(sent, back, "{of}");
        }
    });
}

#[test]
fn binary_rows_of_a_driver_round_trip() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT, b TEXT)").await.expect("a table");
        let types = [Type::INT4, Type::TEXT];
        let sink = client.copy_in("COPY t FROM STDIN BINARY").await.expect("it begins");
        let writer = BinaryCopyInWriter::new(sink, &types);
        futures::pin_mut!(writer);
        for at in 0..20_000 {
            let text = (at % 2 == 0).then(|| format!("row {at}"));
            writer.as_mut().write(&[&at, &text]).await.expect("sent");
        }
        assert_eq!(writer.finish().await.expect("rows"), 20_000);
        let sql = "COPY (SELECT a, b FROM t ORDER BY a) TO STDOUT WITH (FORMAT 'binary')";
        let stream = client.copy_out(sql).await.expect("it begins");
        let rows: Vec<_> =
            BinaryCopyOutStream::new(stream, &types).try_collect().await.expect("all of it");
        assert_eq!(rows.len(), 20_000);
        assert_eq!((rows[7].get::<i32>(0), rows[7].get::<Option<&str>>(1)), (7, None));
        assert_eq!((rows[8].get::<i32>(0), rows[8].get::<&str>(1)), (8, "row 8"));
    });
}

#[test]
fn damaged_binary_data_is_refused_with_the_row() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let table = "CREATE TABLE t (a INT, b TEXT); CREATE TABLE f (a INT, b TEXT);
            INSERT INTO f VALUES (1, 'x'), (2, 'yz')";
        client.batch_execute(table).await.expect("tables");
        let whole = bytes_out(&client, "COPY (FROM f) TO STDOUT (FORMAT binary)").await;
        // A header of 19 bytes, rows of 15 and 16 bytes, and the end.
        assert_eq!(whole.len(), 19 + 15 + 16 + 2);
        let changed = |at: usize, bytes: &[u8]| {
            let mut data = whole.clone();
            data.splice(at..at + bytes.len(), bytes.iter().copied());
            data
        };
        let into = "COPY t FROM STDIN (FORMAT binary)";
        let (format, value) =
            (SqlState::BAD_COPY_FILE_FORMAT, SqlState::INVALID_BINARY_REPRESENTATION);
        let header = "header of the data";
        let mut cases = vec![
            (b"1\tx\n".to_vec(), &format, header),
            (changed(11, &[0, 1, 0, 0]), &format, header),
            (changed(11, &[0, 2, 0, 0]), &format, header),
            (changed(15, &[255; 4]), &format, header),
            (changed(15, &[0, 0, 0, 9]), &format, "row 1 of the data"),
            (changed(19, &[0, 3]), &format, "row 1 of the data"),
            (changed(34, &[128, 0]), &format, "row 2 of the data"),
            (changed(36, &[255, 255, 255, 254]), &format, "row 2 of the data, column \"a\""),
            (changed(36, &[127, 255, 255, 255]), &format, "row 2 of the data, column \"a\""),
            (changed(29, &[255, 255, 255, 254]), &format, "row 1 of the data, column \"b\""),
            (changed(48, &[255]), &value, "row 2 of the data, column \"b\""),
            (
                [&whole[..34], b"\0\x02\0\0\0\x03\0\0\x07\xff\xff\xff\xff"].concat(),
                &value,
                "row 2 of the data, column \"a\"",
            ),
            ([&whole[..], b"x"].concat(), &format, "row 3 of the data"),
        ];
        let starts = [19, 34, 50];
        for end in (0..whole.len()).filter(|end| !starts.contains(end)) {
            let place = match end {
                0..19 => header,
                19..34 => "row 1 of the data",
                34..50 => "row 2 of the data",
                _ => "row 3 of the data",
            };
            cases.push((whole[..end].to_vec(), &format, place));
        }
        for (at, (data, state, place)) in cases.into_iter().enumerate() {
            let error = copy_in(&client, into, &data).await.expect_err("damaged data");
            let error = error.as_db_error().unwrap_or_else(|| panic!("case {at}: {error:?}"));
            assert_eq!(
                (error.code(), error.detail()),
                (state, Some(place)),
                "case {at}: {error:?}"
            );
        }
        // Flag bits that may be ignored, a header extension, and no trailer.
        let extended =
            [&changed(11, &[0, 0, 0, 1, 0, 0, 0, 3])[..19], b"any", &whole[19..50]].concat();
        assert_eq!(copy_in(&client, into, extended).await.expect("rows"), 2);
        assert_eq!(copy_out(&client, "COPY (FROM t ORDER BY a) TO STDOUT").await, "1\tx\n2\tyz\n");
    });
}

/// The kinds of the messages from the first 'Z' on, which ends the log-in.
fn kinds(mut answer: &[u8]) -> String {
    let mut kinds = String::new();
    while let [kind, rest @ ..] = answer {
        kinds.push(char::from(*kind));
        let length = u32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        answer = &rest[length as usize..];
    }
    kinds.split_off(kinds.find('Z').expect("the log-in ends"))
}

/// PostgreSQL 15's answer to the same bytes.
#[test]
fn a_copy_that_is_refused_answers_one_sync_at_a_time() {
    let server = TestServer::start();
    let prepare = |sql: &str| {
        let parse = message(b'P', &[&[0], sql.as_bytes(), &[0, 0, 0]].concat());
        [parse, message(b'B', &[0; 8]), message(b'E', &[0; 5])].concat()
    };
    let (sync, data, done) = (message(b'S', b""), message(b'd', b"x\n"), message(b'c', b""));
    let fail = message(b'f', b"no more\0");
    let query = |sql: &str| message(b'Q', &[sql.as_bytes(), b"\0"].concat());
    for (sent, answered) in [
        // Refused before it begins: tokio-postgres sends this. Its second Sync is answered too, and the driver takes
        // that for the answer to its next request.
        (
            vec![prepare("COPY nowhere FROM STDIN"), sync.clone(), fail.clone(), sync.clone()],
            "Z12EZZ",
        ),
        (
            vec![prepare("COPY nowhere FROM STDIN"), data.clone(), done.clone(), sync.clone()],
            "Z12EZ",
        ),
        // Begun: a Sync within the data is ignored.
        (
            vec![
                prepare("COPY t FROM STDIN"),
                sync.clone(),
                data.clone(),
                done.clone(),
                sync.clone(),
            ],
            "Z12GEZ",
        ),
        (vec![prepare("COPY t FROM STDIN"), sync.clone(), fail.clone(), sync.clone()], "Z12GEZ"),
        (
            vec![prepare("COPY t FROM STDIN"), fail.clone(), prepare("SELECT 1"), sync.clone()],
            "Z12GEZ",
        ),
        (vec![query("COPY t FROM STDIN"), data.clone(), data, done], "ZGEZ"),
        (vec![query("COPY nowhere FROM STDIN"), fail, query("SELECT 1")], "ZEZTDCZ"),
    ] {
        let table = query("CREATE TABLE t (a INT)");
        let drop = query("DROP TABLE t");
        let answer = answers(&server, &[vec![table], sent, vec![drop]].concat());
        let kinds = kinds(&answer);
        let kinds = kinds.strip_prefix("ZC").and_then(|it| it.strip_suffix("CZ")).expect(&kinds);
        assert_eq!(kinds, answered);
    }
}

#[test]
fn rows_that_do_not_meet_a_condition_are_left_out() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE TYPE mood AS ENUM ('sad', 'ok'); \
                   CREATE TABLE t (a INT, b TEXT, c DATE, m mood, n INT DEFAULT 7)";
        client.batch_execute(sql).await.expect("a table");
        let rows = "1\tx\t2024-01-01\tok\n10\ty\t2024-01-02\tsad\n\\N\tz\t2024-01-03\tok\n";
        let into = |condition: &str| format!("COPY t (a, b, c, m) FROM STDIN WHERE {condition}");
        for (condition, count) in [
            ("a > 9", 1),
            ("t.a < 10 AND b = 'x';", 1),
            ("c >= '2024-01-02' AND m > 'sad'", 1),
            ("a IS NULL OR length(b) = 1", 3),
            ("false", 0),
        ] {
            let copied = copy_in(&client, &into(condition), rows).await.expect(condition);
            assert_eq!(copied, count, "{condition}");
        }
        let csv = "COPY t (a, b) FROM STDIN (FORMAT csv, HEADER) WHERE b LIKE '%,%'";
        assert_eq!(copy_in(&client, csv, "a,b\n1,\"p,q\"\n2,r\n").await.expect("rows"), 1);
        let out = copy_out(&client, "COPY (SELECT a, n FROM t WHERE b = 'p,q') TO STDOUT").await;
        assert_eq!(out, "1\t7\n");
        for (sql, state) in [
            (into("x > 1"), SqlState::UNDEFINED_COLUMN),
            (into("a >"), SqlState::SYNTAX_ERROR),
            ("COPY t TO STDOUT WHERE a > 1".to_owned(), SqlState::SYNTAX_ERROR),
        ] {
            let error = copy_in(&client, &sql, rows).await.expect_err(&sql);
            assert_eq!(error.code(), Some(&state), "{sql}: {error:?}");
        }
    });
}
