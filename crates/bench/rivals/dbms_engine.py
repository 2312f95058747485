"""A system in a program whose threads are the clients, for `bench dbms`.

Started as `python -c SCRIPT ENGINE THREADS DIRECTORY`; `serving.py` stands in front. See README.md beside this file.
"""

import threading
import time
import zlib
from decimal import Decimal
from pathlib import Path

ENGINE, THREADS, DIRECTORY = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])


def text(value):
    """A value as text that loses nothing; None is NULL."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


def kind(values):
    """What a column holds, as far as comparing results needs to know."""
    first = next((value for value in values if value is not None), None)
    for name, types in [("integer", int), ("decimal", Decimal), ("float", float)]:
        if isinstance(first, types) and not isinstance(first, bool):
            return name
    return "text"


def row_sum(row):
    """The checksum of a row. Sums of floats may be added up in any order: their last digits do not count."""
    values = [f"{value:.9g}" if isinstance(value, float) else text(value) for value in row]
    return zlib.crc32(repr(values).encode())


class Duckdb:
    """DuckDB: a database in memory, a cursor for each client."""

    def __init__(self):
        import duckdb

        self.version = duckdb.__version__
        self.database = duckdb.connect(config={"threads": THREADS})
        self.database.execute("SET enable_progress_bar = false")

    def load(self, sql):
        self.database.execute(sql)

    def client(self):
        cursor = self.database.cursor()

        def run(sql):
            return cursor.execute(sql).fetchall()

        return run


class Sqlite:
    """SQLite: a file whose pages are mapped, a connection for each client."""

    def __init__(self):
        import sqlite3

        self.sqlite3 = sqlite3
        self.version = sqlite3.sqlite_version
        self.database = self.connect()

    def connect(self):
        connection = self.sqlite3.connect(DIRECTORY / "database", check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA synchronous = off")
        connection.execute(f"PRAGMA mmap_size = {1 << 46}")
        connection.execute("PRAGMA temp_store = memory")
        return connection

    def load(self, sql):
        self.database.execute(sql)

    def rows(self, table, width, file):
        places = ", ".join("?" * width)
        self.database.execute("BEGIN")
        with open(file, encoding="utf-8") as lines:
            values = (line.rstrip("\n").split("|") for line in lines)
            self.database.executemany(f"INSERT INTO {table} VALUES ({places})", values)
        self.database.execute("COMMIT")

    def client(self):
        connection = self.connect()

        def run(sql):
            return connection.execute(sql).fetchall()

        return run


class Clickhouse:
    """ClickHouse: a session of chdb, which all clients share."""

    def __init__(self):
        import chdb

        self.version = chdb.engine_version
        self.session = chdb.connect(":memory:")
        self.session.query(f"SET max_threads = {THREADS}")

    def load(self, sql):
        self.session.query(sql)

    def client(self):
        columns = {"Int": int, "UInt": int, "Decimal": Decimal, "Float": float}

        def reader(name):
            name = name.removeprefix("Nullable(")
            found = next((of for start, of in columns.items() if name.startswith(start)), str)
            return lambda value: None if value is None else found(value)

        def run(sql):
            settings = "SETTINGS output_format_json_quote_decimals = 1, output_format_json_quote_64bit_integers = 1"
            answer = json.loads(str(self.session.query(f"{sql} {settings}", "JSONCompact")))
            readers = [reader(column["type"]) for column in answer["meta"]]
            return [tuple(read(value) for read, value in zip(readers, row)) for row in answer["data"]]

        return run


ENGINES = {"duckdb": Duckdb, "sqlite": Sqlite, "clickhouse": Clickhouse}


def load(system, steps):
    """Statements, and rows of files."""
    for step in steps:
        if isinstance(step, str):
            system.load(step)
        else:
            system.rows(*step)
    return {"loaded": True}


def answer(run, sql):
    """The whole result of a statement."""
    start = time.perf_counter()
    rows = run(sql)
    elapsed = (time.perf_counter() - start) * 1000
    kinds = [kind(column) for column in zip(*rows)]
    return {"query": 0, "ms": elapsed, "columns": kinds, "values": [list(map(text, row)) for row in rows]}


class Client(threading.Thread):
    """A client: the texts in turn, without think time."""

    def __init__(self, number, system, work, ready):
        super().__init__(daemon=True)
        self.at, self.system, self.work, self.ready = number, system, work, ready
        self.checks = [None] * len(work["texts"])
        self.done = self.error = None

    def run(self):
        try:
            self.query = self.system.client()
            self.ready.wait()
            self.repeat(self.work["warmup"])
            self.done = self.repeat(self.work["seconds"])
        except Exception as error:
            self.ready.abort()
            self.error = error

    def repeat(self, seconds):
        """Runs texts for some seconds, at least one."""
        start = time.perf_counter()
        count = count_early = 0
        while True:
            self.step(self.at % len(self.checks))
            self.at += 1
            elapsed = time.perf_counter() - start
            count += 1
            count_early += elapsed < seconds / 2
            if elapsed >= seconds:
                return {"count": count, "count_early": count_early, "seconds": elapsed}

    def step(self, number):
        """One text; the first time its whole result counts, later the number of rows."""
        rows = self.query(self.work["texts"][number])
        known = self.checks[number]
        if known is None:
            self.checks[number] = {"rows": len(rows), "checksum": sum(map(row_sum, rows))}
        elif known["rows"] != len(rows):
            raise RuntimeError(f"text {number} had {known['rows']} rows, and then {len(rows)}")


def run(system, work):
    """All clients at once."""
    ready = threading.Barrier(work["clients"])
    clients = [Client(number, system, work, ready) for number in range(work["clients"])]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    errors = [client.error for client in clients if client.error is not None]
    errors.sort(key=lambda error: isinstance(error, threading.BrokenBarrierError))
    if errors:
        raise errors[0]
    checks = []
    for number, found in enumerate(zip(*(client.checks for client in clients))):
        found = [check for check in found if check is not None]
        if any(check != found[0] for check in found):
            raise RuntimeError(f"text {number} has different results: {found}")
        checks.append(found[0] if found else None)
    return {"clients": [client.done for client in clients], "checks": checks}


def start():
    """The system, and what responds to a request."""
    system = ENGINES[ENGINE]()

    def respond(request):
        if "load" in request:
            return load(system, request["load"])
        if "answer" in request:
            return answer(system.client(), request["answer"])
        return run(system, request["run"])

    return ENGINE, system.version, respond


sys.exit(serve(start))
