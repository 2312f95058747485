#!/usr/bin/env python3
"""Exchanges files with pandas, Polars and DuckDB.

usage: exchange.py write DIRECTORY    each writes the same rows in its formats
       exchange.py read DIRECTORY     each reads what Atoll wrote there, and fails where it is not these rows
"""

import datetime
import decimal
import math
import pathlib
import sys

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.parquet

UTC = datetime.timezone.utc
ROWS = {
    "id": [1, 2, 3],
    "name": ["Ann", None, "a,b \"c\"\nd"],
    "amount": [decimal.Decimal("1.50"), None, decimal.Decimal("-3.25")],
    "x": [0.5, None, -1e300],
    "day": [datetime.date(2020, 2, 29), None, datetime.date(1969, 12, 31)],
    "moment": [datetime.datetime(2020, 2, 29, 10, 0, 0, 123456), None, datetime.datetime(1969, 12, 31)],
    "zoned": [datetime.datetime(2020, 6, 1, 12, tzinfo=UTC), None, datetime.datetime(1970, 1, 1, tzinfo=UTC)],
    "flag": [True, None, False],
    "tags": [["a", None], [], None],
    "place": [{"x": 1, "y": "p"}, None, {"x": None, "y": "q"}],
    "none": [None, None, None],
}
NESTED = ["tags", "place"]
TABLE = pyarrow.table(
    {
        "id": pyarrow.array(ROWS["id"], pyarrow.int64()),
        "name": pyarrow.array(ROWS["name"], pyarrow.string()),
        "amount": pyarrow.array(ROWS["amount"], pyarrow.decimal128(9, 2)),
        "x": pyarrow.array(ROWS["x"], pyarrow.float64()),
        "day": pyarrow.array(ROWS["day"], pyarrow.date32()),
        "moment": pyarrow.array(ROWS["moment"], pyarrow.timestamp("us")),
        "zoned": pyarrow.array(ROWS["zoned"], pyarrow.timestamp("us", "UTC")),
        "flag": pyarrow.array(ROWS["flag"], pyarrow.bool_()),
        "tags": pyarrow.array(ROWS["tags"], pyarrow.list_(pyarrow.string())),
        "place": pyarrow.array(
            ROWS["place"], pyarrow.struct([("x", pyarrow.int64()), ("y", pyarrow.string())])
        ),
        "none": pyarrow.array(ROWS["none"], pyarrow.int32()),
    }
)
FLAT = TABLE.drop_columns(NESTED)

