use std::error::Error;
use std::net::IpAddr;

use futures::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, Type};

use crate::support::{TestServer, answers, block_on, message};

#[test]
fn values_come_back_in_binary_form() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, x DOUBLE, s TEXT, f BOOLEAN, b BLOB)")
            .await
            .expect("a table");
        let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)").await;
        let insert = insert.expect("it can be prepared");
        let types = [Type::INT8, Type::INT4, Type::FLOAT8, Type::TEXT, Type::BOOL, Type::BYTEA];
        assert_eq!(insert.params(), types);
        assert!(insert.columns().is_empty());
        let (text, bytes) = (Some("ä"), vec![0_u8, 255]);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&7_i64, &-3_i32, &0.5_f64, &text, &true, &bytes];
        assert_eq!(client.execute(&insert, &values).await.expect("a row"), 1);
        let none: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&8_i64, &None::<i32>, &None::<f64>, &None::<&str>, &None::<bool>, &None::<Vec<u8>>];
        client.execute(&insert, &none).await.expect("a row");
        let row = client.query_one("SELECT * FROM t WHERE id = $1", &[&7_i64]).await;
        let row = row.expect("the row");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (7, -3));
        assert_eq!((row.get::<_, f64>(2), row.get::<_, &str>(3)), (0.5, "ä"));
        assert_eq!((row.get::<_, bool>(4), row.get::<_, Vec<u8>>(5)), (true, bytes));
        let rows = client.query("SELECT n, s FROM t WHERE n IS NULL", &[]).await.expect("a row");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get::<_, Option<i32>>(0), None);
    });
}

#[test]
fn rows_that_differ_from_their_description_are_refused() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let made = "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 2)";
        client.batch_execute(made).await.expect("a table");
        for change in [
            "ALTER TABLE t ALTER n TYPE TEXT",
            "ALTER TABLE t ADD COLUMN m INT",
            "ALTER TABLE t DROP n",
        ] {
            let all = client.prepare("SELECT * FROM t").await.expect("prepared");
            assert_eq!(client.query(&all, &[]).await.expect("a row").len(), 1);
            client.batch_execute(change).await.expect(change);
            let refused = client.query(&all, &[]).await.expect_err(change);
            assert_eq!(refused.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{change}");
            let told = refused.as_db_error().expect("it is the server's");
            assert_eq!(told.message(), "cached plan must not change result type");
            assert_eq!(told.routine(), Some("RevalidateCachedQuery"));
        }
        let all = client.query("SELECT * FROM t", &[]).await.expect("a row");
        assert_eq!((all[0].get::<_, i32>(0), all[0].get::<_, Option<i32>>(1)), (1, None));
    });
}

#[test]
fn a_statement_that_is_refused_for_its_rows_has_changed_none() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE t (a INT)").await.expect("a table");
        for (number, change) in [
            "WITH w AS (INSERT INTO t (a) VALUES (1) RETURNING *) SELECT * FROM w",
            "INSERT INTO t (a) VALUES (1) RETURNING *",
            "UPDATE t SET a = a + 1 RETURNING *",
        ]
        .into_iter()
        .enumerate()
        {
            let prepared = client.prepare(change).await.expect(change);
            client.query(&prepared, &[]).await.expect(change);
            let sums = "SELECT count(*), sum(a) FROM t";
            let before = client.query_one(sums, &[]).await.expect("a row");
            let add = format!("ALTER TABLE t ADD COLUMN m{number} INT");
            client.batch_execute(&add).await.expect(&add);
            let refused = client.query(&prepared, &[]).await.expect_err(change);
            let told = refused.as_db_error().expect("it is the server's");
            assert_eq!(told.message(), "cached plan must not change result type", "{change}");
            let after = client.query_one(sums, &[]).await.expect("a row");
            let values = |row: &tokio_postgres::Row| (row.get::<_, i64>(0), row.get::<_, i64>(1));
            assert_eq!(values(&before), values(&after), "{change}");
        }
    });
}

#[test]
fn lists_round_trip() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let row = client.query_one("SELECT [1, NULL, 3], ['a', 'b']", &[]).await.expect("a row");
        let numbers: Vec<Option<i64>> = row.get(0);
        assert_eq!(numbers, [Some(1), None, Some(3)]);
        assert_eq!(row.get::<_, Vec<&str>>(1), ["a", "b"]);
    });
}

