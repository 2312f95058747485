"""One engine as the rival in `atoll bench aggregate|join|sort`: loads columns into its own memory, then
runs one query as often as it is asked.

Started as `python -c SCRIPT ENGINE THREADS`. It speaks JSON, one object per line: requests on standard
input, replies on standard output, nothing else there. See README.md and serving.py beside this file.
"""

import importlib.metadata
import os
import sys
import time

WORD = (1 << 64) - 1
# What a key counts for in a checksum: `mixed` in src/primitives/check.rs is the same function.
MULTIPLIER = 0x9E3779B97F4A7C15


class DuckDB:
    """Tables of its own format, in memory; results as an Arrow table, which costs it least."""

    def __init__(self, threads):
        import duckdb

        self.connection = duckdb.connect(config={"threads": threads})
        self.connection.execute("SET enable_progress_bar = false")

    def load(self, table, columns):
        arrow = arrow_table(columns)  # DuckDB finds it by the name of this variable
        self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM arrow")
        del arrow

    def ways(self, operation):
        queries = {
            "aggregate": "SELECT k, sum(v) AS s FROM t GROUP BY k",
            "join": "SELECT count(*), sum(b.v), sum(p.v) FROM p JOIN b ON p.k = b.k",
            "sort": "SELECT k, v FROM t ORDER BY k",
        }
        query = queries[operation]
        return {"": lambda: self.connection.sql(query).to_arrow_table()}


class Polars:
    """Frames of one chunk; of its two ways to run a query the faster one counts."""

    def __init__(self, threads):
        import polars

        self.polars, self.frames = polars, {}
        if polars.thread_pool_size() != threads:
            raise RuntimeError(f"Polars has {polars.thread_pool_size()} threads, not {threads}")

    def load(self, table, columns):
        series = [self.polars.Series(name, read(file)) for name, file in columns]
        self.frames[table] = self.polars.DataFrame(series).rechunk()

    def ways(self, operation):
        col = self.polars.col
        if operation == "join":
            both = self.frames["p"].lazy().join(self.frames["b"].lazy(), on="k", suffix="_b")
            query = both.select(self.polars.len(), col("v_b").sum(), col("v").sum())
        elif operation == "sort":
            query = self.frames["t"].lazy().sort("k")
        else:
            query = self.frames["t"].lazy().group_by("k").agg(col("v").sum().alias("s"))
        engines = ["in-memory", "streaming"]
        return {engine: lambda engine=engine: query.collect(engine=engine) for engine in engines}


class DataFusion:
    """Batches in memory, as many lists of them as threads."""

    BATCH = 8192

    def __init__(self, threads):
        import datafusion

        settings = datafusion.SessionConfig().with_target_partitions(threads)
        self.context, self.threads = datafusion.SessionContext(settings), threads

    def load(self, table, columns):
        batches = arrow_table(columns).to_batches(max_chunksize=self.BATCH)
        each = -(-len(batches) // self.threads)
        parts = [batches[at : at + each] for at in range(0, len(batches), each)] or [[]]
        if self.context.table_exist(table):
            self.context.deregister_table(table)
        self.context.register_record_batches(table, parts)

    def ways(self, operation):
        import pyarrow

        query = {
            "aggregate": "SELECT k, sum(v) AS s FROM t GROUP BY k",
            "join": "SELECT count(*), sum(b.v), sum(p.v) FROM p JOIN b ON p.k = b.k",
            "sort": "SELECT k, v FROM t ORDER BY k",
        }[operation]
        run = lambda: pyarrow.Table.from_batches(self.context.sql(query).collect())
        return {"": run}


ENGINES = {"duckdb": DuckDB, "polars": Polars, "datafusion": DataFusion}


def read(file):
    """A column of 64-bit integers, copied into memory of this process."""
    import numpy

    return numpy.fromfile(file, dtype="<i8")


def arrow_table(columns):
    import pyarrow

    return pyarrow.table({name: read(file) for name, file in columns})


def words(column):
    """A column of a result as 64-bit words; sums may have come as decimals or floats."""
    import numpy
    import pyarrow
    import pyarrow.compute

    if hasattr(column, "to_arrow"):
        column = column.to_arrow()
    if not pyarrow.types.is_int64(column.type):
        column = pyarrow.compute.cast(column, pyarrow.int64())
    return column.to_numpy().view(numpy.uint64)


def mixed(keys):
    import numpy

    return (keys ^ (keys >> numpy.uint64(32))) * numpy.uint64(MULTIPLIER)


def check(operation, result):
    """Rows and checksum of a result: the same for the same rows in any order."""
    import numpy

    names = result.columns if hasattr(result, "to_arrow") else result.column_names
    columns = [words(result[name]) for name in names]
    if operation == "join":
        count, build, probe = (int(column[0]) for column in columns)
        return count, (3 * build + probe) & WORD
    keys, values = columns
    if operation == "sort":
        signed = keys.view(numpy.int64)
        if (signed[1:] < signed[:-1]).any():
            raise RuntimeError("the rows are not sorted")
    one = numpy.uint64(1)
    return len(keys), int((mixed(keys) * (values + one)).sum(dtype=numpy.uint64))


def timed(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


class Session:
    """What is loaded, and which way of running the query is the fastest."""

    def __init__(self, engine):
        self.engine, self.run = engine, None

    def load(self, request):
        self.run = None
        for table, columns in request["load"].items():
            self.engine.load(table, columns)
        return {"loaded": True}

    def warm(self, operation, runs):
        """Runs each way, and of several keeps the one that is faster the last time."""
        ways = self.engine.ways(operation)
        times = {}
        for _ in range(max(runs, 1)):
            times = {name: timed(run)[0] for name, run in ways.items()}
        name = min(times, key=times.get)
        self.run = ways[name]
        return {"way": name}

    def measure(self, operation):
        seconds, result = timed(self.run)
        rows, checksum = check(operation, result)
        return {"seconds": seconds, "rows": rows, "checksum": checksum}

    def respond(self, request):
        if "load" in request:
            return self.load(request)
        if "warm" in request:
            return self.warm(request["warm"], request["runs"])
        return self.measure(request["run"])


def start():
    """The engine that the command line names."""
    name, threads = sys.argv[1], int(sys.argv[2])
    # Read by Polars and by DataFusion's runtime when they are imported.
    os.environ["POLARS_MAX_THREADS"] = os.environ["TOKIO_WORKER_THREADS"] = str(threads)
    session = Session(ENGINES[name](threads))
    return name, importlib.metadata.version(name), session.respond


if __name__ == "__main__":
    sys.exit(serve(start))
