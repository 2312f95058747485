//! Window functions over all rows of a partition at once give what DataFusion's operators give: over hostile tables, with
//! any number of workers, in batches of any size, and where memory is short.

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_testkit::machines;
use atoll_topology::Bytes;

use crate::common::{fake, live, rows, run, texts, with_workers};

/// `id` differs in each row, and makes orders total.
const COLUMNS: &str = "value AS id, \
    CASE WHEN value % 11 = 0 THEN NULL ELSE value * 7 % 5 END AS p, \
    CASE WHEN value % 13 = 0 THEN NULL WHEN value % 7 < 5 THEN 'a text with the same beginning ' || value % 4 \
        WHEN value % 7 = 5 THEN '' ELSE 'ä' || value % 3 END AS s, \
    CASE WHEN value % 6 = 0 THEN NULL ELSE value * 7919 % 100 - 50 END AS v, \
    CASE WHEN value % 9 = 0 THEN NULL WHEN value % 5 = 0 THEN 'NaN' WHEN value % 8 = 0 THEN '-Infinity' \
        WHEN value % 7 = 0 THEN '-0.0' ELSE (value * 31 % 17 / 4.0)::VARCHAR END::DOUBLE AS f, \
    (value * 37 % 19)::DOUBLE AS g, \
    CASE WHEN value % 4 = 0 THEN NULL ELSE (value * 53 % 1000 - 500) / 10.0 END::DECIMAL(12, 2) AS d, \
    (value * 1000003 % 977)::DECIMAL(38, 0) * 100000000000000000000 AS w, \
    value * 17 % 3 = 1 AS b, \
    DATE '2024-01-01' + (value * 41 % 30)::INTEGER AS day, \
    TIMESTAMP '2024-01-01' + value * 77 % 50 * INTERVAL '1 hour' AS t";

/// Without rows, with one, with fewer than workers, with one partition, and with many.
fn make_tables(session: &Session) {
    for (name, count) in [("none", 0), ("one", 1), ("few", 3), ("many", 331)] {
        let from = format!("SELECT {COLUMNS} FROM generate_series(1, {count})");
        rows(session, &format!("CREATE TABLE {name} AS {from}"));
    }
}

const NUMBERS: &str = "row_number() OVER w, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, \
    cume_dist() OVER w, ntile(1) OVER w, ntile(4) OVER w, ntile(1000) OVER w";

const FRAMES: [&str; 10] = [
    "",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN 2 FOLLOWING AND 4 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "GROUPS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
];

