//! Files by name: written with COPY, read in FROM, and loaded.

use crate::common::{live, rows, run};

#[test]
fn what_is_copied_to_a_file_is_read_back_from_it() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT value AS k, CASE WHEN value % 3 = 0 THEN NULL ELSE \
         'name ' || value END AS name, CAST(value AS DECIMAL(10, 2)) / 4 AS d \
         FROM generate_series(1, 1000)",
    );
    let expected = rows(&session, "SELECT count(*), count(name), sum(k) FROM t");
    for format in ["parquet", "csv", "json", "arrow"] {
        let path = directory.path().join(format!("t.{format}"));
        let path = path.display();
        rows(&session, &format!("COPY t TO '{path}' STORED AS {format}"));
        let read = rows(&session, &format!("SELECT count(*), count(name), sum(k) FROM '{path}'"));
        assert_eq!(read, expected, "{format}");
        rows(&session, &format!("CREATE OR REPLACE TABLE back AS SELECT * FROM '{path}'"));
        let loaded = rows(&session, "SELECT count(*), count(name), sum(k) FROM back");
        assert_eq!(loaded, expected, "{format}");
    }
}

#[test]
fn a_file_that_is_not_there_or_not_readable_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let missing = directory.path().join("missing.parquet");
    run(&session, &format!("SELECT * FROM '{}'", missing.display())).expect_err("no such file");
    let broken = directory.path().join("broken.parquet");
    std::fs::write(&broken, b"PAR1 this is not Parquet").expect("the file can be written");
    run(&session, &format!("SELECT * FROM '{}'", broken.display())).expect_err("not Parquet");
    assert_eq!(rows(&session, "SELECT 1"), [["1"]]);
}
