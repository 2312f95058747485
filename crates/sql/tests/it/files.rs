//! Files by name: written with COPY, read in FROM, and loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atoll_placement::LiveKernel;
use atoll_sql::DatabaseOptions;
use atoll_sql::arrow::array::{ArrayRef, Int32Array, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Field, Schema};
use atoll_sql::arrow::ipc::writer::FileWriter;
use atoll_topology::{Bytes, Machine};

use crate::common::{live, rows, run, session};

#[test]
fn rows_copied_to_a_file_are_read_back() {
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

/// All files below a directory with their contents; none for directories.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(tree(&path));
            found.insert(path, None);
        } else {
            let bytes = std::fs::read(&path).expect("the file can be read");
            found.insert(path, Some(bytes));
        }
    }
    found
}

/// Rows of which the last of many divides by zero.
const FAILING: &str =
    "SELECT v, v % 3 AS k, 10 / (v - 200000) AS d FROM generate_series(1, 200000) t(v)";

#[test]
fn a_copy_that_fails_leaves_the_old_file_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let target = |name: &str| directory.path().join(name).display().to_string();
    for format in ["parquet", "csv", "json", "ndjson", "arrow"] {
        let good = target(&format!("good.{format}"));
        rows(&session, &format!("COPY (SELECT 1 AS v) TO '{good}'"));
    }
    rows(&session, &format!("COPY (SELECT 1 AS v) TO '{}' STORED AS PARQUET", target("good/")));
    let before = tree(directory.path());
    for format in ["parquet", "csv", "json", "ndjson", "arrow"] {
        for name in ["good", "new"] {
            let target = target(&format!("{name}.{format}"));
            run(&session, &format!("COPY ({FAILING}) TO '{target}'")).expect_err("it divides by 0");
        }
    }
    for format in ["parquet", "csv", "json", "arrow"] {
        for name in ["good/", "new/deep/"] {
            let to = format!("TO '{}' STORED AS {format}", target(name));
            run(&session, &format!("COPY ({FAILING}) {to}")).expect_err("it divides by 0");
            run(&session, &format!("COPY ({FAILING}) {to} PARTITIONED BY (k)"))
                .expect_err("it divides by 0");
        }
    }
    assert!(tree(directory.path()) == before, "{:?}", tree(directory.path()).keys());
}

#[test]
fn a_copy_replaces_its_file_and_adds_to_its_directory() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let file = directory.path().join("t.csv");
    let link = directory.path().join("link.csv");
    std::os::unix::fs::symlink("t.csv", &link).expect("a link can be made");
    for text in ["1", "2"] {
        rows(&session, &format!("COPY (SELECT {text} AS v) TO '{}'", link.display()));
        let written = std::fs::read_to_string(&file).expect("the file is there");
        assert_eq!(written, format!("v\n{text}\n"));
    }
    assert!(link.is_symlink());
    // The files of a directory are listed anew each time.
    let many = directory.path().join("many/");
    for count in 1..=3 {
        let to = format!("'{}' STORED AS PARQUET", many.display());
        rows(&session, &format!("COPY (SELECT {count} AS v, {count} % 2 AS k) TO {to}"));
        let read = rows(&session, &format!("SELECT count(*), max(v) FROM '{}'", many.display()));
        assert_eq!(read, [[count.to_string(), count.to_string()]]);
    }
    let parts = directory.path().join("parts/");
    let sql = "COPY (SELECT v, v % 3 AS k FROM generate_series(1, 1000) t(v))";
    rows(&session, &format!("{sql} TO '{}' STORED AS PARQUET PARTITIONED BY (k)", parts.display()));
    let read = rows(&session, &format!("SELECT count(*), sum(v) FROM '{}'", parts.display()));
    assert_eq!(read, [["1000", "500500"]]);
}

