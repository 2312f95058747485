#!/usr/bin/env python3
"""Whether the memory limit is kept: queries that want more than they may have, each in a process of
its own, and the most memory of its own that the kernel saw resident of it.

A query passes where it ends (with its result or with an error that names the limit, as the list says)
and its peak stays below what docs/memory.md promises: the limit, its allowance (an eighth and 32 MiB),
30 % of both for what the allocator holds besides, and what an empty session takes. Pages of files, of
the program most of all, are not in the peak: the kernel shares them and takes them back. Every row is
printed as it ends; the exit code is 1 where one fails. The data is written once to --folder
(some 600 MB). A run takes some minutes:

    scripts/memory_limit.py --atoll target/release/atoll [--limit 128MiB --limit 1GiB] [--only sort]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROWS = 6_000_000
SECONDS_MAX = 300
DATA = f"""
COPY (SELECT value AS k, (value * 7919) % 6000011 AS r, value % 1000 AS g,
             lpad(to_hex((value * 2654435761) % 4294967296), 32, '0') AS s,
             repeat(lpad(to_hex((value * 40503) % 4294967296), 32, 'x'), 2) AS wide
      FROM generate_series(1, {ROWS})) TO '%s/rows.parquet';
"""

# Name, what it may end with, the statements. `t` is the file; a table would count against the limit.
DONE, SHORT, EITHER = "done", "error", "either"
QUERIES = [
    ("empty", DONE, "SELECT 1;"),
    ("scan", DONE, "SELECT count(*), max(s), min(wide) FROM t;"),
    ("array_agg", EITHER, "SELECT array_length(array_agg(wide)) FROM t;"),
    ("array_agg numbers", EITHER, "SELECT array_length(array_agg(r)) FROM t;"),
    ("array_agg ordered", EITHER, "SELECT array_length(array_agg(s ORDER BY r)) FROM t;"),
    ("array_agg distinct", EITHER, "SELECT array_length(array_agg(DISTINCT s)) FROM t;"),
    ("array_agg grouped", EITHER,
     "SELECT sum(array_length(a)) FROM (SELECT g, array_agg(wide) AS a FROM t GROUP BY g);"),
    ("string_agg", EITHER, "SELECT length(string_agg(wide, ',')) FROM t;"),
    ("string_agg grouped", EITHER,
     "SELECT sum(length(a)) FROM (SELECT g, string_agg(wide, ',') AS a FROM t GROUP BY g);"),
    ("median", EITHER, "SELECT median(r) FROM t;"),
    ("percentile", EITHER, "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY r) FROM t;"),
    ("count distinct numbers", EITHER, "SELECT count(DISTINCT r) FROM t;"),
    ("count distinct texts", EITHER, "SELECT count(DISTINCT s) FROM t;"),
    ("count distinct grouped", EITHER,
     "SELECT max(n) FROM (SELECT g, count(DISTINCT s) AS n FROM t GROUP BY g);"),
    ("first_value", DONE, "SELECT first_value(wide ORDER BY r), last_value(s ORDER BY k) FROM t;"),
    ("group by numbers", DONE, "SELECT count(*) FROM (SELECT r, sum(k) FROM t GROUP BY r);"),
    ("group by texts", DONE, "SELECT count(*) FROM (SELECT s, sum(k) FROM t GROUP BY s);"),
    ("distinct", DONE, "SELECT count(*) FROM (SELECT DISTINCT s, wide FROM t);"),
    ("union", DONE, "SELECT count(*) FROM (SELECT s FROM t UNION SELECT wide FROM t);"),
    ("intersect", EITHER, "SELECT count(*) FROM (SELECT s FROM t INTERSECT SELECT s FROM t);"),
    ("sort", DONE, "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY r) AS n FROM t);"),
    ("sort texts", DONE, "COPY (SELECT * FROM t ORDER BY s, wide) TO '%s/out.parquet';"),
    ("sort to csv", DONE, "COPY (SELECT * FROM t ORDER BY wide DESC) TO '%s/out.csv';"),
    ("copy parquet", DONE, "COPY (SELECT *, wide || s AS wider FROM t) TO '%s/out.parquet';"),
    ("large offset", DONE, "SELECT k, s FROM t ORDER BY r LIMIT 3 OFFSET 5000000;"),
    ("large offset, wide", DONE, "SELECT * FROM t ORDER BY wide LIMIT 3 OFFSET 5000000;"),
    ("top", DONE, "SELECT * FROM t ORDER BY wide LIMIT 10;"),
    ("window", EITHER, "SELECT sum(n) FROM (SELECT count(*) OVER (PARTITION BY g) AS n FROM t);"),
    ("window, all rows", EITHER, "SELECT max(n) FROM (SELECT max(wide) OVER () AS n FROM t);"),
    ("window, running", DONE,
     "SELECT max(n) FROM (SELECT sum(k) OVER (PARTITION BY g ORDER BY r) AS n FROM t);"),
    ("join", EITHER, "SELECT count(*), max(b.wide) FROM t a JOIN t b ON a.k = b.r WHERE a.s < b.wide;"),
    ("cross join", EITHER,
     "SELECT count(*) FROM (SELECT wide FROM t) a CROSS JOIN (SELECT s FROM t LIMIT 2) b WHERE a.wide < b.s;"),
    ("nested loops", EITHER,
     "SELECT count(*) FROM (SELECT wide, r FROM t WHERE k < 2000000) a JOIN (SELECT r FROM t LIMIT 4) b ON a.r < b.r;"),
    ("create table", EITHER, "CREATE TABLE x AS SELECT * FROM t; SELECT count(*) FROM x;"),
    ("recursion", EITHER,
     "WITH RECURSIVE x AS (SELECT 1 AS n, s FROM t UNION ALL SELECT n + 1, s FROM x WHERE n < 4) SELECT count(*) FROM x;"),
    ("a large value", EITHER, "SELECT length(repeat('x', 1000000000));"),
    ("large values", EITHER, "SELECT max(length(repeat(s, 1000 + g))) FROM t;"),
    ("a large list", SHORT, "SELECT array_length(range(1, 1000000000));"),
    ("a large padding", SHORT, "SELECT length(lpad('x', 2000000000, 'ab'));"),
    ("unnest", EITHER, "SELECT count(*) FROM (SELECT unnest(range(1, 20000)) FROM t LIMIT 5000000);"),
    ("result in a box", EITHER, ".maxrows 0\nSELECT * FROM t;"),
    ("result as csv", DONE, ".mode csv\nSELECT * FROM t;"),
]

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    unit = text[-3:]
    return int(text[:-3]) * UNITS[unit]


def resident(process):
    """What the kernel has resident of a process: memory of its own, and pages of files."""
    try:
        text = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in text.splitlines())
    size = lambda name: int(fields.get(name, "0 kB").split()[0]) * 1024
    return size("RssAnon") + size("RssShmem"), size("RssFile")


class Watch(threading.Thread):
    """The most of each of the two while a process runs."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.own, self.files, self.over = process, 0, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            own, files = resident(self.process)
            self.own, self.files = max(self.own, own), max(self.files, files)
            self.over.wait(0.002)

    def peak(self, all_resident):
        """The most memory of its own, where the kernel saw so much resident at once."""
        self.over.set()
        self.join()
        return max(self.own, all_resident - self.files)


