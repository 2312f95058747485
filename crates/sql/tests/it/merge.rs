//! MERGE against a list of rows, from several sessions, prepared and explained.

use std::collections::BTreeMap;

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_testkit::machines;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{fake, live, rows, run, texts};

/// The action of a WHEN clause.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// `n = t.n * 2 + s.n`, or a new row with `s.n`.
    Write,
    Delete,
    Nothing,
}

/// `WHEN [NOT] MATCHED AND s.n % of = rest THEN …`
#[derive(Clone, Copy, Debug)]
struct Clause {
    is_matched: bool,
    of: i64,
    rest: i64,
    action: Action,
}

impl Clause {
    fn random(random: &mut StdRng) -> Self {
        let is_matched = random.random_bool(0.6);
        let of = random.random_range(2..5);
        let action = match random.random_range(0..4) {
            0 => Action::Nothing,
            1 if is_matched => Action::Delete,
            _ => Action::Write,
        };
        Self { is_matched, of, rest: random.random_range(0..of), action }
    }

    fn sql(self) -> String {
        let Self { is_matched, of, rest, action } = self;
        let not = if is_matched { "" } else { "NOT " };
        let action = match action {
            Action::Nothing => "DO NOTHING",
            Action::Delete => "DELETE",
            Action::Write if is_matched => "UPDATE SET n = t.n * 2 + s.n",
            Action::Write => "INSERT (n, id) VALUES (s.n, s.id)",
        };
        format!("WHEN {not}MATCHED AND s.n % {of} = {rest} THEN {action}")
    }
}

type Table = BTreeMap<i64, i64>;

/// The table after the statement, and the number of its rows; `None` if it changes a row twice or adds a key twice.
fn merged(table: &Table, source: &[(i64, i64)], clauses: &[Clause]) -> Option<(Table, usize)> {
    let (mut after, mut changed) = (table.clone(), BTreeMap::new());
    for (id, n) in source {
        let there = table.get(id);
        let applies =
            |clause: &&Clause| clause.is_matched == there.is_some() && n % clause.of == clause.rest;
        let Some(clause) = clauses.iter().find(applies) else { continue };
        if let Action::Nothing = clause.action {
            continue;
        }
        if changed.insert(*id, ()).is_some() {
            return None;
        }
        match (clause.action, there) {
            (Action::Delete, _) => drop(after.remove(id)),
            (_, Some(there)) => drop(after.insert(*id, there * 2 + n)),
            (_, None) => drop(after.insert(*id, *n)),
        }
    }
    Some((after, changed.len()))
}

