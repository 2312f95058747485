#!/usr/bin/env python3
"""Checks the DuckDB column of docs/compatibility.md: runs the examples of tests/compatibility with DuckDB's Python.

    python3 crates/sql/tests/compatibility_duckdb.py      needs: pip install duckdb
"""

import pathlib
import sys

import duckdb

EXAMPLES = pathlib.Path(__file__).parent / "compatibility"
# What depends on a network, or on files that are not there.
SKIPPED = ("INSTALL", "ATTACH", "CREATE SECRET")


def main():
    wrong = 0
    for path in sorted(EXAMPLES.glob("*.txt")):
        # With lambdas in both syntaxes, as they are until DuckDB drops one.
        connection = duckdb.connect()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("!"):
                connection.execute(line[1:])
                continue
            feature, claimed, _, _, sql = (part.strip() for part in line.split("|", 4))
            # What is written in another form is not what the example has.
            if sql.startswith(SKIPPED) or claimed == "in another form":
                continue
            try:
                connection.execute(sql).fetchall()
                has, why = "yes", ""
            except Exception as error:  # whatever it is, DuckDB does not have it
                has, why = "no", str(error).split("\n")[0]
            if not claimed.startswith(has):
                wrong += 1
                print(f"{path.name}:{number}: {feature}: says '{claimed}', DuckDB {duckdb.__version__}: {has} {why}")
    sys.exit(1 if wrong else 0)


main()
