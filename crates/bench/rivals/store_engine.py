"""One engine as the rival in `atoll bench store`: a database in a directory that sessions of this process
change and read row by row, and into which tables are copied.

Started as `python -c SCRIPT ENGINE THREADS DIRECTORY`. It speaks JSON, one object per line: requests on
standard input, replies on standard output, nothing else there. See README.md and serving.py beside this file.
"""

import atexit
import ctypes
import ctypes.util
import glob
import os
import pwd
import random
import shutil
import signal
import subprocess
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

    def statement(self, text):
        return text

    def index_bytes(self, session, table):
        """Of all tables and indexes: one that is new is the difference."""
        pages, size = (session.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return pages * size


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

    def statement(self, text):
        return text

    def index_bytes(self, session, table):
        """DuckDB does not say."""
        return None


class PostgreSQL:
    """A server of this process, one for each durability, reached by libpq through a socket file.

    Without durability neither commits nor checkpoints wait for the disk. As root it runs as the user postgres.
    """

    servers = {}

    def __init__(self, threads, directory):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[-2]))
        on_path = shutil.which("postgres")
        if not found and not on_path:
            raise RuntimeError("PostgreSQL is not installed; install it, or leave postgresql out of --rivals")
        self.programs = os.path.dirname(on_path) if on_path else found[-1]
        self.directory, self.server = directory, None
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        said = subprocess.run([self.program("postgres"), "--version"], capture_output=True, text=True, check=True)
        self.version = said.stdout.split()[2]
        self.library = Libpq()

    def program(self, name):
        return os.path.join(self.programs, name)

    def open(self, name, durability):
        if durability not in self.servers:
            self.servers[durability] = self.start(durability)
        self.server = f"host={self.servers[durability]} user=postgres dbname="
        self.library.connect(self.server + "postgres").execute(f'CREATE DATABASE "{name}"')
        self.server += f"'{name}'"

    def start(self, durability):
        """The directory of a new server's socket."""
        place = os.path.join(self.directory, durability)
        os.mkdir(place)
        if self.user:
            os.chown(place, self.user.pw_uid, self.user.pw_gid)
            # The directories above are this process's own; the server passes through them.
            for above in (self.directory, os.path.dirname(self.directory)):
                os.chmod(above, 0o755)
        data = os.path.join(place, "data")
        initdb = [self.program("initdb"), "-A", "trust", "-U", "postgres", "-D", data]
        subprocess.run(initdb, stdout=subprocess.DEVNULL, check=True, preexec_fn=self.as_user)
        settings = ["listen_addresses=", "max_connections=1200", "shared_buffers=1GB"]
        if durability == "off":
            settings += ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        command = [self.program("postgres"), "-D", data, "-k", place]
        for setting in settings:
            command += ["-c", setting]
        log = open(os.path.join(place, "log"), "w")
        server = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=self.as_user)
        atexit.register(self.stop, server)
        while not os.path.exists(os.path.join(place, ".s.PGSQL.5432")) or not self.answers(place):
            if server.poll() is not None:
                raise RuntimeError("PostgreSQL does not start: " + open(log.name).read().strip()[-500:])
            time.sleep(0.05)
        return place

    def answers(self, place):
        try:
            self.library.connect(f"host={place} user=postgres dbname=postgres")
            return True
        except RuntimeError:
            return False

    def stop(self, server):
        server.send_signal(signal.SIGQUIT)
        server.wait()

    def as_user(self):
        """In a new process: another user than root, and an end with this one."""
        if self.user:
            os.setgroups([])
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG

    def session(self):
        return self.library.connect(self.server)

    def numbers(self, rows):
        return f"generate_series(0, {rows - 1}) AS n(i)"

    def statement(self, text):
        return text.replace("?1", "$1").replace("?", "$1")

    def index_bytes(self, session, table):
        return int(session.execute(f"SELECT pg_indexes_size('{table}')").fetchall()[0][0])


