//! Errors have PostgreSQL's codes: each statement fails with the code that PostgreSQL 15 gives it.

use crate::common::{live, run};

const TABLES: [&str; 8] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a TEXT NOT NULL, n INT CHECK (n < 100), u INT UNIQUE, \
     g INT GENERATED ALWAYS AS (id * 2), i INT GENERATED ALWAYS AS IDENTITY, sm SMALLINT, \
     uu UUID, js JSON)",
    "INSERT INTO t (id, a, n, u) VALUES (1, 'x', 1, 1)",
    "CREATE VIEW v AS SELECT id, a FROM t",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (a INT UNIQUE)",
    "INSERT INTO s.t VALUES (1)",
    "CREATE SEQUENCE q",
    "CREATE TABLE s.flags (f BOOLEAN)",
];

const REFUSED: &[(&str, &str)] = &[
    // Missing objects.
    ("42P01", "SELECT * FROM nix"),
    ("42P01", "SELECT * FROM s.nix"),
    ("42P01", "SELECT nix.* FROM t"),
    ("42P01", "INSERT INTO nix VALUES (1)"),
    ("42P01", "UPDATE nix SET a = 1"),
    ("42P01", "DELETE FROM nix"),
    ("42P01", "TRUNCATE nix"),
    ("42P01", "DROP TABLE nix"),
    ("42P01", "DROP VIEW nix"),
    ("42P01", "DROP SEQUENCE nix"),
    ("42P01", "ALTER TABLE nix ADD COLUMN a INT"),
    ("42P01", "ALTER SEQUENCE nix RESTART"),
    ("42P01", "CREATE TABLE z (LIKE nix)"),
    ("42P01", "SELECT nextval('nix')"),
    ("42P01", "COMMENT ON TABLE nix IS 'x'"),
    ("42P01", "GRANT SELECT ON nix TO PUBLIC"),
    ("3F000", "CREATE TABLE nix.t (a INT)"),
    ("3F000", "CREATE VIEW nix.v AS SELECT 1"),
    ("3F000", "CREATE SEQUENCE nix.q"),
    ("3F000", "DROP SCHEMA nix"),
    ("3F000", "GRANT USAGE ON SCHEMA nix TO PUBLIC"),
    ("42703", "SELECT nix FROM t"),
    ("42703", "SELECT t.nix FROM t"),
    ("42703", "INSERT INTO t (nix) VALUES (1)"),
    ("42703", "UPDATE t SET nix = 1"),
    ("42703", "DELETE FROM t WHERE nix = 1"),
    ("42703", "CREATE TABLE z (a INT, PRIMARY KEY (b))"),
    ("42703", "ALTER TABLE t DROP COLUMN nix"),
    ("42703", "ALTER TABLE t RENAME COLUMN nix TO b"),
    ("42703", "COMMENT ON COLUMN t.nix IS 'x'"),
    ("42704", "SELECT 1::nix"),
    ("42704", "CREATE TABLE z (a nix)"),
    ("42704", "ALTER TABLE t DROP CONSTRAINT nix"),
    ("42704", "SET nix = 1"),
    ("42704", "SHOW nix"),
    ("42883", "SELECT nix(1)"),
    ("42883", "SELECT abs('a', 'b')"),
    ("42883", "SELECT sum(a) FROM t"),
    ("42883", "SELECT 1 + true"),
    ("42883", "SELECT true > 1"),
    ("42883", "SELECT * FROM nix(1)"),
    ("26000", "EXECUTE nix"),
    ("26000", "DEALLOCATE nix"),
    // Objects that exist already, or are named twice.
    ("42P07", "CREATE TABLE t (a INT)"),
    ("42P07", "CREATE VIEW t AS SELECT 1"),
    ("42P07", "CREATE SEQUENCE t"),
    ("42P06", "CREATE SCHEMA s"),
    ("42701", "CREATE TABLE z (a INT, a INT)"),
    ("42701", "ALTER TABLE t ADD COLUMN a INT"),
    ("42701", "ALTER TABLE t RENAME COLUMN id TO a"),
    ("42701", "INSERT INTO t (id, id) VALUES (1, 1)"),
    ("42702", "SELECT id FROM t x, t y"),
    ("42710", "ALTER TABLE t ADD CONSTRAINT t_n_check CHECK (n > 0)"),
    ("42712", "SELECT * FROM t, t"),
    ("42712", "WITH c AS (SELECT 1), c AS (SELECT 2) SELECT * FROM c"),
    ("42P16", "CREATE TABLE z (a INT PRIMARY KEY, b INT PRIMARY KEY)"),
    ("42P16", "ALTER TABLE t ADD PRIMARY KEY (n)"),
    ("42P16", "ALTER TABLE t ALTER COLUMN id DROP NOT NULL"),
    ("42601", "UPDATE t SET id = 1, id = 2"),
    // Objects of another kind, or needed by others.
    ("42809", "DROP VIEW t"),
    ("42809", "DROP TABLE v"),
    ("42809", "ALTER TABLE v ADD COLUMN b INT"),
    ("42809", "SELECT nextval('t')"),
    ("42809", "SELECT 1 = ANY (5)"),
    ("2BP01", "DROP SCHEMA s"),
    ("2BP01", "DROP TABLE t"),
    ("2BP01", "ALTER TABLE t DROP COLUMN a"),
    ("0A000", "CREATE TABLE z (a INT DEFAULT (SELECT 1))"),
    ("42804", "INSERT INTO s.flags SELECT id FROM t"),
    ("42804", "UPDATE s.flags SET f = 1"),
    ("55000", "ALTER TABLE t ALTER COLUMN n RESTART"),
    ("2BP01", "ALTER TABLE t DROP COLUMN id"),
    ("42601", "ALTER TABLE t ALTER COLUMN i SET DEFAULT 5"),
    ("42601", "ALTER TABLE t ALTER COLUMN g SET DEFAULT 5"),
    ("428C9", "INSERT INTO t (id, a, g) VALUES (5, 'x', 5)"),
    ("428C9", "INSERT INTO t (id, a, i) VALUES (5, 'x', 5)"),
    ("428C9", "UPDATE t SET g = 1"),
    ("428C9", "UPDATE t SET i = 1"),
    ("55000", "SELECT currval('q')"),
    // Groups, types and positions.
    ("42803", "SELECT id, count(*) FROM t"),
    ("42803", "SELECT sum(count(*)) FROM t"),
    ("42803", "SELECT id FROM t WHERE count(*) > 1"),
    ("42804", "SELECT id FROM t WHERE id"),
    ("42804", "SELECT NOT id FROM t"),
    ("42804", "SELECT 1 UNION SELECT true"),
    ("42P10", "SELECT 1 FROM t ORDER BY 5"),
    ("42P10", "SELECT 1 FROM t GROUP BY 5"),
    ("42P10", "INSERT INTO t (id, a) VALUES (1, 'x') ON CONFLICT (a) DO NOTHING"),
    ("42601", "INSERT INTO t (id, a) VALUES (1)"),
    ("42601", "UPDATE t SET (a, n) = (1, 2, 3)"),
    ("42601", "SELECT 1 UNION SELECT 1, 2"),
    ("42601", "SELECT (SELECT id, a FROM t)"),
    ("42601", "SELEC 1"),
    ("21000", "SELECT (SELECT 1 UNION ALL SELECT 2)"),
    ("21000", "SELECT (SELECT x FROM (VALUES (1), (2)) v(x) WHERE x >= t.id) FROM t"),
    ("42P10", "SELECT string_agg(DISTINCT a, ',' ORDER BY n) FROM t"),
    ("42P10", "SELECT array_agg(DISTINCT a ORDER BY n) FROM t GROUP BY id"),
    ("22023", "SELECT split_part('a,b', ',', 0)"),
    ("22023", "SELECT split_part(a, ',', 0) FROM t"),
    // Window frames.
    ("22013", "SELECT sum(n) OVER (ORDER BY n RANGE -1 PRECEDING) FROM t"),
    ("22013", "SELECT sum(n) OVER (ORDER BY n ROWS -1 PRECEDING) FROM t"),
    (
        "22013",
        "SELECT sum(n) OVER (ORDER BY DATE '2024-01-01' + id RANGE '-1 month' PRECEDING) FROM t",
    ),
    ("22004", "SELECT sum(n) OVER (ORDER BY n GROUPS NULL PRECEDING) FROM t"),
    ("22004", "SELECT sum(n) OVER (ORDER BY n RANGE NULL::INT PRECEDING) FROM t"),
    ("22003", "SELECT sum(n) OVER (ROWS 9223372036854775808 PRECEDING) FROM t"),
    ("42804", "SELECT sum(n) OVER (ORDER BY n ROWS INTERVAL '1 day' PRECEDING) FROM t"),
    ("42P10", "SELECT sum(n) OVER (ORDER BY n ROWS id PRECEDING) FROM t"),
    ("0A000", "SELECT sum(n) OVER (ORDER BY a RANGE 1 PRECEDING) FROM t"),
    ("42P20", "SELECT sum(n) OVER (ORDER BY n, a RANGE 1 PRECEDING) FROM t"),
    ("42P20", "SELECT sum(n) OVER (GROUPS 1 PRECEDING) FROM t"),
    ("42P20", "SELECT sum(n) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t"),
    ("42P20", "SELECT sum(n) OVER (ROWS 1 FOLLOWING) FROM t"),
    ("42P20", "SELECT sum(n) OVER (ROWS UNBOUNDED FOLLOWING) FROM t"),
    // Recursive queries.
    ("42P19", "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT max(i) FROM r) SELECT 1 FROM r"),
    ("42P19", "WITH RECURSIVE r AS (SELECT 1 i UNION SELECT (SELECT i FROM r)) SELECT 1 FROM r"),
    ("42P19", "WITH RECURSIVE r AS (SELECT 1 i UNION SELECT r.i FROM r, r q) SELECT 1 FROM r"),
    ("42P19", "WITH RECURSIVE r AS (SELECT i FROM r UNION ALL SELECT 1) SELECT 1 FROM r"),
    ("42P19", "WITH RECURSIVE r AS (SELECT i FROM r) SELECT 1 FROM r"),
    ("0A000", "WITH RECURSIVE r AS (SELECT 1 i UNION SELECT i FROM r LIMIT 1) SELECT 1 FROM r"),
    ("0A000", "WITH RECURSIVE r AS (SELECT 1 FROM q), q AS (SELECT 1 FROM r) SELECT 1 FROM r"),
    ("2201W", "SELECT * FROM t LIMIT -1"),
    ("2201X", "SELECT * FROM t OFFSET -1"),
    // Values.
    ("22012", "SELECT 1 / 0"),
    ("22003", "SELECT 100000::SMALLINT"),
    ("22003", "SELECT '99999999999'::INT"),
    ("22003", "SELECT 9223372036854775807 + 1"),
    ("22003", "SELECT 32767::SMALLINT + 1::SMALLINT"),
    ("22003", "INSERT INTO t (id, a, sm) VALUES (5, 'x', 100000)"),
    ("22003", "SELECT setval('q', 0)"),
    ("22P02", "SELECT 'a'::INT"),
    ("22P02", "SELECT 'x'::UUID"),
    ("22P02", "SELECT 'x'::JSON"),
    ("22P02", "SELECT jsonb_set('[1]', '{a}', '2')"),
    ("22004", "SELECT jsonb_set('[1]', ARRAY[NULL]::TEXT[], '2')"),
    ("22023", "SELECT jsonb_set('1', '{a}', '2')"),
    ("22023", "SELECT jsonb_insert('{\"a\":1}', '{a}', '2')"),
    ("22P05", "SELECT '\"\\u0000\"'::JSONB"),
    ("22P02", "SELECT '[1,]'::JSONB"),
    ("22003", "SELECT '1e131072'::JSONB"),
    ("22023", "SELECT '{}'::JSONB - 1"),
    ("22023", "SELECT '1'::JSONB #- '{a}'"),
    ("22P02", "SELECT '[1]'::JSONB #- '{a}'"),
    ("22023", "SELECT jsonb_array_length('1')"),
    ("22023", "SELECT regexp_count('a', 'a', 0)"),
    ("22023", "SELECT convert_from('a'::BYTEA, 'nope')"),
    ("22023", "SELECT setseed(2)"),
    ("22021", "SELECT convert_from('\\xff'::BYTEA, 'UTF8')"),
    ("22P05", "SELECT convert_to('€', 'LATIN1')"),
    ("42601", "SELECT unistr('\\D83D')"),
    ("22P02", "SELECT id FROM t WHERE uu = 'x'"),
    ("22P02", "INSERT INTO t (id, a, uu) VALUES (5, 'x', 'zz')"),
    ("22P02", "INSERT INTO t (id, a, js) VALUES (5, 'x', '{bad')"),
    ("2201B", "SELECT regexp_replace('a', '(', 'b')"),
    ("23502", "INSERT INTO t (id) VALUES (5)"),
    ("23502", "UPDATE t SET a = NULL"),
    ("23505", "INSERT INTO t (id, a) VALUES (1, 'dup')"),
    ("23505", "INSERT INTO t (id, a, u) VALUES (2, 'dup', 1)"),
    ("23514", "INSERT INTO t (id, a, n) VALUES (5, 'x', 500)"),
    ("23514", "ALTER TABLE t ADD CHECK (n > 50)"),
];

