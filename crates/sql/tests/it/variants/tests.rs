//! Tests of the variants made from a query.

use atoll_sql::arrow::datatypes::DataType;

use super::rows::{Answer, Expected};
use super::{Place, Share, inside, is_steady, outside};

/// The variant of a kind, with all of its additions.
fn within(sql: &str, columns: usize, kind: &str) -> Option<String> {
    let variants = inside::variants(sql, columns);
    let variant = variants.iter().find(|variant| variant.kind == kind)?;
    Some(variant.sql(&(0..variant.len()).collect::<Vec<_>>()))
}

#[test]
fn expressions_are_repeated_with_and_without_casts() {
    assert_eq!(
        within("SELECT a, sum(b) FROM t GROUP BY a", 2, "expressions beside their casts").unwrap(),
        "SELECT a, sum(b), CAST(a AS VARCHAR) AS \"CAST(t.a AS Utf8)\", \
         CAST(sum(b) AS VARCHAR) AS \"sum(t.v)\" FROM t GROUP BY a"
    );
    assert_eq!(
        within("SELECT a, b FROM t ORDER BY 1", 2, "expressions twice").unwrap(),
        "SELECT a, b, a AS \"t.a\", b AS \"max(q.x)\" FROM t ORDER BY 1"
    );
}

#[test]
fn keys_of_groups_and_orders_get_their_casts() {
    assert_eq!(
        within("SELECT a, max(b) FROM t GROUP BY 1", 2, "keys beside their casts").unwrap(),
        "SELECT a, max(b), CAST(a AS VARCHAR) AS \"CAST(t.a AS Utf8)\" FROM t \
         GROUP BY 1, CAST(a AS VARCHAR)"
    );
    assert_eq!(
        within("SELECT a FROM t ORDER BY b DESC", 1, "sort keys beside their casts").unwrap(),
        "SELECT a FROM t ORDER BY b DESC, CAST(b AS VARCHAR) DESC"
    );
    let grouping_sets = "SELECT a, count(*) FROM t GROUP BY ROLLUP (a)";
    assert_eq!(within(grouping_sets, 2, "keys beside their casts"), None);
}

#[test]
fn aggregates_and_windows_get_the_same_over_casts() {
    assert_eq!(
        within("SELECT max(a), sum(b) FROM t", 2, "calls over casts").unwrap(),
        "SELECT max(a), sum(b), max(CAST(a AS VARCHAR)) AS \"max(CAST(a AS VARCHAR))\" FROM t"
    );
    assert_eq!(
        within("SELECT lag(a) OVER (ORDER BY b) FROM t", 1, "calls over casts").unwrap(),
        "SELECT lag(a) OVER (ORDER BY b), lag(CAST(a AS VARCHAR)) OVER (ORDER BY b) \
         AS \"lag(CAST(a AS VARCHAR))\" FROM t"
    );
    // The third argument is of the type of the first.
    assert_eq!(within("SELECT lag(a, 1, 0) OVER w FROM t", 1, "calls over casts"), None);
    // A DISTINCT row would become two.
    assert_eq!(within("SELECT DISTINCT max(a) OVER () FROM t", 1, "calls over casts"), None);
}

#[test]
fn windows_and_having_get_casts_of_their_keys_and_arguments() {
    assert_eq!(
        within("SELECT sum(a) OVER (PARTITION BY b ORDER BY c) FROM t", 1, "windows over casts")
            .unwrap(),
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY c), \
         sum(a) OVER (PARTITION BY b, CAST(b AS VARCHAR) ORDER BY c, CAST(c AS VARCHAR)) \
         AS \"sum(t.a)\" FROM t"
    );
    assert_eq!(
        within("SELECT a FROM t GROUP BY a HAVING max(b) > 1", 1, "HAVING over casts").unwrap(),
        "SELECT a FROM t GROUP BY a HAVING (max(b) > 1) AND count(CAST(b AS VARCHAR)) >= 0"
    );
}

#[test]
fn set_operations_get_their_columns_once_more() {
    let all = "SELECT a FROM t UNION ALL SELECT b FROM u";
    assert_eq!(
        within(all, 1, "expressions beside their casts").unwrap(),
        "SELECT a, CAST(a AS VARCHAR) AS \"CAST(t.a AS Utf8)\" FROM t \
         UNION ALL SELECT b, CAST(b AS VARCHAR) AS \"CAST(t.a AS Utf8)\" FROM u"
    );
    // Casts may distinguish values that the two sides have in common.
    let common = "SELECT a FROM t INTERSECT SELECT b FROM u";
    assert_eq!(within(common, 1, "expressions beside their casts"), None);
    assert_eq!(
        within(common, 1, "expressions twice").unwrap(),
        "SELECT a, a AS \"t.a\" FROM t INTERSECT SELECT b, b AS \"t.a\" FROM u"
    );
}

