//! Files exchanged with pandas, Polars and DuckDB: each reads what the others write.

use std::path::Path;
use std::process::Command;

use atoll_testkit::{Need, skip};

use crate::common::{crate_folder, live, python, rows};

/// Runs a step of `tests/files/exchange.py`; its output if it fails.
fn exchange(step: &str, directory: &Path) -> Result<(), String> {
    let script = Path::new(&crate_folder()).join("tests/files/exchange.py");
    let output = Command::new(python()).arg(script).arg(step).arg(directory).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn has_libraries() -> bool {
    let import = "import duckdb, pandas, polars, pyarrow";
    let output = Command::new(python()).args(["-c", import]).output();
    output.is_ok_and(|output| output.status.success())
}

const MISSING: &str =
    "no Python with duckdb, pandas, polars and pyarrow; ATOLL_PYTHON names another";

const FLAT: &str = "id, name, amount::VARCHAR, x, day, moment, zoned, flag, none";

fn expected() -> Vec<Vec<String>> {
    let row = |values: [&str; 9]| values.map(str::to_owned).to_vec();
    let zoned = ["2020-06-01T12:00:00Z", "1970-01-01T00:00:00Z"];
    let moment = "2020-02-29T10:00:00.123456";
    vec![
        row(["1", "Ann", "1.50", "0.5", "2020-02-29", moment, zoned[0], "true", "NULL"]),
        row(["2", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]),
        row([
            "3",
            "a,b \"c\"\nd",
            "-3.25",
            "-1e300",
            "1969-12-31",
            "1969-12-31T00:00:00",
            zoned[1],
            "false",
            "NULL",
        ]),
    ]
}

#[test]
fn what_others_write_is_read() {
    if !has_libraries() {
        return skip(Need::PythonEngines, MISSING);
    }
    let directory = tempfile::tempdir().expect("a directory can be made");
    exchange("write", directory.path()).expect("the others write");
    let session = live();
    let read = |columns: &str, file: &str| {
        let path = directory.path().join(file).display().to_string();
        rows(&session, &format!("SELECT {columns} FROM '{path}'"))
    };
    let nested = [["[a, NULL]", "{x: 1, y: p}"], ["[]", "NULL"], ["NULL", "{x: NULL, y: q}"]];
    for file in ["pyarrow.parquet", "pandas.parquet", "polars.parquet", "duckdb.parquet"] {
        assert_eq!(read(FLAT, file), expected(), "{file}");
        let place = "{'x': CAST(place['x'] AS BIGINT), 'y': place['y']}";
        let columns = format!("tags, CASE WHEN place IS NOT NULL THEN {place} END");
        assert_eq!(read(&columns, file), nested, "{file}");
    }
    for file in ["pyarrow.arrow", "polars.arrow"] {
        assert_eq!(read(FLAT, file), expected(), "{file}");
    }
    let of_text = "id, name, CAST(amount AS DECIMAL(9, 2))::VARCHAR, x, day, moment, \
                   zoned::TIMESTAMPTZ, flag, none";
    for file in ["pandas.csv", "polars.csv", "duckdb.csv", "polars.json", "duckdb.json"] {
        assert_eq!(read(of_text, file), expected(), "{file}");
    }
    for file in ["polars.json", "duckdb.json", "duckdb_array.json"] {
        assert_eq!(read("tags, place", file), nested, "{file}");
    }
    let some = expected().into_iter().map(|row| [0, 1, 3, 7, 8].map(|at| row[at].clone()).to_vec());
    assert_eq!(read("id, name, x, flag, none", "pandas.json"), some.collect::<Vec<_>>());
}

/// Values of types within types, and at the ends of their types.
fn deep() -> Vec<Vec<String>> {
    let rows = [
        [
            "{a=1, b=NULL}",
            "[{'k': 1, 'v': [x, NULL]}, NULL]",
            "[[1, 2], [], NULL]",
            "{'in': {'deep': 1, 'list': [1]}}",
            "9999999999999999999999999999.9999999999",
            "2024-03-31 00:59:59.999999+00:00",
            "23:59:59.999999",
            "00ff",
            "[]",
            "9223372036854775807",
        ],
        [
            "{}",
            "[]",
            "[]",
            "{'in': NULL}",
            "-0.0000000001",
            "2024-03-31 01:00:00+00:00",
            "00:00:00",
            "",
            "[NULL]",
            "-9223372036854775808",
        ],
        ["NULL"; 10],
        [
            "{''=0}",
            "[{'k': NULL, 'v': NULL}]",
            "[[NULL]]",
            "{'in': {'deep': NULL, 'list': []}}",
            "0.0000000000",
            "1900-01-01 00:00:00+00:00",
            "12:30:00",
            "275c",
            "[ ü\t]",
            "0",
        ],
    ];
    rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()
}

const DEEP: &str = "attrs::VARCHAR, pairs::VARCHAR, matrix::VARCHAR, nested::VARCHAR, large::VARCHAR, \
                    to_char(zoned AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S%.f%:z'), at::VARCHAR, lower(hex(bytes)), \
                    '[' || text || ']', whole";

#[test]
fn types_within_types_are_exchanged() {
    if !has_libraries() {
        return skip(Need::PythonEngines, MISSING);
    }
    let directory = tempfile::tempdir().expect("a directory can be made");
    exchange("write", directory.path()).expect("the others write");
    let session = live();
    let path = |file: &str| directory.path().join(file).display().to_string();
    let read = |columns: &str, file: &str| {
        rows(&session, &format!("SELECT {columns} FROM '{}' ORDER BY id", path(file)))
    };
    for file in ["pyarrow_deep.parquet", "pyarrow_deep.arrow", "duckdb_deep.parquet"] {
        assert_eq!(read(DEEP, file), deep(), "{file}");
    }
    let (_, listed) = DEEP.split_once(", ").expect("several columns");
    let expected: Vec<_> = deep().into_iter().map(|row| row[1..].to_vec()).collect();
    for file in ["pandas_deep.parquet", "polars_deep.parquet"] {
        assert_eq!(read(listed, file), expected, "{file}");
    }
    // pandas writes an empty text like NULL.
    for file in ["duckdb_deep.csv", "polars_deep.csv"] {
        let file = format!("read_csv('{}', allow_quoted_nulls = false)", path(file));
        let texts = rows(&session, &format!("SELECT '[' || text || ']' FROM {file} ORDER BY id"));
        let texts = texts.concat();
        assert_eq!(texts, ["[]", "[NULL]", "NULL", "[ ü\t]"], "{file}");
    }
}

#[test]
fn others_read_what_is_copied_to_files() {
    if !has_libraries() {
        return skip(Need::PythonEngines, MISSING);
    }
    let directory = tempfile::tempdir().expect("a directory can be made");
    exchange("write", directory.path()).expect("the others write");
    let session = live();
    let path = |file: &str| directory.path().join(file).display().to_string();
    rows(&session, &format!("CREATE TABLE t AS SELECT * FROM '{}'", path("pyarrow.parquet")));
    rows(&session, &format!("COPY t TO '{}' (COMPRESSION zstd)", path("atoll.parquet")));
    let flat = "id, name, amount, x, day, moment, zoned, flag, none";
    rows(&session, &format!("COPY (SELECT {flat} FROM t) TO '{}'", path("atoll.csv")));
    rows(&session, &format!("COPY t TO '{}'", path("atoll.json")));
    rows(&session, &format!("COPY t TO '{}' (ARRAY true)", path("atoll_array.json")));
    let deep = path("pyarrow_deep.parquet");
    rows(&session, &format!("CREATE TABLE deep AS SELECT * FROM '{deep}'"));
    rows(&session, &format!("COPY (FROM deep ORDER BY id) TO '{}'", path("atoll_deep.parquet")));
    rows(&session, &format!("COPY (FROM deep ORDER BY id) TO '{}'", path("atoll_deep.arrow")));
    let flat = "SELECT id, large, text, whole FROM deep ORDER BY id";
    rows(&session, &format!("COPY ({flat}) TO '{}'", path("atoll_deep.csv")));
    exchange("read", directory.path()).expect("the others read");
}
