use crate::support::{atoll, atoll_in, atoll_with};

#[test]
fn statements_come_from_the_command_line_in_its_order() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("two.sql"), "SELECT 2 AS n;\n").unwrap();
    let line =
        ["sql", "--mode", "ndjson", "-c", "SELECT 1 AS n", "-f", "two.sql", "-c", "SELECT 3 AS n"];
    let ran = atoll_in(home.path(), &line, "SELECT 4 AS n;");
    assert_eq!(ran.done(), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
}

#[test]
fn statements_come_from_stdin_when_nothing_else_is_named() {
    let script =
        "-- a comment\nCREATE TABLE t AS SELECT 1 AS a;\n.mode csv\nSELECT a + 1 AS b\nFROM t";
    let ran = atoll_with(&["sql"], script);
    assert!(ran.err.contains("SELECT 1"), "{ran:?}");
    assert_eq!(ran.done(), "b\n2\n");
    let dash = atoll_with(&["sql", "--mode", "csv", "-f", "-"], "SELECT 5 AS n;");
    assert_eq!(dash.done(), "n\n5\n");
}

#[test]
fn the_first_error_ends_a_script_with_its_line() {
    let script =
        "SELECT 1 AS n;\n\nSELECT\n  nowhere\nFROM (SELECT 1 AS somewhere);\nSELECT 3 AS n;\n";
    let ran = atoll_with(&["sql", "--mode", "csv"], script);
    assert_eq!(ran.out, "n\n1\n");
    let error = ran.failed(1);
    assert!(error.starts_with("error: stdin:4: "), "{error}");
    assert!(error.contains("nowhere") && error.contains('^'), "{error}");
}

#[test]
fn errors_in_files_name_the_innermost_file() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("outer.sql"), "SELECT 1;\n.read inner.sql\n").unwrap();
    std::fs::write(home.path().join("inner.sql"), "\n\nSELEC 1;\n").unwrap();
    let error = atoll_in(home.path(), &["sql", "-f", "outer.sql"], "").failed(1);
    assert!(error.starts_with("error: inner.sql:3: "), "{error}");
    let error = atoll_in(home.path(), &["sql", "-f", "none.sql"], "").failed(1);
    assert!(error.contains("cannot read none.sql"), "{error}");
}

#[test]
fn a_script_that_reads_itself_is_stopped() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("self.sql"), ".read self.sql\n").unwrap();
    let error = atoll_in(home.path(), &["sql", "-f", "self.sql"], "").failed(1);
    assert!(error.contains("does it read itself?"), "{error}");
}

#[test]
fn text_that_never_ends_or_is_not_text_is_an_error_with_its_line() {
    let error = atoll_with(&["sql"], "SELECT 1;\nSELECT 'open;\n").failed(1);
    assert!(error.contains("error: stdin:2: "), "{error}");
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("bytes.sql"), b"SELECT 1;\n\xff\xfe;\n").unwrap();
    let error = atoll_in(home.path(), &["sql", "-f", "bytes.sql"], "").failed(1);
    assert!(error.contains("error: bytes.sql:2: "), "{error}");
}

#[test]
fn files_become_views_named_by_their_stems() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("My Sales.csv"), "item,price\nnut,2\nbolt,3\n").unwrap();
    let query = "SELECT sum(price) AS total FROM \"my sales\"";
    let ran = atoll_in(home.path(), &["sql", "My Sales.csv", "--mode", "csv", "-c", query], "");
    assert_eq!(ran.done(), "total\n5\n");
    let error = atoll_in(home.path(), &["sql", "none.csv", "-c", "SELECT 1"], "").failed(125);
    assert!(error.contains("cannot read none.csv"), "{error}");
}

#[test]
fn files_are_read_by_name() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("it's.csv"), "a\n1\n2\n").unwrap();
    let query = "SELECT count(*) AS n FROM 'it''s.csv'";
    assert_eq!(atoll_in(home.path(), &["sql", "--mode", "csv", "-c", query], "").done(), "n\n2\n");
}

#[test]
fn data_goes_to_stdout_and_everything_else_to_stderr() {
    let script = ".timer on\n.echo on\nCREATE TABLE t AS SELECT 7 AS a;\nSELECT a FROM t;\n";
    let ran = atoll_with(&["sql", "--mode", "csv"], script);
    assert_eq!(ran.out, "a\n7\n");
    for word in ["SELECT a FROM t", "SELECT 1", " ms"] {
        assert!(ran.err.contains(word), "{word} is missing in {ran:?}");
    }
    let quiet = atoll(&["sql", "--mode", "csv", "-c", "SELECT 1 AS n"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("n\n1\n", ""));
}

#[test]
fn the_start_file_is_for_people_only() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".atollrc"), "SELECT 'started';\n").unwrap();
    let ran = atoll_in(home.path(), &["sql", "--mode", "csv", "-c", "SELECT 1 AS n"], "");
    assert_eq!(ran.done(), "n\n1\n");
}

