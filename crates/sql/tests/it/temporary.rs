//! Temporary tables belong to one session, and no file contains them.

use std::fs;
use std::path::Path;

use atoll_sql::{DatabaseOptions, Session};

use crate::common::{live, rows, run, session};

fn beside(session: &Session) -> Session {
    session.database().session().expect("the session starts")
}

#[test]
fn a_session_sees_its_own_temporary_tables_only() {
    let one = live();
    let other = beside(&one);
    rows(&one, "CREATE TABLE t AS SELECT 1 AS a");
    rows(&one, "CREATE TEMP TABLE t AS SELECT 2 AS a");
    rows(&other, "CREATE TEMP TABLE t AS SELECT 3 AS a");
    assert_eq!(rows(&one, "SELECT a FROM t"), [["2"]]);
    assert_eq!(rows(&other, "SELECT a FROM t"), [["3"]]);
    // The text is planned for each of them, even though sessions share plans.
    let third = beside(&one);
    for _ in 0..2 {
        assert_eq!(rows(&third, "SELECT a FROM t WHERE a > 0"), [["1"]]);
        assert_eq!(rows(&one, "SELECT a FROM t WHERE a > 0"), [["2"]]);
        assert_eq!(rows(&other, "SELECT a FROM t WHERE a > 0"), [["3"]]);
    }
    let schemas =
        "SELECT table_schema FROM information_schema.tables WHERE table_name = 't' ORDER BY 1";
    assert_eq!(rows(&one, schemas), [["pg_temp_1"], ["public"]]);
    assert_eq!(rows(&other, schemas), [["pg_temp_2"], ["public"]]);
    assert_eq!(rows(&third, schemas), [["public"]]);
    for sql in [
        "SELECT * FROM pg_temp_1.t",
        "INSERT INTO pg_temp_1.t VALUES (1)",
        "DROP TABLE pg_temp_1.t",
    ] {
        assert!(run(&other, sql).is_err(), "{sql}");
    }
    let tables = "SELECT count(*) FROM atoll.tables WHERE \"table\" LIKE '%t'";
    assert_eq!(rows(&other, tables), [["2"]]);
    drop(one);
    assert_eq!(rows(&other, "SELECT a FROM t"), [["3"]]);
}

#[test]
fn a_prepared_statement_means_the_temporary_table_that_comes() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT 1 AS a");
    rows(&session, "PREPARE q AS SELECT a FROM t");
    assert_eq!(rows(&session, "EXECUTE q"), [["1"]]);
    rows(&session, "CREATE TEMP TABLE t AS SELECT 2 AS a");
    assert_eq!(rows(&session, "EXECUTE q"), [["2"]]);
    rows(&session, "DROP TABLE t");
    assert_eq!(rows(&session, "EXECUTE q"), [["1"]]);
}

fn durable(directory: &Path) -> Session {
    let machine = std::sync::Arc::new(atoll_topology::Machine::discover().unwrap());
    let kernel = std::sync::Arc::new(atoll_placement::LiveKernel::new());
    let directory = Some(directory.to_owned());
    session(machine, kernel, DatabaseOptions { directory, ..DatabaseOptions::default() })
}

/// The contents of all files in a directory, the log included.
fn contents(directory: &Path) -> Vec<u8> {
    let entries = fs::read_dir(directory).expect("the directory can be read");
    let read = |entry: Result<fs::DirEntry, _>| {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() { contents(&path) } else { fs::read(path).expect("the file can be read") }
    };
    entries.flat_map(read).collect()
}

#[test]
fn no_file_of_the_data_directory_contains_temporary_tables() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let told = |word: &str| {
        let contents = contents(directory.path());
        contents.windows(word.len()).any(|bytes| bytes == word.as_bytes())
    };
    let one = durable(directory.path());
    rows(&one, "CREATE TABLE kept(a INT PRIMARY KEY, b TEXT)");
    rows(&one, "CREATE TEMP TABLE secretname(a INT GENERATED ALWAYS AS IDENTITY, b TEXT)");
    rows(&one, "INSERT INTO secretname(b) VALUES ('secretvalue')");
    // Enough rows to be loaded as chunks.
    rows(
        &one,
        "CREATE TEMP TABLE many AS SELECT value AS a, 'secretvalue' AS b FROM generate_series(1, 300000)",
    );
    rows(&one, "BEGIN");
    rows(&one, "INSERT INTO secretname(b) SELECT b FROM many LIMIT 10");
    rows(&one, "INSERT INTO kept VALUES (1, 'keptvalue')");
    rows(&one, "COMMIT");
    assert_eq!(rows(&one, "SELECT count(*), max(a) FROM secretname"), [["11", "11"]]);
    for checked in ["before", "after"] {
        assert!(told("keptvalue"), "{checked}");
        for word in ["secretname", "secretvalue", "pg_temp"] {
            assert!(!told(word), "{word} {checked} a checkpoint");
        }
        rows(&one, "CHECKPOINT");
    }
    assert_eq!(rows(&one, "SELECT count(*) FROM many"), [["300000"]]);
    rows(&one, "INSERT INTO kept VALUES (2, 'second')");
    drop(one);
    let again = durable(directory.path());
    assert_eq!(rows(&again, "SELECT count(*) FROM kept"), [["2"]]);
    assert!(run(&again, "SELECT * FROM secretname").is_err());
    rows(&again, "CREATE TEMP TABLE secretname(a INT)");
    assert_eq!(rows(&again, "SELECT count(*) FROM secretname"), [["0"]]);
}
