//! Ranges and multiranges in PostgreSQL's binary form, as columns, values and parameters.

use std::error::Error;

use bytes::BytesMut;
use futures::SinkExt;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::support::{TestServer, block_on};

/// The bytes of a value of any type.
#[derive(Debug, PartialEq, Eq)]
struct AnyBytes(Vec<u8>);

impl<'a> FromSql<'a> for AnyBytes {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for AnyBytes {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Values with the bytes that PostgreSQL 15 sends, in hexadecimal digits.
const VALUES: [(&str, &str, Type, &str); 13] = [
    ("int4range", "[1,6)", Type::INT4_RANGE, "0200000004000000010000000400000006"),
    ("int4range", "empty", Type::INT4_RANGE, "01"),
    ("int4range", "(,)", Type::INT4_RANGE, "18"),
    ("int8range", "[-1,)", Type::INT8_RANGE, "1200000008ffffffffffffffff"),
    ("numrange", "(,1.5]", Type::NUM_RANGE, "0c0000000c000200000000000100011388"),
    ("numrange", "[NaN,)", Type::NUM_RANGE, "120000000800000000c0000000"),
    (
        "numrange",
        "[0.00,12345.6700)",
        Type::NUM_RANGE,
        "020000000800000000000000020000000e0003000100000004000109291a2c",
    ),
    ("daterange", "[2000-01-02,)", Type::DATE_RANGE, "120000000400000001"),
    (
        "tsrange",
        "[\"2000-01-01 00:00:00\",\"2000-01-02 00:00:00\"]",
        Type::TS_RANGE,
        "0600000008000000000000000000000008000000141dd76000",
    ),
    (
        "tstzrange",
        "[\"2000-01-01 00:00:00+00\",infinity)",
        Type::TSTZ_RANGE,
        "02000000080000000000000000000000087fffffffffffffff",
    ),
    (
        "int4multirange",
        "{[1,3),[5,6)}",
        Type::INT4MULTI_RANGE,
        "0000000200000011020000000400000001000000040000000300000011020000000400000005\
         0000000400000006",
    ),
    ("datemultirange", "{}", Type::DATEMULTI_RANGE, "00000000"),
    (
        "int4range[]",
        "{\"[1,6)\",NULL}",
        Type::INT4_RANGE_ARRAY,
        "000000010000000100000f4000000002000000010000001102000000040000000100000004\
         00000006ffffffff",
    ),
];

fn bytes_of(digits: &str) -> AnyBytes {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    AnyBytes(pairs.map(|pair| byte(pair).expect("a byte")).collect())
}

#[test]
fn ranges_have_postgresql_s_binary_form() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for (name, text, of, digits) in VALUES {
            let bytes = bytes_of(digits);
            let sql = format!("SELECT '{text}'::{name}");
            let row = client.query_one(&sql, &[]).await.expect(&sql);
            assert_eq!(row.columns()[0].type_(), &of, "{sql}");
            assert_eq!(row.get::<_, AnyBytes>(0), bytes, "{sql}");
            let sql = format!("SELECT $1::{name}, ($1::{name})::text, $1 = '{text}'::{name}");
            let statement = client.prepare(&sql).await.expect(&sql);
            assert_eq!(statement.params(), std::slice::from_ref(&of), "{sql}");
            let row = client.query_one(&statement, &[&bytes]).await.expect(&sql);
            assert_eq!(row.get::<_, AnyBytes>(0), bytes, "{sql}");
            assert_eq!((row.get::<_, &str>(1), row.get(2)), (text, true), "{sql}");
        }
        let damaged = AnyBytes(vec![2, 0, 0, 0, 4]);
        let error = client.query_one("SELECT $1::int4range", &[&damaged]).await.expect_err("bytes");
        let error = error.as_db_error().expect("an error of the server");
        assert!(error.message().ends_with("invalid binary form of a value of type int4range"));
    });
}

