//! Queries like those with which Grafana, Metabase and others read a schema.

use tokio_postgres::SimpleQueryMessage;

use crate::support::{TestServer, block_on};

const SCHEMA: &str = "\
CREATE TABLE item (id INT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', price DECIMAL(10,2), at TIMESTAMPTZ,
    number BIGINT GENERATED ALWAYS AS IDENTITY);
CREATE SCHEMA stock; CREATE TABLE stock.part (a INT, b INT, PRIMARY KEY (b, a)); CREATE VIEW cheap AS SELECT id FROM item";

/// Queries and their rows.
const QUERIES: &[(&str, &[&str])] = &[
    // Grafana: tables, with their schema if it is not on the path.
    (
        "SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END
             FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                 array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
             string_to_array(current_setting('search_path'), ',') s)
         THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS \"table\"
         FROM information_schema.tables WHERE quote_ident(table_schema) IN ('public', 'stock') ORDER BY 1",
        &["cheap", "item", "stock.part"],
    ),
    // Grafana: columns of a table, and its time columns.
    (
        "SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name = 'item' AND udt_name IN ('timestamptz', 'int4') ORDER BY 1",
        &["at|timestamp with time zone", "id|integer"],
    ),
    ("SELECT current_setting('server_version_num')::int / 100", &["1500"]),
    ("SELECT extname, extversion FROM pg_extension WHERE extname = 'timescaledb'", &[]),
    // Metabase: fields with their keys.
    (
        "SELECT c.column_name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name)
             ELSE FORMAT('\"%s\".\"%s\"', c.udt_schema, c.udt_name) END AS \"database-type\",
             c.ordinal_position - 1, pk.column_name IS NOT NULL AS \"pk?\",
             COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID),
                 c.ordinal_position) AS \"field-comment\",
             (((c.column_default IS NOT NULL) AND (c.column_default LIKE '%nextval(%')) OR (c.is_identity <> 'NO'))
         FROM information_schema.columns AS c
         LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
             JOIN information_schema.key_column_usage AS kc ON tc.constraint_name = kc.constraint_name
                 AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
             WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
             ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
         WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('public') AND c.table_name = 'item'
         ORDER BY c.ordinal_position",
        &[
            "id|int4|0|t|NULL|f",
            "name|text|1|f|NULL|f",
            "price|numeric|2|f|NULL|f",
            "at|timestamptz|3|f|NULL|f",
            "number|int8|4|f|NULL|t",
        ],
    ),
    // Metabase: tables and privileges on them.
    (
        "WITH table_privileges AS (
             SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
                 pg_catalog.has_any_column_privilege(current_user, '\"' || t.schemaname || '\".\"' || t.objectname || '\"', 'update') AS update,
                 pg_catalog.has_table_privilege(current_user, '\"' || t.schemaname || '\".\"' || t.objectname || '\"', 'delete') AS delete
             FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
                 UNION SELECT schemaname, viewname AS objectname FROM pg_catalog.pg_views) t
             WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema' AND t.schemaname <> 'atoll'
                 AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE'))
         SELECT t.schema, t.table, t.update, t.delete FROM table_privileges t ORDER BY 1, 2",
        &["public|cheap|t|t", "public|item|t|t", "stock|part|t|t"],
    ),
    // Drivers' queries about types.
    (
        "SELECT t.oid, t.typname, t.typelem, t.typtype, ns.nspname FROM pg_catalog.pg_type AS t
         INNER JOIN pg_catalog.pg_namespace AS ns ON (ns.oid = t.typnamespace)
         WHERE t.typname = 'int4' AND ns.nspname = 'pg_catalog'",
        &["23|int4|0|b|pg_catalog"],
    ),
    (
        "SELECT pg_type.oid, pg_type.typname FROM pg_catalog.pg_type LEFT JOIN
             (SELECT ns.oid AS nspoid, ns.nspname, r.r FROM pg_namespace AS ns
              JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname
                    FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r USING (nspname)) AS sp
             ON sp.nspoid = typnamespace WHERE pg_type.typname = 'json' ORDER BY sp.r, pg_type.oid DESC",
        &["114|json"],
    ),
    (
        "SELECT string_agg(word, ',') IS NOT NULL FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,absolute}'::text[])",
        &["t"],
    ),
    ("SELECT indkey, indclass FROM pg_index WHERE indrelid = 'stock.part'::regclass", &["2 1|10000 10000"]),
    // The columns of keys, in order.
    (
        "SELECT a.attname, (result.keys).n FROM (SELECT i.indrelid, information_schema._pg_expandarray(i.indkey) AS keys
             FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
             WHERE c.relname = 'part' AND i.indisprimary) result
         JOIN pg_catalog.pg_attribute a ON a.attrelid = result.indrelid AND a.attnum = (result.keys).x ORDER BY 2",
        &["b|1", "a|2"],
    ),
    ("SELECT datname, pg_catalog.pg_encoding_to_char(encoding) FROM pg_database WHERE datallowconn", &["atoll|UTF8"]),
    ("SELECT usename, state FROM pg_stat_activity WHERE pid = pg_backend_pid()", &["ann|active"]),
    ("SELECT setting FROM pg_settings WHERE name = 'max_index_keys'", &["32"]),
];

