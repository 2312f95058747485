//! FOREIGN KEY constraints: random rows compared with a naive model, concurrent sessions, and contents of a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::{DatabaseOptions, Session, SqlError};
use atoll_topology::Machine;

use crate::common::{live, rows, run};

/// A session of the same database.
fn beside(session: &Session) -> Session {
    session.database().session().expect("a session")
}

fn code<T>(result: Result<T, SqlError>) -> String {
    result.err().map(|error| error.state.code().to_owned()).unwrap_or_default()
}

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const ACTIONS: [&str; 5] = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];

/// Three tables, each of which refers to the one before: rows by key, with the keys that they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    tables: [BTreeMap<i64, Option<i64>>; 3],
}

/// Rows by their old keys, with their new keys and references, or None for deleted ones.
type Changed = BTreeMap<i64, Option<(i64, Option<i64>)>>;

/// The statement would violate a constraint.
#[derive(Debug)]
struct Refused;

impl Model {
    /// Gives rows other keys and references, or deletes them.
    fn change(
        &mut self,
        table: usize,
        changed: &Changed,
        actions: &[(&str, &str); 3],
    ) -> Result<(), Refused> {
        for key in changed.keys() {
            self.tables[table].remove(key);
        }
        for (key, refers) in changed.values().flatten() {
            if self.tables[table].insert(*key, *refers).is_some() {
                return Err(Refused);
            }
        }
        let child = table + 1;
        if child == self.tables.len() {
            return Ok(());
        }
        let (on_delete, on_update) = actions[child];
        let mut gone = BTreeMap::new();
        for (key, after) in changed {
            let new = after.map(|(new, _)| new);
            if new == Some(*key) {
                continue;
            }
            let action = if new.is_some() { on_update } else { on_delete };
            let referring: Vec<i64> = self.tables[child]
                .iter()
                .filter(|(_, refers)| **refers == Some(*key))
                .map(|(row, _)| *row)
                .collect();
            for row in referring {
                match action {
                    "RESTRICT" => return Err(Refused),
                    "CASCADE" if new.is_none() => drop(gone.insert(row, None)),
                    "CASCADE" => drop(self.tables[child].insert(row, new)),
                    "SET NULL" => drop(self.tables[child].insert(row, None)),
                    "SET DEFAULT" => drop(self.tables[child].insert(row, Some(0))),
                    _ => {}
                }
            }
        }
        self.change(child, &gone, actions)
    }

    fn is_sound(&self) -> bool {
        let pairs = self.tables.iter().zip(&self.tables[1..]);
        let mut refers = pairs
            .flat_map(|(parent, child)| child.values().flatten().map(move |key| (parent, key)));
        refers.all(|(parent, key)| parent.contains_key(key))
    }
}

/// A random statement, and its effect on the model.
fn statement(numbers: &mut Numbers, model: &Model) -> (String, usize, Changed) {
    let table = numbers.below(3) as usize;
    let name = ["t0", "t1", "t2"][table];
    let key = |numbers: &mut Numbers| numbers.below(12) as i64;
    let refers = |numbers: &mut Numbers| match (table, numbers.below(4)) {
        (0, _) | (_, 0) => None,
        _ => Some(key(numbers)),
    };
    let sql_of = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
    match numbers.below(5) {
        0 | 1 => {
            let mut new = BTreeMap::new();
            for _ in 0..=numbers.below(3) {
                new.insert(key(numbers), refers(numbers));
            }
            let values: Vec<String> =
                new.iter().map(|(key, refers)| format!("({key}, {})", sql_of(*refers))).collect();
            // Existing rows would conflict: the model gets the new rows by keys that no row had.
            let rows = new.iter().map(|(key, refers)| (-1 - key, Some((*key, *refers)))).collect();
            (format!("INSERT INTO {name} VALUES {}", values.join(", ")), table, rows)
        }
        2 => {
            let (part, of) = (numbers.below(3) as i64, numbers.pick(&[3, 5]));
            let found = model.tables[table].keys().filter(|key| *key % of == part);
            let rows = found.map(|key| (*key, None)).collect();
            (format!("DELETE FROM {name} WHERE id % {of} = {part}"), table, rows)
        }
        3 => {
            let (from, to) = (key(numbers), key(numbers));
            let there = model.tables[table].get(&from);
            let rows = there.map(|refers| (from, Some((to, *refers)))).into_iter().collect();
            (format!("UPDATE {name} SET id = {to} WHERE id = {from}"), table, rows)
        }
        _ => {
            let (first, to) = (key(numbers), refers(numbers));
            let found = model.tables[table].keys().filter(|key| **key >= first);
            let rows = found.map(|key| (*key, Some((*key, to)))).collect();
            let to = sql_of(to);
            (format!("UPDATE {name} SET refers = {to} WHERE id >= {first}"), table, rows)
        }
    }
}

