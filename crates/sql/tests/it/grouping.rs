//! GROUP BY by the primitives: the same groups as DataFusion's operators, whatever the variant.

use std::sync::Arc;

use atoll_placement::{LiveKernel, Strategy};
use atoll_sql::{DatabaseOptions, Session, tpch};
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine};

use crate::common::{fake, live, rows, run, session};

const METHODS: [&str; 4] = ["auto", "local", "ring", "migrate"];

/// Rows of every kind of key, with nulls, long strings among short ones, both zeros and NaN.
const TABLE: &str = "CREATE TABLE t AS SELECT \
    CASE WHEN value % 97 = 0 THEN NULL ELSE value * 7919 % 5003 END AS big, \
    arrow_cast(value % 251 - 125, 'Int8') AS tiny, \
    date '1995-01-01' + arrow_cast(value % 1000, 'Int32') AS day, \
    CASE WHEN value % 3 = 0 THEN NULL ELSE 'k' || (value % 7) END AS short, \
    CASE WHEN value > 39000 THEN 'a string longer than a word ' || (value % 5) ELSE 's' || (value % 5) END AS mixed, \
    CASE WHEN value % 11 = 0 THEN 'NaN'::DOUBLE WHEN value % 2 = 0 THEN 0.0 ELSE -0.0 END AS real, \
    arrow_cast(value % 13, 'Decimal128(9, 2)') AS price, \
    CASE WHEN value % 5 = 0 THEN NULL ELSE value END AS v, \
    arrow_cast(value, 'Decimal128(15, 2)') AS amount \
    FROM generate_series(1, 40000)";

const FUNCTIONS: &str = "count(*), count(v), sum(v), min(v), max(v), avg(v), sum(amount), \
    min(amount), max(day), avg(amount)";

fn grouped(session: &Session, method: &str, keys: &str) -> Vec<Vec<String>> {
    rows(session, &format!("SET atoll.aggregate = '{method}'"));
    let mut rows = rows(session, &format!("SELECT {keys}, {FUNCTIONS} FROM t GROUP BY {keys}"));
    rows.sort();
    rows
}

#[test]
fn every_variant_gives_the_groups_of_datafusions_operators() {
    for session in [
        live(),
        fake(machines::four_nodes(), Strategy::Aligned),
        fake(machines::eight_uneven_nodes(), Strategy::Interleave),
    ] {
        rows(&session, TABLE);
        let keys = [
            "big",
            "tiny",
            "day",
            "short",
            "mixed",
            "real",
            "price",
            "tiny, day",
            "short, tiny",
            "short, mixed",
            "tiny % 2, short",
            "v",
            "amount",
        ];
        for keys in keys {
            let expected = grouped(&session, "off", keys);
            for method in METHODS {
                let found = grouped(&session, method, keys);
                assert!(found == expected, "{method} by {keys} on {}", session.machine().name);
            }
        }
    }
}

const SETS: [&str; 9] = [
    "ROLLUP (short, tiny)",
    "CUBE (short, mixed, tiny % 3)",
    "GROUPING SETS ((short, tiny), (short), ())",
    "GROUPING SETS ((short), (tiny), (tiny, short))",
    "GROUPING SETS ((short), (tiny))",
    "GROUPING SETS ((), ())",
    "tiny % 2, ROLLUP (short)",
    "ROLLUP (real)",
    "CUBE (v % 3, v % 3)",
];

#[test]
fn grouping_sets_over_their_finest_set_are_those_of_the_rows() {
    for session in [live(), fake(machines::four_nodes(), Strategy::Aligned)] {
        rows(&session, TABLE);
        rows(&session, "CREATE TABLE none AS SELECT * FROM t LIMIT 0");
        rows(&session, "CREATE TABLE one AS SELECT * FROM t WHERE v = 4");
        for (table, sets) in ["t", "none", "one"].into_iter().flat_map(|t| SETS.map(|s| (t, s))) {
            for functions in [
                "count(*), count(v), sum(v), min(v), max(v), sum(amount), min(amount), max(day), min(mixed)",
                "grouping(short), count(*), sum(v), avg(amount)",
                "count(*) + 1, count(DISTINCT tiny), sum(v) FILTER (WHERE v > 100)",
                "sum(real), max(real)",
                "min(short)",
            ] {
                if functions.contains("grouping") && !sets.contains("(short") {
                    continue;
                }
                let sql = format!("SELECT {functions} FROM {table} GROUP BY {sets}");
                let found = ["off", "auto"].map(|method| {
                    rows(&session, &format!("SET atoll.aggregate = '{method}'"));
                    let mut rows = rows(&session, &sql);
                    rows.sort();
                    rows
                });
                assert_eq!(found[0], found[1], "{sql} on {}", session.machine().name);
            }
        }
        let sql = "EXPLAIN SELECT short, sum(v) FROM t GROUP BY ROLLUP (short, tiny)";
        assert!(rows(&session, sql).concat().concat().contains("GroupExec: gby=[short"));
    }
}