#[test]
fn a_parameter_has_the_type_that_its_client_declares() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let prepared = client.prepare_typed("SELECT $1", &[Type::INT8]).await.expect("prepared");
        assert_eq!(prepared.columns()[0].type_(), &Type::INT8);
        let row = client.query_one(&prepared, &[&5_i64]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), 5);
        let row = client.query_one("SELECT $1", &[&"x"]).await.expect("a row");
        assert_eq!(row.get::<_, &str>(0), "x");
    });
}

#[test]
fn a_parameter_has_the_type_that_it_is_cast_to() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let row = client
            .query_one("SELECT $1::INT + 1, $2::DATE IS NULL", &[&5_i32, &"2024-02-29"])
            .await;
        assert!(row.is_err(), "a text is not a DATE to this client");
        let prepared = client.prepare("SELECT $1::INT + 1").await.expect("prepared");
        assert_eq!(prepared.params(), [Type::INT4]);
    });
}

#[test]
fn prepared_statements_are_forgotten_when_asked() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let prepared = client.prepare("SELECT 1").await.expect("prepared");
        client.batch_execute("DEALLOCATE ALL").await.expect("forgotten");
        let error = client.query(&prepared, &[]).await.expect_err("it is gone");
        assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
        assert!(client.batch_execute("DEALLOCATE nothing").await.is_err());
        let row = client.query_one("SELECT pg_catalog.version()", &[]).await.expect("a row");
        assert!(row.get::<_, &str>(0).starts_with("PostgreSQL 15"));
    });
}

#[test]
fn a_portal_gives_its_rows_in_portions() {
    let server = TestServer::start();
    block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.expect("a transaction");
        let sql = "SELECT x FROM range(10) t(x) ORDER BY 1";
        let portal = transaction.bind(sql, &[]).await.expect("a portal");
        let mut numbers = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 4).await.expect("rows");
            assert!(rows.len() <= 4);
            numbers.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            if rows.len() < 4 {
                break;
            }
        }
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        // As in PostgreSQL, an exhausted portal returns no rows and is not an error.
        let rows = transaction.query_portal(&portal, 4).await.expect("none");
        assert!(rows.is_empty());
        transaction.commit().await.expect("it commits");
    });
}

#[test]
fn dates_and_times_become_text_as_in_a_cast() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("SET TIME ZONE 'Europe/Berlin'").await.expect("a zone");
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        for (of, wanted) in [
            (Type::TIMESTAMP, "2023-11-14 22:13:20"),
            (Type::TIMESTAMPTZ, "2023-11-14 23:13:20+01"),
        ] {
            let text = client.prepare_typed("SELECT $1::TEXT, 'x' || $1", &[of]).await;
            let row = client.query_one(&text.expect("prepared"), &[&at]).await.expect("a row");
            assert_eq!(row.get::<_, &str>(0), wanted);
            assert_eq!(row.get::<_, &str>(1), format!("x{wanted}"));
        }
        client
            .batch_execute("CREATE TABLE t (at TIMESTAMP, day DATE, time TIME)")
            .await
            .expect("t");
        let types = [Type::TIMESTAMPTZ, Type::TIMESTAMPTZ, Type::TIMESTAMPTZ];
        let insert = client.prepare_typed("INSERT INTO t VALUES ($1, $2, $3)", &types).await;
        let late = at + std::time::Duration::from_secs(3600);
        client.execute(&insert.expect("prepared"), &[&at, &late, &at]).await.expect("a row");
        let row = client.query_one("SELECT at::TEXT, day::TEXT, time::TEXT FROM t", &[]).await;
        let row = row.expect("a row");
        let texts: Vec<&str> = (0..3).map(|column| row.get(column)).collect();
        assert_eq!(texts, ["2023-11-14 23:13:20", "2023-11-15", "23:13:20"]);
    });
}

#[test]
fn a_parameter_compared_with_itself_keeps_its_declared_type() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let same = client.prepare_typed("SELECT $1 = $1", &[Type::BOOL]).await.expect("prepared");
        assert!(client.query_one(&same, &[&true]).await.expect("a row").get::<_, bool>(0));
    });
}

#[test]
fn a_text_that_is_cast_to_a_list_is_read_as_one() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for of in [Type::TEXT, Type::VARCHAR] {
            let texts = client.prepare_typed("SELECT $1::TEXT[], $1::INT[]", &[of]).await;
            let row = client.query_one(&texts.expect("prepared"), &[&"{1,NULL}"]).await;
            let row = row.expect("a row");
            assert_eq!(row.get::<_, Vec<Option<&str>>>(0), [Some("1"), None]);
            assert_eq!(row.get::<_, Vec<Option<i32>>>(1), [Some(1), None]);
        }
    });
}

