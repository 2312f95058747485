#!/usr/bin/env python3
"""Makes the files that files_*.slt read: CSV, JSON and Parquet of every oddity.

usage: make.py [DIRECTORY]     the directory of this script unless told otherwise

Needs pyarrow and duckdb. What it makes is kept beside it, so that the tests need neither. Running it again
gives the same text files; Parquet files differ where the writers' versions do.
"""

import bz2
import gzip
import json
import lzma
import pathlib
import sys
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def write(name, content):
    path = ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


TABLE = "id,name,amount\n1,Ann,1.5\n2,Bob,2.5\n3,Cid,\n"

CSV = {
    "plain.csv": TABLE,
    "semicolon.csv": TABLE.replace(",", ";"),
    "tab.tsv": TABLE.replace(",", "\t"),
    "pipe.txt": TABLE.replace(",", "|"),
    "unknown.dat": TABLE,
    "no_ending": TABLE,
    "no_header.csv": "1,Ann,1.5\n2,Bob,2.5\n3,Cid,\n",
    "no_header_text.csv": "a,b\nc,d\ne,f\n",
    "header_only.csv": "id,name\n",
    "one_line.csv": "1,2\n",
    "preamble.csv": "Report of May\nmade by hand\n\nid,name,amount\n1,Ann,1.5\n2,Bob,2.5\n",
    "comments.csv": "# a comment\nid,name\n1,Ann\n# another\n2,Bob\n",
    "quotes.csv": 'id,text\n1,"a,b"\n2,"say ""hi"""\n3,""\n4,\n',
    "single_quotes.csv": "id,text\n1,'a,b'\n2,'it''s'\n",
    "backslash.csv": 'id,text\n1,"a \\"b\\" c"\n2,"x,y"\n',
    "line_breaks.csv": 'id,text\n1,"one\ntwo"\n2,"three"\n',
    "crlf.csv": TABLE.replace("\n", "\r\n"),
    "cr.csv": TABLE.replace("\n", "\r"),
    "bom.csv": "\ufeff" + TABLE,
    "utf16.csv": TABLE.encode("utf-16"),
    "latin1.csv": "id,name\n1,Zo\xeb\n".encode("latin-1"),
    "no_last_newline.csv": "a,b\n1,2\n3,4",
    "blank_lines.csv": "a,b\n1,2\n\n3,4\n\n",
    "one_column.csv": "n\n1\n\n3\n",
    "short_row.csv": "a,b,c\n1,2,3\n4,5\n6,7,8\n",
    "long_row.csv": "a,b\n1,2\n3,4,5\n6,7\n",
    "bad_value.csv": "id,n\n" + "".join(f"{i},{i}\n" for i in range(1, 21000)) + "21000,x\n21001,7\n",
    "unterminated.csv": 'a,b\n1,"x\n2,y\n',
    "stray_quote.csv": 'a,b\n1,"x"y\n2,z\n',
    "decimal_comma.csv": "id;price\n1;1,5\n2;2,25\n",
    "thousands.csv": 'id;price\n1;"1,234"\n2;"12,345,678"\n',
    "nulls.csv": "id,v\n1,NA\n2,x\n3,-\n4,\n",
    "null_numbers.csv": "id,v\n1,NA\n2,5\n3,7\n",
    "dates_dmy.csv": "d\n31.12.2020\n01.02.2021\n",
    "dates_mdy.csv": "d,n\n12/31/2020,1\n01/02/2021,2\n",
    "timestamps.csv": "t,u\n2020-01-01 10:00:00,2020-01-01T10:00:00\n2020-01-02 11:30:15.5,2020-01-02T00:00:00\n",
    "timestamps_dmy.csv": "t,n\n31.12.2020 10:00:05,1\n01.02.2021 00:00:00,2\n",
    "times.csv": "t,n\n10:00:00,1\n23:59:59.5,2\n",
    "zones.csv": "t,n\n2020-01-01T10:00:00Z,1\n2020-06-01T12:00:00+02:00,2\n",
    "booleans.csv": "a,b\ntrue,T\nfalse,F\n",
    "zeros.csv": "zip,n\n00123,1\n99999,2\n",
    "large.csv": "n,u\n9223372036854775807,1\n-9223372036854775808,99999999999999999999\n",
    "floats.csv": "f,g\n1e5,nan\n-2.5E-3,inf\n",
    "empty_names.csv": "a,,c\n1,2,3\n",
    "twice.csv": "a,b,a\n1,2,3\n",
    "spaces.csv": "id, name\n1, Ann\n2, Bob\n",
    "wide.csv": ",".join(f"c{i}" for i in range(200)) + "\n" + ",".join(str(i) for i in range(200)) + "\n",
    "empty.csv": "",
    "only_breaks.csv": "\n\n",
    "garbage.csv": bytes(range(256)) * 8,
    "name with 'quotes' and spaces.csv": "a\n1\n2\n",
    "star*[x]?.csv": "a\n7\n",
    "union/a.csv": "id,name\n1,Ann\n2,Bob\n",
    "union/b.csv": "id,city,name\n3,Rome,Cid\n",
    "many/part1.csv": "id,v\n1,a\n2,b\n",
    "many/part2.csv": "id,v\n3,c\n4,d\n",
    "many/deep/part3.csv": "id,v\n5,e\n",
    "hive/year=2023/month=01/a.csv": "v\n1\n2\n",
    "hive/year=2024/month=01/b.csv": "v\n3\n",
    "hive/year=2024/month=12/c.csv": "v\n4\n5\n",
    "hive_null/k=__HIVE_DEFAULT_PARTITION__/a.csv": "v\n1\n",
    "hive_null/k=x%20y/b.csv": "v\n2\n",
}

