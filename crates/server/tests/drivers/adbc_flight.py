"""ADBC over Arrow Flight SQL: rows as Arrow tables, parameters, transactions, ingestion, metadata, errors."""

import decimal
import sys

import adbc_driver_flightsql.dbapi as flightsql
import pyarrow as pa

uri = f"grpc://127.0.0.1:{sys.argv[1]}"


def connect(**options):
    return flightsql.connect(uri, db_kwargs={"username": "ann", "password": "x"}, **options)


with connect(autocommit=True) as c, c.cursor() as cursor:
    cursor.execute("CREATE TABLE p (a INT PRIMARY KEY, b TEXT, c DECIMAL(10,2), d TIMESTAMP, e INT[])")
    assert cursor.execute("SELECT current_user").fetchone() == ("ann",)

    # Rows in Arrow's types.
    cursor.execute("INSERT INTO p VALUES (1, 'x', 1.5, '2024-02-29 01:02:03', [1, NULL]), (2, NULL, NULL, NULL, NULL)")
    cursor.execute("SELECT * FROM p ORDER BY a")
    table = cursor.fetch_arrow_table()
    assert [str(field.type) for field in table.schema][:4] == ["int32", "string", "decimal128(10, 2)", "timestamp[us]"], table.schema
    assert table.column("c").to_pylist() == [decimal.Decimal("1.50"), None]
    assert table.column("e").to_pylist() == [[1, None], None]
    cursor.execute("SELECT value, 'text ' || value AS t FROM range(200000) WHERE value < 0")
    assert cursor.fetch_arrow_table().num_rows == 0
    cursor.execute("SELECT value, 'text ' || value AS t FROM range(200000) ORDER BY value")
    table = cursor.fetch_arrow_table()
    assert (table.num_rows, table.column("t")[199999].as_py()) == (200000, "text 199999")

    # A reader that is closed early.
    cursor.execute("SELECT value FROM range(1000000000)")
    cursor.fetchone()

with connect(autocommit=True) as c, c.cursor() as cursor:
    # Parameters: one row, and many.
    cursor.execute("SELECT b FROM p WHERE a = $1", (1,))
    assert cursor.fetchall() == [("x",)]
    cursor.execute("SELECT $1 AS x, $2 AS y", (5, "text"))
    assert cursor.fetchall() == [(5, "text")]
    cursor.executemany("INSERT INTO p (a, b) VALUES ($1, $2)", [(at, f"r{at}") for at in range(10, 110)])
    assert cursor.rowcount in (100, -1), cursor.rowcount
    cursor.execute("SELECT count(*), min(b) FROM p WHERE a >= $1", (10,))
    assert cursor.fetchone() == (100, "r10")

    # Ingestion.
    rows = pa.table({
        "id": pa.array(range(100000), pa.int64()),
        "word": pa.array([f"w{at % 7}" for at in range(100000)]).dictionary_encode(),
        "real": pa.array([at / 2 for at in range(100000)]),
        "none": pa.nulls(100000),
    })
    assert cursor.adbc_ingest("q", rows, mode="create") == 100000
    assert cursor.adbc_ingest("q", rows.slice(0, 10), mode="append") == 10
    cursor.execute("SELECT count(*), count(DISTINCT word), sum(\"real\"), count(none) FROM q")
    assert cursor.fetchone() == (100010, 7, 2499975000.0 + 22.5, 0)
    assert cursor.adbc_ingest("q", rows.slice(0, 5), mode="replace") == 5
    assert cursor.adbc_ingest("q", rows.to_reader(), mode="create_append") == 100000
    try:
        cursor.adbc_ingest("q", rows, mode="create")
        raise AssertionError("the table is there")
    except flightsql.Error as error:
        assert "42P07" in str(error), error

    # Metadata.
    found = c.adbc_get_objects(depth="all", catalog_filter="atoll", db_schema_filter="public").read_all().to_pylist()
    assert [it["catalog_name"] for it in found] == ["atoll"], found
    tables = {it["table_name"]: it for it in found[0]["catalog_db_schemas"][0]["db_schema_tables"]}
    assert set(tables) == {"p", "q"} and tables["p"]["table_type"] == "TABLE", tables
    assert [it["column_name"] for it in tables["p"]["table_columns"]] == ["a", "b", "c", "d", "e"], tables
    assert sorted(c.adbc_get_table_types()) == ["SYSTEM TABLE", "TABLE", "VIEW"]
    assert c.adbc_get_info()["vendor_name"] == "Atoll"
    assert c.adbc_get_table_schema("p", db_schema_filter="public").names == ["a", "b", "c", "d", "e"]
    prepared = cursor.adbc_prepare("SELECT a FROM p WHERE b = $1 AND a > $2")
    assert len(prepared) == 2, prepared

    # Errors.
    for sql, state in [("SELECT * FROM nothing", "42P01"), ("SELECT 1 / 0", "22012"), ("SELEC", "42601")]:
        try:
            cursor.execute(sql)
            cursor.fetchall()
            raise AssertionError(sql)
        except flightsql.Error as error:
            assert state in str(error), error

# Transactions: what is not committed is undone.
with connect() as c, c.cursor() as cursor:
    cursor.execute("INSERT INTO p (a) VALUES (1000)")
    c.rollback()
    cursor.execute("INSERT INTO p (a) VALUES (1001)")
    c.commit()
    cursor.execute("INSERT INTO p (a) VALUES (1002)")
    cursor.execute("SELECT a FROM p WHERE a >= 1000 ORDER BY a")
    assert cursor.fetchall() == [(1001,), (1002,)]
with connect() as c, c.cursor() as cursor:
    cursor.execute("SELECT a FROM p WHERE a >= 1000")
    assert cursor.fetchall() == [(1001,)]
