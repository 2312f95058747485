//! Cached plans end when what they depend on changes: the definitions of tables, what names mean, settings, variables
//! and rights. Statements are run in all ways that cache plans: as text, by EXECUTE, and prepared by a client.

use atoll_sql::{Identity, PreparedStatement, Session, SqlError};

use crate::common::{live, rows, run, texts};

/// A statement of a session with the key `$1`, in the ways in which plans are cached.
struct Cached<'s> {
    session: &'s Session,
    sql: &'s str,
    name: String,
    prepared: PreparedStatement,
}

impl<'s> Cached<'s> {
    fn new(session: &'s Session, sql: &'s str) -> Self {
        let name = format!("p{}", sql.bytes().map(u64::from).sum::<u64>());
        rows(session, &format!("PREPARE {name} AS {sql}"));
        let prepared = session.runtime().block_on(session.prepare(sql)).expect(sql);
        let cached = Self { session, sql, name, prepared };
        // Whichever way is first, its plan is there for the others.
        (0..3).for_each(|_| drop(cached.all()));
        cached
    }

    /// The rows for the key 1, or the code of the error, in each way.
    fn all(&self) -> [String; 4] {
        let run = |sql: &str| outcome(run(self.session, sql));
        let value = [1_i64.into()];
        let again = self
            .session
            .runtime()
            .block_on(async { self.prepared.execute(&value).await?.collect().await });
        let anew = self.session.runtime().block_on(async {
            self.session.prepare(self.sql).await?.execute(&value).await?.collect().await
        });
        let [text, named] = [self.sql.replace("$1", "1"), format!("EXECUTE {}(1)", self.name)];
        [run(&text), run(&named), outcome(again), outcome(anew)]
    }

    /// Asserts that all ways have this outcome.
    fn is(&self, wanted: &str, after: &str) {
        let wanted = match wanted {
            "" if self.sql == COUNTED => "0",
            value if self.sql == COUNTED && value.len() < 5 => "1",
            other => other,
        };
        // The second time by the plan that the first one cached.
        for _ in 0..2 {
            assert_eq!(self.all(), [wanted; 4], "{} {after}", self.sql);
        }
    }
}

fn outcome(result: Result<Vec<atoll_sql::arrow::array::RecordBatch>, SqlError>) -> String {
    match result {
        Ok(batches) => batches.iter().flat_map(texts).flatten().collect::<Vec<_>>().join(" "),
        Err(error) => error.state.code().to_owned(),
    }
}

/// A selection and a change by key, a selection that shares scans, and such a change, which tells its number of rows.
const STATEMENTS: [&str; 4] = [
    "SELECT n FROM t WHERE id = $1",
    "UPDATE t SET k = 1 WHERE id = $1 RETURNING n",
    "SELECT n FROM t WHERE k = $1",
    COUNTED,
];
const COUNTED: &str = "UPDATE t SET n = n WHERE k = $1";

/// A session with a table, and another one of its database.
fn sessions() -> (Session, Session) {
    let session = live();
    rows(&session, "SET atoll.shared_scan = 'on'");
    rows(&session, "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, n INT)");
    rows(&session, "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20)");
    let other = session.database().session().expect("a session");
    (session, other)
}

/// Makes changes, and compares the outcome of all statements after each with that of planning anew.
fn follow(session: &Session, changes: &[(&Session, &str, &str)]) {
    let cached = STATEMENTS.map(|sql| Cached::new(session, sql));
    cached.iter().for_each(|it| it.is("10", "at first"));
    for (by, change, wanted) in changes {
        rows(by, change);
        cached.iter().for_each(|it| it.is(wanted, change));
    }
}

