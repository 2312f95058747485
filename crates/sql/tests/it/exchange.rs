//! Files exchanged with pandas, Polars and DuckDB: what each writes the others read.

use std::path::Path;
use std::process::Command;

use atoll_testkit::{Need, skip};

use crate::common::{crate_folder, live, python, rows};

/// Runs a step of `tests/files/exchange.py`; what it says where it fails.
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
    exchange("read", directory.path()).expect("the others read");
}
