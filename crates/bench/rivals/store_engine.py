"""One engine as the rival in `atoll bench store`: a database in a directory that sessions of this process
change and read row by row, and into which tables are copied.

Started as `python -c SCRIPT ENGINE THREADS DIRECTORY`. It speaks JSON, one object per line: requests on
standard input, replies on standard output, nothing else there. See README.md and serving.py beside this file.
"""

import os
import random
import sys
import threading
import time

TABLE = "CREATE TABLE item (id BIGINT PRIMARY KEY, value BIGINT NOT NULL, name VARCHAR, code BIGINT)"
STATEMENTS = {
    "insert": "INSERT INTO item VALUES (?1, 0, 'item', ?1)",
    "update": "UPDATE item SET value = value + 1 WHERE id = ?",
    "select": "SELECT value FROM item WHERE id = ?",
    "lookup": "SELECT value FROM item WHERE code = ?",
}


class SQLite:
    """WAL; `synchronous` is FULL, so that a commit is on disk when it returns, or OFF."""

    def __init__(self, threads, directory):
        import sqlite3

        self.sqlite3, self.directory = sqlite3, directory
        self.version, self.file, self.synchronous = sqlite3.sqlite_version, None, None

    def open(self, name, durability):
        self.file = os.path.join(self.directory, f"{name}.sqlite")
        self.synchronous = {"fsync": "FULL", "off": "OFF"}[durability]
        self.session().execute("PRAGMA journal_mode = WAL")

    def session(self):
        connect = self.sqlite3.connect
        session = connect(self.file, timeout=60, isolation_level=None, check_same_thread=False)
        session.execute(f"PRAGMA synchronous = {self.synchronous}")
        return session

    def numbers(self, rows):
        last = rows - 1
        return (
            "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
            f"WHERE i < {last}) SELECT i FROM n)"
        )


class DuckDB:
    """A file whose log is synced at each commit; it has no other durability but being in memory."""

    def __init__(self, threads, directory):
        import duckdb

        self.duckdb, self.threads, self.directory = duckdb, threads, directory
        self.version, self.connection = duckdb.__version__, None

    def open(self, name, durability):
        file = os.path.join(self.directory, f"{name}.duckdb") if durability == "fsync" else ":memory:"
        self.connection = self.duckdb.connect(file, config={"threads": self.threads})
        self.connection.execute("SET enable_progress_bar = false")

    def session(self):
        return self.connection.cursor()

    def numbers(self, rows):
        return f"(SELECT range AS i FROM range({rows}))"


ENGINES = {"sqlite": SQLite, "duckdb": DuckDB}


class Database:
    """An open database with its tables."""

    def __init__(self, engine, rows, indexes):
        self.engine, self.rows, self.next = engine, rows, rows
        session = engine.session()
        session.execute(TABLE)
        session.execute(f"INSERT INTO item SELECT i, 0, 'item ' || i, i FROM {engine.numbers(rows)}")
        for index in indexes:
            session.execute(index)

    def source(self, rows):
        """The table that is copied."""
        self.engine.session().execute(
            "CREATE TABLE source AS SELECT i AS id, i * 7919 % 1000003 AS value, i * 0.5 AS amount, "
            f"'item ' || i AS name FROM {self.engine.numbers(rows)}"
        )
        return {"made": True}

    def time(self, statement):
        session = self.engine.session()
        start = time.perf_counter()
        session.execute(statement)
        return {"seconds": time.perf_counter() - start}

    def work(self, work, sessions, seconds):
        """Transactions of one statement each, by so many sessions at once, for so long."""
        counts, failures = [0] * sessions, []
        first = self.next
        ready = threading.Barrier(sessions + 1)
        end = [0.0]

        def run(number):
            session, draw, statement = self.engine.session(), random.Random(number), STATEMENTS[work]
            ready.wait()
            count, own = 0, max(self.rows // sessions, 1)
            try:
                while time.perf_counter() < end[0]:
                    # Rows of this session alone: nothing waits for a row.
                    if work == "insert":
                        key = first + count * sessions + number
                    else:
                        key = int(draw.random() * own) * sessions + number
                    cursor = session.execute(statement, (key,))
                    if work in ("select", "lookup"):
                        cursor.fetchall()
                    count += 1
            except Exception as error:
                failures.append(error)
            counts[number] = count

        threads = [threading.Thread(target=run, args=(number,)) for number in range(sessions)]
        for thread in threads:
            thread.start()
        start = time.perf_counter()
        end[0] = start + seconds
        ready.wait()
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter() - start
        self.next = first + max(counts) * sessions + sessions
        if failures:
            raise failures[0]
        return {"count": sum(counts), "seconds": elapsed}


class Session:
    """The databases, by their names."""

    def __init__(self, name, threads, directory):
        self.make = lambda: ENGINES[name](threads, directory)
        self.version, self.databases = self.make().version, {}

    def respond(self, request):
        name = request["database"]
        if "open" in request:
            engine = self.make()
            engine.open(name, request["durability"])
            self.databases[name] = Database(engine, request["open"], request["indexes"])
            return {"made": True}
        database = self.databases[name]
        if "source" in request:
            return database.source(request["source"])
        if "time" in request:
            return database.time(request["time"])
        return database.work(request["work"], request["sessions"], request["seconds"])


def start():
    """The engine that the command line names."""
    name, threads, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    session = Session(name, threads, directory)
    return name, session.version, session.respond


if __name__ == "__main__":
    sys.exit(serve(start))