#[test]
fn columns_take_ranges_as_parameters() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "CREATE TABLE stay (id INT PRIMARY KEY, r int4range UNIQUE, d daterange)";
        client.batch_execute(sql).await.expect("a table");
        let insert = client.prepare("INSERT INTO stay VALUES ($1, $2, $3)").await.expect("a write");
        assert_eq!(insert.params(), [Type::INT4, Type::INT4_RANGE, Type::DATE_RANGE]);
        let (first, none) = (bytes_of("0200000004000000010000000400000006"), bytes_of("01"));
        client.execute(&insert, &[&1, &first, &none]).await.expect("a row");
        for (sql, of) in [
            ("SELECT id FROM stay WHERE r = $1", Type::INT4_RANGE),
            ("SELECT id FROM stay WHERE r && $1", Type::INT4_RANGE),
            ("SELECT id FROM stay WHERE r @> $1", Type::INT4_RANGE),
            ("SELECT id FROM stay WHERE coalesce(r, $1) >= $1", Type::INT4_RANGE),
        ] {
            let statement = client.prepare(sql).await.expect(sql);
            assert_eq!(statement.params(), [of], "{sql}");
            let row = client.query_one(&statement, &[&first]).await.expect(sql);
            assert_eq!(row.get::<_, i32>(0), 1, "{sql}");
        }
        let sql = "SELECT id FROM stay WHERE r @> $1";
        let value = client.prepare_typed(sql, &[Type::INT4]).await.expect(sql);
        assert_eq!(client.query(&value, &[&5]).await.expect("rows").len(), 1);
        assert_eq!(client.query(&value, &[&6]).await.expect("rows").len(), 0);
        let made = client.prepare("SELECT int4range($1, $2), daterange($3, NULL)").await;
        let made = made.expect("constructors");
        assert_eq!(made.params(), [Type::INT4, Type::INT4, Type::DATE]);
        let text = "id,range\n2,\"[7,9]\"\n";
        let sink = client.copy_in("COPY stay (id, r) FROM STDIN (FORMAT csv, HEADER)").await;
        let mut sink = Box::pin(sink.expect("a copy"));
        sink.send(bytes::Bytes::from_static(text.as_bytes())).await.expect("rows");
        assert_eq!(sink.as_mut().finish().await.expect("rows"), 1);
        let row = client.query_one("SELECT r::text FROM stay WHERE id = 2", &[]).await;
        assert_eq!(row.expect("a row").get::<_, &str>(0), "[7,10)");
    });
}

#[test]
fn clients_find_the_types_in_the_catalog() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "SELECT t.typname, t.typtype, t.typarray, r.rngsubtype, r.rngmultitypid
             FROM pg_type t JOIN pg_range r ON r.rngtypid = t.oid ORDER BY t.oid";
        let rows = client.query(sql, &[]).await.expect("rows");
        let found: Vec<(String, u32, u32, u32)> =
            rows.iter().map(|row| (row.get(0), row.get(2), row.get(3), row.get(4))).collect();
        let wanted = [
            ("int4range", 3905, 23, 4451),
            ("numrange", 3907, 1700, 4532),
            ("tsrange", 3909, 1114, 4533),
            ("tstzrange", 3911, 1184, 4534),
            ("daterange", 3913, 1082, 4535),
            ("int8range", 3927, 20, 4536),
        ];
        let wanted = wanted.map(|(name, array, of, multi)| (name.to_owned(), array, of, multi));
        assert_eq!(found, wanted);
        let sql = "SELECT format_type(3904, -1), format_type(6150, -1), 'int4range'::regtype::oid,
             (SELECT typinput::text FROM pg_type WHERE oid = 3904)";
        let row = client.query_one(sql, &[]).await.expect("a row");
        let texts: [&str; 2] = [row.get(0), row.get(1)];
        assert_eq!(texts, ["int4range", "int4multirange[]"]);
        assert_eq!((row.get::<_, u32>(2), row.get::<_, &str>(3)), (3904, "range_in"));
    });
}
