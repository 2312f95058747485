//! Names of result columns, and command tags.

use crate::common::{live, rows, run};

/// The names of the columns that a query returns, in its schema and in its batches.
fn names(session: &atoll_sql::Session, sql: &str) -> Vec<String> {
    let result = session.runtime().block_on(session.run(sql));
    let mut result = result.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let of = |schema: &atoll_sql::arrow::datatypes::Schema| -> Vec<String> {
        schema.fields().iter().map(|field| field.name().clone()).collect()
    };
    let names = of(result.schema());
    while let Some(batch) = session.runtime().block_on(result.next()).expect(sql) {
        assert_eq!(of(&batch.schema()), names, "{sql}");
    }
    names
}

#[test]
fn an_expression_is_called_by_its_text() {
    let session = live();
    rows(&session, "CREATE TABLE t (a INT, b VARCHAR, \"C d\" INT)");
    rows(&session, "INSERT INTO t VALUES (1, 'x', 2), (2, 'y', 3)");
    for (items, expected) in [
        ("count(*)", vec!["count(*)"]),
        ("count( * ), COUNT(a)", vec!["count(*)", "COUNT(a)"]),
        ("sum(a), avg(t.a)", vec!["sum(a)", "avg(t.a)"]),
        ("a+1, -a, a, t.a AS b, (a)", vec!["a + 1", "-a", "a", "b", "a"]),
        ("'x', 1, 1.5, true, NULL", vec!["'x'", "1", "1.5", "true", "NULL"]),
        ("A, \"C d\", b||'z'", vec!["a", "C d", "b || 'z'"]),
        ("a::bigint, CAST(a AS varchar)", vec!["a::BIGINT", "CAST(a AS VARCHAR)"]),
        ("INTERVAL '1 day', DATE '2020-01-01'", vec!["INTERVAL '1 day'", "DATE '2020-01-01'"]),
        ("CASE WHEN a > 1 THEN 2 ELSE 3 END", vec!["CASE WHEN a > 1 THEN 2 ELSE 3 END"]),
        ("[1, 2], (SELECT max(a) FROM t)", vec!["[1, 2]", "(SELECT max(a) FROM t)"]),
        ("sum(a) OVER (ORDER BY a)", vec!["sum(a) OVER (ORDER BY a)"]),
        ("a IN (1, 2), a IS NULL, NOT a = 1", vec!["a IN (1, 2)", "a IS NULL", "NOT a = 1"]),
        ("count(*), count(*)", vec!["count(*)", "count(*)"]),
        ("a, a, t.a, a + 1, a + 1", vec!["a", "a", "a", "a + 1", "a + 1"]),
        ("a AS x, b AS x", vec!["x", "x"]),
        ("*, count(*) OVER ()", vec!["a", "b", "C d", "count(*) OVER ()"]),
    ] {
        let needs_group = items.starts_with("a, a");
        let group = if needs_group { " GROUP BY a" } else { "" };
        assert_eq!(names(&session, &format!("SELECT {items} FROM t{group}")), expected, "{items}");
    }
}

#[test]
fn orders_groups_and_conditions_resolve_their_columns() {
    let session = live();
    rows(&session, "CREATE TABLE t (k INT, v INT)");
    rows(&session, "INSERT INTO t VALUES (1, 10), (1, 20), (2, 5), (3, NULL)");
    for (sql, expected) in [
        ("SELECT k, sum(v) FROM t GROUP BY k ORDER BY sum(v)", "2,5;1,30;3,NULL"),
        ("SELECT k + 1 FROM t GROUP BY k + 1 ORDER BY k + 1", "2;3;4"),
        ("SELECT k + 1, count(*) FROM t GROUP BY ALL ORDER BY ALL", "2,2;3,1;4,1"),
        ("SELECT k, count(*) FROM t GROUP BY 1 HAVING count(*) > 1", "1,2"),
        ("SELECT DISTINCT k + 1 FROM t ORDER BY k + 1", "2;3;4"),
        ("SELECT DISTINCT t.k, t.k FROM t ORDER BY t.k", "1,1;2,2;3,3"),
        ("SELECT k, k FROM t ORDER BY k LIMIT 1", "1,1"),
        ("SELECT \"count(*)\" FROM (SELECT count(*) FROM t)", "4"),
        (
            "SELECT k, row_number() OVER (ORDER BY v) FROM t QUALIFY row_number() OVER (ORDER BY v) = 1",
            "2,1",
        ),
        ("SELECT k, k FROM t UNION ALL SELECT 9, 9 ORDER BY 1 DESC LIMIT 1", "9,9"),
        ("SELECT k FROM t WHERE k IN (SELECT max(k) FROM t)", "3"),
        ("SELECT a_1 FROM (SELECT k AS a, v AS a FROM t) ORDER BY 1 NULLS LAST", "5;10;20;NULL"),
        ("WITH x AS (SELECT max(v) FROM t) SELECT \"max(v)\" FROM x", "20"),
    ] {
        let found = rows(&session, sql);
        let found: Vec<String> = found.iter().map(|row| row.join(",")).collect();
        assert_eq!(found.join(";"), expected, "{sql}");
    }
}

