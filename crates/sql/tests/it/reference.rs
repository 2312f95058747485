//! Filter, GROUP BY and join against the slow reference operators, on seeded hostile data.

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_testkit::data::{self, Keys, Value};
use atoll_testkit::machines;
use atoll_testkit::reference::{self, Row};

use crate::common::{fake, live, rows};

fn text(value: Value) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn make(session: &Session, name: &str, data: &[Row]) {
    rows(session, &format!("CREATE OR REPLACE TABLE {name} (k BIGINT, v BIGINT)"));
    for part in data.chunks(2000) {
        let tuples: Vec<String> =
            part.iter().map(|(k, v)| format!("({}, {})", text(*k), text(*v))).collect();
        rows(session, &format!("INSERT INTO {name} VALUES {}", tuples.join(", ")));
    }
}

fn check(session: &Session, left: &[Row], right: &[Row], what: &str) {
    make(session, "a", left);
    make(session, "b", right);
    let passed = reference::filter(left, |(k, v)| k.is_some_and(|k| k >= 1) && v.is_some());
    let found = rows(session, "SELECT count(*) FROM a WHERE k >= 1 AND v IS NOT NULL");
    assert_eq!(found, [[passed.len().to_string()]], "{what}");

    let expected: Vec<Vec<String>> = reference::group(left)
        .into_iter()
        .map(|(key, (count, sum))| {
            vec![text(key), count.to_string(), sum.map_or("NULL".to_owned(), |s| s.to_string())]
        })
        .collect();
    let found =
        rows(session, "SELECT k, count(*), sum(v) FROM a GROUP BY k ORDER BY k NULLS FIRST");
    assert_eq!(found, expected, "{what}");

    let expected: Vec<Vec<String>> = reference::inner_join(left, right)
        .into_iter()
        .map(|(left, right)| vec![text(left), text(right)])
        .collect();
    let found = rows(
        session,
        "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k \
         ORDER BY x NULLS FIRST, y NULLS FIRST",
    );
    assert_eq!(found, expected, "{what}");
}

#[test]
fn operators_agree_with_the_reference_on_skewed_unique_and_empty_data() {
    for session in [live(), fake(machines::eight_uneven_nodes(), Strategy::Interleave)] {
        for (seed, left, right) in [
            (1, (600, Keys::Uniform(40)), (300, Keys::Uniform(60))),
            (2, (200, Keys::Skewed(20)), (200, Keys::Skewed(20))),
            (3, (1000, Keys::Unique), (1000, Keys::Unique)),
            (4, (0, Keys::Unique), (50, Keys::Uniform(3))),
            (5, (1, Keys::Uniform(1)), (1, Keys::Uniform(1))),
        ] {
            let what = format!("seed {seed} on {}", session.machine().name);
            let left = data::rows(seed, left.0, left.1);
            let right = data::rows(seed + 100, right.0, right.1);
            check(&session, &left, &right, &what);
        }
    }
}

#[test]
fn semi_joins_deduplicate_the_side_that_only_filters() {
    let session = live();
    rows(&session, "CREATE TABLE few AS SELECT i AS id, i % 10 AS k FROM range(20000) t(i)");
    let sql = "SELECT count(*) FROM few WHERE k IN (SELECT k FROM few)";
    let plan = rows(&session, &format!("EXPLAIN {sql}")).concat().join("\n");
    assert!(plan.contains("DeduplicateExec"), "{plan}");
    assert_eq!(rows(&session, sql), [["20000"]]);
}
