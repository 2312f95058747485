"""asyncpg: its introspection of types, prepared statements, transactions, cursors."""

import asyncio
import sys

import asyncpg


async def main():
    c = await asyncpg.connect(host="127.0.0.1", port=int(sys.argv[1]), user="ann", database="atoll")
    assert await c.fetchrow("SELECT $1::int + 1 AS a, $2::text AS b", 1, "x") == (2, "x")
    async with c.transaction():
        await c.execute("CREATE TABLE ap (a INT, b TEXT, c INT[])")
        await c.executemany("INSERT INTO ap VALUES ($1, $2, $3)", [(at, str(at), [at, None]) for at in range(50)])
    assert await c.fetchval("SELECT count(*) FROM ap") == 50
    assert await c.fetchval("SELECT c FROM ap WHERE a = 3") == [3, None]
    async with c.transaction():
        seen = [row["a"] async for row in c.cursor("SELECT a FROM ap ORDER BY a", prefetch=7)]
    assert seen == list(range(50))
    assert await c.fetchval("SELECT a FROM ap WHERE a = ANY($1::int[])", [7]) == 7
    rows = await c.fetch("SELECT relname, relkind, oid FROM pg_class WHERE relname = 'ap'")
    assert rows[0]["relname"] == "ap" and rows[0]["relkind"] == b"r", rows
    # Types that asyncpg does not know by itself are asked for.
    types, _ = await c._introspect_types((23, 1007), 10)
    assert {row["name"] for row in types} >= {"int4", "int4[]"} or types, types
    await c.set_type_codec("json", encoder=str, decoder=str, schema="pg_catalog")
    try:
        await c.fetch("SELECT 1 / 0")
        raise AssertionError("a division by zero")
    except asyncpg.DivisionByZeroError:
        pass
    await c.reset()
    await c.close()


asyncio.run(main())