#[test]
fn deallocate_all_has_postgresqls_tag() {
    let server = TestServer::start();
    let answer = answers(&server, &[message(b'Q', b"DEALLOCATE ALL\0")]);
    assert!(answer.windows(15).any(|tag| tag == b"DEALLOCATE ALL\0"), "{answer:?}");
}

#[test]
fn a_text_has_no_zero_byte() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let error = client.query("SELECT $1", &[&"a\0b"]).await.expect_err("a zero byte");
        assert_eq!(error.code(), Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE));
    });
}

#[test]
fn one_statement_is_prepared_or_none() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for empty in ["", " ; ", "-- ping", "/* ping */", "/* a */ ; -- b"] {
            assert_eq!(client.execute(empty, &[]).await.ok(), Some(0), "{empty}");
        }
        for one in ["SELECT 1; -- b", "/* a */ SELECT ';';", ";SELECT 1"] {
            assert_eq!(client.query(one, &[]).await.expect(one).len(), 1);
        }
        let error = client.prepare("SELECT 1; SELECT 2").await.expect_err("two");
        assert_eq!(error.code(), Some(&SqlState::SYNTAX_ERROR));
    });
}

#[test]
fn an_error_leaves_the_connection_usable() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let error = client.prepare("SELECT nix FROM nowhere").await.expect_err("no such table");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
        let error = client.query("SELECT 1 / $1", &[&0_i32]).await.expect_err("division by zero");
        assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO));
        assert_eq!(client.query("SELECT 1", &[]).await.expect("a row").len(), 1);
    });
}

#[test]
fn commands_are_prepared_too() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for sql in ["CREATE TABLE t (a INT)", "BEGIN", "SAVEPOINT s", "ROLLBACK TO s", "COMMIT"] {
            client.execute(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        let rows = client.query("EXPLAIN SELECT 1", &[]).await.expect("a plan");
        assert!(!rows.is_empty());
        let stream = client.query_raw("SELECT x FROM range(5000) t(x)", Vec::<i64>::new()).await;
        let rows: Vec<_> = stream.expect("it runs").try_collect().await.expect("rows");
        assert_eq!(rows.len(), 5000);
    });
}

#[test]
fn a_prepared_select_for_update_holds_its_rows() {
    let server = TestServer::start();
    block_on(async {
        let (mut ann, other) = (server.connect().await, server.connect().await);
        let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT); INSERT INTO t VALUES (1, 10), (2, 20)";
        ann.batch_execute(table).await.expect("a table");
        let transaction = ann.transaction().await.expect("a transaction");
        let query = "SELECT n FROM t WHERE id = $1 FOR UPDATE NOWAIT";
        let row = transaction.query_one(query, &[&1_i64]).await.expect("the row");
        assert_eq!(row.get::<_, i64>(0), 10);
        let error = other.query_one(query, &[&1_i64]).await.expect_err("it is locked");
        assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
        other.query_one(query, &[&2_i64]).await.expect("another row");
        transaction.commit().await.expect("it commits");
        other.query_one(query, &[&1_i64]).await.expect("it is free");
    });
}

#[test]
fn parameters_of_on_conflict_have_types() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
            .await
            .expect("a table");
        let upsert = client
            .prepare(
                "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = $3 WHERE t.n <> $4",
            )
            .await
            .expect("prepared");
        assert_eq!(upsert.params(), [Type::INT8, Type::INT4, Type::INT4, Type::INT4]);
        for (n, unless) in [(1, 0), (2, 0), (3, 2)] {
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&7_i64, &n, &(n * 10), &unless];
            client.execute(&upsert, &values).await.expect("a row");
        }
        let row = client.query_one("SELECT n FROM t", &[]).await.expect("the row");
        assert_eq!(row.get::<_, i32>(0), 30);
    });
}

