"""pandas: frames written with an index and read back, in pieces too, over SQLAlchemy and over ADBC."""

import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import adbc_driver_postgresql.dbapi as adbc
import numpy as np
import pandas as pd
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

engine = sa.create_engine(url("postgresql+psycopg"))
frame = pd.DataFrame({
    "n": pd.Series([1, 2, 3], dtype="int64"), "small": pd.Series([1, 2, 3], dtype="int16"), "x": [1.5, np.nan, 2.5],
    "s": ["a", None, "c"], "ok": [True, False, True],
    "at": pd.to_datetime(["2024-01-02 03:04:05.678901", None, "2024-05-06 00:00:00.500000"]),
    "zone": pd.to_datetime(["2024-01-02", "2024-03-04", "2024-05-06"], utc=True),
    "day": [datetime.date(2024, 1, 2)] * 3, "maybe": pd.Series([1, None, 3], dtype="Int64"),
})
frame.index = pd.Index([10, 20, 30], name="key")


@step
def to_sql_with_an_index():
    frame.to_sql("frame", engine)
    i = sa.inspect(engine)
    equal(i.get_indexes("frame")[0]["column_names"], ["key"])
    equal({c["name"]: str(c["type"]) for c in i.get_columns("frame")}, {
        "key": "BIGINT", "n": "BIGINT", "small": "SMALLINT", "x": "DOUBLE PRECISION", "s": "TEXT",
        "ok": "BOOLEAN", "at": "TIMESTAMP", "zone": "TIMESTAMP", "day": "DATE", "maybe": "BIGINT"})


@step
def read_sql_table():
    back = pd.read_sql_table("frame", engine, index_col="key", parse_dates=["day"])
    equal(list(back.index), [10, 20, 30])
    equal([str(back[c].dtype).split("[")[0] for c in ("n", "x", "ok", "at", "zone")], ["int64", "float64", "bool", "datetime64", "datetime64"])
    equal(back["at"][10], frame["at"][10])
    equal(back["zone"].tolist(), frame["zone"].tolist())


@step
def append_and_replace():
    frame.to_sql("frame", engine, if_exists="append", method="multi", chunksize=2)
    equal(pd.read_sql("SELECT count(*) AS c FROM frame", engine)["c"][0], 6)
    frame.to_sql("frame", engine, if_exists="replace", index_label=["id"], dtype={"s": sa.String(5), "n": sa.Numeric(6, 2), "x": pg.REAL})
    equal(pd.read_sql("frame", engine)["id"].tolist(), [10, 20, 30])
    try:
        frame.to_sql("frame", engine)
    except ValueError:
        return
    raise AssertionError("a table was replaced")


@step
def two_levels_and_a_schema():
    with engine.begin() as c:
        c.execute(sa.text("CREATE SCHEMA other"))
    many = pd.DataFrame({"v": range(4)}, index=pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["k", "l"]))
    many.to_sql("many", engine, schema="other")
    equal(pd.read_sql_table("many", engine, schema="other", index_col=["k", "l"])["v"].sum(), 6)
    equal(sorted(x["column_names"] for x in sa.inspect(engine).get_indexes("many", schema="other")), [["k"], ["l"]])


@step
def parameters_and_pieces():
    q = sa.text("SELECT * FROM frame WHERE id > :low ORDER BY id")
    equal(pd.read_sql_query(q, engine, params={"low": 10})["id"].tolist(), [20, 30])
    with engine.connect().execution_options(stream_results=True) as c:
        equal([len(p) for p in pd.read_sql_query("SELECT * FROM generate_series(1, 10) AS g(n)", c, chunksize=4)], [4, 4, 2])


@step
def copy():
    def by_copy(table, connection, keys, rows):
        with connection.connection.cursor() as cursor, cursor.copy(f"COPY {table.name} ({', '.join(keys)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    pd.DataFrame({"a": range(1000), "b": [f"x{i}" for i in range(1000)]}).to_sql("copied", engine, index=False, method=by_copy)
    equal(pd.read_sql("SELECT sum(a) AS s, min(b) AS m FROM copied", engine).iloc[0].tolist(), [499500, "x0"])


@step
def over_adbc():
    with adbc.connect(url()) as c:
        f = frame.reset_index().drop(columns=["day"])
        f.to_sql("by_adbc", c, index=False)
        c.commit()
        back = pd.read_sql("SELECT * FROM by_adbc ORDER BY key", c, dtype_backend="pyarrow")
        equal(back["n"].tolist(), [1, 2, 3])
        equal(back["at"][0], frame["at"][10])
        f.to_sql("by_adbc", c, index=False, if_exists="append")
        f.to_sql("by_adbc", c, index=False, if_exists="replace")
        c.commit()
        equal(len(pd.read_sql_table("by_adbc", c)), 3)


@step
def drop():
    with engine.begin() as c:
        c.execute(sa.text("DROP TABLE frame, copied, by_adbc; DROP SCHEMA other CASCADE"))
    equal(sa.inspect(engine).get_table_names(), [])