fn contents(session: &Session) -> Model {
    let mut model = Model::default();
    for (table, of_model) in ["t0", "t1", "t2"].iter().zip(&mut model.tables) {
        for row in rows(session, &format!("SELECT id, refers FROM {table}")) {
            let number = |text: &str| text.parse().ok();
            of_model.insert(number(&row[0]).expect("a key"), number(&row[1]));
        }
    }
    model
}

#[test]
fn random_statements_match_a_naive_model() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..24 {
        let session = live();
        let mut action = || (numbers.pick(&ACTIONS), numbers.pick(&ACTIONS));
        let actions = [("", ""), action(), action()];
        rows(&session, "CREATE TABLE t0 (id INT PRIMARY KEY, refers INT)");
        for (child, (on_delete, on_update)) in actions.iter().enumerate().skip(1) {
            let create = format!(
                "CREATE TABLE t{child} (id INT PRIMARY KEY, refers INT DEFAULT 0 REFERENCES t{} \
                 ON DELETE {on_delete} ON UPDATE {on_update})",
                child - 1
            );
            rows(&session, &create);
        }
        let mut model = Model::default();
        for _ in 0..60 {
            let (sql, table, changed) = statement(&mut numbers, &model);
            let mut after = model.clone();
            let done = after.change(table, &changed, &actions).is_ok() && after.is_sound();
            let result = run(&session, &sql);
            let told = result.as_ref().err().map(ToString::to_string);
            assert_eq!(
                result.is_ok(),
                done,
                "round {round} {actions:?}\n{sql}\n{model:?}\n{told:?}"
            );
            if done {
                model = after;
            }
            assert_eq!(contents(&session), model, "round {round} {actions:?}\n{sql}");
        }
    }
}

/// A parent with keys from 1 to 8, and a table that refers to it.
fn family(action: &str) -> Session {
    let session = live();
    rows(&session, "CREATE TABLE p (id INT PRIMARY KEY, n INT)");
    rows(&session, &format!("CREATE TABLE c (p INT REFERENCES p ON DELETE {action})"));
    rows(&session, "INSERT INTO p SELECT value, 0 FROM generate_series(1, 8)");
    session
}

const ORPHANS: &str = "SELECT count(*) FROM c WHERE p IS NOT NULL AND p NOT IN (SELECT id FROM p)";

#[test]
fn a_violation_names_its_key_and_its_constraint() {
    let session = family("NO ACTION");
    let error = run(&session, "INSERT INTO c VALUES (9)").expect_err("no parent");
    assert_eq!(
        (error.state.code(), error.detail()),
        ("23503", Some("Key (p)=(9) is not present in table \"p\"."))
    );
    let violated = error.violated().expect("a constraint");
    assert_eq!((&*violated.schema, &*violated.table), ("public", "c"));
    assert_eq!(violated.constraint.as_deref(), Some("c_p_fkey"));
    rows(&session, "INSERT INTO c VALUES (3)");
    let error = run(&session, "DELETE FROM p WHERE id = 3").expect_err("a child");
    let detail = "Key (id)=(3) is still referenced from table \"c\".";
    assert_eq!((error.state.code(), error.detail()), ("23503", Some(detail)));
    assert!(error.message.contains("on table \"p\"") && error.message.ends_with("on table \"c\""));
}

/// The outcome of a statement of one session that waits until another one ends its transaction.
fn while_ending(ending: &Session, end: &str, waiting: &Session, sql: &str) -> Result<(), SqlError> {
    ending.runtime().block_on(async {
        let wait = async { waiting.run(sql).await?.collect().await.map(drop) };
        let end = async { ending.run(end).await.map(drop) };
        let (waited, ended) = futures::join!(wait, end);
        ended.expect("it ends");
        waited
    })
}