#[test]
fn plain_columns_have_their_table_and_number() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client
            .batch_execute(
                "CREATE TABLE a (id BIGINT PRIMARY KEY, x INT, y TEXT);
                 CREATE SCHEMA s; CREATE TABLE s.b (z DOUBLE, id BIGINT);
                 CREATE VIEW v AS SELECT y AS why, x + 1 AS more FROM a",
            )
            .await
            .expect("tables");
        // The name according to pg_attribute, and according to the statement's description.
        let number = async |name: &str| {
            let (table, column) = name.rsplit_once('.')?;
            let sql = "SELECT attrelid, attnum FROM pg_attribute WHERE attrelid = TABLE::regclass AND attname = $1";
            let sql = sql.replace("TABLE", &format!("'{table}'"));
            let row = client.query_one(&sql, &[&column]).await.expect(name);
            Some((row.get::<_, u32>(0), row.get::<_, i16>(1)))
        };
        for (sql, origins) in [
            ("SELECT * FROM a", vec!["a.id", "a.x", "a.y"]),
            ("SELECT y, id FROM a WHERE id = $1", vec!["a.y", "a.id"]),
            ("SELECT x AS id, x + 1 AS x, 1 AS y FROM a ORDER BY id LIMIT 3", vec!["a.x", "", ""]),
            (
                "SELECT c.*, q.y FROM s.b c JOIN (SELECT DISTINCT id, y FROM a) q ON c.id = q.id",
                vec!["s.b.z", "s.b.id", "a.y"],
            ),
            ("SELECT l.x, r.y FROM a l LEFT JOIN a r USING (id)", vec!["a.x", "a.y"]),
            ("SELECT y, count(*), max(x) FROM a GROUP BY y", vec!["a.y", "", ""]),
            ("SELECT y, x FROM a GROUP BY ROLLUP (y, x)", vec!["", ""]),
            ("SELECT x, row_number() OVER (ORDER BY x) FROM a", vec!["a.x", ""]),
            ("SELECT id FROM a UNION ALL SELECT id FROM s.b", vec![""]),
            ("WITH w AS (SELECT x AS w FROM a) SELECT w FROM w", vec!["a.x"]),
            ("SELECT * FROM v", vec!["a.y", ""]),
            ("SELECT 1 AS x FROM range(3)", vec![""]),
        ] {
            let prepared =
                client.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            let told = prepared.columns().iter();
            let told: Vec<_> = told.map(|it| it.table_oid().zip(it.column_id())).collect();
            let mut wanted = Vec::new();
            for name in origins {
                wanted.push(number(name).await);
            }
            assert_eq!(told, wanted, "{sql}");
        }
    });
}

#[test]
fn simple_queries_describe_their_columns_on_every_path() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let table =
            "CREATE TABLE a (id BIGINT PRIMARY KEY, x INT); INSERT INTO a VALUES (1, 2), (3, 4)";
        client.batch_execute(table).await.expect("a table");
        let oid = client.query_one("SELECT 'a'::regclass::oid", &[]).await.expect("a number");
        let oid: u32 = oid.get(0);
        let texts = ["SELECT x, id FROM a WHERE x > 0\0", "SELECT x, id FROM a WHERE id = 1\0"];
        let sent: Vec<_> = texts.map(|text| message(b'Q', text.as_bytes())).into();
        let answer = answers(&server, &[sent.clone(), sent.clone(), sent].concat());
        let column =
            |name: &[u8], number: u8| [name, &[0], &oid.to_be_bytes(), &[0, number]].concat();
        for column in [column(b"x", 2), column(b"id", 1)] {
            let told = answer.windows(column.len()).filter(|window| *window == column);
            assert_eq!(told.count(), 6);
        }
    });
}

#[test]
fn series_and_items_of_json_take_parameters() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        for text in [
            "SELECT generate_series(1, $1) AS g ORDER BY g",
            "SELECT * FROM generate_series(1, $1) ORDER BY 1",
        ] {
            let series = client.prepare(text).await.expect(text);
            assert_eq!(series.params(), [Type::INT8], "{text}");
            let rows = client.query(&series, &[&3_i64]).await.expect(text);
            let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            assert_eq!(numbers, [1, 2, 3], "{text}");
        }
        let items = "SELECT value, ordinality FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY ORDER BY 2";
        let items = client.prepare(items).await.expect("it can be prepared");
        assert_eq!(items.columns()[0].type_(), &Type::JSONB);
    });
}

