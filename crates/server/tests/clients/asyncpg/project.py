"""asyncpg: arrays and other types in binary form, COPY, cursors, listeners, a pool, an application's own codecs."""

import asyncio
import datetime
import decimal
import io
import json
import os
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step, url

import asyncpg


def each(function):
    async def run():
        c = await asyncpg.connect(url(), timeout=20)
        try:
            await function(c)
        finally:
            await c.close()

    def once():
        asyncio.run(asyncio.wait_for(run(), 60))

    once.__name__ = function.__name__
    step(once)


@each
async def create(c):
    await c.execute("""
        CREATE TYPE mood AS ENUM ('glad', 'sad');
        CREATE TABLE item (id SERIAL PRIMARY KEY, name TEXT, numbers INT[], words TEXT[], prices NUMERIC(9,2)[], days DATE[], grid INT[][],
            data JSONB, uid UUID, uids UUID[], at TIMESTAMPTZ, lent INTERVAL, mood mood, raw BYTEA, x REAL, hour TIME, flags BOOL[]);""")


@each
async def arrays(c):
    values = ("a", [1, None, 3], ["x", 'q"uote', None, ""], [decimal.Decimal("1.25")], [datetime.date(2024, 1, 2)], [[1, 2], [3, 4]],
              '{"n": 1}', uuid.UUID(int=5), [uuid.UUID(int=6)], datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), datetime.timedelta(days=3, seconds=4),
              "sad", b"\0\xff", 1.5, datetime.time(3, 4, 5), [True, False])
    names = "name, numbers, words, prices, days, grid, data, uid, uids, at, lent, mood, raw, x, hour, flags"
    marks = ", ".join(f"${i + 1}" for i in range(len(values)))
    row = await c.fetchrow(f"INSERT INTO item ({names}) VALUES ({marks}) RETURNING {names}", *values)
    equal(tuple(row), values)
    row = await c.fetchrow("SELECT numbers[1], numbers[2:3], array_length(numbers, 1), $1 = ANY(words) FROM item WHERE numbers @> $2", "x", [1])
    equal(tuple(row), (1, [None, 3], 3, True))
    equal(await c.fetch("SELECT name FROM item WHERE id = ANY($1::int[]) AND name = ANY($2)", [1, 2], ["a"]), [("a",)])
    equal(await c.fetchval("SELECT $1::int[] || $2", [1], [2]), [1, 2])
    equal(await c.fetchval("SELECT array_agg(n ORDER BY n DESC) FROM unnest($1::int[]) AS n", [1, 2, 3]), [3, 2, 1])
    equal(await c.fetchval("SELECT $1::int[]", []), [])


@each
async def many(c):
    await c.executemany("INSERT INTO item (name, numbers) VALUES ($1, $2)", [(f"n{i}", [i, i + 1]) for i in range(100)])
    equal(await c.fetchval("SELECT sum(n)::int FROM item, unnest(numbers) AS n WHERE name LIKE 'n%'"), 10000)
    rows = await c.fetchmany("INSERT INTO item (name) VALUES ($1) RETURNING name", [("f1",), ("f2",)])
    equal([r["name"] for r in rows], ["f1", "f2"])


@each
async def copying(c):
    equal(await c.copy_records_to_table("item", records=[("c1", [7], ["w"]), ("c2", None, [])], columns=["name", "numbers", "words"]), "COPY 2")
    out = io.BytesIO()
    equal(await c.copy_from_query("SELECT name, numbers FROM item WHERE name LIKE $1 ORDER BY 1", "c%", output=out, format="csv"), "COPY 2")
    equal(out.getvalue(), b"c1,{7}\nc2,\n")
    equal(await c.copy_to_table("item", source=io.BytesIO(b"c3;{8}\n"), columns=["name", "numbers"], format="csv", delimiter=";"), "COPY 1")
    await c.copy_from_table("item", output=out, columns=["name"], format="binary")


@each
async def cursors_and_transactions(c):
    async with c.transaction(isolation="repeatable_read", readonly=True):
        equal([r["n"] async for r in c.cursor("SELECT n FROM generate_series(1, 7) AS g(n)", prefetch=2)], list(range(1, 8)))
        cursor = await c.cursor("SELECT n FROM generate_series(1, 7) AS g(n)")
        await cursor.forward(3)
        equal([r["n"] for r in await cursor.fetch(2)], [4, 5])
    try:
        async with c.transaction():
            await c.execute("DELETE FROM item")
            async with c.transaction():
                await c.execute("INSERT INTO item (id) VALUES (1)")
            raise KeyError
    except KeyError:
        pass
    try:
        await c.execute("INSERT INTO item (id) VALUES (1)")
    except asyncpg.UniqueViolationError as e:
        equal((e.constraint_name, e.table_name), ("item_pkey", "item"))
    async with c.transaction():
        equal(await c.fetchval("SELECT count(*) FROM item"), 106)


@each
async def prepared(c):
    s = await c.prepare("SELECT id, name, mood, numbers FROM item WHERE id = $1 AND mood = $2")
    equal([p.name for p in s.get_parameters()], ["int4", "mood"])
    equal([a.type.name for a in s.get_attributes()], ["int4", "text", "mood", "int4[]"])
    equal(s.get_statusmsg() or "", "")
    equal((await s.fetchrow(1, "sad"))["name"], "a")
    assert (await s.explain(1, "sad"))


@each
async def listening(c):
    other = await asyncpg.connect(url())
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("news", lambda *a: heard.set_result(a[2:]))
    await other.execute("SELECT pg_notify('news', 'hello')")
    equal(await asyncio.wait_for(heard, 10), ("news", "hello"))
    await c.remove_listener("news", lambda *a: None)
    await other.close()


@each
async def codecs(c):
    await c.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    equal(await c.fetchval("SELECT $1::jsonb", {"a": [1]}), {"a": [1]})
    await c.set_type_codec("numeric", encoder=str, decoder=float, schema="pg_catalog", format="text")
    equal(await c.fetchval("SELECT 1.5::numeric"), 1.5)
    equal(await c.fetchval("SELECT ROW(1, 'a', NULL::int)"), (1, "a", None))
    await c.reload_schema_state()


@each
async def a_pool(c):
    async with asyncpg.create_pool(url(), min_size=2, max_size=4) as pool:
        equal(sorted(await asyncio.gather(*(pool.fetchval("SELECT $1::int * 2", i) for i in range(20)))), list(range(0, 40, 2)))
        async with pool.acquire() as d:
            await d.execute("SET statement_timeout = '100ms'")
            try:
                await d.fetch("SELECT pg_sleep(5)")
            except asyncpg.QueryCanceledError:
                pass
        async with pool.acquire() as d:
            equal(await d.fetchval("SHOW statement_timeout"), "0")


@each
async def drop(c):
    await c.execute("DROP TABLE item; DROP TYPE mood")