class Libpq:
    """PostgreSQL's client library: a session's statements are prepared once each."""

    def __init__(self):
        name = ctypes.util.find_library("pq")
        if name is None:
            raise RuntimeError("libpq is not installed; install it, or leave postgresql out of --rivals")
        self.pq = ctypes.CDLL(name)
        for function in ("PQconnectdb", "PQprepare", "PQexec", "PQexecPrepared"):
            getattr(self.pq, function).restype = ctypes.c_void_p
        for function in ("PQgetvalue", "PQresultErrorMessage", "PQerrorMessage"):
            getattr(self.pq, function).restype = ctypes.c_char_p

    def connect(self, where):
        return LibpqSession(self.pq, where)


class LibpqSession:
    """A connection."""

    OK, COMMAND_OK, TUPLES_OK = 0, 1, 2

    def __init__(self, pq, where):
        self.pq, self.prepared = pq, {}
        self.connection = ctypes.c_void_p(pq.PQconnectdb(where.encode()))
        if pq.PQstatus(self.connection) != self.OK:
            raise RuntimeError(pq.PQerrorMessage(self.connection).decode().strip())

    def __del__(self):
        self.pq.PQfinish(self.connection)

    def execute(self, statement, parameters=()):
        if not parameters:
            return self.checked(self.pq.PQexec(self.connection, statement.encode()))
        name = self.prepared.get(statement)
        if name is None:
            name = self.prepared[statement] = f"s{len(self.prepared)}".encode()
            self.checked(self.pq.PQprepare(self.connection, name, statement.encode(), 0, None))
        values = (ctypes.c_char_p * len(parameters))(*(str(it).encode() for it in parameters))
        run = self.pq.PQexecPrepared
        return self.checked(run(self.connection, name, len(parameters), values, None, None, 0))

    def checked(self, result):
        result = LibpqResult(self.pq, result)
        if result.status() not in (self.COMMAND_OK, self.TUPLES_OK):
            raise RuntimeError(result.error())
        return result


class LibpqResult:
    """What a statement returned."""

    def __init__(self, pq, result):
        self.pq, self.result = pq, ctypes.c_void_p(result)

    def __del__(self):
        self.pq.PQclear(self.result)

    def status(self):
        return self.pq.PQresultStatus(self.result)

    def error(self):
        return self.pq.PQresultErrorMessage(self.result).decode().strip()

    def fetchall(self):
        rows, columns = self.pq.PQntuples(self.result), self.pq.PQnfields(self.result)
        value = self.pq.PQgetvalue
        return [[value(self.result, row, column) for column in range(columns)] for row in range(rows)]


ENGINES = {"sqlite": SQLite, "duckdb": DuckDB, "postgresql": PostgreSQL}


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

    def index_bytes(self, table):
        return {"bytes": self.engine.index_bytes(self.engine.session(), table)}

    def work(self, work, sessions, seconds):
        """Transactions of one statement each, by so many sessions at once, for so long, at least one each. The time
        begins when all are connected."""
        counts, failures = [0] * sessions, []
        first = self.next
        times = []
        ready = threading.Barrier(sessions + 1, action=lambda: times.append(time.perf_counter()))

        def run(number):
            count, own = 0, max(self.rows // sessions, 1)
            try:
                session, draw = self.engine.session(), random.Random(number)
                statement = self.engine.statement(STATEMENTS[work])
                ready.wait()
                while count == 0 or time.perf_counter() < times[0] + seconds:
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
                ready.abort()
            counts[number] = count

        threads = [threading.Thread(target=run, args=(number,)) for number in range(sessions)]
        for thread in threads:
            thread.start()
        try:
            ready.wait()
        except threading.BrokenBarrierError:
            pass  # A session failed, and its error is kept.
        for thread in threads:
            thread.join()
        end = time.perf_counter()
        self.next = first + max(counts) * sessions + sessions
        if failures:
            raise failures[0]
        return {"count": sum(counts), "seconds": end - times[0]}


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
        if "index_bytes" in request:
            return database.index_bytes(request["index_bytes"])
        return database.work(request["work"], request["sessions"], request["seconds"])


def start():
    """The engine that the command line names."""
    name, threads, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    session = Session(name, threads, directory)
    return name, session.version, session.respond


if __name__ == "__main__":
    sys.exit(serve(start))
