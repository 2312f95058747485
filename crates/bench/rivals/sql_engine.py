"""DuckDB as another engine to compare with: loads tables into memory, then answers queries.

Started as `python -c SCRIPT --threads N [--data DIR]`, where DIR holds one Parquet file per table of
TPC-H (lineitem.parquet, ...); without it the engine starts empty. It speaks JSON, one object per line: requests on standard
input, replies on standard output, nothing else there. See README.md and serving.py beside this file.
"""

import argparse
import json
import sys
import time
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]


def memory(key):
    """One figure of /proc/self/status in bytes: `VmRSS` (resident now) or `VmHWM` (its peak)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def milliseconds_since(start):
    """Time since `start` (of time.perf_counter) in milliseconds."""
    return (time.perf_counter() - start) * 1000


def load(directory, threads):
    """A connection with all tables in memory."""
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET enable_progress_bar = false")
    for table in TABLES if directory else []:
        file = str(directory / f"{table}.parquet").replace("'", "''")
        connection.execute(f"CREATE TABLE {table} AS FROM read_parquet('{file}')")
    return connection


def kind(arrow_type):
    """What a column holds, as far as comparing results needs to know."""
    if pyarrow.types.is_integer(arrow_type):
        return "integer"
    if pyarrow.types.is_decimal(arrow_type):
        return "decimal"
    return "float" if pyarrow.types.is_floating(arrow_type) else "text"


def text(value):
    """A value as text that loses nothing; None is NULL."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(text(item) or "" for item in value) + "]"
    return str(value)


def rows(table):
    """The rows of an Arrow table as lists of texts."""
    columns = [map(text, column.to_pylist()) for column in table.columns]
    return [list(row) for row in zip(*columns)]


def answer(connection, sql):
    """Runs one query and fetches all of it as an Arrow table; only that is timed."""
    start = time.perf_counter()
    relation = connection.sql(sql)
    table = relation.to_arrow_table() if relation is not None else pyarrow.table({})
    elapsed = milliseconds_since(start)
    return {"ms": elapsed, "columns": [kind(t) for t in table.schema.types], "values": rows(table)}


def reset(options, statements):
    """A connection without tables but for those that the statements make."""
    connection = load(None, options.threads)
    for statement in statements:
        connection.execute(statement)
    return connection


def statements_of(line):
    """The statements of a request to start anew; None for every other line."""
    try:
        return json.loads(line).get("reset")
    except (ValueError, AttributeError):
        return None


def respond(connection, line):
    """Handles one query; false for the last request."""
    try:
        request = json.loads(line)
        if request.get("quit"):
            return False
        reply({"query": request["query"], **answer(connection, request["sql"])})
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        reply({"error": f"not a request: {line.strip()!r}: {error!r}"})
    except duckdb.Error as error:
        reply({"query": request["query"], "error": str(error)})
    return True


def arguments():
    """The command line, parsed."""
    parser = argparse.ArgumentParser(description="DuckDB, which answers SQL")
    parser.add_argument("--threads", type=int, required=True, help="threads DuckDB may use")
    parser.add_argument("--data", type=Path, help="directory of the Parquet files")
    return parser.parse_args()


def main():
    """Loads, reports, answers until asked to quit or until the input ends, reports the peak."""
    options = arguments()
    rss_before_load = memory("VmRSS")
    start = time.perf_counter()
    try:
        connection = load(options.data, options.threads)
    except duckdb.Error as error:
        reply({"error": f"loading {options.data}: {error}"})
        return 1
    loaded = {
        "engine": "duckdb",
        "version": duckdb.__version__,
        "load_ms": milliseconds_since(start),
        "rss_before_load_bytes": rss_before_load,
        "rss_bytes": memory("VmRSS"),
        "peak_rss_bytes": memory("VmHWM"),
    }
    reply(loaded)
    for line in sys.stdin:
        statements = statements_of(line)
        if statements is not None:
            try:
                connection = reset(options, statements)
                reply({"reset": len(statements)})
            except duckdb.Error as error:
                reply({"error": str(error)})
        elif not respond(connection, line):
            break
    reply({"peak_rss_bytes": memory("VmHWM")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