#[test]
fn a_copy_may_read_the_file_it_replaces() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    for format in ["parquet", "csv", "json", "arrow"] {
        let path = directory.path().join(format!("t.{format}")).display().to_string();
        rows(&session, &format!("COPY (SELECT * FROM generate_series(1, 50000) t(v)) TO '{path}'"));
        rows(&session, &format!("COPY (SELECT v + 1 AS v FROM '{path}') TO '{path}'"));
        let read = rows(&session, &format!("SELECT count(*), min(v), max(v) FROM '{path}'"));
        assert_eq!(read, [["50000", "2", "50001"]], "{format}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let session = live();
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("the file can be written");
    let below = file.join("t.csv");
    let sql = format!("COPY (SELECT 1 AS v) TO '{}'", below.display());
    let error = run(&session, &sql).expect_err("a file is not a directory").to_string();
    assert!(error.contains("file/t.csv cannot be written"), "{error}");
}

#[test]
fn spilled_rows_stay_out_of_sight_whatever_the_settings() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let options = DatabaseOptions {
        memory_limit: Bytes(64 << 20),
        spill_directory: Some(directory.path().join("spill")),
        ..DatabaseOptions::default()
    };
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let session = session(machine, Arc::new(LiveKernel::new()), options);
    let sort = "SELECT count(*) FROM (SELECT v, row_number() OVER (ORDER BY v % 1013, v) AS r \
                FROM generate_series(1, 3000000) t(v)) WHERE r > 0";
    assert_eq!(rows(&session, sort), [["3000000"]]);
    // Makes a new disk manager, whose files must not have names either.
    rows(&session, "SET datafusion.runtime.max_temp_directory_size = '1M'");
    let error = run(&session, sort).expect_err("it spills more").to_string();
    assert!(error.contains("max_temp_directory_size"), "{error}");
    rows(&session, "SET datafusion.runtime.max_temp_directory_size = '10G'");
    assert_eq!(rows(&session, sort), [["3000000"]]);
    assert_eq!(tree(directory.path()), BTreeMap::from([(directory.path().join("spill"), None)]));
}

#[test]
fn an_arrow_file_with_two_columns_of_one_name_is_refused() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("t.arrow");
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let fields = ["a", "b", "a"].map(|name| Field::new(name, DataType::Int32, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let columns = vec![Arc::clone(&column), Arc::clone(&column), column];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("three columns");
    let file = std::fs::File::create(&path).expect("the file can be made");
    let mut writer = FileWriter::try_new(file, &schema).expect("the file can be written");
    writer.write(&batch).and_then(|()| writer.finish()).expect("the file can be written");
    let told = run(&live(), &format!("SELECT * FROM '{}'", path.display())).expect_err("twice");
    assert!(told.to_string().contains("two columns named \"a\""), "{told}");
}

#[test]
fn identities_go_on_in_an_imported_database() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("out").display().to_string();
    rows(
        &session,
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10), v INT)",
    );
    rows(
        &session,
        "CREATE TABLE u (id INT GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY 5), v INT)",
    );
    rows(&session, "INSERT INTO t (v) VALUES (1), (2)");
    rows(&session, "COMMENT ON TABLE t IS 'it''s numbered'");
    rows(&session, "COMMENT ON COLUMN t.v IS 'a value'");
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    let comments = "SELECT obj_description('t'::regclass), col_description('t'::regclass, 2)";
    assert_eq!(rows(&other, comments), [["it's numbered", "a value"]]);
    rows(&other, "INSERT INTO t (v) VALUES (3)");
    rows(&other, "INSERT INTO u (v) VALUES (1), (2)");
    assert_eq!(rows(&other, "SELECT id FROM t ORDER BY v"), [["10"], ["11"], ["12"]]);
    assert_eq!(rows(&other, "SELECT id FROM u ORDER BY v"), [["1"], ["6"]]);
    let refused = run(&other, "INSERT INTO t (id, v) VALUES (5, 5)");
    assert!(refused.is_err(), "t.id is GENERATED ALWAYS still");
    let error = run(&other, "ALTER TABLE t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY");
    assert!(error.expect_err("it is one").message.contains("is an identity already"));
}

