"""A system in a program whose threads are the clients, for `bench dbms`.

Started as `python -c SCRIPT ENGINE THREADS DIRECTORY [LIBRARIES]`; `serving.py` stands in front. See README.md beside
this file.
"""

import ctypes
import random
import struct
import threading
import time
import zlib
from decimal import Decimal
from pathlib import Path

# Times that a transaction is tried.
TRIES_MAX = 100

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


class System:
    """A system: `load` runs a statement, `client` returns what runs a statement and returns its rows."""

    def prepare(self, texts):
        """Called with the texts of a query before clients run them."""


class Duckdb(System):
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


class Sqlite(System):
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


class Clickhouse(System):
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


class Monetdb(System):
    """MonetDB: the C library of a wheel that is for another Python; a connection for each client."""

    # Each finds those that it needs among the ones before it.
    LIBRARIES = ("pcre", "stream", "bat", "mapi", "monetdb5", "monetdbsql", "monetdbe")

    class Options(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in ("memory", "query", "session", "threads")] + [
            (name, ctypes.c_void_p) for name in ("remote", "server", "trace")
        ]

    def __init__(self):
        for name in self.LIBRARIES:
            file = next(Path(sys.argv[4]).glob(f"lib{name}-*.so*"))
            self.library = ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
        pointers = {"query": 4, "cleanup_result": 2, "error": 1, "close": 1}
        for name, count in pointers.items():
            function = getattr(self.library, f"monetdbe_{name}")
            function.argtypes, function.restype = [ctypes.c_void_p] * count, ctypes.c_char_p
        self.library.monetdbe_close.restype = ctypes.c_int
        fetch = self.library.monetdbe_result_fetch
        fetch.argtypes, fetch.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_char_p
        self.library.monetdbe_version.restype, self.scales = ctypes.c_char_p, {}
        self.version = f"libmonetdbe {self.library.monetdbe_version().decode()}"
        self.session = MonetdbSession(self)

    def load(self, sql):
        self.session.fetch(sql, None)

    def prepare(self, texts):
        scales = self.session.learn(texts[0])
        self.scales.update((sql, scales) for sql in texts)

    def client(self):
        session = MonetdbSession(self)
        return lambda sql: session.fetch(sql, self.scales.get(sql))


class MonetdbSession:
    """A connection to the database in memory, which all connections of a process share."""

    class Result(ctypes.Structure):
        _fields_ = [
            ("rows", ctypes.c_int64),
            ("columns", ctypes.c_size_t),
            ("name", ctypes.c_char_p),
            ("last", ctypes.c_int64),
        ]

    class Column(ctypes.Structure):
        _fields_ = [
            ("type", ctypes.c_int),
            ("data", ctypes.c_void_p),
            ("count", ctypes.c_size_t),
            ("name", ctypes.c_char_p),
        ]

    # Bytes of whole numbers, floats, texts and dates, by the library's numbers of types.
    WIDTHS = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16}
    FLOAT, TEXT, DATE = 8, 9, 11

    def __init__(self, system):
        self.library, self.database = system.library, ctypes.c_void_p()
        options = Monetdb.Options(threads=THREADS)
        code = self.library.monetdbe_open(ctypes.byref(self.database), None, ctypes.byref(options))
        if code:
            why = self.library.monetdbe_error(self.database).decode() if code == -2 else f"code {code}"
            raise RuntimeError(f"MonetDB does not open a database: {why}")

    def learn(self, sql):
        """The scales of a query's columns, None where they are not decimals. Results lack them, tables do not."""
        width = len(self.columns(sql, None))
        names = ", ".join(f"c{number}" for number in range(width))
        self.fetch(f"CREATE TABLE learned({names}) AS ({sql}) WITH NO DATA", None)
        scales = self.fetch(
            "SELECT c.type, c.type_scale FROM sys.columns c, sys.tables t "
            "WHERE c.table_id = t.id AND t.name = 'learned' ORDER BY c.number",
            None,
        )
        self.fetch("DROP TABLE learned", None)
        return [scale if kind == "decimal" else None for kind, scale in scales]

    def __del__(self):
        # A process may have 64 of them.
        self.library.monetdbe_close(self.database)

    def fetch(self, sql, scales):
        """The rows of a statement."""
        return list(zip(*self.columns(sql, scales)))

    def columns(self, sql, scales):
        result = ctypes.POINTER(self.Result)()
        self.check(self.library.monetdbe_query(self.database, sql.encode(), ctypes.byref(result), None))
        if not result:
            return []
        try:
            width = result.contents.columns
            return [self.column(result, number, scales) for number in range(width)]
        finally:
            self.library.monetdbe_cleanup_result(self.database, result)

    def column(self, result, number, scales):
        column = ctypes.POINTER(self.Column)()
        self.check(self.library.monetdbe_result_fetch(result, ctypes.byref(column), number))
        kind, data, count = column.contents.type, column.contents.data, column.contents.count
        if kind == self.TEXT:
            texts = (ctypes.c_char_p * count).from_address(data) if count else []
            return [None if value is None else value.decode() for value in texts]
        if kind == self.FLOAT:
            return [None if value != value else value for (value,) in self.unpacked("<d", data, count)]
        if kind == self.DATE:
            days = self.unpacked("<BBh", data, count)
            return [f"{year:04}-{month:02}-{day:02}" if day else None for day, month, year in days]
        if kind not in self.WIDTHS:
            raise RuntimeError(f"a column of MonetDB has the type {kind}, which is not read here")
        width, scale = self.WIDTHS[kind], scales and scales[number]
        least = -1 << (8 * width - 1)
        found = []
        for (data,) in self.unpacked(f"{width}s", data, count):
            value = int.from_bytes(data, "little", signed=True)
            number = value if scale is None else Decimal(value).scaleb(-scale)
            found.append(None if value == least else number)
        return found

    @staticmethod
    def unpacked(form, data, count):
        return struct.iter_unpack(form, ctypes.string_at(data, struct.calcsize(form) * count)) if count else []

    @staticmethod
    def check(error):
        if error is not None:
            raise RuntimeError(error.decode().strip())


