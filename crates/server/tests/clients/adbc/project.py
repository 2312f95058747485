"""ADBC's driver of PostgreSQL's protocol: Arrow tables in and out by COPY, its catalog calls, parameters, transactions."""

import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa

UTC = datetime.UTC
columns = {
    "i8": pa.array([1, None, 3], pa.int8()), "i16": pa.array([1, None, -3], pa.int16()), "i32": pa.array([1, None, 3], pa.int32()),
    "i64": pa.array([2**62, None, -3]), "f32": pa.array([1.5, None, 2.5], pa.float32()), "f64": pa.array([1.5, None, float("inf")]),
    "ok": pa.array([True, None, False]), "s": pa.array(["a", None, "ü,\t\"'\\"]), "large": pa.array(["a", None, ""], pa.large_string()),
    "bytes": pa.array([b"\x00\xff", None, b""]), "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 1, 1)]),
    "hour": pa.array([datetime.time(3, 4, 5, 678), None, datetime.time(0)], pa.time64("us")),
    "at": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 678901), None, datetime.datetime(1999, 1, 1)], pa.timestamp("us")),
    "zone": pa.array([datetime.datetime(2024, 1, 2, tzinfo=UTC), None, datetime.datetime(1999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "numbers": pa.array([[1, None], None, []], pa.list_(pa.int32())), "words": pa.array([["x"], None, ["y", "z"]], pa.list_(pa.string())),
}
table = pa.table({"key": pa.array([1, 2, 3], pa.int64()), **columns})
connection = adbc.connect(url())
cursor = connection.cursor()


def rows(sql, *parameters):
    cursor.execute(sql, parameters or None)
    return cursor.fetchall()


@step
def ingest():
    equal(cursor.adbc_ingest("items", table, mode="create"), 3)
    connection.commit()


@step
def every_type_comes_back():
    cursor.execute("SELECT * FROM items ORDER BY key")
    back = cursor.fetch_arrow_table()
    for name in table.column_names:
        equal((name, back[name].to_pylist()), (name, table[name].to_pylist()))
    equal([str(back.schema.field(n).type) for n in ("i8", "i32", "f32", "at", "zone", "words")],
          ["int16", "int32", "float", "timestamp[us]", "timestamp[us, tz=UTC]", "list<item: string>"])


@step
def types_that_arrow_lacks():
    cursor.execute("SELECT 1.50::numeric AS n, '1 month 2 days'::interval AS i, '{\"a\": 1}'::jsonb AS j, '00000000-0000-0000-0000-000000000001'::uuid AS u")
    back = cursor.fetch_arrow_table().to_pylist()[0]
    equal((back["n"], back["i"], back["j"]), ("1.5" if back["n"] == "1.5" else "1.50", pa.scalar((1, 2, 0), pa.month_day_nano_interval()).as_py(), '{"a": 1}'))


@step
def append_replace_and_temporary():
    cursor.adbc_ingest("items", table, mode="append")
    equal(rows("SELECT count(*), count(i64) FROM items"), [(6, 4)])
    cursor.adbc_ingest("items", table.slice(0, 1), mode="replace")
    cursor.adbc_ingest("items", table.slice(1, 1), mode="create_append")
    equal(rows("SELECT key FROM items ORDER BY key"), [(1,), (2,)])
    cursor.adbc_ingest("passing", table, mode="create", temporary=True)
    equal(rows("SELECT count(*) FROM passing"), [(3,)])
    connection.commit()
    try:
        cursor.adbc_ingest("items", table, mode="create")
    except connection.Error as error:
        assert "already exists" in str(error)
        connection.rollback()
        return
    raise AssertionError("a table was created twice")


@step
def a_schema_of_its_own():
    cursor.execute("CREATE SCHEMA other")
    cursor.adbc_ingest("many", pa.table({"n": pa.array(range(100_000), pa.int64())}), mode="create", db_schema_name="other")
    equal(rows("SELECT sum(n)::bigint FROM other.many"), [(4999950000,)])
    connection.commit()


@step
def parameters():
    equal(rows("SELECT $1::bigint + 1, $2::text, $3::float8, $4::bool", 41, "x", 1.5, True), [(42, "x", 1.5, True)])
    cursor.executemany("INSERT INTO items (key, s, day, numbers) VALUES ($1, $2, $3, $4)",
                       pa.table({"a": [10, 11], "b": ["p", None], "c": pa.array([datetime.date(2024, 1, 2)] * 2), "d": pa.array([[1], [2, 3]], pa.list_(pa.int32()))}))
    equal(rows("SELECT key, s, day, numbers[1] FROM items WHERE key >= 10 ORDER BY key"),
          [(10, "p", datetime.date(2024, 1, 2), 1), (11, None, datetime.date(2024, 1, 2), 2)])
    equal(rows("SELECT key FROM items WHERE key = ANY($1::bigint[]) ORDER BY key", [1, 10]), [(1,), (10,)])


@step
def transactions():
    connection.commit()
    cursor.execute("DELETE FROM items")
    connection.rollback()
    equal(rows("SELECT count(*) FROM items"), [(4,)])
    try:
        cursor.execute("SELECT 1 / 0")
        cursor.fetchall()
    except connection.Error as error:
        equal(error.sqlstate, "22012")
        connection.rollback()


@step
def its_catalog():
    equal(connection.adbc_get_table_schema("items").field("numbers").type, pa.list_(pa.int32()))
    equal(connection.adbc_get_table_schema("many", db_schema_filter="other").names, ["n"])
    cursor.execute("CREATE TABLE parent (a int PRIMARY KEY, b text UNIQUE, CHECK (a > 0))")
    cursor.execute("CREATE TABLE child (c int, d int NOT NULL REFERENCES parent (a), PRIMARY KEY (c, d))")
    connection.commit()
    catalogs = connection.adbc_get_objects(depth="all", db_schema_filter="public", table_name_filter="child").read_all().to_pylist()
    child = next(c for c in catalogs if c["catalog_db_schemas"])["catalog_db_schemas"][0]["db_schema_tables"][0]
    equal([c["column_name"] for c in child["table_columns"]], ["c", "d"])
    equal(sorted((c["constraint_type"], c["constraint_column_names"]) for c in child["table_constraints"]), [("FOREIGN KEY", ["d"]), ("PRIMARY KEY", ["c", "d"])])
    key = next(c for c in child["table_constraints"] if c["constraint_type"] == "FOREIGN KEY")
    equal([(u["fk_table"], u["fk_column_name"]) for u in key["constraint_column_usage"]], [("parent", "a")])
    equal("table" in connection.adbc_get_table_types(), True)
    equal(connection.adbc_get_info()["driver_name"], "ADBC PostgreSQL Driver")


@step
def statistics_and_partitions():
    cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": "1024"})
    cursor.execute("SELECT * FROM generate_series(1, 5000) AS g(n)")
    equal(cursor.fetch_arrow_table().num_rows, 5000)
    cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
    equal(rows("SHOW server_encoding"), [("UTF8",)])


@step
def drop():
    connection.commit()
    cursor.execute("DROP TABLE child, parent, items")
    cursor.execute("DROP SCHEMA other CASCADE")
    connection.commit()
    equal(rows("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), [(0,)])