#[test]
fn sequences_keep_their_names_starts_and_ends() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("out").display().to_string();
    for statement in [
        "CREATE SEQUENCE \"Odd \"\"name\" START 7 INCREMENT 3",
        "CREATE SEQUENCE a_id_seq MINVALUE 0 MAXVALUE 9 START 5 CYCLE",
        "CREATE TABLE a (id INT GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 2))",
        "INSERT INTO a DEFAULT VALUES",
        "INSERT INTO a DEFAULT VALUES",
        "CREATE TABLE old (id SERIAL, i INTERVAL, l INTERVAL[])",
        "INSERT INTO old (i, l) VALUES (INTERVAL '-1 month 2 days 1 microsecond', [INTERVAL '1 day', NULL])",
        "ALTER TABLE old RENAME TO new",
        "SELECT nextval('\"Odd \"\"name\"') FROM generate_series(1, 4)",
    ] {
        rows(&session, statement);
    }
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    let sequences = "SELECT sequencename, start_value, min_value, max_value, increment_by, cycle FROM pg_sequences ORDER BY 1";
    assert_eq!(rows(&other, sequences), rows(&session, sequences));
    assert_eq!(rows(&other, "SELECT nextval('\"Odd \"\"name\"')"), [["19"]]);
    assert_eq!(rows(&other, "SELECT nextval('a_id_seq'), nextval('old_id_seq')"), [["5", "2"]]);
    assert_eq!(rows(&other, "SELECT i, l FROM new"), rows(&session, "SELECT i, l FROM new"));
    let told = run(&other, "INSERT INTO a DEFAULT VALUES").expect_err("it has ended");
    assert!(told.message.contains("maximum value"), "{told}");
    rows(&other, "ALTER SEQUENCE \"Odd \"\"name\" RESTART");
    assert_eq!(rows(&other, "SELECT nextval('\"Odd \"\"name\"')"), [["7"]]);
}

#[test]
fn an_imported_database_has_all_that_names_can_say() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let directory = directory.path().join("it's out").display().to_string().replace('\'', "''");
    for statement in [
        "CREATE SCHEMA s",
        "CREATE TABLE \"a%2fb\" AS SELECT 1 AS x",
        "CREATE TABLE s.\"a-2e-b\" AS SELECT 2 AS x",
        "CREATE TABLE s.\"a.b\" AS SELECT 3 AS x",
        "CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a * 2))",
        "INSERT INTO g VALUES (4)",
        "SET search_path = s",
        "CREATE VIEW z AS SELECT x FROM \"a.b\"",
        "CREATE VIEW a AS SELECT x + 1 AS x FROM z",
        "SET search_path = public",
        "CREATE MACRO shifted(n) AS TABLE SELECT x + n AS x FROM y",
        "CREATE VIEW y AS SELECT x FROM s.a",
        "CREATE VIEW b AS SELECT x FROM shifted(10)",
        "CREATE VIEW text AS SELECT * FROM (SELECT 'x' AS q, 'AS SELECT * FROM ''' AS r)",
    ] {
        rows(&session, statement);
    }
    rows(&session, &format!("EXPORT DATABASE TO '{directory}'"));
    let other = live();
    rows(&other, "SET search_path = elsewhere");
    rows(&other, &format!("IMPORT DATABASE FROM '{directory}'"));
    rows(&other, "INSERT INTO public.g VALUES (5)");
    for session in [&session, &other] {
        let found = |sql: &str| rows(session, sql).concat().join(" ");
        assert_eq!(found("SELECT * FROM public.b"), "14");
        assert_eq!(
            found("SELECT * FROM public.\"a%2fb\", s.\"a-2e-b\", s.\"a.b\", s.z"),
            "1 2 3 3"
        );
        assert_eq!(found("SELECT r FROM public.text"), "AS SELECT * FROM '");
        assert_eq!(found("SELECT max(b) FROM public.g WHERE a = 4"), "8");
    }
    assert_eq!(rows(&other, "SELECT b FROM public.g ORDER BY a"), [["8"], ["10"]]);
    let error = run(&other, "SELECT * FROM g").expect_err("names are looked up where they were");
    assert!(error.message.contains("relation \"g\" does not exist"), "{error}");
}