#[test]
fn plans_end_with_the_definition_of_their_table() {
    let (session, other) = sessions();
    follow(
        &session,
        &[
            (&other, "ALTER TABLE t ADD COLUMN before INT DEFAULT 7", "10"),
            (&other, "ALTER TABLE t ALTER COLUMN n TYPE VARCHAR", "10"),
            (&other, "ALTER TABLE t RENAME COLUMN n TO m", "42703"),
            (&other, "ALTER TABLE t RENAME COLUMN before TO n", "7"),
            (&session, "ALTER TABLE t DROP COLUMN n", "42703"),
            (&session, "ALTER TABLE t RENAME COLUMN m TO n", "10"),
        ],
    );
}

#[test]
fn plans_end_with_the_names_that_are_rolled_back() {
    let (session, _) = sessions();
    rows(&session, "CREATE TABLE u (id BIGINT PRIMARY KEY, k BIGINT, n INT)");
    rows(&session, "INSERT INTO u VALUES (1, 1, 77)");
    let cached = STATEMENTS.map(|sql| Cached::new(&session, sql));
    let is = |wanted, after| cached.iter().for_each(|it| it.is(wanted, after));
    for (begin, undo, end) in
        [("SELECT 1", "ROLLBACK", "SELECT 1"), ("SAVEPOINT s", "ROLLBACK TO s", "COMMIT")]
    {
        is("10", "at first");
        rows(&session, "BEGIN");
        rows(&session, begin);
        rows(&session, "ALTER TABLE t RENAME TO before");
        rows(&session, "ALTER TABLE u RENAME TO t");
        is("77", "within the transaction");
        rows(&session, undo);
        is("10", undo);
        rows(&session, end);
        is("10", end);
    }
}

#[test]
fn plans_end_with_the_table_that_a_name_meant() {
    let (session, other) = sessions();
    follow(
        &session,
        &[
            (&other, "DROP TABLE t", "42P01"),
            (&other, "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, n INT)", ""),
            (&other, "INSERT INTO t VALUES (1, 1, 11)", "11"),
            (&other, "ALTER TABLE t RENAME TO u", "42P01"),
            (&session, "CREATE TABLE t AS SELECT 1 AS id, 1 AS k, 12 AS n", "12"),
            (&session, "DROP TABLE t", "42P01"),
            (&session, "ALTER TABLE u RENAME TO t", "11"),
        ],
    );
}

#[test]
fn plans_end_with_the_indexes_of_their_table() {
    let (session, other) = sessions();
    let by_k = Cached::new(&session, STATEMENTS[2]);
    for (change, wanted) in [
        ("CREATE INDEX by_k ON t (k)", "10"),
        ("CREATE INDEX by_n ON t (n)", "10"),
        ("INSERT INTO t VALUES (3, 1, 10)", "10 10"),
        ("DROP INDEX by_k", "10 10"),
        ("DROP INDEX by_n", "10 10"),
        ("CREATE UNIQUE INDEX by_all ON t (k, id)", "10 10"),
        ("DELETE FROM t WHERE id = 3", "10"),
        ("CREATE UNIQUE INDEX by_k ON t (k)", "10"),
        ("UPDATE t SET n = 11 WHERE k = 1", "11"),
        ("DROP INDEX by_k", "11"),
    ] {
        rows(&other, change);
        by_k.is(wanted, change);
    }
}

#[test]
fn plans_are_those_of_the_search_path() {
    let (session, other) = sessions();
    rows(&other, "CREATE SCHEMA s");
    rows(&other, "CREATE TABLE s.t (id BIGINT PRIMARY KEY, k BIGINT, n INT)");
    rows(&other, "INSERT INTO s.t VALUES (1, 1, 11)");
    follow(
        &session,
        &[
            (&session, "SET search_path = s, public", "11"),
            (&session, "SET search_path = public, s", "10"),
            (&session, "SET search_path = nowhere", "42P01"),
            (&other, "SET search_path = s", "42P01"),
            (&session, "RESET search_path", "10"),
        ],
    );
}