# Types within types, and values at the ends of their types.
DEEP = {
    "id": [1, 2, 3, 4],
    "attrs": [[("a", 1), ("b", None)], [], None, [("", 0)]],
    "pairs": [[{"k": 1, "v": ["x", None]}, None], [], None, [{"k": None, "v": None}]],
    "matrix": [[[1, 2], [], None], [], None, [[None]]],
    "nested": [{"in": {"deep": 1, "list": [1]}}, {"in": None}, None, {"in": {"deep": None, "list": []}}],
    "large": [
        decimal.Decimal("9999999999999999999999999999.9999999999"),
        decimal.Decimal("-0.0000000001"),
        None,
        decimal.Decimal("0E-10"),
    ],
    "zoned": [
        datetime.datetime(2024, 3, 31, 0, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(2024, 3, 31, 1, tzinfo=UTC),
        None,
        datetime.datetime(1900, 1, 1, tzinfo=UTC),
    ],
    "at": [datetime.time(23, 59, 59, 999999), datetime.time(0), None, datetime.time(12, 30)],
    "bytes": [b"\x00\xff", b"", None, b"'\\"],
    "text": ["", "NULL", None, " ü\t"],
    "whole": [2**63 - 1, -(2**63), None, 0],
}
INNER = pyarrow.struct([("deep", pyarrow.int32()), ("list", pyarrow.list_(pyarrow.int32()))])
PAIR = pyarrow.struct([("k", pyarrow.int32()), ("v", pyarrow.list_(pyarrow.string()))])
DEEP_TYPES = {
    "id": pyarrow.int64(),
    "attrs": pyarrow.map_(pyarrow.string(), pyarrow.int32()),
    "pairs": pyarrow.list_(PAIR),
    "matrix": pyarrow.list_(pyarrow.list_(pyarrow.int32())),
    "nested": pyarrow.struct([("in", INNER)]),
    "large": pyarrow.decimal128(38, 10),
    "zoned": pyarrow.timestamp("us", "Europe/Berlin"),
    "at": pyarrow.time64("us"),
    "bytes": pyarrow.binary(),
    "text": pyarrow.string(),
    "whole": pyarrow.int64(),
}
DEEP_TABLE = pyarrow.table({name: pyarrow.array(DEEP[name], of) for name, of in DEEP_TYPES.items()})
# Polars has no maps, and writes one as a list of structs.
LISTED = DEEP_TABLE.drop_columns(["attrs"])


def write(directory):
    pyarrow.parquet.write_table(TABLE, directory / "pyarrow.parquet")
    pyarrow.feather.write_feather(TABLE, directory / "pyarrow.arrow", compression="uncompressed")
    TABLE.to_pandas().to_parquet(directory / "pandas.parquet")
    FLAT.to_pandas().to_csv(directory / "pandas.csv", index=False)
    FLAT.select(["id", "name", "x", "flag", "none"]).to_pandas().to_json(
        directory / "pandas.json", orient="records", lines=True
    )
    frame = polars.from_arrow(TABLE)
    frame.write_parquet(directory / "polars.parquet")
    frame.drop(NESTED).write_csv(directory / "polars.csv")
    frame.write_ndjson(directory / "polars.json")
    frame.write_ipc(directory / "polars.arrow", compression="uncompressed", compat_level=polars.CompatLevel.oldest())
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("t", TABLE)
    connection.execute(f"COPY t TO '{directory}/duckdb.parquet'")
    connection.execute(f"COPY t TO '{directory}/duckdb.json'")
    connection.execute(f"COPY t TO '{directory}/duckdb_array.json' (FORMAT json, ARRAY true)")
    connection.execute(f"COPY (SELECT * EXCLUDE (tags, place) FROM t) TO '{directory}/duckdb.csv'")
    pyarrow.parquet.write_table(DEEP_TABLE, directory / "pyarrow_deep.parquet")
    pyarrow.feather.write_feather(DEEP_TABLE, directory / "pyarrow_deep.arrow", compression="uncompressed")
    LISTED.to_pandas(types_mapper=pandas.ArrowDtype).to_parquet(directory / "pandas_deep.parquet")
    polars.from_arrow(LISTED).write_parquet(directory / "polars_deep.parquet")
    connection.register("deep", DEEP_TABLE)
    connection.execute(f"COPY deep TO '{directory}/duckdb_deep.parquet'")
    connection.execute(f"COPY (SELECT id, text FROM deep) TO '{directory}/duckdb_deep.csv'")
    polars.from_arrow(LISTED.select(["id", "text"])).write_csv(directory / "polars_deep.csv")
    LISTED.select(["id", "text"]).to_pandas().to_csv(directory / "pandas_deep.csv", index=False)


def plain(value):
    """A value as Python has it, whichever library read it."""
    if value is None or value is pandas.NaT or value is pandas.NA:
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, pandas.Timestamp):
        value = value.to_pydatetime()
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(UTC)
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        is_map = bool(items) and all(isinstance(item, tuple) and len(item) == 2 for item in value)
        return dict(items) if is_map else items
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def check(what, columns):
    """Fails where columns are not those of ROWS."""
    for name, values in columns.items():
        found, expected = [plain(value) for value in values], ROWS[name]
        if name == "amount":
            found = [None if value is None else decimal.Decimal(str(value)) for value in found]
        if name in ("id", "x"):
            found = [None if value is None else float(value) for value in found]
            expected = [None if value is None else float(value) for value in expected]
        if name == "flag":
            found = [None if value is None else bool(value) for value in found]
        if found != expected:
            sys.exit(f"{what}: column {name} is {found}, expected {expected}")