#[test]
fn whichever_of_child_and_parent_waits_looks_at_what_is_there_then() {
    let session = family("NO ACTION");
    let other = beside(&session);
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (1)");
    let delete = "DELETE FROM p WHERE id = 1";
    assert_eq!(code(while_ending(&session, "COMMIT", &other, delete)), "23503");
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (2)");
    let delete = "DELETE FROM p WHERE id = 2";
    assert_eq!(code(while_ending(&session, "ROLLBACK", &other, delete)), "");
    rows(&session, "BEGIN");
    rows(&session, "DELETE FROM p WHERE id = 3");
    let insert = "INSERT INTO c VALUES (3)";
    assert_eq!(code(while_ending(&session, "COMMIT", &other, insert)), "23503");
    rows(&session, "BEGIN");
    rows(&session, "DELETE FROM p WHERE id = 4");
    let insert = "INSERT INTO c VALUES (4)";
    assert_eq!(code(while_ending(&session, "ROLLBACK", &other, insert)), "");
    rows(&session, "BEGIN");
    rows(&session, "UPDATE c SET p = 5 WHERE p = 4");
    let delete = "DELETE FROM p WHERE id = 4";
    assert_eq!(code(while_ending(&session, "COMMIT", &other, delete)), "", "the child moved on");
    assert_eq!(rows(&session, ORPHANS), [["0"]]);
}

#[test]
fn new_children_and_changes_of_other_columns_do_not_wait_for_each_other() {
    let session = family("NO ACTION");
    let (other, third) = (beside(&session), beside(&session));
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (1)");
    rows(&other, "BEGIN");
    rows(&other, "INSERT INTO c VALUES (1)");
    rows(&third, "UPDATE p SET n = n + 1 WHERE id = 1");
    rows(&session, "COMMIT");
    rows(&other, "COMMIT");
    assert_eq!(rows(&session, "SELECT count(*), max(n) FROM c, p"), [["16", "1"]]);
}