#[test]
fn tables_and_views_take_the_names_and_number_those_that_are_taken() {
    let session = live();
    rows(&session, "CREATE TABLE t (a INT)");
    rows(&session, "CREATE TABLE u AS SELECT a, a, count(*), count(*) FROM t GROUP BY a");
    assert_eq!(names(&session, "SELECT * FROM u"), ["a", "a_1", "count(*)", "count(*)_1"]);
    rows(&session, "CREATE TABLE a1 (a INT, a_1 INT)");
    assert_eq!(names(&session, "SELECT * FROM t JOIN a1 ON true"), ["a", "a", "a_1"]);
    rows(&session, "CREATE TABLE v AS SELECT * FROM t JOIN a1 ON true");
    assert_eq!(names(&session, "SELECT * FROM v"), ["a", "a_2", "a_1"]);
    rows(&session, "CREATE VIEW w AS SELECT *, a + 1 FROM t JOIN a1 USING (a)");
    assert_eq!(names(&session, "SELECT * FROM w"), ["a", "a_1", "a + 1"]);
    rows(&session, "CREATE VIEW x AS SELECT * FROM t, a1");
    assert_eq!(names(&session, "SELECT * FROM x"), ["a", "a_2", "a_1"]);
    let error = run(&session, "CREATE TABLE y (a INT, a INT)").expect_err("a is there twice");
    assert!(error.message.contains("'a'"), "{error}");
    let returned = "INSERT INTO t VALUES (1) RETURNING a, a, a + 1";
    assert_eq!(names(&session, returned), ["a", "a", "a + 1"]);
}

#[test]
fn tags_are_those_of_postgresql() {
    let session = live();
    let directory = tempfile::tempdir().expect("a directory");
    let copy = format!("COPY t TO '{}'", directory.path().join("t.csv").display());
    for (sql, tag, is_told) in [
        ("CREATE TABLE t (a INT)", "CREATE TABLE", true),
        ("CREATE OR REPLACE TABLE u AS SELECT 1 AS a", "SELECT 1", true),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 AS a", "CREATE VIEW", true),
        ("CREATE SCHEMA s", "CREATE SCHEMA", true),
        ("INSERT INTO t VALUES (1), (2), (3)", "INSERT 0 3", true),
        ("UPDATE t SET a = 5 WHERE a > 1", "UPDATE 2", true),
        ("DELETE FROM t WHERE a = 1", "DELETE 1", true),
        ("INSERT INTO t VALUES (1) RETURNING a", "INSERT 0 1", false),
        (
            "MERGE INTO t USING t u ON t.a = u.a AND u.a = 5 WHEN MATCHED THEN DO NOTHING",
            "MERGE 0",
            true,
        ),
        ("PREPARE p AS INSERT INTO t VALUES ($1)", "PREPARE", true),
        ("EXECUTE p(7)", "INSERT 0 1", true),
        (&copy, "COPY 4", true),
        ("SELECT * FROM t", "SELECT 4", false),
        ("EXPLAIN SELECT * FROM t", "EXPLAIN", false),
        ("/* all */ TRUNCATE t", "TRUNCATE TABLE", true),
        ("SET timezone = 'UTC'", "SET", true),
        ("RESET atoll.join", "RESET", true),
        ("RESET atoll.durability", "RESET", true),
        ("DROP VIEW v", "DROP VIEW", true),
        ("DROP TABLE IF EXISTS t", "DROP TABLE", true),
        (
            "DROP TABLE IF EXISTS t, nix",
            "DROP TABLE: table \"t\" does not exist, skipping\ntable \"nix\" does not exist, skipping",
            true,
        ),
        ("BEGIN", "BEGIN", true),
        ("COMMIT", "COMMIT", true),
    ] {
        let result = session.runtime().block_on(session.run(sql));
        let mut result = result.unwrap_or_else(|error| panic!("{sql}: {error}"));
        while session.runtime().block_on(result.next()).expect(sql).is_some() {}
        assert_eq!((result.tag().as_str(), result.is_told_by_tag()), (tag, is_told), "{sql}");
    }
}