ENGINES = {"duckdb": Duckdb, "sqlite": Sqlite, "clickhouse": Clickhouse, "monetdb": Monetdb}


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
        self.is_own = number < work["clients"]
        own = work["own"]
        self.texts = range(own) if self.is_own else range(own, len(work["texts"]))
        self.checks = [None] * len(work["texts"])
        self.number, self.random, self.repeats = number, None, 0
        self.done = self.error = None

    def run(self):
        try:
            self.query = self.system.client()
            self.ready.wait()
            if self.work["statements"] is not None:
                self.done = self.repeat(0, self.work["statements"])
            else:
                self.repeat(self.work["warmup"])
                self.done = self.repeat(self.work["seconds"])
        except Exception as error:
            self.ready.abort()
            self.error = error

    def repeat(self, seconds, least=1):
        """Runs texts for some seconds, at least so many."""
        start = time.perf_counter()
        count = count_early = self.repeats = 0
        while True:
            self.step(self.texts[self.at % len(self.texts)])
            self.at += 1
            elapsed = time.perf_counter() - start
            count += 1
            count_early += elapsed < seconds / 2
            if elapsed >= seconds and count >= least:
                return {"count": count, "count_early": count_early, "seconds": elapsed, "repeats": self.repeats}

    def step(self, number):
        """One text; the first time its whole result counts, later the number of rows."""
        text = self.work["texts"][number]
        if isinstance(text, dict):
            return self.transaction(text)
        rows = self.query(text)
        known = self.checks[number]
        if known is None:
            self.checks[number] = {"rows": len(rows), "checksum": sum(map(row_sum, rows))}
        elif known["rows"] != len(rows):
            raise RuntimeError(f"text {number} had {known['rows']} rows, and then {len(rows)}")


    def transaction(self, script):
        """A transaction of a script; one that fails is run again."""
        self.random = self.random or random.Random(script["seed"] + self.number)
        keys = {"aid": "accounts", "bid": "branches", "tid": "tellers"}
        values = {key: self.random.randint(1, script[most]) for key, most in keys.items()}
        values["delta"] = self.random.randint(-script["amount"], script["amount"])
        statements = [statement.format(**values) for statement in script["statements"]]
        for _ in range(TRIES_MAX):
            try:
                for statement in statements:
                    self.query(statement)
                return
            except Exception as error:
                self.repeats += 1
                self.roll_back()
                failure = error
        raise RuntimeError(f"a transaction failed {TRIES_MAX} times; the last time: {failure}")

    def roll_back(self):
        """Some systems have already done so, and refuse to do it again."""
        try:
            self.query("ROLLBACK")
        except Exception:
            pass


def run(system, work):
    """All clients at once."""
    for texts in (work["texts"][: work["own"]], work["texts"][work["own"] :]):
        if texts and not isinstance(texts[0], dict):
            system.prepare(texts)
    count = work["clients"] + work["beside"]
    ready = threading.Barrier(count)
    clients = [Client(number, system, work, ready) for number in range(count)]
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
    own, beside = ([client.done for client in clients if client.is_own is own] for own in (True, False))
    return {"clients": own, "beside": beside, "checks": checks}


def start():
    """The system, and what responds to a request."""
    system = ENGINES[ENGINE]()

    def respond(request):
        if "load" in request:
            return load(system, request["load"])
        if "answer" in request:
            system.prepare([request["answer"]])
            return answer(system.client(), request["answer"])
        return run(system, request["run"])

    return ENGINE, system.version, respond


sys.exit(serve(start))
