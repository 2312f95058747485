"""dbt: seeds, all materializations twice, snapshots, tests and documentation."""

import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step

import psycopg2
from dbt.cli.main import dbtRunner

home = pathlib.Path(tempfile.mkdtemp()) / "shop"
shutil.copytree(pathlib.Path(__file__).parent, home)
os.environ.update(DBT_SEND_ANONYMOUS_USAGE_STATS="false", DO_NOT_TRACK="1")


def dbt(*arguments):
    result = dbtRunner().invoke([*arguments, "--project-dir", str(home), "--profiles-dir", str(home), "--no-version-check", "--no-use-colors"])
    assert result.success, result.exception or [(r.node.name, r.message) for r in result.result if r.status in ("error", "fail")]


def rows(sql):
    with psycopg2.connect(host=os.environ["PGHOST"], port=os.environ["PGPORT"], user=os.environ["PGUSER"],
                          password=os.environ["PGPASSWORD"], dbname=os.environ["PGDATABASE"]) as c, c.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else None


@step
def debug():
    dbt("debug")


@step
def seed():
    dbt("seed")
    equal(rows("SELECT count(*), sum(amount)::text FROM dbt.orders"), [(4, "22.75")])


@step
def run():
    dbt("run")
    equal(rows("SELECT name, total::text FROM dbt.totals ORDER BY name"), [("Ann", "14.50"), ("Bob", "7.25"), ("Cy, the third", "1.00")])
    equal(rows("SELECT days, later::date::text, part, one, last_day::text FROM dbt.last LIMIT 1"), [(60, "2024-02-29", "b", 1, "2024-02-29")])
    equal(rows("SELECT relkind::text FROM pg_class WHERE relname IN ('totals', 'recent', 'monthly') ORDER BY relname"), [("m",), ("v",), ("r",)])
    equal(rows("SELECT obj_description('dbt.totals'::regclass)"), [("What each customer's orders amount to",)])


@step
def snapshot():
    dbt("snapshot")
    equal(rows("SELECT count(*) FROM dbt.kept WHERE dbt_valid_to IS NULL"), [(3,)])


@step
def run_again():
    (home / "seeds" / "orders.csv").open("a").write("5,2,3,2024-05-01\n")
    (home / "seeds" / "customers.csv").write_text("id,name,joined\n1,Anne,2024-01-02\n2,Bob,2024-02-03\n4,Di,2024-05-05\n")
    (home / "models" / "grown.sql").write_text((home / "models" / "grown.sql").read_text().replace("now() as seen", "now() as seen, 1 as more"))
    dbt("seed")
    dbt("run")
    equal(rows("SELECT count(*), count(more) FROM dbt.grown"), [(5, 2)])
    equal(rows("SELECT count(*) FROM dbt.added"), [(9,)])
    equal(rows("SELECT sum(amount)::text FROM dbt.merged"), [("30.75",)])
    equal(rows("SELECT count(*) FROM dbt.monthly"), [(3,)])


@step
def snapshot_again():
    dbt("snapshot")
    equal(rows("SELECT count(*), count(dbt_valid_to) FROM dbt.kept"), [(5, 2)])


@step
def test():
    (home / "models" / "schema.yml").write_text((home / "models" / "schema.yml").read_text().replace('"Cy, the third"', "Anne, Di"))
    dbt("test")


@step
def documentation():
    dbt("docs", "generate")
    equal((home / "target" / "catalog.json").read_text().count('"unique_id": "model.shop.totals"'), 1)


@step
def full_refresh():
    dbt("build", "--full-refresh")
    equal(rows("SELECT count(*) FROM dbt.added"), [(5,)])


@step
def drop():
    rows("DROP SCHEMA dbt CASCADE")
    rows("DROP SCHEMA IF EXISTS dbt_dbt_test__audit CASCADE")
    equal(rows("SELECT count(*) FROM pg_tables WHERE schemaname LIKE 'dbt%'"), [(0,)])