LINES = '{"id":1,"name":"Ann"}\n{"id":2,"name":null}\n{"id":3,"extra":true}\n'

JSON = {
    "lines.json": LINES,
    "lines.jsonl": LINES,
    "lines.ndjson": LINES,
    "lines.dat": LINES,
    "array.json": '[{"id":1,"name":"Ann"},{"id":2,"name":null},{"id":3,"extra":true}]',
    "array_pretty.json": json.dumps([{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}], indent=2),
    "pretty.json": '{\n  "id": 1,\n  "at": {"x": 1.5, "y": 2}\n}\n{\n  "id": 2,\n  "at": {"x": 3}\n}\n',
    "single.json": '{"a": {"b": [1, 2, {"c": "deep"}]}, "d": "text"}',
    "nested.json": '{"k":1,"s":{"a":1,"b":"x"},"l":[1,2,3]}\n{"k":2,"s":{"a":2,"b":null},"l":[]}\n{"k":3,"s":null,"l":null}\n',
    "mixed.json": '{"v":1}\n{"v":"text"}\n{"v":[1,2]}\n{"v":null}\n',
    "numbers.json": '{"i":1,"d":1.5,"m":1}\n{"i":-9223372036854775808,"d":1e10,"m":2.5}\n',
    "digits.json": '{"d":1234567890123456789.0123456789,"f":0.1,"t":"x"}\n{"d":0.1,"f":5e-324,"t":{"a": [1.10, 12345678901234567890123]}}\n{"d":-3,"f":0.30000000000000004,"t":1.50}\n',
    "unsigned.json": '{"u":18446744073709551615}\n{"u":1}\n',
    "dates.json": '{"d":"2020-01-31","t":"2020-01-31 10:00:00"}\n{"d":"2021-02-03","t":"2021-02-03 00:00:01"}\n',
    "no_dates.json": '{"d":"2024-02-30","t":"2023-02-29 10:00:00","z":"2024-04-31T01:02:03Z","l":["2024-02-29","2023-02-29"],"g":"2024-02-29"}\n{"d":"2021-02-03","t":"2021-02-03 25:00:01","z":"2024-01-01 00:00:00+00","l":[],"g":"2024-03-01"}\n',
    "scalars.json": '1\n2\n3\n',
    "array_of_numbers.json": "[1, 2, 3]",
    "escapes.json": '{"s":"line\\nbreak \\u00e9 \\"q\\" \\\\"}\n{"s":"\ud83d\ude00"}\n'.encode("utf-16", "surrogatepass").decode("utf-16"),
    "bom.json": "\ufeff" + LINES,
    "crlf.json": LINES.replace("\n", "\r\n"),
    "blank_lines.json": '{"a":1}\n\n\n{"a":2}\n',
    "empty.json": "",
    "empty_array.json": "[]",
    "truncated.json": '[{"a":1},{"a":2}',
    "truncated_lines.json": '{"a":1}\n{"a":2}\n{"a":',
    "bad_line.json": '{"a":1}\n{"a":oops}\n{"a":3}\n',
    "late_type.json": "".join('{"a":%d}\n' % i for i in range(20480)) + '{"a":"x"}\n',
    "null_only.json": '{"a":null,"b":1}\n{"a":null,"b":2}\n',
    "json_union/a.json": '{"a":1}\n',
    "json_union/b.json": '{"b":"x"}\n',
}

for name, content in {**CSV, **JSON}.items():
    write(name, content)

write("plain.csv.gz", gzip.compress(TABLE.encode(), mtime=0))
write("plain.csv.bz2", bz2.compress(TABLE.encode()))
write("plain.csv.xz", lzma.compress(TABLE.encode()))
write("gzip_named.csv", gzip.compress(TABLE.encode(), mtime=0))
write("lines.json.gz", gzip.compress(LINES.encode(), mtime=0))
whole = gzip.compress(("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(5000))).encode(), mtime=0)
write("truncated.csv.gz", whole[: len(whole) // 2])

rows = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "name": pa.array(["Ann", None, "Cid"]),
        "amount": pa.array([Decimal("1.50"), None, Decimal("-3.25")], pa.decimal128(9, 2)),
        "day": pa.array([date(2020, 1, 31), None, date(1999, 12, 31)]),
        "at": pa.array([datetime(2020, 1, 31, 10), None, datetime(1999, 12, 31)], pa.timestamp("us")),
        "tags": pa.array([["a", "b"], [], None], pa.list_(pa.string())),
        "place": pa.array(
            [{"x": 1, "y": "p"}, None, {"x": None, "y": "q"}],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
    }
)
pq.write_table(rows, ROOT / "types.parquet")
pq.write_table(rows, ROOT / "parquet_named.bin")
pq.write_table(rows.slice(0, 0), ROOT / "no_rows.parquet")
pq.write_table(pa.table({"k": [1, 2]}), ROOT / "union_a.parquet")
pq.write_table(pa.table({"k": [3.5], "extra": ["x"]}), ROOT / "union_b.parquet")
content = (ROOT / "types.parquet").read_bytes()
write("truncated.parquet", content[: len(content) // 2])
write("text.parquet", "this is not Parquet\n")
write("empty.parquet", "")
duckdb.sql("SET threads = 1")
duckdb.sql(
    f"COPY (SELECT range AS id, range % 3 AS k FROM range(9)) TO '{ROOT}/hive_parquet' "
    "(FORMAT parquet, PARTITION_BY (k), OVERWRITE true)"
)
