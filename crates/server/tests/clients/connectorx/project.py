"""connectorx: queries read in partitions, in its three ways of asking (binary, cursor, csv, simple)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import connectorx as cx
import psycopg

types = """i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(9,2), b bool, t text, v varchar(9), c char(3), d date, ts timestamp,
    tz timestamptz, tm time, u uuid, j json, jb jsonb, raw bytea, ai int[], at text[], af float8[], m mood"""


@step
def create():
    with psycopg.connect(url()) as c:
        c.execute("CREATE TYPE mood AS ENUM ('glad', 'sad')")
        c.execute(f"CREATE TABLE everything (id int primary key, {types})")
        c.execute("""INSERT INTO everything SELECT n, 1, 2, 3, 1.5, 2.5, 3.25, true, 'text', 'var', 'cha', '2024-01-02', '2024-01-02 03:04:05', '2024-01-02 03:04:05+00',
            '03:04:05', '00000000-0000-0000-0000-000000000001', '{"a": 1}', '{"a": 1}', '\\x00ff', '{1,2}', '{a,b}', '{1.5}', 'sad' FROM generate_series(1, 50) AS g(n)""")
        c.execute("INSERT INTO everything (id) VALUES (51)")


def protocol(name):
    def read():
        columns = "id, i2, i4, i8, f4, f8, n, b, t, v, c, d, ts, tz, tm, u, m" + ("" if name == "csv" else ", j, jb, raw, ai, af")
        got = cx.read_sql(url() + f"?cxprotocol={name}", f"SELECT {columns} FROM everything WHERE id <= 51", partition_on="id", partition_num=3, return_type="arrow")
        row = sorted(got.to_pylist(), key=lambda r: r["id"])[0]
        equal((row["i8"], row["f8"], float(row["n"]), row["b"], row["t"], row["c"], str(row["d"]), row["m"]), (3, 2.5, 3.25, True, "text", "cha", "2024-01-02", "sad"))
        equal(got.num_rows, 51)

    read.__name__ = f"read {name}"
    step(read)


for name in ("binary", "cursor", "csv", "simple"):
    protocol(name)


@step
def the_range_and_the_schema():
    equal(len(cx.read_sql(url(), ["SELECT id FROM everything WHERE id < 10", "SELECT id FROM everything WHERE id > 40"])), 20)
    equal(cx.read_sql(url(), "SELECT t, sum(i8) AS s FROM everything GROUP BY t ORDER BY t")["s"].tolist()[0], 150)


@step
def drop():
    with psycopg.connect(url()) as c:
        c.execute("DROP TABLE everything")
        c.execute("DROP TYPE mood")
