use futures::SinkExt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::login::{as_owner, log_in};
use crate::support::{TestServer, block_on};

/// Creates two roles, a table, a view of one of its columns, a schema and a sequence.
const OBJECTS: [&str; 8] = [
    "CREATE ROLE ann LOGIN PASSWORD 'a'",
    "CREATE ROLE bob LOGIN PASSWORD 'b'",
    "CREATE TABLE item (id BIGINT PRIMARY KEY, name VARCHAR, price INT)",
    "INSERT INTO item VALUES (1, 'pen', 2), (2, 'ink', 5)",
    "CREATE VIEW cheap AS SELECT name FROM item WHERE price < 3",
    "CREATE SCHEMA stock",
    "CREATE TABLE stock.box (n INT)",
    "CREATE SEQUENCE number",
];

async fn allowed(client: &Client, sql: &str) {
    client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

async fn denied(client: &Client, sql: &str) {
    let error = client.simple_query(sql).await.expect_err(sql);
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}: {error:?}");
}

#[test]
fn the_insert_privilege_allows_copy_from() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["GRANT INSERT ON item TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        for (sql, row) in [
            ("COPY item FROM STDIN", "3\tcap\t1\n"),
            ("COPY item (price, \"id\") FROM STDIN CSV", "9,4\n"),
        ] {
            let sink = ann.copy_in(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            futures::pin_mut!(sink);
            sink.send(bytes::Bytes::from(row)).await.expect("sent");
            assert_eq!(sink.finish().await.expect("a row"), 1, "{sql}");
        }
        denied(&ann, "SELECT * FROM item").await;
        for (sql, state) in [
            ("COPY stock.box FROM STDIN", SqlState::INSUFFICIENT_PRIVILEGE),
            ("COPY nowhere FROM STDIN", SqlState::UNDEFINED_TABLE),
            ("COPY item (id, nothing) FROM STDIN", SqlState::UNDEFINED_COLUMN),
        ] {
            // The driver takes the answer to its second Sync for the answer to its next statement.
            let ann = log_in(&server, "ann", "a").await.expect("ann");
            let refused = ann.copy_in::<_, bytes::Bytes>(sql).await.err().expect(sql);
            assert_eq!(refused.code(), Some(&state), "{sql}: {refused:?}");
        }
    });
}

#[test]
fn a_role_has_no_rights_before_a_grant() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        for sql in [
            "SELECT * FROM item",
            "FROM item",
            "DESCRIBE item",
            "SUMMARIZE item",
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM public.item)",
            "WITH x AS (SELECT * FROM item) SELECT * FROM x",
            "WITH item AS (SELECT * FROM item) SELECT * FROM item",
            "EXPLAIN SELECT * FROM item",
            "EXPLAIN ANALYZE DELETE FROM item",
            "PREPARE p AS SELECT * FROM item WHERE id = $1",
            "SELECT * FROM item WHERE id = 1",
            "SELECT * FROM item FOR UPDATE",
            "SELECT * FROM cheap",
            "SELECT * FROM stock.box",
            "COPY item TO STDOUT",
            "COPY (SELECT * FROM item) TO STDOUT",
            "INSERT INTO item VALUES (3, 'cap', 1)",
            "INSERT INTO stock.box SELECT 1",
            "UPDATE item SET price = 0",
            "DELETE FROM item WHERE id = 1",
            "TRUNCATE item",
            "DROP TABLE item",
            "DROP VIEW cheap",
            "ALTER TABLE item ADD COLUMN x INT",
            "ALTER TABLE item RENAME TO mine",
            "ALTER TABLE item OWNER TO ann",
            "COMMENT ON TABLE item IS 'x'",
            "COMMENT ON COLUMN item.name IS 'x'",
            "CREATE TABLE mine (a INT)",
            "CREATE TABLE stock.mine (a INT)",
            "CREATE VIEW mine AS SELECT 1 AS a",
            "CREATE OR REPLACE VIEW cheap AS SELECT 1 AS a",
            "CREATE SEQUENCE mine",
            "CREATE SCHEMA mine",
            "DROP SCHEMA stock CASCADE",
            "ALTER SEQUENCE number RESTART",
            "DROP SEQUENCE number",
            "SELECT nextval('number')",
            "SELECT setval('number', 5)",
            "GRANT SELECT ON item TO ann",
            "REVOKE SELECT ON item FROM bob",
            "GRANT CREATE ON SCHEMA public TO ann",
        ] {
            denied(&ann, sql).await;
        }
        allowed(&ann, "SELECT 1").await;
        allowed(&ann, "SELECT * FROM atoll.tables").await;
        allowed(&ann, "WITH item AS (SELECT 1 AS a) SELECT * FROM item").await;
    });
}

