"""psycopg 3: types both ways, prepared statements, COPY, cursors, errors, rows one by one."""

import datetime
import decimal
import sys
import uuid

import psycopg
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb

port = sys.argv[1]
with psycopg.connect(f"host=127.0.0.1 port={port} user=ann dbname=atoll", autocommit=True) as c:
    c.execute("CREATE TABLE p (a INT PRIMARY KEY, b TEXT, c DECIMAL(10,2), d TIMESTAMP, e BYTEA, f DOUBLE PRECISION, g INT[])")
    row = (1, "x", decimal.Decimal("1.50"), datetime.datetime(2024, 2, 29, 1, 2, 3), b"\x00\xff", 0.5, [1, None, 3])
    c.execute("INSERT INTO p VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
    for binary in (False, True):
        with c.cursor(binary=binary) as cursor:
            assert cursor.execute("SELECT * FROM p WHERE a = %s", (1,)).fetchall() == [row]
            names = cursor.execute("SELECT oid, typname, typtype FROM pg_type WHERE oid = 23").fetchall()
            assert names == [(23, "int4", "b")], names
    with c.cursor().copy("COPY p (a, b) FROM STDIN") as copy:
        for at in range(10, 15):
            copy.write_row((at, f"r{at}"))
    with c.cursor().copy("COPY (SELECT a, b FROM p WHERE a > 9) TO STDOUT") as copy:
        assert len(list(copy.rows())) == 5
    with c.cursor().copy("COPY p FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text", "numeric", "timestamp", "bytea", "float8", "int4[]"])
        copy.write_row((2, *row[1:]))
        copy.write_row((3, *[None] * 6))
    with c.cursor().copy("COPY (SELECT * FROM p WHERE a IN (2, 3) ORDER BY a) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4", "text", "numeric", "timestamp", "bytea", "float8", "int4[]"])
        assert list(copy.rows()) == [(2, *row[1:]), (3, *[None] * 6)]
    with c.cursor().copy("COPY (SELECT a FROM p WHERE a < 0) TO STDOUT (FORMAT binary)") as copy:
        assert list(copy.rows()) == []
    try:
        with c.cursor().copy("COPY p (a) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int2"])
            copy.write_row((4,))
        raise AssertionError("a SMALLINT for an INTEGER")
    except psycopg.errors.InvalidBinaryRepresentation as error:
        assert "row 1" in error.diag.message_detail, error.diag.message_detail
    c.cursor().executemany("UPDATE p SET b = %s WHERE a = %s", [("y", at) for at in range(10, 15)])
    assert c.execute("SELECT count(*) FROM p WHERE b = 'y'").fetchone() == (5,)
    try:
        c.execute("SELECT 1 / 0")
        raise AssertionError("a division by zero")
    except psycopg.errors.DivisionByZero:
        pass
    with c.transaction():
        with c.cursor("on the server") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT x FROM generate_series(0, 99) t(x) WHERE x >= %s ORDER BY x", (5,))
            assert [name.name for name in cursor.description] == ["x"]
            assert [x for (x,) in cursor] == list(range(5, 100))
            cursor.execute("SELECT x, 'y' FROM generate_series(0, 99) t(x) ORDER BY x", binary=True)
            assert cursor.fetchone() == (0, "y")
            cursor.scroll(3)
            assert cursor.fetchmany(2) == [(4, "y"), (5, "y")]
        assert list(c.cursor().stream("SELECT x FROM generate_series(0, 9) t(x) ORDER BY x"))[3] == (3,)
    found = TypeInfo.fetch(c, "int4")
    assert (found.name, found.oid, found.array_oid) == ("int4", 23, 1007), found
    assert TypeInfo.fetch(c, "nothing") is None
    assert c.execute("SELECT 'p'::regclass::oid = %s::regclass", ("p",)).fetchone() == (True,)
    # UUIDs and JSON are what they are, in all forms; lists, times and numbers of other widths find what they mean.
    c.execute("CREATE TABLE u (id UUID PRIMARY KEY, n INT, j JSONB, m DECIMAL(10,2), d DATE, at TIMESTAMP)")
    one, two = uuid.UUID(int=1), uuid.UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3)
    insert = "INSERT INTO u VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"
    values = (Jsonb({"a": [1]}), decimal.Decimal("1.50"), moment.date(), moment)
    assert c.execute(insert, (one, 1, *values)).fetchone() == (one,)
    assert c.execute(insert, (two.hex.upper(), 2, *values)).fetchone() == (two,)
    for binary in (False, True):
        with c.cursor(binary=binary) as cursor:
            assert cursor.execute("SELECT id, j FROM u WHERE n = 1").fetchone() == (one, {"a": [1]})
            assert [column.type_code for column in cursor.description] == [2950, 3802]
    for place in ("%s", "%b"):
        for sql, value in [
            ("id = {}", one),
            ("id = ANY({}) AND n = 1", [one, two]),
            ("n = ANY({}) AND n = 1", [1, 70_000]),
            ("m = ANY({}) AND n = 1", [decimal.Decimal("1.5"), decimal.Decimal("2.751")]),
            ("d = ANY({}) AND n = 1", [moment.date()]),
            ("n IN (1, {})", 2**40),
            ("at + {} > at AND n = 1", datetime.timedelta(hours=1)),
            ("at - {} < at AND n = 1", datetime.timedelta(days=1, microseconds=5)),
            ("substring('hello', {}) = 'hello' AND n = 1", 1),
        ]:
            found = c.execute(f"SELECT n FROM u WHERE {sql.format(place)}", (value,)).fetchall()
            assert found == [(1,)], (sql, place, found)
    for text in (two.hex, str(two).upper()):
        assert c.execute("SELECT n FROM u WHERE id = %s", (text,)).fetchone() == (2,)
        assert c.execute(f"SELECT n FROM u WHERE id = '{text}'").fetchone() == (2,)
    assert c.execute("SELECT n FROM u ORDER BY n LIMIT %s", (None,)).fetchall() == [(1,), (2,)]
    assert c.execute("SELECT %s || %s", ("x", "y")).fetchone() == ("xy",)
    job = "UPDATE u SET n = n + 10 WHERE id = (SELECT id FROM u WHERE n < %s ORDER BY n FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING n"
    assert c.execute(job, (10,)).fetchone() == (11,)
    assert c.execute(job, (10,)).fetchone() == (12,)