/// Results that do not depend on the order of peers.
fn queries(table: &str) -> Vec<String> {
    let mut queries = Vec::new();
    for over in [
        "PARTITION BY p ORDER BY v, id",
        "PARTITION BY s ORDER BY f DESC, id",
        "PARTITION BY s, b ORDER BY s, t DESC NULLS LAST, id DESC",
        "ORDER BY s NULLS FIRST, id",
        "ORDER BY d DESC NULLS LAST, w, id",
        "PARTITION BY day, p ORDER BY id",
        "PARTITION BY id ORDER BY v",
    ] {
        queries.push(format!(
            "SELECT id, {NUMBERS}, lag(v) OVER w, lead(s, 2) OVER w, lag(d, 3, -1) OVER w, lead(f, 0) OVER w, \
             lag(t, -1) OVER w FROM {table} WINDOW w AS ({over})"
        ));
        for frame in FRAMES {
            queries.push(format!(
                "SELECT id, sum(v) OVER w, sum(d) OVER w, sum(w) OVER w, avg(v) OVER w, count(*) OVER w, \
                 count(s) OVER w, min(v) OVER w, max(f) OVER w, min(f) OVER w, max(day) OVER w, min(t) OVER w, \
                 avg(d) OVER w, avg(w) OVER w, min(s) OVER w, max(s) OVER w, \
                 first_value(s) OVER w, last_value(v) OVER w, nth_value(d, 2) OVER w \
                 FROM {table} WINDOW w AS ({over} {frame})"
            ));
        }
    }
    for (key, distances) in [
        (
            "v",
            [
                "3 PRECEDING AND CURRENT ROW",
                "7 PRECEDING AND 2 FOLLOWING",
                "1 FOLLOWING AND 9 FOLLOWING",
            ],
        ),
        (
            "d",
            [
                "0.5 PRECEDING AND CURRENT ROW",
                "UNBOUNDED PRECEDING AND 1.25 FOLLOWING",
                "2 PRECEDING AND 1 PRECEDING",
            ],
        ),
        (
            "t",
            [
                "INTERVAL '3 hours' PRECEDING AND CURRENT ROW",
                "CURRENT ROW AND INTERVAL '1 day' FOLLOWING",
                "INTERVAL '1 month' PRECEDING AND INTERVAL '90 minutes' FOLLOWING",
            ],
        ),
        (
            "day",
            [
                "INTERVAL '3 days' PRECEDING AND INTERVAL '1 day' PRECEDING",
                "INTERVAL '2 days' PRECEDING AND UNBOUNDED FOLLOWING",
                "INTERVAL '36 hours' PRECEDING AND CURRENT ROW",
            ],
        ),
    ] {
        for (distance, order) in distances
            .iter()
            .flat_map(|distance| ["", "DESC", "DESC NULLS LAST"].map(|order| (distance, order)))
        {
            for partition in ["", "PARTITION BY p", "PARTITION BY b, v", "PARTITION BY id"] {
                queries.push(format!(
                    "SELECT id, count(*) OVER w, sum(v) OVER w, avg(d) OVER w, min(f) OVER w, max(s) OVER w, count(s) OVER w \
                     FROM {table} WINDOW w AS ({partition} ORDER BY {key} {order} RANGE BETWEEN {distance})"
                ));
            }
        }
    }
    for over in ["PARTITION BY p ORDER BY v", "ORDER BY s", "PARTITION BY b", "", "ORDER BY f, b"] {
        queries.push(format!(
            "SELECT id, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, \
             sum(v) OVER w, sum(g) OVER w, avg(g) OVER w, sum(f) OVER w, avg(f) OVER w, count(d) OVER w, \
             max(w) OVER w, min(day) OVER w FROM {table} WINDOW w AS ({over})"
        ));
    }
    queries.extend([
        format!("SELECT count(*), max(n) FROM (SELECT row_number() OVER () AS n FROM {table})"),
        format!(
            "SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY p ORDER BY v, id) AS n FROM {table}) \
             WHERE n <= 2"
        ),
        format!("SELECT id FROM {table} QUALIFY row_number() OVER (PARTITION BY s ORDER BY t, id) = 1"),
        format!("SELECT id FROM {table} QUALIFY 3 > rank() OVER (PARTITION BY s ORDER BY v) AND id % 3 > 0"),
        format!("SELECT id FROM {table} QUALIFY rank() OVER (ORDER BY v) <= 0"),
        format!("SELECT DISTINCT ON (p) p, id, s, v + 1 FROM {table} ORDER BY p, v DESC NULLS LAST, id"),
        format!("SELECT DISTINCT ON (s, b) * FROM {table} ORDER BY s DESC, b, f, id DESC"),
        format!("SELECT DISTINCT ON (f) a.id, b.d FROM {table} a JOIN {table} b USING (f) ORDER BY f, a.t, a.id, b.id"),
        format!(
            "SELECT a.id, row_number() OVER (PARTITION BY a.p ORDER BY b.v, a.id, b.id), \
             sum(b.v) OVER (PARTITION BY a.p), max(b.id) OVER (PARTITION BY b.p ORDER BY a.id, b.id) \
             FROM {table} a JOIN {table} b ON a.v = b.v WHERE a.id < 100"
        ),
        format!("SELECT p, sum(sum(v)) OVER (ORDER BY p), rank() OVER (ORDER BY count(*)) FROM {table} GROUP BY p"),
    ]);
    queries
}

fn sorted(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let mut rows = rows(session, sql);
    rows.sort();
    rows
}