#[test]
fn each_right_allows_its_operations() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        as_owner(&server, &["GRANT INSERT ON item TO ann"]).await;
        allowed(&ann, "INSERT INTO item VALUES (3, 'cap', 1)").await;
        denied(&ann, "INSERT INTO item VALUES (4, 'cap', 1) RETURNING id").await;
        denied(&ann, "INSERT INTO item SELECT id + 10, name, price FROM item").await;
        denied(&ann, "INSERT INTO item VALUES (3, '', 1) ON CONFLICT (id) DO UPDATE SET price = 0")
            .await;
        denied(&ann, "INSERT INTO item VALUES (3, '', 1) ON CONFLICT (id) DO NOTHING").await;
        allowed(&ann, "INSERT INTO item VALUES (3, '', 1) ON CONFLICT DO NOTHING").await;
        as_owner(&server, &["GRANT UPDATE, DELETE ON TABLE item TO ann"]).await;
        allowed(&ann, "UPDATE item SET price = 7, name = DEFAULT").await;
        denied(&ann, "UPDATE item SET price = price + 1").await;
        let reads = "ON CONFLICT (id) DO UPDATE SET name = item.name";
        denied(&ann, &format!("INSERT INTO item VALUES (3, '', 1) {reads}")).await;
        denied(&ann, "UPDATE item SET price = 0 WHERE price > 1").await;
        denied(&ann, "DELETE FROM item WHERE price > 1").await;
        denied(&ann, "TRUNCATE item").await;
        as_owner(&server, &["GRANT SELECT ON item TO ann"]).await;
        allowed(&ann, "UPDATE item SET price = 0 WHERE id = 1 RETURNING name").await;
        allowed(&ann, "SELECT * FROM item FOR UPDATE").await;
        as_owner(&server, &["GRANT TRUNCATE ON item TO ann"]).await;
        allowed(&ann, "TRUNCATE item").await;
        denied(&ann, "DROP TABLE item").await;
        as_owner(&server, &["GRANT USAGE ON SEQUENCE number TO ann"]).await;
        allowed(&ann, "SELECT nextval('number')").await;
        denied(&ann, "SELECT setval('number', 5)").await;
        as_owner(&server, &["GRANT SELECT ON stock.box TO PUBLIC"]).await;
        denied(&ann, "SELECT * FROM stock.box").await;
        as_owner(&server, &["GRANT USAGE ON SCHEMA stock TO PUBLIC"]).await;
        allowed(&ann, "SELECT * FROM stock.box").await;
        as_owner(&server, &["GRANT ALL ON ALL TABLES IN SCHEMA stock, public TO ann"]).await;
        allowed(&ann, "INSERT INTO stock.box VALUES (1)").await;
        allowed(&ann, "SELECT * FROM cheap").await;
        as_owner(&server, &["REVOKE USAGE ON SCHEMA public FROM PUBLIC"]).await;
        denied(&ann, "SELECT * FROM item").await;
    });
}

