#!/usr/bin/env python3
"""Checks the PostgreSQL column of docs/compatibility.md: runs the examples of tests/compatibility with psql.

    PGHOST=… PGUSER=… python3 crates/sql/tests/compatibility_postgres.py      needs: psql, and a server that it reaches

Each file is run in a schema of its own, each example by itself.
"""

import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parent / "compatibility"
SCHEMA = "atoll_compatibility"


def psql(*statements):
    arguments = [part for statement in statements for part in ("-c", statement)]
    return subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments], capture_output=True, text=True)


def main():
    wrong = 0
    for path in sorted(EXAMPLES.glob("*.txt")):
        made = [f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE", f"CREATE SCHEMA {SCHEMA}"]
        psql(*made)
        done = ["SET client_min_messages = error", f"SET search_path = {SCHEMA}, public"]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("!"):
                psql(*done, line[1:])
                continue
            feature, _, claimed, _, sql = (part.strip() for part in line.split("|", 4))
            # What is written in another form is not what the example has.
            if claimed == "in another form":
                continue
            ran = psql(*done, f"BEGIN; {sql}; COMMIT") if sql.startswith("LOCK") else psql(*done, sql)
            has = "yes" if ran.returncode == 0 else "no"
            if not claimed.startswith(has):
                wrong += 1
                print(f"{path.name}:{number}: {feature}: says '{claimed}', PostgreSQL: {has} {ran.stderr.strip().splitlines()[:1]}")
        psql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        psql("DROP PUBLICATION IF EXISTS atoll_compatibility")
    sys.exit(1 if wrong else 0)


main()
