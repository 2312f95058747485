"""DuckDB as the rival in `atoll bench scan`: loads the bookings into its own memory, then answers queries
one by one, or many of them as joins with tables of their parameters.

Started as `python -c SCRIPT THREADS`. It speaks JSON, one object per line: requests on standard input,
replies on standard output, nothing else there. See README.md and serving.py beside this file.
"""

import datetime
import random
import sys
import time

EMPTY_QUERIES = 300


def value(text, sql_type):
    return datetime.date.fromisoformat(text) if sql_type == "DATE" else text


class Session:
    """A connection, the statements, and the queries that are drawn from."""

    def __init__(self, threads):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect(config={"threads": threads})
        self.connection.execute("SET enable_progress_bar = false")
        self.statements, self.queries = [], []

    def load(self, file, statements, queries):
        """The table, and how many microseconds a query takes that has nothing to do."""
        name = file.replace("'", "''")
        run = self.connection.execute
        run(f"CREATE TABLE bookings AS FROM read_parquet('{name}')")
        self.statements = statements
        for statement, values in queries:
            types = statements[statement]["types"]
            self.queries.append((statement, [value(*pair) for pair in zip(values, types)]))
        sql = statements[0]["sql"].replace("FROM bookings", "FROM nothing")
        run("CREATE TABLE nothing AS FROM bookings LIMIT 0")
        first = self.queries[0][1]
        start = time.perf_counter()
        for _ in range(EMPTY_QUERIES):
            run(sql, first).fetchall()
        elapsed = time.perf_counter() - start
        return {"empty_query_us": elapsed / EMPTY_QUERIES * 1e6}

    def one(self, query):
        statement, values = self.queries[query]
        return self.connection.execute(self.statements[statement]["sql"], values).fetchall()

    def one_by_one(self, seconds, seed):
        draw, count, rows = random.Random(seed), 0, 0
        start = time.perf_counter()
        elapsed = 0.0
        while elapsed < seconds:
            rows += len(self.one(draw.randrange(len(self.queries))))
            count += 1
            elapsed = time.perf_counter() - start
        return {"count": count, "seconds": elapsed, "rows": rows}

    def prepare(self, queries):
        """Tables of parameters, one for each statement that more than one query uses, and the texts of the
        joins; and the queries that have a statement for themselves."""
        import pyarrow

        groups = {}
        for number, query in enumerate(queries):
            groups.setdefault(self.queries[query][0], []).append((number, query))
        joins, alone = [], []
        for statement, members in groups.items():
            if len(members) == 1:
                alone.extend(members)
                continue
            values = list(zip(*(self.queries[query][1] for _, query in members)))
            names = ["equal", "low", "high", "text"]
            columns = dict(zip(names, map(list, values)), number=[number for number, _ in members])
            arrow = pyarrow.table(columns)  # DuckDB finds it by the name of this variable
            types = zip(names, self.statements[statement]["types"])
            typed = ", ".join(f'"{name}"::{sql_type} AS "{name}"' for name, sql_type in types)
            table = f"parameters_{statement}"
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT number, {typed} FROM arrow"
            )
            del arrow
            joins.append(self.statements[statement]["join"].replace("$parameters", table))
        return joins, alone

    def batch(self, count, seed):
        """Many queries at once; only their answers are timed, not how their parameters got there."""
        draw = random.Random(seed)
        joins, alone = self.prepare([draw.randrange(len(self.queries)) for _ in range(count)])
        rows = 0
        start = time.perf_counter()
        for join in joins:
            rows += self.connection.sql(join).to_arrow_table().num_rows
        for _, query in alone:
            rows += len(self.one(query))
        return {"count": count, "seconds": time.perf_counter() - start, "rows": rows}

    def answers(self, queries):
        """The rows of some queries: one by one, and by joins."""
        joins, alone = self.prepare(queries)
        joined = [self.one(queries[number]) if (number, query) in alone else []
                  for number, query in enumerate(queries)]
        for join in joins:
            for number, *row in self.connection.sql(join).fetchall():
                joined[number].append(row)
        return {"one": [texts(self.one(query)) for query in queries], "joined": [texts(rows) for rows in joined]}

    def respond(self, request):
        if "load" in request:
            return self.load(request["load"], request["statements"], request["queries"])
        if "seconds" in request:
            return self.one_by_one(request["seconds"], request["seed"])
        if "batch" in request:
            return self.batch(request["batch"], request["seed"])
        return self.answers(request["answers"])


def texts(rows):
    return [[None if item is None else str(item) for item in row] for row in rows]


def start():
    """DuckDB with the threads that the command line names."""
    session = Session(int(sys.argv[1]))
    return "duckdb", session.version, session.respond


if __name__ == "__main__":
    sys.exit(serve(start))