#[test]
fn numbers_of_sequences_need_the_rights_that_their_names_need() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        let counted = "CREATE TABLE counted (id INT GENERATED ALWAYS AS IDENTITY, a INT)";
        as_owner(&server, &[counted, "GRANT INSERT ON counted TO bob"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        denied(&ann, "INSERT INTO counted (a) VALUES (1)").await;
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        allowed(&bob, "INSERT INTO counted (a) VALUES (1)").await;
        allowed(&bob, "INSERT INTO counted (a) SELECT 2 AS a").await;
        for number in 0..50 {
            for call in [format!("setval({number}, 5)"), format!("currval({number})")] {
                for client in [&ann, &bob] {
                    let called = client.batch_execute(&format!("SELECT {call}")).await;
                    assert!(called.is_err(), "{call}");
                }
            }
            let called = ann.batch_execute(&format!("SELECT nextval({number})")).await;
            assert!(called.is_err(), "nextval({number})");
        }
        as_owner(&server, &["GRANT UPDATE ON SEQUENCE number TO ann"]).await;
        allowed(&ann, "SELECT setval('number', 5)").await;
    });
}

#[test]
fn revoked_rights_end_at_once_also_for_prepared_statements() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["GRANT SELECT, UPDATE ON item TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let by_key = ann.prepare("SELECT name FROM item WHERE id = $1").await.expect("prepared");
        let by_price = ann.prepare("SELECT id FROM item WHERE price = $1").await.expect("prepared");
        let change =
            ann.prepare("UPDATE item SET price = $2 WHERE id = $1").await.expect("prepared");
        allowed(&ann, "PREPARE p AS SELECT id FROM item WHERE price > $1").await;
        allowed(&ann, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        allowed(&ann, "SELECT * FROM item").await;
        assert_eq!(ann.query(&by_key, &[&1_i64]).await.expect("a row").len(), 1);
        as_owner(&server, &["REVOKE ALL ON item FROM ann"]).await;
        denied(&ann, "SELECT * FROM item").await;
        allowed(&ann, "ROLLBACK").await;
        let code = |error: tokio_postgres::Error| error.code().cloned();
        let gone = Some(SqlState::INSUFFICIENT_PRIVILEGE);
        assert_eq!(ann.query(&by_key, &[&1_i64]).await.map_err(code).err(), Some(gone.clone()));
        assert_eq!(ann.query(&by_price, &[&2_i32]).await.map_err(code).err(), Some(gone.clone()));
        assert_eq!(ann.execute(&change, &[&1_i64, &9_i32]).await.map_err(code).err(), Some(gone));
        denied(&ann, "EXECUTE p(1)").await;
    });
}

#[test]
fn cached_plans_of_others_check_rights() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["GRANT SELECT ON item TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        for client in [&ann, &bob] {
            allowed(client, "SET atoll.shared_scan = 'on'").await;
        }
        for price in 0..5 {
            let sql = format!("SELECT id FROM item WHERE price = {price}");
            allowed(&ann, &sql).await;
            denied(&bob, &sql).await;
        }
    });
}

#[test]
fn owners_have_all_rights_to_their_objects() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["GRANT CREATE ON SCHEMA public TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        allowed(&ann, "CREATE TABLE mine (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT)").await;
        allowed(&ann, "INSERT INTO mine (v) VALUES (1), (2)").await;
        allowed(&ann, "ALTER TABLE mine ADD COLUMN w INT").await;
        allowed(&ann, "COMMENT ON COLUMN mine.v IS 'x'").await;
        allowed(&ann, "ALTER TABLE mine RENAME TO own").await;
        denied(&bob, "SELECT * FROM own").await;
        allowed(&ann, "GRANT SELECT ON own TO bob WITH GRANT OPTION").await;
        allowed(&ann, "GRANT INSERT ON own TO bob").await;
        allowed(&bob, "SELECT * FROM own").await;
        allowed(&bob, "INSERT INTO own (v) VALUES (3)").await;
        allowed(&bob, "GRANT SELECT ON own TO PUBLIC").await;
        denied(&bob, "GRANT INSERT ON own TO PUBLIC").await;
        denied(&bob, "DROP TABLE own").await;
        // A view's owner needs the rights to what it reads.
        allowed(&ann, "CREATE VIEW names AS SELECT name FROM item").await;
        denied(&ann, "SELECT * FROM names").await;
        as_owner(&server, &["GRANT SELECT ON item TO ann"]).await;
        allowed(&ann, "SELECT * FROM names").await;
        denied(&bob, "SELECT * FROM names").await;
        allowed(&ann, "GRANT SELECT ON names TO bob").await;
        allowed(&bob, "SELECT * FROM names").await;
        denied(&bob, "SELECT * FROM item").await;
        as_owner(&server, &["ALTER TABLE own OWNER TO bob"]).await;
        denied(&ann, "DROP TABLE own").await;
        let owner = server.database.session().expect("a session");
        let error = owner.run("DROP ROLE bob").await.expect_err("it owns a table");
        assert_eq!(error.state.code(), "2BP01");
        allowed(&bob, "DROP TABLE own").await;
        allowed(&ann, "DROP VIEW names").await;
        as_owner(&server, &["DROP ROLE bob"]).await;
    });
}