#[test]
fn a_temporary_table_hides_another_one_from_its_session_alone() {
    let (session, other) = sessions();
    rows(&other, "SET atoll.shared_scan = 'on'");
    let of_other = STATEMENTS.map(|sql| Cached::new(&other, sql));
    follow(
        &session,
        &[
            (&session, "CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, k BIGINT, n INT)", ""),
            (&session, "INSERT INTO t VALUES (1, 1, 11)", "11"),
            (&other, "INSERT INTO t VALUES (3, 3, 30)", "11"),
            (&session, "DROP TABLE pg_temp.t", "10"),
        ],
    );
    of_other.iter().for_each(|it| it.is("10", "beside it"));
    rows(&session, "CREATE TEMPORARY TABLE t AS SELECT 1 AS id, 1 AS k, 13 AS n");
    of_other.iter().for_each(|it| it.is("10", "beside another"));
    assert_eq!(rows(&session, "SELECT n FROM t WHERE id = 1"), [["13"]]);
}

#[test]
fn plans_are_those_of_the_settings() {
    let (session, other) = sessions();
    rows(&session, "CREATE TABLE times (id BIGINT PRIMARY KEY, k BIGINT, moment TIMESTAMPTZ)");
    rows(&session, "SET TimeZone = 'UTC'");
    rows(&session, "INSERT INTO times VALUES (1, 1, '2024-01-01 00:00:00Z')");
    let statements = ["id", "k"].map(|column| {
        format!("SELECT left(CAST(moment AS VARCHAR), 13) FROM times WHERE {column} = $1")
    });
    let cached = statements.each_ref().map(|sql| Cached::new(&session, sql));
    for (by, change, wanted) in [
        (&session, "SET TimeZone = 'Asia/Tokyo'", "2024-01-01 09"),
        (&other, "SET TimeZone = 'America/New_York'", "2024-01-01 09"),
        (&session, "SET TimeZone = 'UTC'", "2024-01-01 00"),
    ] {
        rows(by, change);
        cached.iter().for_each(|it| it.is(wanted, change));
    }
}

#[test]
fn plans_hold_no_values_of_variables_or_macros() {
    let (session, other) = sessions();
    rows(&session, "SET VARIABLE v = 1");
    rows(&session, "CREATE MACRO twice(x) AS x * 2");
    let statements = ["id", "k"]
        .map(|column| format!("SELECT twice(n) + getvariable('v') FROM t WHERE {column} = $1"));
    let cached = statements.each_ref().map(|sql| Cached::new(&session, sql));
    for (by, change, wanted) in [
        (&session, "SET VARIABLE v = 2", "22"),
        (&other, "SET VARIABLE v = 3", "22"),
        (&other, "CREATE OR REPLACE MACRO twice(x) AS x * 3", "32"),
        (&session, "SET VARIABLE v = 4", "34"),
    ] {
        rows(by, change);
        cached.iter().for_each(|it| it.is(wanted, change));
    }
}

#[test]
fn plans_are_those_of_a_role_and_its_rights() {
    let (owner, _) = sessions();
    let of = |user: &str| {
        rows(&owner, &format!("CREATE ROLE {user}"));
        rows(&owner, &format!("GRANT SELECT, UPDATE ON t TO {user}"));
        let identity = Identity { user: user.into(), ..Identity::default() };
        let session = owner.database().session_of(identity).expect("a session");
        rows(&session, "SET atoll.shared_scan = 'on'");
        session
    };
    let (ann, bob) = (of("ann"), of("bob"));
    let of_bob = STATEMENTS.map(|sql| Cached::new(&bob, sql));
    follow(
        &ann,
        &[
            (&owner, "REVOKE ALL ON t FROM ann", "42501"),
            (&owner, "GRANT SELECT, UPDATE ON t TO ann", "10"),
        ],
    );
    rows(&owner, "REVOKE ALL ON t FROM ann");
    of_bob.iter().for_each(|it| it.is("10", "beside ann"));
}
