"""Steps of a client's project: each runs even if one before it failed, and the exit code tells whether all passed."""

import atexit
import os
import sys
import traceback

failures = []


def step(function):
    """Runs the function now and prints the outcome under its name."""
    name = function.__name__.strip("_").replace("_", " ")
    try:
        function()
        print(f"ok {name}", flush=True)
    except Exception:
        failures.append(name)
        traceback.print_exc(limit=-6, file=sys.stdout)
        print(f"FAILED {name}", flush=True)


def equal(got, wanted):
    assert got == wanted, f"got {got!r}, expected {wanted!r}"


def url(scheme="postgresql"):
    """The server of PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE."""
    e = os.environ
    return f"{scheme}://{e['PGUSER']}:{e['PGPASSWORD']}@{e['PGHOST']}:{e['PGPORT']}/{e['PGDATABASE']}"


@atexit.register
def end():
    sys.stdout.flush()
    os._exit(1 if failures else 0)
