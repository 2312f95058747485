//! Rows written by their key without operators equal those that operators write.

use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{PreparedStatement, Session, SqlError};

use crate::common::{live, rows};

/// A value of each column as texts, the key first; None is NULL.
type RowTexts = [Option<&'static str>; 15];

const TYPES: [&str; 15] = [
    "VARCHAR",
    "BIGINT",
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "UBIGINT",
    "REAL",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TIME",
    "DECIMAL(20, 3)",
    "BIGINT",
];

const ROWS: [RowTexts; 4] = [
    [
        Some("a"),
        Some("1"),
        Some("true"),
        Some("-128"),
        Some("32767"),
        Some("-5"),
        Some("18446744073709551615"),
        Some("-0.0"),
        Some("NaN"),
        Some("2024-02-29"),
        Some("2024-02-29 12:34:56.789"),
        Some("1999-12-31 23:59:59+00"),
        Some("23:59:59.5"),
        Some("-12345678901234.567"),
        Some("9223372036854775806"),
    ],
    [
        Some("a"),
        Some("-9223372036854775808"),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        Some("0"),
    ],
    [
        Some("a string that is longer than twelve bytes"),
        Some("2"),
        Some("false"),
        Some("0"),
        None,
        Some("2147483647"),
        Some("0"),
        Some("1.5"),
        Some("-0.0"),
        None,
        Some("1969-07-20 20:17:40"),
        None,
        Some("00:00:00"),
        Some("0.001"),
        Some("-1"),
    ],
    [
        Some(""),
        Some("3"),
        None,
        Some("7"),
        Some("-1"),
        None,
        None,
        Some("NaN"),
        Some("1e300"),
        Some("0001-01-01"),
        None,
        Some("2030-06-01 00:00:00+00"),
        None,
        None,
        Some("7"),
    ],
];

/// Every column but the key and the last one may be NULL.
fn create(session: &Session, table: &str) {
    let columns = TYPES.iter().enumerate().map(|(at, data_type)| match at {
        14 => format!("c{at} {data_type} NOT NULL"),
        _ => format!("c{at} {data_type}"),
    });
    let columns: Vec<String> = columns.collect();
    let columns = columns.join(", ");
    rows(session, &format!("CREATE TABLE {table} ({columns}, PRIMARY KEY (c0, c1))"));
}

fn literal(at: usize, text: Option<&str>) -> String {
    text.map_or("NULL".to_owned(), |text| format!("'{text}'")) + "::" + TYPES[at]
}

fn prepared(session: &Session, sql: &str) -> PreparedStatement {
    session.runtime().block_on(session.prepare(sql)).expect(sql)
}

fn execute(
    session: &Session,
    statement: &PreparedStatement,
    values: &[Option<&str>],
) -> Result<(), SqlError> {
    let values = values.iter().map(|text| ScalarValue::Utf8(text.map(str::to_owned)));
    let values: Vec<ScalarValue> = values.collect();
    session
        .runtime()
        .block_on(async { statement.execute(&values).await?.collect().await })
        .map(drop)
}

fn assert_same(session: &Session, what: &str) {
    for (one, other) in [("by_key", "planned"), ("planned", "by_key")] {
        let sql = format!("SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}");
        assert_eq!(rows(session, &sql), Vec::<Vec<String>>::new(), "{what}: {one}");
    }
}

#[test]
fn rows_written_by_key_match_those_of_operators_for_every_type() {
    let session = live();
    ["by_key", "planned"].into_iter().for_each(|table| create(&session, table));
    let places: Vec<String> = (1..=TYPES.len()).map(|at| format!("${at}")).collect();
    let insert = prepared(&session, &format!("INSERT INTO by_key VALUES ({})", places.join(", ")));
    for row in &ROWS {
        execute(&session, &insert, row).unwrap();
        let values: Vec<String> =
            row.iter().enumerate().map(|(at, text)| literal(at, *text)).collect();
        rows(&session, &format!("INSERT INTO planned SELECT {}", values.join(", ")));
    }
    assert_same(&session, "inserted");
    let update = prepared(
        &session,
        "UPDATE by_key SET c2 = $1, c3 = c3 + 1, c5 = $2, c8 = $3, c9 = $4, c13 = $5, c14 = c14 - $6 \
         WHERE c0 = $7 AND c1 = $8",
    );
    for (row, new) in ROWS.iter().zip(ROWS.iter().rev()) {
        let values = [new[2], new[5], new[8], new[9], new[13], Some("3"), row[0], row[1]];
        execute(&session, &update, &values).unwrap();
        let [c2, c5, c8, c9, c13] = [2, 5, 8, 9, 13].map(|at| literal(at, new[at]));
        let (c0, c1) = (literal(0, row[0]), literal(1, row[1]));
        rows(
            &session,
            &format!(
                "UPDATE planned SET c2 = {c2}, c3 = c3 + 1, c5 = {c5}, c8 = {c8}, c9 = {c9}, \
                 c13 = {c13}, c14 = c14 - 3 WHERE c0 || '' = {c0} AND c1 + 0 = {c1}"
            ),
        );
        assert_same(&session, "updated");
    }
    let delete = prepared(&session, "DELETE FROM by_key WHERE c1 = $1 AND c0 = $2");
    execute(&session, &delete, &[ROWS[1][1], ROWS[1][0]]).unwrap();
    rows(&session, "DELETE FROM planned WHERE c2 IS NULL AND c0 || '' = 'a'");
    let found = rows(&session, "SELECT count(*) FROM by_key");
    assert_eq!(found, rows(&session, "SELECT count(*) FROM planned"));
}

#[test]
fn errors_of_a_row_by_key_are_reported_and_change_nothing() {
    let session = live();
    create(&session, "by_key");
    let places: Vec<String> = (1..=TYPES.len()).map(|at| format!("${at}")).collect();
    let insert = prepared(&session, &format!("INSERT INTO by_key VALUES ({})", places.join(", ")));
    execute(&session, &insert, &ROWS[0]).unwrap();
    let before = rows(&session, "SELECT * FROM by_key");
    let refused = |statement: &PreparedStatement, values: &[Option<&str>], wanted: &str| {
        let error = execute(&session, statement, values).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert_eq!(rows(&session, "SELECT * FROM by_key"), before);
    };
    refused(&insert, &ROWS[0], "duplicate key");
    let mut unfit = ROWS[1];
    unfit[14] = None;
    refused(&insert, &unfit, "c14");
    let add = prepared(&session, "UPDATE by_key SET c14 = c14 + $1 WHERE c0 = 'a' AND c1 = 1");
    refused(&add, &[Some("2")], "overflows BIGINT");
    refused(&add, &[None], "c14");
    execute(&session, &add, &[Some("1")]).unwrap();
    let found = rows(&session, "SELECT c14 FROM by_key");
    assert_eq!(found, [["9223372036854775807"]]);
    // A changed key is checked, and found from then on.
    execute(&session, &insert, &ROWS[1]).unwrap();
    let rename = prepared(&session, "UPDATE by_key SET c1 = $1 WHERE c0 = 'a' AND c1 = $2");
    execute(&session, &rename, &[Some("1"), ROWS[1][1]]).unwrap_err();
    execute(&session, &rename, &[Some("5"), ROWS[1][1]]).unwrap();
    let found = rows(&session, "SELECT c14 FROM by_key WHERE c0 = 'a' AND c1 = 5");
    assert_eq!(found, [["0"]]);
}