#[test]
fn a_number_that_a_column_cannot_hold_is_refused_and_others_are_rounded() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let made = "CREATE TABLE t (id INT PRIMARY KEY, a SMALLINT, n INT); INSERT INTO t VALUES (1, 1, 1)";
        client.batch_execute(made).await.expect("a table");
        for sql in [
            "INSERT INTO t VALUES ($1, 0, 0)",
            "INSERT INTO t VALUES (2, $1, 0)",
            "INSERT INTO t VALUES (2, 0, $1), (3, 0, 0)",
            "UPDATE t SET n = $1",
            "UPDATE t SET n = $1 WHERE id = 1",
            "UPDATE t SET n = n + $1 WHERE id = 1",
        ] {
            let write = client.prepare_typed(sql, &[Type::INT8]).await.expect(sql);
            let error = client.execute(&write, &[&5_000_000_000_i64]).await.expect_err(sql);
            assert_eq!(
                error.code(),
                Some(&SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
                "{sql}: {error:?}"
            );
        }
        let none = client.prepare_typed("SELECT * FROM t WHERE id = $1", &[Type::INT8]).await;
        let none = client.query(&none.expect("prepared"), &[&5_000_000_000_i64]).await;
        assert!(none.expect("no error").is_empty());
        let write = client.prepare_typed("INSERT INTO t VALUES (2, 0, $1)", &[Type::FLOAT8]).await;
        client.execute(&write.expect("prepared"), &[&-3.5_f64]).await.expect("a row");
        let rows = client.query("SELECT id, a, n FROM t ORDER BY id", &[]).await.expect("rows");
        let read = |row: &tokio_postgres::Row| (row.get(0), row.get(1), row.get(2));
        let rows: Vec<(i32, i16, i32)> = rows.iter().map(read).collect();
        assert_eq!(rows, [(1, 1, 1), (2, 0, -4)]);
    });
}

#[test]
fn the_path_of_a_json_value_is_an_array_of_texts() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let sql = "SELECT j #>> $1, (j #> $2)::TEXT, jsonb_set(j, $3, '7')::TEXT \
                   FROM (SELECT '{\"a\": [5, 6]}'::JSONB AS j) t";
        let prepared = client.prepare(sql).await.expect("prepared");
        assert_eq!(prepared.params(), [Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY]);
        let path = vec!["a", "1"];
        let row = client.query_one(&prepared, &[&path, &path, &path]).await.expect("a row");
        let texts: Vec<&str> = (0..3).map(|at| row.get(at)).collect();
        assert_eq!(texts, ["6", "6", "{\"a\": [5, 7]}"]);
    });
}