fn assert_same(session: &Session, name: &str, tables: &[&str]) {
    for table in tables {
        let queries = queries(table);
        rows(session, "SET atoll.window = 'off'");
        rows(session, "SET datafusion.execution.batch_size = 8192");
        let expected: Vec<_> = queries.iter().map(|sql| sorted(session, sql)).collect();
        rows(session, "SET atoll.window = 'auto'");
        for batch_size in [1, 2, 64, 8192] {
            rows(session, &format!("SET datafusion.execution.batch_size = {batch_size}"));
            for (sql, expected) in queries.iter().zip(&expected) {
                let found = sorted(session, sql);
                let differs =
                    found.iter().zip(expected).find(|(found, expected)| found != expected);
                assert!(
                    found.len() == expected.len() && differs.is_none(),
                    "{name}, batches of {batch_size}: {} rows for {}, {differs:?}\n{sql}",
                    found.len(),
                    expected.len(),
                );
            }
        }
    }
}

#[test]
fn any_number_of_workers_gives_the_results_of_datafusion() {
    for threads in [1, 2, 3, 8] {
        let session = with_workers(threads, Bytes(1 << 30));
        make_tables(&session);
        let tables: &[&str] =
            if threads == 2 { &["none", "one", "few", "many"] } else { &["many"] };
        assert_same(&session, &format!("{threads} workers"), tables);
    }
}

#[test]
fn machines_of_several_nodes_give_the_results_of_datafusion() {
    for machine in [machines::two_nodes(), machines::eight_uneven_nodes()] {
        let name = machine.name.clone();
        let session = fake(machine, Strategy::Aligned);
        make_tables(&session);
        assert_same(&session, &name, &["few", "many"]);
    }
}

fn plan(session: &Session, sql: &str) -> String {
    rows(session, &format!("EXPLAIN {sql}")).concat().join("\n")
}

#[test]
fn plans_show_which_operator_computes_a_window() {
    let session = live();
    make_tables(&session);
    for own in [
        "SELECT row_number() OVER (ORDER BY s, id) FROM many",
        "SELECT sum(v) OVER (PARTITION BY p ORDER BY t), lag(s) OVER (PARTITION BY p ORDER BY t) FROM many",
        "SELECT first_value(s) OVER (PARTITION BY p ORDER BY t ROWS 3 PRECEDING) FROM many",
        "SELECT avg(v) OVER (PARTITION BY p) FROM many",
        "SELECT avg(d) OVER (PARTITION BY p) FROM many",
        "SELECT max(s) OVER (PARTITION BY p) FROM many",
        "SELECT sum(v) OVER (ORDER BY v RANGE 2 PRECEDING) FROM many",
        "SELECT count(*) OVER (PARTITION BY p ORDER BY t RANGE INTERVAL '1 hour' PRECEDING) FROM many",
    ] {
        let plan = plan(&session, own);
        assert!(plan.contains("WindowExec: ") && !plan.contains("WindowAggExec"), "{own}\n{plan}");
        assert!(!plan.contains("SortExec"), "{own}\n{plan}");
    }
    for other in [
        "SELECT sum(v) FILTER (WHERE v > 0) OVER (PARTITION BY p ORDER BY t) FROM many",
        "SELECT count(DISTINCT v) OVER (PARTITION BY p ORDER BY t) FROM many",
        "SELECT lag(v) IGNORE NULLS OVER (PARTITION BY p ORDER BY t) FROM many",
        "SELECT first_value(v) IGNORE NULLS OVER (PARTITION BY p ORDER BY t) FROM many",
        "SELECT sum(v) OVER (ORDER BY s ROWS 2 PRECEDING EXCLUDE CURRENT ROW) FROM many",
        "SELECT sum(v) OVER (ORDER BY t RANGE INTERVAL '1 month' PRECEDING) FROM many",
        "SELECT lag(v, v) OVER (ORDER BY s) FROM many",
        "SELECT stddev(v) OVER (PARTITION BY p) FROM many",
        "SELECT row_number() OVER (ORDER BY s) FROM many LIMIT 10",
    ] {
        let plan = plan(&session, other);
        assert!(
            plan.contains("WindowAggExec") && !plan.contains("WindowExec: "),
            "{other}\n{plan}"
        );
    }
    let first =
        "SELECT id FROM many QUALIFY row_number() OVER (PARTITION BY p ORDER BY id DESC) = 1";
    assert!(plan(&session, first).contains("top=1"), "{}", plan(&session, first));
    rows(&session, "SET atoll.window = 'off'");
    assert!(plan(&session, first).contains("WindowAggExec"));
    let error = run(&session, "SET atoll.window = 'on'").unwrap_err().to_string();
    assert!(error.contains("invalid value 'on' for atoll.window; expected auto or off"), "{error}");
}