def ran(atoll, limit, statements, folder):
    """Peak of the process's own memory in bytes, its seconds, and its error or ''."""
    command = [atoll, "sql", "--memory-limit", limit, "--spill-dir", folder, "-f", "-"]
    with tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
        )
        child.stdin.write(statements.encode())
        child.stdin.close()
        timer = threading.Timer(SECONDS_MAX, child.kill)
        timer.start()
        watch = Watch(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        error = errors.read().decode(errors="replace").strip()
    seconds = time.monotonic() - started
    if child.returncode != 0 and not error:
        error = f"ended with {child.returncode}"
    return watch.peak(usage.ru_maxrss * 1024), seconds, error if child.returncode != 0 else ""


def verdict(expected, error, peak, most):
    lines = [line for line in error.splitlines() if line.startswith("error")] or [error]
    error = lines[0] and error[error.index(lines[0]):] if error else ""
    lower = error.lower()
    short = "memory" in lower or "would make" in lower
    if error and not (short and expected != DONE):
        return f"FAILED: {error.splitlines()[0][:150]}"
    if not error and expected == SHORT:
        return "FAILED: it ended without an error"
    if peak > most:
        return f"FAILED: more than {most >> 20} MiB"
    return error.splitlines()[0][:100] if error else "done"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoll", required=True)
    parser.add_argument("--folder", default=tempfile.gettempdir() + "/atoll-memory-limit")
    parser.add_argument("--limit", action="append", help="such as 128MiB; may be repeated")
    parser.add_argument("--only", default="", help="queries whose name has this in it")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rows.parquet").exists():
        _, _, error = ran(arguments.atoll, "8GiB", DATA.replace("%s", str(folder)), str(folder))
        assert not error, error
    view = f"CREATE VIEW t AS SELECT * FROM '{folder}/rows.parquet';\n"
    failures = 0
    for limit in arguments.limit or ["128MiB", "200MiB", "1GiB"]:
        idle, _, _ = ran(arguments.atoll, limit, view, str(folder))
        taken = size(limit) + size(limit) // 8 + size("32MiB")
        most = int(taken * 1.3) + idle
        print(f"limit {limit}: at most {most >> 20} MiB, {idle >> 20} MiB of them for a session")
        for name, expected, statements in QUERIES:
            if arguments.only not in name:
                continue
            statements = statements.replace("%s", str(folder))
            peak, seconds, error = ran(arguments.atoll, limit, view + statements, str(folder))
            says = verdict(expected, error, peak, most)
            failures += says.startswith("FAILED")
            print(f"{name:24} {peak >> 20:6} MiB {seconds:7.1f} s  {says}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