#[test]
fn a_string_too_long_for_a_word_that_comes_late_is_a_group_like_others() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT CASE WHEN value = 90000 THEN 'far too long for one word' \
         ELSE 'g' || (value % 3) END AS k, 1 AS v FROM generate_series(1, 100000)",
    );
    for method in METHODS {
        rows(&session, &format!("SET atoll.aggregate = '{method}'"));
        let found = rows(&session, "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k");
        let expected =
            [["far too long for one word", "1"], ["g0", "33332"], ["g1", "33334"], ["g2", "33333"]];
        assert_eq!(found, expected, "{method}");
    }
}

#[test]
fn no_rows_give_no_groups_and_one_row_gives_one() {
    let session = live();
    rows(&session, "CREATE TABLE t (k BIGINT, v BIGINT)");
    for method in METHODS {
        rows(&session, &format!("SET atoll.aggregate = '{method}'"));
        let none = rows(&session, "SELECT k, sum(v) FROM t GROUP BY k");
        assert_eq!(none, Vec::<Vec<String>>::new(), "{method}");
    }
    rows(&session, "INSERT INTO t VALUES (NULL, 5)");
    for method in METHODS {
        rows(&session, &format!("SET atoll.aggregate = '{method}'"));
        assert_eq!(rows(&session, "SELECT k, sum(v) FROM t GROUP BY k"), [["NULL", "5"]]);
    }
}

#[test]
fn a_sum_that_overflows_on_its_way_only_is_right_and_one_that_ends_beyond_its_type_is_an_error() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT value % 2 AS k, CASE WHEN value <= 10 THEN 9223372036854775807 \
         ELSE -9223372036854775807 END AS v FROM generate_series(1, 20)",
    );
    for method in METHODS {
        rows(&session, &format!("SET atoll.aggregate = '{method}'"));
        let sums = rows(&session, "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k");
        assert_eq!(sums, [["0", "0"], ["1", "0"]], "{method}");
        let error = run(&session, "SELECT k, sum(v) FROM t WHERE v > 0 GROUP BY k").unwrap_err();
        assert!(error.to_string().contains("sum(t.v) overflows BIGINT"), "{method}: {error}");
    }
}

#[test]
fn explain_names_the_variant_and_the_reason() {
    let session = live();
    rows(&session, TABLE);
    let plan = |sql: &str| rows(&session, sql).concat().join("\n");
    let text = plan("EXPLAIN SELECT day, sum(v) FROM t GROUP BY day");
    assert!(text.contains("GroupExec: gby=[day], aggr=[sum(t.v)]"), "{text}");
    assert!(text.contains("variant=auto, reason=the first rows decide"), "{text}");
    assert!(!text.contains("RepartitionExec: partitioning=Hash"), "{text}");
    let text = plan("EXPLAIN ANALYZE SELECT day, sum(v) FROM t GROUP BY day");
    assert!(text.contains("variant=local, reason="), "{text}");
    rows(&session, "SET atoll.aggregate = 'migrate'");
    let text = plan("EXPLAIN ANALYZE SELECT day, sum(v) FROM t GROUP BY day");
    assert!(text.contains("variant=migrate, reason="), "{text}");
    rows(&session, "SET atoll.aggregate = 'off'");
    let text = plan("EXPLAIN SELECT day, sum(v) FROM t GROUP BY day");
    assert!(!text.contains("GroupExec"), "{text}");
    let error = run(&session, "SET atoll.aggregate = 'rings'").unwrap_err().to_string();
    assert!(error.contains("expected auto, local, ring, migrate or off"), "{error}");
}