#[test]
fn statements_are_refused_with_the_codes_of_postgresql() {
    let session = live();
    for sql in TABLES {
        run(&session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let mut others = Vec::new();
    for (code, sql) in REFUSED {
        match run(&session, sql) {
            Ok(_) => others.push(format!("{code}: {sql} is done")),
            Err(error) if error.state.code() == *code => {}
            Err(error) => others.push(format!("{code}: {sql} gives {}: {error}", error.state)),
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn dependent_objects_are_reported_as_in_postgresql() {
    let session = live();
    for sql in TABLES.into_iter().chain(["CREATE VIEW w AS SELECT a FROM v"]) {
        run(&session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for (sql, detail) in [
        ("DROP TABLE t", "view v depends on table t\nview w depends on view v"),
        ("DROP VIEW v", "view w depends on view v"),
        (
            "ALTER TABLE t DROP COLUMN a",
            "view v depends on column a of table t\nview w depends on view v",
        ),
    ] {
        let error = run(&session, sql).expect_err(sql);
        assert_eq!(error.detail(), Some(detail), "{sql}");
        let help = "Use DROP ... CASCADE to drop the dependent objects too.";
        assert_eq!(error.helps, [help], "{sql}");
    }
}

#[test]
fn errors_name_the_schema_and_the_table_of_a_constraint() {
    let session = live();
    for sql in TABLES {
        run(&session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for (sql, schema, constraint) in [
        ("INSERT INTO s.t VALUES (1)", "s", "t_a_key"),
        ("INSERT INTO t (id, a) VALUES (1, 'x')", "public", "t_pkey"),
        ("INSERT INTO t (id, a, n) VALUES (5, 'x', 500)", "public", "t_n_check"),
    ] {
        let error = run(&session, sql).expect_err(sql);
        let violated = error.violated().unwrap_or_else(|| panic!("{sql}: {error}"));
        assert_eq!((&*violated.schema, &*violated.table), (schema, "t"), "{sql}");
        assert_eq!(violated.constraint.as_deref(), Some(constraint), "{sql}");
    }
}
