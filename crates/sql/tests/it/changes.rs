//! DELETE and UPDATE against a list of rows.

use atoll_placement::Strategy;
use atoll_sql::Session;
use atoll_testkit::machines;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{fake, live, rows, run};

#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: i64,
    a: Option<i64>,
    s: String,
}

/// The expected table.
struct Model {
    rows: Vec<Row>,
    next: i64,
}

impl Model {
    fn insert(&mut self, count: i64) -> String {
        let (first, last) = (self.next, self.next + count - 1);
        self.rows.extend((first..=last).map(|id| Row {
            id,
            a: (id % 7 != 0).then_some(id % 1000),
            s: format!("row {}", id % 50),
        }));
        self.next += count;
        format!(
            "INSERT INTO t SELECT value, CASE WHEN value % 7 <> 0 THEN value % 1000 END, \
             'row ' || (value % 50) FROM generate_series({first}, {last})"
        )
    }

    fn delete(&mut self, picks: impl Fn(&Row) -> bool) -> usize {
        let before = self.rows.len();
        self.rows.retain(|row| !picks(row));
        before - self.rows.len()
    }

    fn update(&mut self, picks: impl Fn(&Row) -> bool, change: impl Fn(&mut Row)) -> usize {
        self.rows.iter_mut().filter(|row| picks(row)).map(change).count()
    }

    /// The result of a query over the whole table.
    fn summary(&self) -> Vec<String> {
        let values: Vec<i64> = self.rows.iter().filter_map(|row| row.a).collect();
        let text = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let sum = (!values.is_empty()).then(|| values.iter().sum());
        let ids = || self.rows.iter().map(|row| row.id);
        vec![
            self.rows.len().to_string(),
            values.len().to_string(),
            text(sum),
            text(values.iter().min().copied()),
            text(values.iter().max().copied()),
            text(ids().min()),
            text(ids().max()),
            self.rows.iter().filter(|row| row.s == "row 3").count().to_string(),
        ]
    }
}

const SUMMARY: &str = "SELECT count(*), count(a), sum(a), min(a), max(a), min(id), max(id), \
    count(CASE WHEN s = 'row 3' THEN 1 END) FROM t";

/// Changes both at random; the number of rows that the model changes, and the statement.
fn change(model: &mut Model, random: &mut StdRng) -> (usize, String) {
    let low = random.random_range(0..model.next + 10);
    let high = low + random.random_range(0..model.next / 4 + 2);
    let within = move |row: &Row| (low..high).contains(&row.id);
    let place = format!("id >= {low} AND id < {high}");
    match random.random_range(0..6) {
        0 => (model.delete(within), format!("DELETE FROM t WHERE {place}")),
        1 => {
            let digit = random.random_range(0..10);
            let picks = move |row: &Row| row.a.is_some_and(|a| a % 10 == digit) && within(row);
            (model.delete(picks), format!("DELETE FROM t WHERE a % 10 = {digit} AND {place}"))
        }
        2 => {
            let changed = model.update(within, |row| row.a = row.a.map(|a| a + 1));
            (changed, format!("UPDATE t SET a = a + 1 WHERE {place}"))
        }
        3 => {
            let picks = move |row: &Row| row.a.is_none() && within(row);
            let changed = model.update(picks, |row| {
                row.a = Some(row.id * 1_000_003);
                row.s = "row 3".to_owned();
            });
            let set = "a = id * 1000003, s = 'row 3'";
            (changed, format!("UPDATE t SET {set} WHERE a IS NULL AND {place}"))
        }
        4 => {
            let changed = model.update(within, |row| row.s = format!("{}, changed", row.s));
            (changed, format!("UPDATE t SET s = s || ', changed' WHERE {place}"))
        }
        _ => {
            let count = random.random_range(1..3_000);
            (count as usize, model.insert(count))
        }
    }
}

fn check(session: &Session, rows_first: i64, steps: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut model = Model { rows: Vec::new(), next: 0 };
    rows(session, "CREATE OR REPLACE TABLE t (id BIGINT NOT NULL, a BIGINT, s VARCHAR)");
    rows(session, &model.insert(rows_first));
    for step in 0..steps {
        let (changed, sql) = change(&mut model, &mut random);
        let place = format!("seed {seed}, step {step}: {sql}");
        assert_eq!(rows(session, &sql), [[changed.to_string()]], "{place}");
        assert_eq!(rows(session, SUMMARY), [model.summary()], "{place}");
    }
    let mut wanted = model.rows.clone();
    wanted.sort_by_key(|row| row.id);
    let wanted: Vec<Vec<String>> = wanted
        .into_iter()
        .map(|row| {
            let a = row.a.map_or("NULL".to_owned(), |a| a.to_string());
            vec![row.id.to_string(), a, row.s]
        })
        .collect();
    let found = rows(session, "SELECT id, a, s FROM t ORDER BY id");
    assert!(found == wanted, "seed {seed}: rows differ at the end");
}

