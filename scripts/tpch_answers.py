#!/usr/bin/env python3
"""Makes the TPC-H answers that Atoll's tests compare against, with another engine.

The data come from tpchgen-cli, the command-line face of the same generator that Atoll links
(`tpchgen`), as Parquet files; DuckDB loads them and answers the query files of
crates/sql/tpch/queries. Each answer is a CSV file in crates/sql/tpch/answers/sf<SF>: a header of
column names, rows in the order of the query's ORDER BY, decimals with all their digits, dates as
YYYY-MM-DD, floats with the fewest digits that read back as the same number.

Both tools are PyPI wheels of pinned versions in a virtual environment that the script makes for
itself under the cache directory; nothing is installed elsewhere.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TPCH = REPOSITORY / "crates" / "sql" / "tpch"
PACKAGES = {"duckdb": "2.0.0", "tpchgen-cli": "4.0.0"}
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
INSIDE = "ATOLL_TPCH_ANSWERS_VENV"


def arguments():
    """The command line, parsed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sf",
        type=float,
        action="append",
        metavar="SF",
        help="scale factor; repeatable; default: 0.01 and 0.1, those in the repository",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=TPCH / "answers",
        metavar="DIR",
        help="where the sf<SF> directories go; default: %(default)s",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=default_cache(),
        metavar="DIR",
        help="where the virtual environment is kept; default: %(default)s",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N")
    parsed = parser.parse_args()
    parsed.sf = parsed.sf or [0.01, 0.1]
    return parsed


def default_cache():
    """Cargo's target directory: ignored by git and gone with `cargo clean`."""
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "tpch-answers"


def enter_environment(cache):
    """Starts this script again inside its own virtual environment, made if it is not there."""
    directory = cache / "venv"
    python = directory / "bin" / "python"
    if not python.exists():
        print(f"making a virtual environment in {directory}", file=sys.stderr)
        venv.create(directory, with_pip=True)
    wanted = [f"{name}=={release}" for name, release in PACKAGES.items()]
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *wanted], check=True)
    os.environ[INSIDE] = str(directory)
    os.execv(python, [str(python), *sys.argv])


def generate(scale, directory):
    """Writes the eight tables as Parquet files into `directory`."""
    program = Path(sys.executable).parent / "tpchgen-cli"
    command = [program, "parquet", "-s", str(scale), "-o", directory, "--quiet"]
    subprocess.run(command, check=True)


def load(directory, threads):
    """A DuckDB connection with the tables of `directory` in memory; types are the files' own."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    for table in TABLES:
        file = str(Path(directory) / f"{table}.parquet").replace("'", "''")
        connection.execute(f"CREATE TABLE {table} AS FROM read_parquet('{file}')")
    return connection


def text(value):
    """One value as the answer files spell it."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def answer(connection, sql):
    """Column names and rows of one query."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return names, cursor.fetchall()


def ties(connection, sql):
    """How many neighbours the ORDER BY leaves in no order, at a LIMIT's edge too.

    Where it is not zero another engine may give those rows in another order, or other rows.
    """
    order = re.search(r"^order by\n((?:    .*\n?)+)", sql, re.MULTILINE)
    limit = re.search(r"^limit (\d+);", sql, re.MULTILINE)
    if order is None:
        return 0
    keys = [part.split()[0] for part in order.group(1).rstrip().rstrip(";").split(",")]
    names, rows = answer(connection, re.sub(r"^limit \d+;", "", sql, flags=re.MULTILINE))
    rows = rows[: int(limit.group(1)) + 1] if limit else rows
    columns = [names.index(key) for key in keys]
    picked = [tuple(row[column] for column in columns) for row in rows]
    return sum(left == right for left, right in zip(picked, picked[1:]))


def write(path, names, rows):
    """One answer file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([text(value) for value in row] for row in rows)


def make(scale, out, threads):
    """All answers at one scale factor."""
    directory = out / f"sf{scale:g}"
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tpch-") as data:
        generate(scale, data)
        connection = load(data, threads)
    for file in sorted((TPCH / "queries").glob("q*.sql")):
        sql = file.read_text(encoding="utf-8")
        names, rows = answer(connection, sql)
        write(directory / f"{file.stem}.csv", names, rows)
        print(f"sf {scale:g}  {file.stem}  {len(rows)} rows, {ties(connection, sql)} ties")


def main():
    """Makes the environment, then the answers."""
    options = arguments()
    if INSIDE not in os.environ:
        enter_environment(options.cache)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(f"Python {sys.version.split()[0]}, {versions}")
    for scale in options.sf:
        make(scale, options.out, options.threads)


if __name__ == "__main__":
    main()