#[test]
fn a_repeatable_read_does_not_refer_to_deleted_rows() {
    let session = family("CASCADE");
    let other = beside(&session);
    rows(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    rows(&other, "SELECT count(*) FROM p");
    rows(&session, "DELETE FROM p WHERE id = 1");
    assert_eq!(code(run(&other, "INSERT INTO c VALUES (1)")), "40001");
    rows(&other, "ROLLBACK");
    rows(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    rows(&other, "SELECT count(*) FROM p");
    rows(&session, "INSERT INTO c VALUES (2)");
    let delete = run(&other, "DELETE FROM p WHERE id = 2");
    assert_eq!(code(delete), "40001", "it would delete a row that it does not see");
    rows(&other, "ROLLBACK");
    assert_eq!(rows(&session, ORPHANS), [["0"]]);
}

#[test]
fn deletes_that_cascade_take_rows_that_came_while_they_waited() {
    let session = family("CASCADE");
    let other = beside(&session);
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (1), (2)");
    let deleted = while_ending(&session, "COMMIT", &other, "DELETE FROM p WHERE id = 1");
    assert_eq!(code(deleted), "");
    assert_eq!(rows(&session, "SELECT p FROM c"), [["2"]]);
}

/// Runs statements up to the first that fails because of another session.
fn try_all(session: &Session, statements: &[&str]) {
    for sql in statements {
        if let Err(error) = run(session, sql) {
            let code = error.state.code();
            assert!(["23503", "40001", "40P01"].contains(&code), "{sql}: {error}");
            // If COMMIT failed there is nothing to roll back.
            let _ = run(session, "ROLLBACK");
            return;
        }
    }
}

/// Inserts rows that refer to random parents, or deletes these and restores them.
fn insert_or_delete(session: &Session, begin: &str, seed: u64) {
    let mut numbers = Numbers(seed + 77);
    for _ in 0..40 {
        let id = 1 + numbers.below(8);
        if seed.is_multiple_of(2) {
            let insert = format!("INSERT INTO c VALUES ({id})");
            try_all(session, &[begin, &insert, "COMMIT"]);
        } else {
            let delete = format!("DELETE FROM p WHERE id = {id}");
            try_all(session, &[begin, &delete, "COMMIT"]);
            let back = format!("INSERT INTO p VALUES ({id}, 0) ON CONFLICT DO NOTHING");
            try_all(session, &[&back]);
        }
    }
}

#[test]
fn threads_that_insert_and_delete_leave_no_orphans() {
    for action in ["NO ACTION", "CASCADE", "SET NULL"] {
        for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
            let session = family(action);
            thread::scope(|scope| {
                for seed in 0..4 {
                    let session = beside(&session);
                    scope.spawn(move || insert_or_delete(&session, begin, seed));
                }
            });
            assert_eq!(rows(&session, ORPHANS), [["0"]], "{action} {begin}");
        }
    }
}

#[test]
fn checks_that_wait_for_commit_meet_other_sessions() {
    let session = live();
    let other = beside(&session);
    rows(&session, "CREATE TABLE p (id INT PRIMARY KEY)");
    rows(&session, "CREATE TABLE c (p INT REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    rows(&session, "INSERT INTO p VALUES (1)");
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (1), (2)");
    rows(&other, "DELETE FROM p WHERE id = 1");
    rows(&other, "INSERT INTO p VALUES (2)");
    assert_eq!(code(run(&session, "COMMIT")), "23503");
    assert_eq!(rows(&session, "SELECT count(*) FROM c"), [["0"]]);
    let altered = "ALTER TABLE c ADD COLUMN d INT";
    rows(&session, "BEGIN");
    rows(&session, "INSERT INTO c VALUES (3)");
    assert_eq!(code(run(&session, altered)), "55006");
    rows(&session, "ROLLBACK");
    rows(&session, altered);
}

fn open(runtime: &Runtime, directory: &Path) -> Session {
    let directory = Some(directory.to_owned());
    let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
    Session::new(runtime.clone(), options).expect("the directory is free")
}

const DEFINITIONS: &str = "SELECT conname, pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint \
                           WHERE contype = 'f' ORDER BY 1, 2";

#[test]
fn a_directory_keeps_foreign_keys_in_its_log_and_in_its_checkpoints() {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let runtime = Runtime::start(machine, Arc::new(LiveKernel::new()), RuntimeOptions::default());
    let runtime = runtime.expect("the pools start");
    let folder = tempfile::tempdir().expect("a directory");
    let session = open(&runtime, folder.path());
    for sql in [
        "CREATE TABLE p (x INT, y INT, PRIMARY KEY (x, y))",
        "CREATE TABLE c (a INT, b INT, CONSTRAINT k FOREIGN KEY (b, a) REFERENCES p (y, x) MATCH FULL \
         ON UPDATE CASCADE ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE d (x INT)",
        "INSERT INTO p VALUES (1, 2)",
        "INSERT INTO c VALUES (1, 2)",
    ] {
        rows(&session, sql);
    }
    let definitions = rows(&session, DEFINITIONS);
    assert_eq!(definitions.len(), 1);
    drop(session);
    for checkpoint in [false, true] {
        let session = open(&runtime, folder.path());
        assert_eq!(rows(&session, DEFINITIONS), definitions, "{checkpoint}");
        assert_eq!(code(run(&session, "INSERT INTO c VALUES (5, 5)")), "23503");
        rows(&session, "UPDATE p SET x = x + 1");
        assert_eq!(rows(&session, "SELECT a FROM c"), rows(&session, "SELECT x FROM p"));
        assert_eq!(code(run(&session, "DROP TABLE p")), "2BP01");
        if !checkpoint {
            rows(&session, "CHECKPOINT");
        }
    }
    let session = open(&runtime, folder.path());
    assert_eq!(rows(&session, DEFINITIONS), definitions);
    rows(&session, "DELETE FROM p");
    assert_eq!(rows(&session, "SELECT a, b FROM c"), [["NULL", "NULL"]]);
}

#[test]
fn an_exported_database_has_its_foreign_keys_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let exported = folder.path().join("all");
    let session = live();
    for sql in [
        "CREATE SCHEMA s",
        "CREATE TABLE z (id INT PRIMARY KEY, up INT REFERENCES z)",
        "CREATE TABLE a (z INT REFERENCES z ON DELETE CASCADE)",
        "CREATE TABLE s.a (z INT REFERENCES z DEFERRABLE)",
        "INSERT INTO z VALUES (1, 1), (2, 1)",
        "INSERT INTO a VALUES (2)",
    ] {
        rows(&session, sql);
    }
    rows(&session, &format!("EXPORT DATABASE TO '{}'", exported.display()));
    let copy = live();
    rows(&copy, &format!("IMPORT DATABASE FROM '{}'", exported.display()));
    assert_eq!(rows(&copy, DEFINITIONS), rows(&session, DEFINITIONS));
    let shown = rows(&session, "SHOW CREATE TABLE a").remove(0);
    assert!(shown.last().is_some_and(|text| text.contains("REFERENCES z(id) ON DELETE CASCADE")));
    rows(&copy, "DELETE FROM z WHERE id = 2");
    assert_eq!(rows(&copy, "SELECT count(*) FROM a"), [["0"]]);
}

#[test]
fn a_kept_plan_follows_foreign_keys_that_come_later() {
    let session = live();
    rows(&session, "CREATE TABLE p (id INT PRIMARY KEY)");
    rows(&session, "CREATE TABLE c (p INT, g INT GENERATED ALWAYS AS (p + 1) STORED)");
    rows(&session, "INSERT INTO p VALUES (1), (2), (3)");
    rows(&session, "INSERT INTO c (p) VALUES (1), (2), (3)");
    let texts: BTreeSet<Vec<String>> = session.runtime().block_on(async {
        let update =
            session.prepare("UPDATE p SET id = id + 10 WHERE id = $1").await.expect("it is");
        let run = async |id: i32| {
            let result = update.execute(&[id.into()]).await.expect("it runs");
            result.collect().await.expect("it ends");
        };
        run(1).await;
        let add = "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p ON UPDATE CASCADE";
        session.run("DELETE FROM c WHERE p = 1").await.expect("it runs");
        session.run(add).await.expect("it is added");
        run(2).await;
        run(3).await;
        let found = session.run("SELECT p, g FROM c").await.expect("it runs");
        let found = found.collect().await.expect("rows");
        found.iter().flat_map(crate::common::texts).collect()
    });
    let wanted = [["12", "13"], ["13", "14"]];
    assert_eq!(texts, wanted.map(|row| row.map(str::to_owned).to_vec()).into());
}

#[test]
fn refused_statements_have_the_codes_of_postgresql() {
    let session = family("NO ACTION");
    rows(&session, "CREATE VIEW v AS SELECT 1 AS id");
    rows(&session, "CREATE TEMP TABLE tp (id INT PRIMARY KEY)");
    for (sql, wanted) in [
        ("CREATE TABLE x (a INT REFERENCES missing)", "42P01"),
        ("CREATE TABLE x (a INT REFERENCES v)", "42809"),
        ("CREATE TABLE x (a INT REFERENCES p (n))", "42830"),
        ("CREATE TABLE x (a INT REFERENCES c)", "42704"),
        ("CREATE TABLE x (a INT REFERENCES p (missing))", "42703"),
        ("CREATE TABLE x (a TEXT REFERENCES p)", "42804"),
        ("CREATE TABLE x (a INT, FOREIGN KEY (a) REFERENCES p (id, n))", "42830"),
        ("CREATE TABLE x (a INT REFERENCES tp)", "42P16"),
        ("CREATE TEMP TABLE x (a INT REFERENCES p)", "42P16"),
        ("ALTER TABLE c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p", "42710"),
        ("ALTER TABLE p DROP CONSTRAINT p_pkey", "2BP01"),
        ("ALTER TABLE p DROP COLUMN id", "2BP01"),
        ("DROP TABLE p", "2BP01"),
        ("CREATE OR REPLACE TABLE p (id INT)", "2BP01"),
        ("TRUNCATE p", "0A000"),
        ("SET CONSTRAINTS missing DEFERRED", "42704"),
        ("SET CONSTRAINTS c_p_fkey DEFERRED", "42809"),
        ("SET CONSTRAINTS p_pkey DEFERRED", "42809"),
    ] {
        assert_eq!(code(run(&session, sql)), wanted, "{sql}");
    }
}