#[test]
fn parameters_and_columns_have_types_that_arrow_lacks() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        let made = "CREATE TABLE t (id INT, uid UUID, data JSONB, us UUID[], g INT[][], a INET, z TIMETZ, \
             v VARCHAR, x TEXT, vs VARCHAR[], w VARCHAR(3))";
        client.batch_execute(made).await.expect("a table");
        for (sql, parameters, columns) in [
            ("SELECT $1::UUID, $2::JSONB, $3::JSON", vec![Type::UUID, Type::JSONB, Type::JSON], 3),
            ("SELECT $1::UUID[], $2::JSONB[]", vec![Type::UUID_ARRAY, Type::JSONB_ARRAY], 2),
            ("SELECT data || $1 FROM t", vec![Type::JSONB], 0),
            ("SELECT id FROM t WHERE data @> $1", vec![Type::JSONB], 0),
            ("SELECT jsonb_set(data, '{a}', $1) FROM t", vec![Type::JSONB], 1),
            ("SELECT coalesce(uid, $1) FROM t", vec![Type::UUID], 1),
            (
                "SELECT $1::INET, $2::CIDR, $3::MACADDR, $4::TIMETZ, $5::INET[]",
                vec![Type::INET, Type::CIDR, Type::MACADDR, Type::TIMETZ, Type::INET_ARRAY],
                5,
            ),
            ("SELECT coalesce(a, $1) FROM t", vec![Type::INET], 1),
            ("SELECT id FROM t WHERE a = $1 AND z = $2", vec![Type::INET, Type::TIMETZ], 0),
            ("SELECT id FROM t WHERE a > $1 AND data < $2", vec![Type::INET, Type::JSONB], 0),
            ("SELECT jsonb_path_query(data, '$.a') FROM t WHERE data @? '$.a'", vec![], 0),
            ("SELECT array_append(us, $1) FROM t", vec![Type::UUID], 0),
            (
                "INSERT INTO t (id, uid, data) SELECT $1, $2, $3",
                vec![Type::INT4, Type::UUID, Type::JSONB],
                0,
            ),
            ("INSERT INTO t (g) VALUES ($1)", vec![Type::INT4_ARRAY], 0),
            ("INSERT INTO t (v, x) VALUES ($1, $2)", vec![Type::VARCHAR, Type::TEXT], 0),
        ] {
            let statement = client.prepare(sql).await.expect(sql);
            assert_eq!(statement.params(), parameters, "{sql}");
            let found: Vec<Type> =
                statement.columns().iter().take(columns).map(|it| it.type_().clone()).collect();
            let parameters = &parameters[..columns.min(parameters.len())];
            assert_eq!(found, parameters, "{sql}");
        }
        for (sql, of) in [
            ("SELECT gen_random_uuid()", Type::UUID),
            ("SELECT coalesce(json_agg(id), '[]') FROM t", Type::JSON),
            ("SELECT CASE WHEN id = 1 THEN uid END FROM t", Type::UUID),
            ("SELECT us[1] FROM t", Type::UUID),
            ("SELECT unnest(us) FROM t", Type::UUID),
            ("SELECT ARRAY(SELECT uid FROM t)", Type::UUID_ARRAY),
            ("SELECT '{}'::JSON[]", Type::JSON_ARRAY),
            ("SELECT g FROM t", Type::INT4_ARRAY),
            ("SELECT array_dims(g) FROM t", Type::TEXT),
            ("SELECT ROW(1, 'a')", Type::RECORD),
            ("SELECT 'a'::VARCHAR(3)", Type::VARCHAR),
            ("SELECT v FROM t", Type::VARCHAR),
            ("SELECT x FROM t", Type::TEXT),
            ("SELECT vs FROM t", Type::VARCHAR_ARRAY),
            ("SELECT w FROM (SELECT * FROM t) q", Type::VARCHAR),
            ("SELECT v || x FROM t", Type::TEXT),
            ("SELECT greatest(a, '::1') FROM t", Type::INET),
            ("SELECT least(data, '1') FROM t", Type::JSONB),
            ("SELECT z + INTERVAL '1 hour' FROM t", Type::TIMETZ),
            ("SELECT '10:00+01'::TIMETZ(0)", Type::TIMETZ),
            ("SELECT c FROM (VALUES ('10.0.0.1'::INET), ('::1')) q(c)", Type::INET),
        ] {
            let statement = client.prepare(sql).await.expect(sql);
            assert_eq!(statement.columns()[0].type_(), &of, "{sql}");
        }
    });
}

#[test]
fn addresses_and_zoned_times_have_postgresql_s_binary_form() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE hosts (a INET PRIMARY KEY)").await.expect("a table");
        let addresses: [IpAddr; 3] =
            ["10.0.0.10", "10.0.0.9", "::ffff:1.2.3.4"].map(|it| it.parse().expect(it));
        for address in &addresses {
            client.execute("INSERT INTO hosts VALUES ($1)", &[address]).await.expect("a row");
            let found = client.query_one("SELECT a FROM hosts WHERE a = $1", &[address]).await;
            assert_eq!(found.expect("a row").get::<_, IpAddr>(0), *address);
        }
        let sql = "SELECT a FROM hosts WHERE a > $1 ORDER BY a";
        let above = client.query(sql, &[&addresses[1]]).await.expect("rows");
        let above: Vec<IpAddr> = above.iter().map(|row| row.get(0)).collect();
        assert_eq!(above, [addresses[0], addresses[2]]);
        let list = client.query_one("SELECT $1::INET[]", &[&addresses.to_vec()]).await;
        assert_eq!(list.expect("a row").get::<_, Vec<IpAddr>>(0), addresses);
        for (sql, bytes) in [
            ("SELECT '10.1.0.0/16'::CIDR", b"\x02\x10\x01\x04\x0a\x01\0\0".as_slice()),
            ("SELECT '08:00:2b:01:02:03'::MACADDR", b"\x08\0\x2b\x01\x02\x03"),
            ("SELECT '00:00:01+01'::TIMETZ", b"\0\0\0\0\0\x0f\x42\x40\xff\xff\xf1\xf0"),
        ] {
            let row = client.query_one(sql, &[]).await.expect(sql);
            assert_eq!(row.get::<_, AnyBytes>(0).0, bytes, "{sql}");
        }
    });
}

/// The bytes of a value of any type.
struct AnyBytes(Vec<u8>);

impl<'a> FromSql<'a> for AnyBytes {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