/// Strings with a common prefix, of the lengths around those of a view, empty ones and nulls; few, some and more than
/// one table of an input holds.
#[test]
fn many_long_strings_are_the_groups_of_datafusions_operators() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT CASE WHEN value % 101 = 0 THEN NULL WHEN value % 103 = 0 THEN '' \
         WHEN value % 7 = 0 THEN left('abcdefghijklmnop', value % 17) \
         ELSE 'all of them begin like this ' || value END AS every, \
         'all of them begin like this ' || (value % 3000) AS some, \
         CASE WHEN value % 10 < 9 THEN 'the one that is far more frequent' ELSE 'other ' || value END \
         AS skewed, value % 7 AS few, value AS v FROM generate_series(1, 200000)",
    );
    for keys in ["every", "some", "skewed", "some, few", "every, some", "few, skewed"] {
        let first = keys.split(", ").next().unwrap();
        let sql = format!(
            "SELECT count(*), sum(n), sum(s), count({first}), min({first}), max({first}), \
             sum(n * n), bit_xor(s * n) FROM (SELECT {keys}, count(*) AS n, sum(v) AS s FROM t GROUP BY {keys})"
        );
        rows(&session, "SET atoll.aggregate = 'off'");
        let expected = rows(&session, &sql);
        for method in METHODS {
            rows(&session, &format!("SET atoll.aggregate = '{method}'"));
            let plan = rows(&session, &format!("EXPLAIN {sql}")).concat().join("");
            assert!(plan.contains("GroupExec"), "{method} by {keys}: {plan}");
            assert_eq!(rows(&session, &sql), expected, "{method} by {keys}");
        }
    }
}

#[test]
fn values_of_any_type_are_counted_by_group_and_distinct_ones_too() {
    let session = live();
    rows(&session, TABLE);
    rows(&session, "CREATE TABLE u AS SELECT *, make_array(v) AS list FROM t");
    let sql = "SELECT tiny, count(short), count(mixed), count(list), count(NULL), count(short = 'k1'), count(*), \
               count(DISTINCT mixed) FROM u GROUP BY tiny ORDER BY tiny";
    let plan = |sql: &str| rows(&session, &format!("EXPLAIN {sql}")).concat().join("");
    let without = sql.replace("count(DISTINCT mixed)", "sum(v)");
    let distinct = "SELECT tiny, count(DISTINCT mixed) FROM u GROUP BY tiny ORDER BY tiny";
    for sql in [&without[..], distinct] {
        let text = plan(sql);
        assert!(text.contains("GroupExec") && !text.contains("AggregateExec"), "{text}");
    }
    for sql in [sql, &without, distinct] {
        rows(&session, "SET atoll.aggregate = 'auto'");
        let found = rows(&session, sql);
        rows(&session, "SET atoll.aggregate = 'off'");
        assert_eq!(found, rows(&session, sql), "{sql}");
    }
}

/// Keys far apart, strings and expressions: their range does not limit the number of groups.
#[test]
fn a_join_with_groups_builds_the_smaller_side() {
    let session = live();
    rows(
        &session,
        "CREATE TABLE facts AS SELECT value * 7919 % 1009 * 1000003 AS far, \
         'a string longer than a word ' || (value * 7919 % 1009) AS name, value AS v FROM generate_series(1, 400000)",
    );
    rows(
        &session,
        "CREATE TABLE listed AS SELECT value * 1000003 AS far, 'a string longer than a word ' || value AS name, \
         value AS n FROM generate_series(1, 150000)",
    );
    for key in ["far", "name", "far % 1000003000"] {
        let sql = format!(
            "SELECT count(*), sum(s), sum(n) FROM listed JOIN \
             (SELECT {key} AS k, sum(v) AS s FROM facts GROUP BY 1) g ON listed.{} = g.k",
            key.split(' ').next().unwrap()
        );
        rows(&session, "SET atoll.aggregate = 'auto'");
        let plan = rows(&session, &format!("EXPLAIN {sql}")).concat().join("\n");
        let at = |what: &str| plan.find(what).unwrap_or_else(|| panic!("{what} by {key}:\n{plan}"));
        let join = at("HashJoinExec");
        assert!(plan[join..].contains("mode=CollectLeft"), "{plan}");
        // The build side is shown first.
        assert!(join < at("GroupExec") && at("GroupExec") < at("table=listed"), "{key}:\n{plan}");
        let found = rows(&session, &sql);
        rows(&session, "SET atoll.aggregate = 'off'");
        assert_eq!(found, rows(&session, &sql), "{key}");
    }
}