fn check(session: &Session, keys: i64, steps: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut table = Table::new();
    rows(session, "CREATE OR REPLACE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    let mut failed = 0;
    for step in 0..steps {
        let mut source: Vec<(i64, i64)> = (0..random.random_range(0..keys))
            .map(|_| (random.random_range(0..keys), random.random_range(0..1000)))
            .collect();
        if random.random_bool(0.8) {
            source = source.into_iter().collect::<Table>().into_iter().collect();
        }
        let clauses: Vec<Clause> =
            (0..random.random_range(1..5)).map(|_| Clause::random(&mut random)).collect();
        let values: Vec<String> = source.iter().map(|(id, n)| format!("({id}, {n})")).collect();
        rows(session, "CREATE OR REPLACE TABLE s (id BIGINT, n BIGINT)");
        if !values.is_empty() {
            rows(session, &format!("INSERT INTO s VALUES {}", values.join(", ")));
        }
        let clauses_sql: Vec<String> = clauses.iter().map(|clause| clause.sql()).collect();
        let sql = format!("MERGE INTO t USING s ON t.id = s.id {}", clauses_sql.join(" "));
        let place = format!("seed {seed}, step {step}: {sql}");
        match merged(&table, &source, &clauses) {
            Some((after, count)) => {
                assert_eq!(rows(session, &sql), [[count.to_string()]], "{place}");
                table = after.into_iter().map(|(id, n)| (id, n % 1_000_000)).collect();
                rows(session, "UPDATE t SET n = n % 1000000 WHERE n >= 1000000");
            }
            None => {
                let error = run(session, &sql).expect_err(&place);
                assert!(["21000", "23505"].contains(&error.state.code()), "{place}: {error}");
                failed += 1;
            }
        }
        let wanted: Vec<Vec<String>> =
            table.iter().map(|(id, n)| vec![id.to_string(), n.to_string()]).collect();
        assert!(rows(session, "SELECT id, n FROM t ORDER BY id") == wanted, "{place}");
    }
    assert!(failed < steps, "seed {seed}: every statement failed");
}

#[test]
fn random_merges_match_a_list_of_rows() {
    let session = live();
    for seed in 0..4 {
        check(&session, 40, 40, seed);
    }
    check(&session, 20_000, 6, 50);
    check(&fake(machines::four_nodes(), Strategy::Aligned), 2_000, 10, 100);
}

#[test]
fn many_rows_are_written_as_chunks() {
    let session = fake(machines::four_nodes(), Strategy::Aligned);
    rows(&session, "CREATE TABLE t AS SELECT value AS id, 0 AS n FROM generate_series(1, 200000)");
    let merge = "MERGE INTO t USING generate_series(100001, 400000) AS s (id) ON t.id = s.id \
                 WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 2)";
    assert_eq!(rows(&session, merge), [["300000"]]);
    let counts = "SELECT n, count(*), min(id), max(id) FROM t GROUP BY n ORDER BY n";
    let wanted = [
        ["0", "100000", "1", "100000"],
        ["1", "100000", "100001", "200000"],
        ["2", "200000", "200001", "400000"],
    ];
    assert_eq!(rows(&session, counts), wanted);
    let delete = "MERGE INTO t USING t AS s ON t.id = s.id AND s.id % 2 = 0 \
                  WHEN MATCHED AND t.n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 3";
    assert_eq!(rows(&session, delete), [["200000"]]);
    let counts = "SELECT n, count(*) FROM t GROUP BY n ORDER BY n";
    let wanted = [["0", "50000"], ["1", "50000"], ["2", "100000"], ["3", "150000"]];
    assert_eq!(rows(&session, counts), wanted);
}

#[test]
fn sessions_that_merge_into_the_same_rows_lose_nothing() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 0), (2, 0)");
    let count = |session: Session| async move {
        for _ in 0..20 {
            let sql = "MERGE INTO t USING (VALUES (1), (2)) AS s (id) ON t.id = s.id \
                       WHEN MATCHED THEN UPDATE SET n = t.n + 1";
            session.run(sql).await.expect("it waits").collect().await.expect("it counts");
        }
    };
    let beside = || session.database().session().expect("a session");
    session.runtime().block_on(async {
        futures::join!(count(beside()), count(beside()), count(beside()));
    });
    assert_eq!(rows(&session, "SELECT n FROM t ORDER BY id"), [["60"], ["60"]]);
}

#[test]
fn a_repeatable_read_does_not_merge_into_rows_that_others_changed() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    rows(&session, "INSERT INTO t VALUES (1, 0)");
    let other = session.database().session().expect("a session");
    rows(&session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    rows(&session, "SELECT * FROM t");
    rows(&other, "UPDATE t SET n = 1");
    let merge = "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE";
    assert_eq!(run(&session, merge).expect_err("it is refused").state.code(), "40001");
    rows(&session, "ROLLBACK");
    assert_eq!(rows(&session, "SELECT n FROM t"), [["1"]]);
}

#[test]
fn prepared_merges_take_parameters_of_their_columns_types() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, d DATE)");
    let sql = "MERGE INTO t USING (SELECT $1::BIGINT AS id) AS s ON t.id = s.id \
               WHEN MATCHED THEN UPDATE SET n = $2 WHEN NOT MATCHED THEN INSERT VALUES (s.id, $2, $3)";
    session.runtime().block_on(async {
        let statement = session.prepare(sql).await.expect("it is prepared");
        for n in [5_i32, 6] {
            let values = [ScalarValue::from(1_i64), n.into(), ScalarValue::Date32(Some(0))];
            let result = statement.execute(&values).await.expect("it runs");
            let batches = result.collect().await.expect("it ends");
            assert_eq!(batches.iter().flat_map(texts).collect::<Vec<_>>(), [["1"]]);
        }
    });
    assert_eq!(rows(&session, "SELECT * FROM t"), [["1", "6", "1970-01-01"]]);
}

#[test]
fn explain_shows_the_actions_and_changes_nothing() {
    let session = live();
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)");
    let merge = "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)";
    let shown = rows(&session, &format!("EXPLAIN {merge}"));
    let shown: Vec<String> = shown.into_iter().flatten().collect();
    assert!(shown.join("\n").contains("MergeExec: table=t, actions=[delete, insert]"), "{shown:?}");
    assert_eq!(rows(&session, "SELECT count(*) FROM t"), [["0"]]);
    rows(&session, &format!("EXPLAIN ANALYZE {merge}"));
    assert_eq!(rows(&session, "SELECT count(*) FROM t"), [["1"]]);
    let result = session.runtime().block_on(async {
        let result = session.run(merge).await.expect("it runs");
        result.collect().await.expect("it ends")
    });
    assert_eq!(texts(&result[0]), [["1"]]);
}
