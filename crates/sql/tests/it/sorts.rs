//! The sort of many rows by all workers gives the order of DataFusion's sort: by keys of all kinds, with any number of
//! workers, and where memory is short.

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_testkit::machines;
use atoll_topology::Bytes;

use crate::common::{fake, live, rows, run, texts, with_workers};

/// `id` differs in each row, and makes orders total.
const COLUMNS: &str = "value AS id, \
    CASE WHEN value % 13 = 0 THEN NULL WHEN value % 7 < 5 THEN 'a text with the same beginning ' || value % 401 \
        WHEN value % 7 = 5 THEN '' ELSE 'ä' || value % 3 END AS s, \
    CASE WHEN value % 6 = 0 THEN NULL ELSE value * 7919 % 100 - 50 END AS v, \
    CASE WHEN value % 9 = 0 THEN NULL WHEN value % 5 = 0 THEN 'NaN' WHEN value % 8 = 0 THEN '-Infinity' \
        WHEN value % 7 = 0 THEN '-0.0' ELSE (value * 31 % 17 / 4.0)::VARCHAR END::DOUBLE AS f, \
    CASE WHEN value % 4 = 0 THEN NULL ELSE (value * 53 % 1000 - 500) / 10.0 END::DECIMAL(12, 2) AS d, \
    (value * 1000003 % 977)::DECIMAL(38, 0) * 100000000000000000000 AS w, \
    value * 17 % 3 = 1 AS b, \
    DATE '2024-01-01' + (value * 41 % 30)::INTEGER AS day, \
    [value % 3, value % 2] AS l, \
    TIMESTAMP '2024-01-01' + value * 77 % 50 * INTERVAL '1 hour' AS t";

fn make_table(session: &Session, name: &str, count: usize) {
    let from = format!("SELECT {COLUMNS} FROM generate_series(1, {count})");
    rows(session, &format!("CREATE TABLE {name} AS {from}"));
}

const ORDERS: [&str; 15] = [
    "id",
    "id / 64, id",
    "id DESC",
    "s, id",
    "s DESC NULLS FIRST, id DESC",
    "v NULLS FIRST, id",
    "f, id",
    "f DESC NULLS LAST, s, id",
    "d DESC, id",
    "w, id",
    "w DESC, s, t, id",
    "b, day DESC, t NULLS FIRST, s, v, id",
    "v % 3, length(s), id",
    "l DESC, id",
    "random() * 0, id",
];

/// The orders over all columns, over some, and over what operators compute.
fn queries() -> Vec<String> {
    let mut queries: Vec<String> =
        ORDERS.iter().map(|order| format!("SELECT * FROM many ORDER BY {order}")).collect();
    queries.extend([
        "SELECT id FROM many ORDER BY s, id OFFSET 39990".to_owned(),
        "SELECT v FROM many ORDER BY s, id".to_owned(),
        "SELECT s, t, id AS number, id FROM many ORDER BY t, s DESC, id".to_owned(),
        "SELECT w, b, d FROM many ORDER BY b, d NULLS FIRST, w, id".to_owned(),
        "SELECT * FROM (SELECT id, s FROM many ORDER BY f, id) AS a ORDER BY s, id".to_owned(),
        "SELECT a.id, b.s FROM many a JOIN many b ON a.id = b.id + 1 ORDER BY b.s, a.id".to_owned(),
        "SELECT id, s FROM many UNION ALL SELECT -id, s FROM many ORDER BY s, id".to_owned(),
        "SELECT array_agg(id)[1:5] FROM (SELECT id FROM many ORDER BY s, id)".to_owned(),
    ]);
    queries
}

fn assert_same(session: &Session, name: &str) {
    for sql in queries() {
        rows(session, "SET atoll.sort = 'off'");
        let expected = rows(session, &sql);
        rows(session, "SET atoll.sort = 'auto'");
        let found = rows(session, &sql);
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert!(
            found.len() == expected.len() && differs.is_none(),
            "{name}: {} rows for {}, the first that differs is {differs:?}\n{sql}",
            found.len(),
            expected.len(),
        );
    }
}

#[test]
fn any_number_of_workers_gives_the_order_of_datafusion() {
    for threads in [1, 2, 5] {
        let session = with_workers(threads, Bytes(1 << 30));
        make_table(&session, "many", 40_000);
        assert_same(&session, &format!("{threads} workers"));
    }
}

#[test]
fn machines_of_several_nodes_give_the_order_of_datafusion() {
    for machine in [machines::two_nodes(), machines::eight_uneven_nodes()] {
        let name = machine.name.clone();
        let session = fake(machine, Strategy::Aligned);
        make_table(&session, "many", 40_000);
        assert_same(&session, &name);
    }
}

fn plan(session: &Session, sql: &str) -> String {
    rows(session, &format!("EXPLAIN {sql}")).concat().join("\n")
}

#[test]
fn plans_show_which_operator_sorts() {
    let session = live();
    make_table(&session, "many", 40_000);
    make_table(&session, "few", 400);
    for own in [
        "SELECT * FROM many ORDER BY s",
        "SELECT id FROM many ORDER BY f DESC OFFSET 100",
        "SELECT s, id FROM many ORDER BY s, id",
        "SELECT s, id FROM many ORDER BY t, b DESC",
    ] {
        let plan = plan(&session, own);
        let is_own = plan.contains("GatheredSortExec: ") && !plan.contains(" SortExec");
        assert!(is_own && !plan.contains("SortPreservingMergeExec"), "{own}\n{plan}");
    }
    for other in [
        "SELECT * FROM few ORDER BY s",
        "SELECT * FROM many ORDER BY s LIMIT 10",
        "SELECT * FROM many ORDER BY s LIMIT 10 OFFSET 100",
    ] {
        let plan = plan(&session, other);
        assert!(!plan.contains("GatheredSortExec"), "{other}\n{plan}");
    }
    rows(&session, "SET atoll.sort = 'off'");
    assert!(!plan(&session, "SELECT * FROM many ORDER BY s").contains("GatheredSortExec"));
    let error = run(&session, "SET atoll.sort = 'on'").unwrap_err().to_string();
    assert!(error.contains("invalid value 'on' for atoll.sort; expected auto or off"), "{error}");
}

/// Where rows do not fit into memory DataFusion's sort, which spills, goes on with them.
#[test]
fn small_memory_gives_the_same_order() {
    let wide = "CREATE TABLE wide AS SELECT value AS id, \
        repeat('a long text ', 8) || value * 104729 % 60000 AS s FROM generate_series(1, 60000)";
    let sql = "SELECT s, id FROM wide ORDER BY s, id OFFSET 59000";
    let ample = with_workers(2, Bytes(1 << 30));
    rows(&ample, wide);
    rows(&ample, "SET atoll.sort = 'off'");
    let expected = rows(&ample, sql);
    let mut successes = 0;
    for mebibytes in [16, 24, 32, 40, 48, 56, 64, 96, 128] {
        let session = with_workers(2, Bytes(mebibytes << 20));
        // Small batches are gathered around DataFusion's sort.
        rows(&session, "SET datafusion.execution.batch_size = 8192");
        rows(&session, wide);
        match run(&session, sql) {
            Ok(batches) => {
                let found: Vec<_> = batches.iter().flat_map(texts).collect();
                assert_eq!(found, expected, "{mebibytes} MiB");
                successes += 1;
            }
            Err(error) => assert!(mebibytes < 96, "{mebibytes} MiB: {error}"),
        }
    }
    assert!(successes >= 2, "some memory is enough");
}