#[test]
fn rows_that_come_grouped_are_not_collected() {
    let session = live();
    session
        .runtime()
        .block_on(tpch::load(&session, 0.01, &mut |_| {}))
        .expect("the tables are made");
    let sql = "SELECT count(*), sum(s), max(k) FROM (SELECT l_orderkey AS k, sum(l_quantity) AS s \
               FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 100)";
    let plan = rows(&session, &format!("EXPLAIN {sql}")).concat().join("\n");
    assert!(plan.contains("variant=runs, reason=rows come grouped by the key"), "{plan}");
    let found = rows(&session, sql);
    rows(&session, "SET atoll.aggregate = 'off'");
    assert_eq!(found, rows(&session, sql));
}

/// Newer values and rows that were restored are in separate chunks, next to those of the load.
#[test]
fn rows_that_changed_leave_their_table_cut_by_its_key() {
    let session = live();
    session
        .runtime()
        .block_on(tpch::load(&session, 0.01, &mut |_| {}))
        .expect("the tables are made");
    let by_key = "SELECT count(*), sum(s), max(k) FROM (SELECT l_orderkey AS k, sum(l_quantity) AS s \
                  FROM lineitem GROUP BY l_orderkey)";
    let joined = "SELECT count(*), sum(l_quantity), sum(o_orderkey % 7) FROM lineitem \
                  JOIN orders ON l_orderkey = o_orderkey WHERE o_orderkey % 3 = 1";
    let changes = [
        "UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey = 7",
        "UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey % 500 = 7",
        "CREATE TABLE gone AS SELECT * FROM lineitem WHERE l_orderkey % 20 = 5",
        "DELETE FROM lineitem WHERE l_orderkey % 20 = 5",
        "INSERT INTO lineitem SELECT * FROM gone",
        "UPDATE orders SET o_totalprice = 0 WHERE o_orderkey = 39",
    ];
    for change in changes {
        rows(&session, change);
        let plan = rows(&session, &format!("EXPLAIN {by_key}")).concat().join("\n");
        assert!(plan.contains("cut_by=l_orderkey"), "{change}: {plan}");
        for sql in [by_key, joined] {
            let found = rows(&session, sql);
            rows(&session, "SET atoll.aggregate = 'off'");
            let plain = rows(&session, sql);
            rows(&session, "SET atoll.aggregate = 'auto'");
            // A projection that hides the order of the key.
            let hidden =
                sql.replace("FROM lineitem", "FROM (SELECT DISTINCT * FROM lineitem) AS l");
            assert_eq!(found, plain, "{change}: {sql}");
            assert_eq!(found, rows(&session, &hidden), "{change}: {hidden}");
        }
    }
    assert_eq!(rows(&session, "SELECT count(*) FROM lineitem"), [["60175"]]);
}

#[test]
fn operators_above_get_the_partitions_they_ask_for() {
    for session in [live(), fake(machines::four_nodes(), Strategy::Aligned)] {
        rows(&session, TABLE);
        let sql = "SELECT count(*), sum(a.s), sum(b.n) FROM \
            (SELECT big AS k, sum(v) AS s FROM t GROUP BY big) a JOIN \
            (SELECT big AS k, count(*) AS n FROM t WHERE tiny > 0 GROUP BY big) b ON a.k = b.k \
            WHERE a.s > 1000";
        let found = rows(&session, sql);
        rows(&session, "SET atoll.aggregate = 'off'");
        assert_eq!(found, rows(&session, sql), "{}", session.machine().name);
    }
}

/// Two million groups take more than the limit in tables that cannot spill.
#[test]
fn groups_beyond_the_memory_limit_are_planned_again_with_operators_that_spill() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = DatabaseOptions { memory_limit: Bytes(60 << 20), ..DatabaseOptions::default() };
    let session = session(machine, Arc::new(LiveKernel::new()), options);
    let sql = "SELECT count(*), sum(s) FROM (SELECT value * 7919 % 2000003 AS k, sum(value) AS s \
               FROM generate_series(1, 2000000) GROUP BY 1)";
    assert_eq!(rows(&session, sql), [["2000000", "2000001000000"]]);
}

/// A million long strings take more than the limit, twice.
#[test]
fn strings_beyond_the_memory_limit_are_planned_again_with_operators_that_spill() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options = DatabaseOptions { memory_limit: Bytes(60 << 20), ..DatabaseOptions::default() };
    let session = session(machine, Arc::new(LiveKernel::new()), options);
    let sql = "SELECT count(*), sum(n), max(k) FROM (SELECT 'a string that is its own and long ' || value AS k, \
               count(*) AS n FROM generate_series(1, 1000000) GROUP BY 1)";
    let expected = ["1000000", "1000000", "a string that is its own and long 999999"];
    assert_eq!(rows(&session, sql), [expected]);
}
