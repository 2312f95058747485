"""pgbouncer: sessions and transactions pooled over a few connections of the server, with statements prepared by the client."""

import os
import pathlib
import pwd
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from steps import equal, step

import psycopg

home = pathlib.Path(tempfile.mkdtemp())
home.chmod(0o755)
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
e = os.environ
(home / "users.txt").write_text(f'"{e["PGUSER"]}" "{e["PGPASSWORD"]}"\n')
(home / "pgbouncer.ini").write_text(f"""[databases]
sessions = host={e['PGHOST']} port={e['PGPORT']} dbname={e['PGDATABASE']} user={e['PGUSER']} password={e['PGPASSWORD']} pool_mode=session
pooled = host={e['PGHOST']} port={e['PGPORT']} dbname={e['PGDATABASE']} user={e['PGUSER']} password={e['PGPASSWORD']} pool_mode=transaction pool_size=2
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {home}/users.txt
server_reset_query = DISCARD ALL
server_check_query = SELECT 1
server_check_delay = 0
ignore_startup_parameters = extra_float_digits
""")
# It refuses to run as root.
user = ["-u", pwd.getpwuid(65534).pw_name] if os.getuid() == 0 else []
bouncer = subprocess.Popen(["pgbouncer", *user, str(home / "pgbouncer.ini")], stdout=subprocess.DEVNULL, stderr=(home / "log").open("w"))


def connect(name, **more):
    for _ in range(50):
        try:
            return psycopg.connect(host="127.0.0.1", port=port, user=e["PGUSER"], password=e["PGPASSWORD"], dbname=name, **more)
        except psycopg.OperationalError as error:
            last = error
            time.sleep(0.1)
    raise AssertionError((str(last), (home / "log").read_text()))


@step
def sessions():
    with connect("sessions") as c:
        c.execute("CREATE TABLE bounced (id INT PRIMARY KEY, s TEXT)")
        c.execute("SET search_path = public")
        c.execute("PREPARE one AS SELECT 1")
        c.execute("CREATE TEMPORARY TABLE gone (a INT)")
    with connect("sessions") as c:
        equal(c.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'gone'").fetchone(), (0,))
        c.rollback()
        c.execute("PREPARE one AS SELECT 2")
        equal(c.execute("EXECUTE one").fetchone(), (2,))


@step
def transactions():
    clients = [connect("pooled", prepare_threshold=None, application_name=f"client {i}") for i in range(10)]
    for i, c in enumerate(clients):
        with c.transaction():
            c.execute("INSERT INTO bounced VALUES (%s, %s)", (i, f"s{i}"))
            equal(c.execute("SHOW application_name").fetchone(), (f"client {i}",))
    equal(clients[3].execute("SELECT count(*) FROM bounced").fetchone(), (10,))
    clients[3].rollback()
    equal(clients[4].execute("SELECT count(DISTINCT pid) <= 2 FROM pg_stat_activity WHERE application_name LIKE 'client%'").fetchone(), (True,))
    for c in clients:
        c.close()


@step
def parameters_of_a_client():
    with connect("pooled", prepare_threshold=None) as c:
        c.execute("SET TIME ZONE 'Europe/Berlin'")
        c.execute("SET DateStyle = 'ISO, MDY'")
        equal(c.execute("SHOW TimeZone").fetchone(), ("Europe/Berlin",))
    with connect("pooled", prepare_threshold=None, client_encoding="UTF8") as c:
        equal(c.execute("SELECT 'é'").fetchone(), ("é",))


@step
def cancelling():
    with connect("pooled", prepare_threshold=None) as c:
        c.execute("SET LOCAL statement_timeout = '200ms'")
        try:
            c.execute("SELECT pg_sleep(10)")
        except psycopg.errors.QueryCanceled:
            pass


@step
def drop():
    with connect("sessions") as c:
        c.execute("DROP TABLE bounced")
    bouncer.terminate()
    bouncer.wait(10)