#[test]
fn schema_queries_return_the_same_as_in_postgresql() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute(SCHEMA).await.expect("a schema");
        let mut wrong = Vec::new();
        for (sql, wanted) in QUERIES {
            let found = match client.simple_query(sql).await {
                Ok(messages) => messages.iter().filter_map(row).collect::<Vec<_>>(),
                Err(error) => vec![format!("{error:?}")],
            };
            if found != *wanted {
                wrong.push(format!("{sql}\n  found {found:?}\n  wanted {wanted:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    });
}

fn row(message: &SimpleQueryMessage) -> Option<String> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let values = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
    Some(values.collect::<Vec<_>>().join("|"))
}

#[test]
fn oids_and_names_have_their_types_in_binary_form() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute(SCHEMA).await.expect("a schema");
        let sql = "SELECT oid, relname, relkind, reloptions FROM pg_class WHERE relname = $1";
        let row = client.query_one(sql, &[&"item"]).await.expect("a row");
        let oid: u32 = row.get(0);
        assert_eq!(row.get::<_, String>(1), "item");
        assert_eq!(row.get::<_, i8>(2), b'r' as i8);
        assert_eq!(row.get::<_, Option<Vec<String>>>(3), None);
        let sql = "SELECT 'item'::regclass::oid, indkey, indclass FROM pg_index WHERE indrelid = 'item'::regclass";
        let row = client.query_one(sql, &[]).await.expect("a row");
        assert_eq!(row.get::<_, u32>(0), oid);
        assert_eq!(row.get::<_, Vec<i16>>(1), [1]);
        assert_eq!(row.get::<_, Vec<u32>>(2).len(), 1);
    });
}

#[test]
fn privilege_functions_match_the_rights() {
    let server = TestServer::start();
    block_on(async {
        let client = server.connect().await;
        client.batch_execute(SCHEMA).await.expect("a schema");
        client
            .batch_execute("CREATE ROLE eve LOGIN; GRANT SELECT ON item TO eve")
            .await
            .expect("a role");
        for (sql, wanted) in [
            ("has_table_privilege('eve', 'item', 'SELECT')", true),
            ("has_table_privilege('eve', 'item', 'INSERT')", false),
            ("has_table_privilege('eve', 'item', 'INSERT, SELECT')", true),
            ("has_table_privilege('eve', 'item'::regclass, 'SELECT WITH GRANT OPTION')", false),
            ("has_table_privilege('item', 'DELETE')", true),
            ("has_schema_privilege('eve', 'stock', 'USAGE')", false),
            ("has_schema_privilege('eve', 'public', 'USAGE')", true),
            ("has_table_privilege('eve', 'pg_class', 'SELECT')", true),
        ] {
            let row = client.query_one(&format!("SELECT {sql}"), &[]).await.expect(sql);
            assert_eq!(row.get::<_, bool>(0), wanted, "{sql}");
        }
        assert!(
            client
                .query_one("SELECT has_table_privilege('unknown', 'item', 'SELECT')", &[])
                .await
                .is_err()
        );
        assert!(
            client
                .query_one("SELECT has_table_privilege('eve', 'item', 'FLY')", &[])
                .await
                .is_err()
        );
    });
}
