"""polars: frames written and read over ADBC, SQLAlchemy and connectorx."""

import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import polars as pl
import sqlalchemy as sa

frame = pl.DataFrame({
    "id": [1, 2, 3], "small": pl.Series([1, None, 3], dtype=pl.Int16), "x": [1.5, None, 2.5], "s": ["a", None, "c"], "ok": [True, False, None],
    "day": [datetime.date(2024, 1, 2)] * 3, "at": [datetime.datetime(2024, 1, 2, 3, 4, 5, 6)] * 3, "b": [b"\0\xff", None, b""],
    "list": pl.Series([[1, 2], [], None], dtype=pl.List(pl.Int64)),
})
engine = sa.create_engine(url("postgresql+psycopg"))


@step
def write_over_adbc():
    equal(frame.write_database("frame", url(), engine="adbc"), 3)
    equal(frame.write_database("frame", url(), engine="adbc", if_table_exists="append"), 3)
    equal(frame.write_database("frame", url(), engine="adbc", if_table_exists="replace"), 3)


@step
def read_over_adbc():
    got = pl.read_database_uri("SELECT * FROM frame ORDER BY id", url(), engine="adbc")
    assert got.equals(frame), got
    equal(got.schema, frame.schema)


@step
def read_over_connectorx():
    got = pl.read_database_uri('SELECT id, small, x, s, ok, day, "at", b FROM frame ORDER BY id', url(), engine="connectorx")
    equal(got.drop("at", "b").rows(), frame.drop("at", "b", "list").rows())
    got = pl.read_database_uri("SELECT id, s FROM frame", url(), engine="connectorx", partition_on="id", partition_num=2)
    equal(sorted(got["id"]), [1, 2, 3])


@step
def over_sqlalchemy():
    frame.drop("list", "b").write_database("plain", engine, if_table_exists="replace")
    got = pl.read_database(sa.text("SELECT * FROM plain WHERE id > :n ORDER BY id"), engine, execute_options={"parameters": {"n": 1}})
    equal(got["s"].to_list(), [None, "c"])
    with engine.connect() as c:
        equal([len(b) for b in pl.read_database("SELECT n FROM generate_series(1, 10) AS g(n)", c, iter_batches=True, batch_size=4)], [4, 4, 2])


@step
def drop():
    with engine.begin() as c:
        c.execute(sa.text("DROP TABLE frame, plain"))