#[test]
fn a_script_continues_after_errors_with_bail_off() {
    let script =
        ".bail off\nSELECT 1 AS n;\nSELECT nowhere;\n.nothing\nSELECT 2 AS n;\nSELECT 'open\n";
    let ran = atoll_with(&["sql", "--mode", "ndjson"], script);
    assert_eq!(ran.out, "{\"n\":1}\n{\"n\":2}\n");
    let error = ran.failed(1);
    for line in ["error: stdin:3: ", "error: stdin:4: ", "error: stdin:6: "] {
        assert!(error.contains(line), "{error}");
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.sql"), "SELECT x;\nSELECT 3 AS n;\n").unwrap();
    let line = [
        "sql",
        "--mode",
        "ndjson",
        "-c",
        ".bail off",
        "-f",
        "a.sql",
        "-c",
        "SELECT y; SELECT 4 AS n",
    ];
    let ran = atoll_in(home.path(), &line, "");
    assert_eq!(ran.out, "{\"n\":3}\n{\"n\":4}\n");
    ran.failed(1);
    let ran =
        atoll_with(&["sql", "--mode", "ndjson"], ".bail off\n.bail on\nSELECT x;\nSELECT 5 AS n;");
    assert_eq!(ran.out, "");
    ran.failed(1);
}

#[test]
fn the_place_in_one_long_line_is_shown_and_the_rest_of_it_is_not() {
    let line = format!("SELECT {}nowhere, 1", "1, ".repeat(100_000));
    let error = atoll_with(&["sql"], &line).failed(1);
    assert!(error.contains("nowhere") && error.contains('^'), "{error}");
    assert!(error.len() < 2_000, "{} bytes", error.len());
}

#[test]
fn rows_follow_a_copy_from_stdin() {
    let script = "CREATE TABLE t (a INT, b TEXT);\nCOPY t FROM STDIN;\n1\tx, \\\\ \\t y\n2\t\\N\n\\.\n\
                  COPY t (b, a) FROM stdin WITH CSV HEADER;\nb,a\n\"q;\",3\n\\.\n\
                  COPY t FROM STDIN (DELIMITER '|', NULL '-');\n4|-\n\\.\nCOPY t FROM STDIN;\n\\.\n\
                  SELECT a, b FROM t ORDER BY a;\n";
    let expected = "a,b\n1,\"x, \\ \t y\"\n2,\n3,q;\n4,\n";
    let ran = atoll_with(&["sql", "--mode", "csv"], script);
    assert!(ran.err.ends_with("COPY 2\nCOPY 1\nCOPY 1\nCOPY 0\n"), "{ran:?}");
    assert_eq!(ran.done(), expected);
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.sql"), script).unwrap();
    let ran = atoll_in(home.path(), &["sql", "--mode", "csv", "-c", ".read a.sql"], "");
    assert_eq!(ran.done(), expected);
    let ran = atoll_in(home.path(), &["sql", "--mode", "csv", "-f", "a.sql"], "9\tnot this\n");
    assert_eq!(ran.done(), expected);
}

#[test]
fn more_rows_than_the_read_ahead_follow_a_copy() {
    let rows: String = (0..20_000).map(|n| format!("{n}\tname {n}\n")).collect();
    let script = format!(
        "CREATE TABLE t (a INT, b TEXT);\nCOPY t FROM STDIN;\n{rows}\\.\nSELECT count(*) AS n, sum(a) AS s, \
         max(length(b)) AS l FROM t;\nCOPY t FROM STDIN;\n{rows}"
    );
    assert!(rows.len() > 200_000);
    let ran = atoll_with(&["sql", "--mode", "csv"], &script);
    assert!(ran.err.ends_with("COPY 20000\nCOPY 20000\n"), "{}", ran.err);
    assert_eq!(ran.done(), "n,s,l\n20000,199990000,10\n");
}

#[test]
fn rows_of_a_copy_that_fails_are_not_run() {
    let script = ".bail off\nCREATE TABLE t (a INT);\nCOPY missing FROM STDIN;\nSELECT 1 AS n;\n\\.\n\
                  COPY t FROM STDIN;\n1\nx\n\\.\nSELECT count(*) AS n FROM t;\n";
    let ran = atoll_with(&["sql", "--mode", "csv"], script);
    assert_eq!(ran.out, "n\n0\n");
    let error = ran.failed(1);
    assert!(error.contains("error: stdin:3: ") && error.contains("missing"), "{error}");
    assert!(error.contains("error: stdin:6: STDIN, line 2, "), "{error}");
}

#[test]
fn a_copy_of_the_command_line_reads_the_standard_input() {
    let line = [
        "sql",
        "--mode",
        "csv",
        "-c",
        "CREATE TABLE t (a INT, b TEXT)",
        "-c",
        "COPY t FROM STDIN",
        "-c",
        "FROM t",
    ];
    assert_eq!(atoll_with(&line, "a,b\n1,x\n").done(), "a,b\n1,x\n");
}

#[test]
fn a_copy_to_stdout_is_written_where_results_go() {
    let ran = atoll_with(
        &["sql"],
        "CREATE TABLE t AS SELECT 1 AS a, 'x,y' AS b;\nCOPY t TO STDOUT;\n\
         COPY (SELECT a FROM t) TO stdout (HEADER false);\nCOPY t TO STDOUT (FORMAT json);\n\
         COPY t (b) TO STDOUT WITH CSV DELIMITER ';';",
    );
    assert_eq!(ran.done(), "a,b\n1,\"x,y\"\n1\n{\"a\":1,\"b\":\"x,y\"}\nb\nx,y\n");
    let home = tempfile::tempdir().unwrap();
    let script = ".output rows.csv\nCOPY (SELECT 7 AS n) TO STDOUT;\n.output\nSELECT 8 AS m;";
    let ran = atoll_in(home.path(), &["sql", "--mode", "csv"], script);
    assert_eq!(ran.done(), "m\n8\n");
    assert_eq!(std::fs::read_to_string(home.path().join("rows.csv")).unwrap(), "n\n7\n");
    let error = atoll_with(&["sql"], "COPY missing TO STDOUT;").failed(1);
    assert!(error.contains("missing"), "{error}");
}