#[test]
fn a_sum_that_does_not_fit_fails_as_in_datafusion() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE large AS SELECT value AS id, 9223372036854775807 - value AS v, \
         99999999999999999999999999999999999999::DECIMAL(38, 0) AS d FROM generate_series(1, 4)",
    );
    for sql in [
        "SELECT sum(v) OVER (ORDER BY -id) FROM large",
        "SELECT sum(d) OVER (ORDER BY -id ROWS 1 PRECEDING) FROM large",
    ] {
        rows(&session, "SET atoll.window = 'off'");
        let expected = run(&session, sql).unwrap_err().to_string();
        rows(&session, "SET atoll.window = 'auto'");
        assert_eq!(run(&session, sql).unwrap_err().to_string(), expected);
    }
    // Each of these fits.
    let fits =
        "SELECT sum(v) OVER (ORDER BY -id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM large";
    let auto = rows(&session, fits);
    rows(&session, "SET atoll.window = 'off'");
    assert_eq!(rows(&session, fits), auto);
}

/// Where rows do not fit into memory DataFusion's operators go on with them, and the results are the same. No query
/// fails with twice the memory that DataFusion's operators need alone. With less, success depends on which worker comes
/// first, for DataFusion's operators as well.
#[test]
fn small_memory_gives_the_same_results() {
    let ample = with_workers(2, Bytes(1 << 30));
    let wide = "CREATE TABLE wide AS SELECT value AS id, value * 7919 % 400 AS p, \
         repeat('a long text ', 8) || value * 104729 % 60000 AS s FROM generate_series(1, 60000)";
    rows(&ample, wide);
    rows(&ample, "SET atoll.window = 'off'");
    let queries = [
        "SELECT sum(n * id % 1000) FROM (SELECT id, row_number() OVER (PARTITION BY p ORDER BY s, id) AS n, s FROM wide) \
         WHERE length(s) > 1",
        "SELECT sum(n * id % 1000) FROM (SELECT id, row_number() OVER (ORDER BY s, id) AS n, lag(s) OVER (ORDER BY s, id) \
         AS s FROM wide) WHERE length(s) > 1",
    ];
    let expected = queries.map(|sql| rows(&ample, sql));
    let (mut fallbacks, mut least) = ([0; 2], [None; 2]);
    for mebibytes in [24, 32, 36, 40, 48, 56, 64, 80, 96, 112, 128] {
        let session = with_workers(2, Bytes(mebibytes << 20));
        rows(&session, wide);
        for (at, sql) in queries.into_iter().enumerate() {
            rows(&session, "SET atoll.window = 'off'");
            if run(&session, sql).is_ok() {
                least[at].get_or_insert(mebibytes);
            }
            let is_enough = least[at].is_some_and(|least: u64| mebibytes >= 2 * least);
            rows(&session, "SET atoll.window = 'auto'");
            match run(&session, sql) {
                Ok(batches) => {
                    let found: Vec<_> = batches.iter().flat_map(texts).collect();
                    assert_eq!(found, expected[at], "{mebibytes} MiB: {sql}");
                }
                Err(error) => assert!(!is_enough, "{mebibytes} MiB: {sql}: {error}"),
            }
            if let Ok(plan) = run(&session, &format!("EXPLAIN ANALYZE {sql}")) {
                fallbacks[at] += usize::from(format!("{plan:?}").contains("fallbacks="));
            }
        }
    }
    assert!(fallbacks[0] > 0, "some memory is enough for DataFusion's operators alone");
}
