"""pg8000: values and parameters in text."""

import datetime
import sys

import pg8000.native

c = pg8000.native.Connection("ann", host="127.0.0.1", port=int(sys.argv[1]), database="atoll")
assert c.run("SELECT :a::int, 'x'", a=5) == [[5, "x"]]
c.run("CREATE TABLE g (a INT, b DATE, c INT[])")
c.run("INSERT INTO g VALUES (:a, :b, :c)", a=1, b=datetime.date(2024, 2, 29), c=[1, 2])
assert c.run("SELECT * FROM g") == [[1, datetime.date(2024, 2, 29), [1, 2]]]
assert c.run("SELECT relname FROM pg_class WHERE oid = 'g'::regclass") == [["g"]]
try:
    c.run("SELECT nothing")
    raise AssertionError("there is no such column")
except pg8000.native.DatabaseError as error:
    assert error.args[0]["C"] == "42703", error
c.close()