#[test]
fn temporary_views_check_the_rights_of_their_user() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        for sql in [
            "CREATE TEMP VIEW peek AS SELECT * FROM item",
            "CREATE TEMP VIEW bargains AS SELECT * FROM cheap",
        ] {
            allowed(&bob, sql).await;
        }
        for sql in ["SELECT * FROM peek", "SELECT count(*) FROM peek", "TABLE bargains"] {
            denied(&bob, sql).await;
            assert!(bob.prepare(sql).await.is_err(), "{sql}");
        }
        as_owner(&server, &["GRANT SELECT ON cheap TO bob"]).await;
        allowed(&bob, "TABLE bargains").await;
        denied(&bob, "SELECT * FROM peek").await;
        as_owner(&server, &["GRANT SELECT ON item TO bob"]).await;
        allowed(&bob, "CREATE TEMP VIEW twice AS SELECT * FROM peek").await;
        allowed(&bob, "SELECT * FROM peek, twice").await;
        as_owner(&server, &["REVOKE SELECT ON item FROM bob"]).await;
        denied(&bob, "SELECT * FROM twice").await;
    });
}

#[test]
fn members_have_the_rights_of_their_roles() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["CREATE ROLE desk", "CREATE ROLE clerks", "GRANT clerks TO desk"])
            .await;
        as_owner(&server, &["GRANT desk TO ann", "GRANT SELECT ON item TO clerks"]).await;
        as_owner(&server, &["GRANT pg_read_all_data, pg_write_all_data TO bob"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        allowed(&ann, "SELECT * FROM item").await;
        denied(&ann, "DELETE FROM item").await;
        as_owner(&server, &["REVOKE clerks FROM desk"]).await;
        denied(&ann, "SELECT * FROM item").await;
        allowed(&bob, "SELECT * FROM stock.box, item").await;
        allowed(&bob, "INSERT INTO stock.box VALUES (1)").await;
        allowed(&bob, "DELETE FROM item WHERE id = 1").await;
        denied(&bob, "TRUNCATE item").await;
        denied(&bob, "CREATE TABLE t (a INT)").await;
    });
}

#[test]
fn a_prepared_transaction_is_ended_by_its_role_or_a_superuser() {
    let server = TestServer::with_passwords();
    block_on(async {
        as_owner(&server, &OBJECTS).await;
        as_owner(&server, &["GRANT INSERT ON item TO ann"]).await;
        let ann = log_in(&server, "ann", "a").await.expect("ann");
        let bob = log_in(&server, "bob", "b").await.expect("bob");
        for (id, gid) in [(3, "one"), (4, "two")] {
            allowed(&ann, "BEGIN").await;
            allowed(&ann, &format!("INSERT INTO item VALUES ({id}, 'cap', 1)")).await;
            allowed(&ann, &format!("PREPARE TRANSACTION '{gid}'")).await;
        }
        denied(&bob, "COMMIT PREPARED 'one'").await;
        denied(&bob, "ROLLBACK PREPARED 'two'").await;
        allowed(&log_in(&server, "ann", "a").await.expect("ann"), "COMMIT PREPARED 'one'").await;
        as_owner(&server, &["COMMIT PREPARED 'two'", "DELETE FROM item WHERE id IN (3, 4)"]).await;
    });
}
