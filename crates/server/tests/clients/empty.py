"""Drops all that a client's project has left, so that the next finds an empty database."""

import os

import psycopg

with psycopg.connect(
    host=os.environ["PGHOST"], port=os.environ["PGPORT"], user=os.environ["PGUSER"],
    password=os.environ["PGPASSWORD"], dbname=os.environ["PGDATABASE"], autocommit=True,
) as c:
    kinds = {"v": "VIEW", "m": "MATERIALIZED VIEW", "r": "TABLE", "p": "TABLE", "S": "SEQUENCE"}
    for kind, word in kinds.items():
        for name, in c.execute(
            "SELECT quote_ident(relname) FROM pg_class WHERE relkind = %s AND relnamespace = 'public'::regnamespace", (kind,)
        ).fetchall():
            c.execute(f"DROP {word} IF EXISTS {name} CASCADE")
    for name, in c.execute(
        "SELECT quote_ident(typname) FROM pg_type WHERE typtype = 'e' AND typnamespace = 'public'::regnamespace"
    ).fetchall():
        c.execute(f"DROP TYPE {name} CASCADE")
    for name, in c.execute(
        "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' "
        "AND nspname NOT IN ('public', 'information_schema', 'atoll')"
    ).fetchall():
        c.execute(f"DROP SCHEMA {name} CASCADE")
