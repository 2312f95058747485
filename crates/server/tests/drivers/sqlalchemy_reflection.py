"""SQLAlchemy: a schema that is reflected, and one that is made from its own description."""

import sys

import sqlalchemy as sa

port = sys.argv[1]
engine = sa.create_engine(f"postgresql+psycopg://ann@127.0.0.1:{port}/atoll")
with engine.begin() as c:
    for sql in [
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c DECIMAL(10,2) CHECK (c > 0),"
        " d TIMESTAMPTZ, e INT[], f BIGINT GENERATED ALWAYS AS IDENTITY, UNIQUE (b, c))",
        "CREATE SCHEMA s",
        "CREATE TABLE s.w (k INT, m INT, PRIMARY KEY (m, k))",
        "CREATE VIEW v AS SELECT a, b FROM t",
        "CREATE SEQUENCE q",
    ]:
        c.execute(sa.text(sql))
look = sa.inspect(engine)
assert look.default_schema_name == "public"
assert {"public", "s", "information_schema"} <= set(look.get_schema_names()), look.get_schema_names()
assert look.get_table_names() == ["t"], look.get_table_names()
assert look.get_table_names("s") == ["w"]
assert look.get_view_names() == ["v"]
assert "FROM t" in look.get_view_definition("v")
assert look.has_table("t") and look.has_table("v") and not look.has_table("nothing")
assert "q" in look.get_sequence_names(), look.get_sequence_names()
columns = {column["name"]: column for column in look.get_columns("t")}
assert list(columns) == ["a", "b", "c", "d", "e", "f"]
assert isinstance(columns["a"]["type"], sa.INTEGER) and not columns["a"]["nullable"]
assert columns["b"]["default"].startswith("'x'"), columns["b"]
assert (columns["c"]["type"].precision, columns["c"]["type"].scale) == (10, 2)
assert columns["d"]["type"].timezone
assert isinstance(columns["e"]["type"], sa.ARRAY)
assert columns["f"]["identity"]["always"], columns["f"]
key = look.get_pk_constraint("t")
assert (key["name"], key["constrained_columns"]) == ("t_pkey", ["a"]), key
assert look.get_pk_constraint("w", "s")["constrained_columns"] == ["m", "k"]
unique, = look.get_unique_constraints("t")
assert (unique["name"], unique["column_names"]) == ("t_b_c_key", ["b", "c"]), unique
check, = look.get_check_constraints("t")
assert check["name"] == "t_c_check" and "c > 0" in check["sqltext"], check
index, = look.get_indexes("t")
assert index["unique"] and index["column_names"] == ["b", "c"], index
assert look.get_foreign_keys("t") == []
assert look.get_table_comment("t") == {"text": None}
assert look.get_enums() == []
table = sa.Table("t", sa.MetaData(), autoload_with=engine)
with engine.begin() as c:
    c.execute(sa.insert(table), [{"a": 1, "b": "x", "c": 1}, {"a": 2, "b": "y", "c": 2}])
    assert c.execute(sa.select(table.c.a, table.c.f).order_by(table.c.a)).all() == [(1, 1), (2, 2)]
metadata = sa.MetaData()
sa.Table(
    "made", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(20), nullable=False, unique=True),
    sa.Column("at", sa.DateTime(timezone=True)),
)
sa.Table(
    "part", metadata,
    sa.Column("made", sa.Integer, sa.ForeignKey("made.id", ondelete="CASCADE"), primary_key=True),
)
metadata.create_all(engine)
metadata.create_all(engine)
foreign_key, = sa.inspect(engine).get_foreign_keys("part")
assert foreign_key["name"] == "part_made_fkey", foreign_key
assert foreign_key["constrained_columns"] == ["made"] and foreign_key["referred_columns"] == ["id"]
assert foreign_key["referred_table"] == "made" and foreign_key["options"] == {"ondelete": "CASCADE"}
with engine.begin() as c:
    assert c.execute(sa.insert(metadata.tables["made"]).values(name="x")).inserted_primary_key == (1,)
metadata.reflect(engine)
metadata.drop_all(engine, tables=[metadata.tables["made"], metadata.tables["part"]])
assert not sa.inspect(engine).has_table("made")