/// For tables with very many columns `*` is planned differently.
#[test]
fn select_star_works_alike_for_wide_and_narrow_tables() {
    let session = live();
    let wide: Vec<String> = (0..700).map(|at| format!("c{at} INT NOT NULL")).collect();
    let columns: Vec<String> = (0..700).map(|at| format!("c{at}")).collect();
    let reversed: Vec<&str> = columns.iter().rev().map(String::as_str).collect();
    let values: Vec<String> = (0..700).rev().map(|at| at.to_string()).collect();
    let expected = [(0..700).map(|at| at.to_string()).collect::<Vec<String>>()];
    rows(&session, &format!("CREATE TABLE w ({})", wide.join(", ")));
    let (reversed, values) = (reversed.join(", "), values.join(", "));
    rows(&session, &format!("INSERT INTO w ({reversed}) VALUES ({values})"));
    rows(&session, "CREATE VIEW v AS SELECT * FROM w WHERE c1 = 1");
    for sql in [
        "SELECT * FROM w",
        "SELECT * FROM w AS x WHERE x.c7 = 7 LIMIT 3",
        "SELECT * FROM w ORDER BY c1",
        "SELECT * FROM w x WHERE c7 = 7 ORDER BY x.c1 DESC, c2 NULLS FIRST LIMIT 2 OFFSET 0",
        "SELECT * FROM w ORDER BY 1",
        "SELECT * FROM w ORDER BY c1 + 1",
        "SELECT * FROM (SELECT * FROM w) AS x",
        "SELECT * FROM v",
        "SELECT DISTINCT * FROM w",
        "SELECT * FROM w UNION SELECT * FROM w",
    ] {
        assert_eq!(names(&session, sql), columns, "{sql}");
        assert_eq!(rows(&session, sql), expected, "{sql}");
    }
    // So is a select list of very many columns.
    let values_back: Vec<String> = (0..700).rev().map(|at| at.to_string()).collect();
    let names_back: Vec<String> = columns.iter().rev().cloned().collect();
    for rest in ["w", "w AS x WHERE x.c7 = 7 LIMIT 3", "w ORDER BY c1 DESC, x.c2 LIMIT 1", "v"] {
        let rest = rest.replace("w ORDER", "w x ORDER");
        let sql = format!("SELECT {reversed} FROM {rest}");
        assert_eq!(names(&session, &sql), names_back, "{sql}");
        assert_eq!(rows(&session, &sql), std::slice::from_ref(&values_back), "{sql}");
    }
    let first = columns[..600].join(", ");
    let some = rows(&session, &format!("SELECT {first} FROM w WHERE c699 = 699 ORDER BY c650"));
    assert_eq!(some, [expected[0][..600].to_vec()]);
    rows(&session, &format!("CREATE TABLE some AS SELECT {first} FROM w"));
    assert_eq!(rows(&session, "SELECT * FROM some"), some);
    for (list, told) in [(format!("{first}, nothing"), "nothing"), (format!("{first}, c1"), "")] {
        let told_of = run(&session, &format!("SELECT {list} FROM w"));
        assert!(told.is_empty() == told_of.is_ok(), "{told}");
        assert!(told_of.err().is_none_or(|error| error.message.contains(told)), "{told}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("w.csv").display().to_string();
    rows(&session, &format!("COPY (SELECT * FROM w ORDER BY c2) TO '{file}'"));
    let from_file = format!("SELECT * FROM '{file}' ORDER BY c1");
    assert_eq!(names(&session, &from_file), columns);
    assert_eq!(rows(&session, &from_file), expected);
    rows(&session, &format!("CREATE TABLE filed AS SELECT * FROM '{file}'"));
    assert_eq!(rows(&session, "SELECT * FROM filed"), expected);
    let plan = rows(&session, "EXPLAIN SELECT * FROM w ORDER BY c1").concat().concat();
    assert!(plan.contains("c699") && !plan.contains("$star"), "{plan}");
    let texts: Vec<String> = (0..700).map(|at| format!("'{at}'")).collect();
    let many = format!("({0}), ({0})", texts.join(", "));
    rows(&session, &format!("CREATE TABLE more ({})", wide.join(", ")));
    rows(&session, &format!("INSERT INTO more VALUES {many}"));
    rows(&session, "INSERT INTO more SELECT * FROM w ORDER BY c1");
    rows(&session, "INSERT INTO more SELECT * FROM filed");
    assert_eq!(rows(&session, "SELECT DISTINCT * FROM more"), expected);
    assert_eq!(rows(&session, "SELECT count(*) FROM more"), [["4"]]);
    for wrong in ["(1)", "(1, 2)", "(NULL)", "('x')"] {
        let row = wrong.replace(')', &", 1".repeat(699)) + ")";
        let row = if wrong == "(1)" { wrong.to_owned() } else { row };
        let told = run(&session, &format!("INSERT INTO more VALUES {row}"));
        assert!(told.is_err(), "{wrong}");
    }
    assert_eq!(rows(&session, "SELECT * FROM w LIMIT 0"), Vec::<Vec<String>>::new());
    assert_eq!(rows(&session, "SELECT * FROM w WHERE c7 = 8"), Vec::<Vec<String>>::new());
    rows(&session, "CREATE TABLE made AS SELECT * FROM w WHERE c3 = 3");
    assert_eq!(rows(&session, "SELECT * FROM made"), expected);
    rows(&session, "INSERT INTO made SELECT * FROM w");
    assert_eq!(rows(&session, "SELECT count(*), sum(c699) FROM made"), [["2", "1398"]]);
    let error =
        run(&session, "INSERT INTO w (c1, c2, c1) VALUES (1, 2, 3)").unwrap_err().to_string();
    assert!(error.contains("'c1' is named twice"), "{error}");
    let error = run(&session, "INSERT INTO w (c1) VALUES (1)").unwrap_err().to_string();
    assert!(error.contains("c0"), "NOT NULL of every column holds: {error}");
}