#[test]
fn random_changes_match_a_list_of_rows() {
    let session = live();
    for seed in 0..6 {
        check(&session, 30_000, 25, seed);
    }
    for machine in [machines::four_nodes(), machines::eight_uneven_nodes()] {
        check(&fake(machine, Strategy::Aligned), 20_000, 15, 100);
    }
}

#[test]
fn changes_reach_over_chunks_and_stay_at_their_homes() {
    let session = fake(machines::four_nodes(), Strategy::Aligned);
    check(&session, 600_000, 6, 7);
    let homes =
        "SELECT count(*) FROM atoll.pages WHERE \"table\" = 't' AND wanted_node <> found_node";
    assert_eq!(rows(&session, homes), [["0"]]);
}

#[test]
fn new_values_lie_where_the_old_ones_did_under_every_placement() {
    for placement in ["aligned", "interleave", "spread", "local", "replicate"] {
        let session = fake(machines::four_nodes(), Strategy::Aligned);
        rows(&session, &format!("SET atoll.placement = '{placement}'"));
        rows(&session, "CREATE TABLE t AS SELECT value AS id FROM generate_series(1, 400000)");
        let homes = "SELECT found_node, sum(pages) FROM atoll.pages GROUP BY 1 ORDER BY 1";
        let before = rows(&session, homes);
        assert!(before.len() == 4 || placement != "interleave", "{placement}: {before:?}");
        assert_eq!(rows(&session, "UPDATE t SET id = id + 1"), [["400000"]]);
        assert_eq!(rows(&session, homes), before, "{placement}");
    }
}

#[test]
fn rows_that_are_found_often_take_the_memory_of_once() {
    let machine = std::sync::Arc::new(atoll_topology::Machine::discover().unwrap());
    let options = atoll_sql::DatabaseOptions {
        memory_limit: atoll_topology::Bytes(256 << 20),
        ..atoll_sql::DatabaseOptions::default()
    };
    let kernel = std::sync::Arc::new(atoll_placement::LiveKernel::new());
    let session = crate::common::session(machine, kernel, options);
    rows(
        &session,
        "CREATE TABLE t AS SELECT value AS id, value % 20 AS k, \
         'a longer text number that repeats itself ' || (value * 7919) AS u \
         FROM generate_series(1, 130000)",
    );
    rows(&session, "CREATE TABLE o AS SELECT value % 20 AS k FROM generate_series(1, 200)");
    let changed = rows(&session, "UPDATE t SET u = t.u || 'x' FROM o WHERE t.k = o.k");
    assert_eq!(changed, [["130000"]]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t WHERE u LIKE '%x'"), [["130000"]]);
}

#[test]
fn chunks_without_rows_give_their_memory_back() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT value AS id FROM generate_series(1, 300000)");
    let chunks = "SELECT rows, deleted_rows, chunks > 0 FROM atoll.tables WHERE \"table\" = 't'";
    // Too few to be folded.
    rows(&session, "DELETE FROM t WHERE id % 16 = 0");
    assert_eq!(rows(&session, chunks), [["281250", "18750", "true"]]);
    rows(&session, "DELETE FROM t");
    assert_eq!(rows(&session, chunks), [["0", "0", "false"]]);
}

#[test]
fn a_query_reads_the_rows_of_its_beginning() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT value AS id FROM generate_series(1, 200000)");
    let counted = session.runtime().block_on(async {
        let mut result = session.run("SELECT id FROM t").await?;
        session.run("DELETE FROM t WHERE id > 10").await?.collect().await?;
        session.run("UPDATE t SET id = -id").await?.collect().await?;
        let mut count = 0;
        while let Some(batch) = result.next().await? {
            count += batch.num_rows();
        }
        Ok::<_, atoll_sql::SqlError>(count)
    });
    assert_eq!(counted.unwrap(), 200_000);
    assert_eq!(rows(&session, "SELECT count(*), max(id) FROM t"), [["10", "-1"]]);
}

#[test]
fn of_two_changes_of_the_same_rows_one_happens_and_the_other_says_so() {
    let session = live();
    rows(&session, "CREATE TABLE t AS SELECT value AS id FROM generate_series(1, 50000)");
    let outcomes = std::thread::scope(|scope| {
        let one = || scope.spawn(|| run(&session, "UPDATE t SET id = id + 1").is_ok());
        let threads: Vec<_> = (0..4).map(|_| one()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let done = outcomes.iter().filter(|done| **done).count();
    assert!(done >= 1);
    let wanted = vec!["50000".to_owned(), (1 + done).to_string(), (50_000 + done).to_string()];
    assert_eq!(rows(&session, "SELECT count(*), min(id), max(id) FROM t"), [wanted]);
}