def read(directory):
    kinds = ["id", "name", "amount", "x", "day", "moment", "flag", "none"]
    parquet = directory / "atoll.parquet"
    check("pyarrow, Parquet", pyarrow.parquet.read_table(parquet).to_pydict())
    check("pandas, Parquet", pandas.read_parquet(parquet).to_dict("list"))
    check("Polars, Parquet", polars.read_parquet(parquet).to_dict(as_series=False))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    check("DuckDB, Parquet", columns(connection, f"FROM '{parquet}'", kinds + NESTED))
    csv = directory / "atoll.csv"
    check("DuckDB, CSV", columns(connection, f"FROM '{csv}'", kinds))
    frame = pandas.read_csv(csv, parse_dates=["moment", "zoned"], date_format="ISO8601")
    check("pandas, CSV", {name: list(frame[name]) for name in ["id", "name", "amount", "x", "moment", "zoned"]})
    frame = polars.read_csv(csv, try_parse_dates=True)
    check("Polars, CSV", {name: frame[name].to_list() for name in ["id", "name", "amount", "x", "day", "flag"]})
    lines = directory / "atoll.json"
    # DuckDB takes moments of which some have fractions for texts.
    kinds.remove("moment")
    check("DuckDB, JSON", columns(connection, f"FROM '{lines}'", kinds + NESTED))
    check("DuckDB, JSON array", columns(connection, f"FROM '{directory}/atoll_array.json'", kinds + NESTED))
    flat = ["id", "name", "amount", "x", "flag", "tags", "place"]
    frame = pandas.read_json(lines, lines=True, precise_float=True)
    check("pandas, JSON", {name: list(frame[name]) for name in flat})
    frame = polars.read_ndjson(lines)
    check("Polars, JSON", {name: frame[name].to_list() for name in flat})
    read_deep(directory)


def check_deep(what, columns):
    """Fails where columns are not those of DEEP; a map is a dictionary, and an empty one an empty list or dictionary."""
    for name, values in columns.items():
        found, expected = [plain(value) for value in values], [plain(value) for value in DEEP[name]]
        if name == "attrs":
            found = [{} if value == [] else value for value in found]
            expected = [{} if value == [] else value for value in expected]
        if found != expected:
            sys.exit(f"{what}: column {name} is {found}, expected {expected}")


def read_deep(directory):
    parquet = directory / "atoll_deep.parquet"
    table = pyarrow.parquet.read_table(parquet)
    check_deep("pyarrow, Parquet", table.to_pydict())
    check_deep("pyarrow, Arrow", pyarrow.ipc.open_file(directory / "atoll_deep.arrow").read_all().to_pydict())
    listed = [name for name in DEEP if name != "attrs"]
    frame = pandas.read_parquet(parquet, dtype_backend="pyarrow")
    check_deep("pandas, Parquet", {name: frame[name].array._pa_array.to_pylist() for name in listed})
    frame = polars.read_parquet(parquet, columns=listed)
    check_deep("Polars, Parquet", frame.to_dict(as_series=False))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB hands out moments with a zone where pytz is there, and their microseconds everywhere.
    rest = [name for name in DEEP if name != "zoned"]
    check_deep("DuckDB, Parquet", columns(connection, f"FROM '{parquet}'", rest))
    micros = [row[0] for row in connection.execute(f"SELECT epoch_us(zoned) FROM '{parquet}'").fetchall()]
    start = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    expected = [value and (value - start) // datetime.timedelta(microseconds=1) for value in DEEP["zoned"]]
    if micros != expected:
        sys.exit(f"DuckDB, Parquet: column zoned is {micros}, expected {expected}")
    csv = directory / "atoll_deep.csv"
    check_deep("DuckDB, CSV", columns(connection, f"FROM read_csv('{csv}', allow_quoted_nulls = false)", ["id", "text", "whole"]))
    frame = polars.read_csv(csv)
    check_deep("Polars, CSV", {name: frame[name].to_list() for name in ["id", "text"]})


def columns(connection, query, names):
    quoted = ", ".join(f'"{name}"' for name in names)
    rows = connection.execute(f"SELECT {quoted} {query}").fetchall()
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


{"write": write, "read": read}[sys.argv[1]](pathlib.Path(sys.argv[2]))