#[test]
fn chains_get_other_parentheses() {
    assert_eq!(
        within("SELECT a - b - c FROM t", 1, "other parentheses").unwrap(),
        "SELECT a - b - c, a - (b - c) AS \"t.a - t.b - t.c\" FROM t"
    );
}

#[test]
fn subqueries_get_more_columns_where_all_are_named() {
    let sql = within(
        "WITH c AS (SELECT a FROM t) SELECT d.b FROM (SELECT c.a AS b FROM c) AS d",
        1,
        "casts within subqueries",
    );
    let sql = sql.unwrap();
    assert!(sql.starts_with("WITH c AS (SELECT a, CAST(a AS VARCHAR) AS "), "{sql}");
    assert!(sql.contains("SELECT d.b FROM (SELECT c.a AS b, CAST(c.a AS VARCHAR) AS "), "{sql}");
    for closed in [
        "SELECT * FROM (SELECT a FROM t) AS d",
        "SELECT d FROM (SELECT a FROM t) AS d",
        "SELECT a FROM (SELECT a FROM t) AS d NATURAL JOIN e",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
    ] {
        assert_eq!(within(closed, 1, "casts within subqueries"), None, "{closed}");
    }
}

/// An integer column with these values.
fn integers(values: &[Option<i64>]) -> Answer {
    let cell = |value: &Option<i64>| vec![value.map(|value| value.to_string())];
    Answer { types: vec![DataType::Int64], rows: values.iter().map(cell).collect() }
}

#[test]
fn answers_over_a_query_follow_from_its_rows() {
    let rows = integers(&[Some(1), Some(1), None]);
    let variants = outside::variants("SELECT a FROM t", &rows);
    let of = |kind| variants.iter().find(|variant| variant.kind == kind).expect(kind);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        of("HAVING").expected,
        Expected {
            known: vec![0, 2],
            rows: vec![vec![text("1"), text("2")]],
            casts: vec![(1, 0)],
            ..Expected::default()
        }
    );
    assert_eq!(of("JOIN with itself").expected.rows, [[text("1"), text("4")]]);
    assert_eq!(of("EXCEPT itself").expected.rows, Vec::<Vec<_>>::new());
    assert_eq!(of("DISTINCT").expected.rows, [[None], [text("1")]]);
    assert!(of("view").steps.before.as_ref().is_some_and(|sql| sql.contains("SELECT a FROM t")));
}

#[test]
fn other_rows_and_other_casts_are_differences() {
    let row = |value: &str, cast: &str| vec![Some(value.to_owned()), Some(cast.to_owned())];
    let answer = |rows| Answer { types: vec![DataType::Int64, DataType::Utf8], rows };
    let expected = Expected {
        known: vec![0],
        rows: vec![vec![Some("1".to_owned())], vec![Some("2".to_owned())]],
        casts: vec![(1, 0)],
        ..Expected::default()
    };
    let wrong = |rows| expected.difference(&answer(rows));
    assert_eq!(wrong(vec![row("2", "2"), row("1", "1")]), None);
    assert_eq!(wrong(vec![row("1", "1")]).unwrap(), "1 rows instead of 2");
    assert_eq!(wrong(vec![row("1", "1"), row("3", "3")]).unwrap(), "('3') where ('2') is right");
    assert_eq!(
        wrong(vec![row("1", "1"), row("2", "1")]).unwrap(),
        "column 2 has the text ('1') for ('2')"
    );
}

#[test]
fn only_queries_that_give_the_same_again_have_variants() {
    assert!(is_steady("(SELECT 1)") && is_steady("WITH a AS (SELECT 1) TABLE a"));
    for sql in ["SHOW x", "SELECT nextval('s')", "SELECT a FROM t FOR UPDATE", "EXPLAIN SELECT 1"] {
        assert!(!is_steady(sql), "{sql}");
    }
}

#[test]
fn a_tenth_is_about_a_tenth_and_the_same_again() {
    let chosen = |seed: u64| -> Vec<u32> {
        let has =
            |line: &u32| Share::Tenth { seed }.has(&Place { file: "a.slt", line: *line }, "kind");
        (0..1000).filter(has).collect()
    };
    assert!((50..200).contains(&chosen(1).len()));
    assert_eq!(chosen(1), chosen(1));
    assert_ne!(chosen(1), chosen(2));
    assert!(Share::All.has(&Place { file: "a.slt", line: 1 }, "kind"));
}
