#!/bin/sh
# Runs the test suites that come with PostgreSQL's drivers and tools against a server that is running.
#
#   PGHOST=127.0.0.1 PGPORT=5432 PGUSER=postgres PGPASSWORD=pw PGDATABASE=postgres suites.sh DIRECTORY [SUITE ...]
#
# The role is a superuser, and the database is an empty one: suites leave tables behind that others trip over. For pg8000
# both are called 'postgres'. Suites are fetched into DIRECTORY with pip, mvn, cargo and npm. What they print goes to
# DIRECTORY/NAME.log; here there is a line for each. The packages of psycopg 3 and node-postgres have no tests: they are run
# where DIRECTORY/psycopg3 is a copy of its repository at 3.3.4, and DIRECTORY/node-postgres one of its own at pg@8.23.0.
set -eu
: "${PGHOST:?}" "${PGPORT:?}" "${PGUSER:?}" "${PGPASSWORD:?}" "${PGDATABASE:?}"
export PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE
mkdir -p "${1:?suites.sh DIRECTORY [SUITE ...]}"
cd "$1"
at=$PWD
shift
url=postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE

if [ ! -x venv/bin/pytest ]; then
    python3 -m venv venv
    venv/bin/pip install -q pytest==8.4.2 pytest-timeout pytest-mock pytest-benchmark python-dateutil pytz numpy anyio distro \
        'psycopg[binary]==3.3.4' psycopg-pool psycopg2-binary==2.9.13 asyncpg==0.32.0 pg8000==1.31.6
fi

# unpacked NAME VERSION: the source package of a Python package.
unpacked() {
    [ -d "$1-$2" ] && return
    venv/bin/pip download -q --no-deps --no-binary :all: -d packages "$1==$2"
    tar xzf "packages/$1-$2.tar.gz"
}

# tested NAME DIRECTORY ARGUMENTS …
tested() {
    name=$1 directory=$2
    shift 2
    (cd "$directory" && timeout 3600 "$at/venv/bin/python" -m pytest -q --timeout 60 --tb short \
        --junitxml "$at/$name.xml" "$@") > "$name.log" 2>&1 || true
}

# counted NAME FILES …: what JUnit's files tell.
counted() {
    name=$1
    shift
    cat "$@" | tr '\n' ' ' | grep -o '<testsuite [^>]*>' | awk -v name="$name" '
        function number(of) { return match($0, " " of "=\"-?[0-9]+") ? substr($0, RSTART + length(of) + 3, RLENGTH - length(of) - 3) : 0 }
        # Mocha subtracts what fails before and after tests from those that are skipped.
        { failures = number("failures") + number("errors"); omitted = number("skipped")
          passed += number("tests") - failures - omitted; failed += failures; skipped += omitted < 0 ? 0 : omitted }
        END { printf "%s: %d passed, %d failed, %d skipped\n", name, passed, failed, skipped }'
}

psycopg2() {
    unpacked psycopg2 2.9.13
    PSYCOPG2_TESTDB=$PGDATABASE tested psycopg2 psycopg2-2.9.13 tests
    counted psycopg2 psycopg2.xml
}

psycopg3() {
    [ -d psycopg3/tests ] || return 0
    tested psycopg3 psycopg3 tests --test-dsn "$url" -m 'not slow and not mypy and not dns' --ignore tests/crdb \
        --ignore tests/pool --ignore tests/test_tstring.py --ignore tests/test_tstring_async.py
    counted psycopg3 psycopg3.xml
}

# File by file, since what a class leaves behind can end the whole run.
asyncpg() {
    unpacked asyncpg 0.32.0
    rm -rf asyncpg-0.32.0/asyncpg # the one in venv is compiled
    for file in asyncpg-0.32.0/tests/test_[a-z]*.py; do
        case $file in *_subinterpreters.py) continue ;; esac
        name=$(basename "$file" .py)
        tested "asyncpg-$name" asyncpg-0.32.0 "tests/$name.py"
    done
    counted asyncpg asyncpg-*.xml
}

pg8000() {
    unpacked pg8000 1.31.6
    tested pg8000 pg8000-1.31.6 test --benchmark-disable --ignore test/test_readme.py
    counted pg8000 pg8000.xml
}

# The suite of dialects.
sqlalchemy() {
    unpacked sqlalchemy 2.1.9
    # It makes extensions before its first test.
    sed -i 's/^    ("\(citext\|hstore\)", (13,)),$//' sqlalchemy-2.1.9/lib/sqlalchemy/dialects/postgresql/provision.py
    venv/bin/python -c "import psycopg, sys
with psycopg.connect(sys.argv[1]) as c:
    c.execute('CREATE SCHEMA IF NOT EXISTS test_schema')
    c.execute('CREATE SCHEMA IF NOT EXISTS test_schema_2')" "$url"
    tested sqlalchemy sqlalchemy-2.1.9 test/dialect/test_suite.py --maxfail 10000 \
        --dburi "postgresql+psycopg${url#postgresql}"
    counted sqlalchemy sqlalchemy.xml
}

# Without large objects and XML, and without batches of tens of thousands of parameters and large files, which take minutes.
pgjdbc() {
    version=42.7.13
    source=postgresql-$version-jdbc-src
    if [ ! -d $source ]; then
        mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -DoutputDirectory="$at/packages" \
            -Dartifact=org.postgresql:postgresql:$version:tar.gz:jdbc-src > pgjdbc.log
        tar xzf packages/$source.tar.gz
    fi
    cat > $source/build.local.properties <<END
test.url.PGHOST=$PGHOST
test.url.PGPORT=$PGPORT
test.url.PGDBNAME=$PGDATABASE
test.url.socketTimeout=60
user=$PGUSER
password=$PGPASSWORD
privilegedUser=$PGUSER
privilegedPassword=$PGPASSWORD
END
    without='!DeepBatchedInsertStatementTest,!PreparedStatement64KBindsTest,!LargeObjectManagerTest,!BlobTest'
    without="$without,!Jdbc3BlobTest,!BlobTransactionTest,!PgSQLXMLTest,!XmlTest,!BatchedInsertReWriteEnabledTest,!CopyLargeFileTest"
    (cd $source && timeout 3600 mvn -B -Dmaven.test.failure.ignore "-Dtest=$without" test) > pgjdbc.log 2>&1 || true
    counted pgjdbc $source/target/surefire-reports/TEST-*.xml
}

# roles NAME PASSWORD …
roles() {
    venv/bin/python -c "import psycopg, sys
with psycopg.connect(sys.argv[1]) as c:
    for role, password in zip(sys.argv[2::2], sys.argv[3::2]):
        c.execute(f'DROP ROLE IF EXISTS {role}')
        c.execute(f\"CREATE ROLE {role} LOGIN PASSWORD '{password}'\")" "$url" "$@"
}

# The sources of the crate have its tests, which know their server's port and roles by heart. PostgreSQL passes all of them
# where the database has the extensions hstore, citext and ltree.
tokio_postgres() {
    version=0.7.18
    mkdir -p crate/src
    : > crate/src/lib.rs
    cat > crate/Cargo.toml <<END
[package]
name = "suite"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
tokio-postgres = "=$version"
END
    manifest=$(cargo metadata -q --manifest-path crate/Cargo.toml --format-version 1 |
        grep -o "\"manifest_path\":\"[^\"]*tokio-postgres-$version/Cargo.toml" | cut -d '"' -f 4)
    rm -rf tokio-postgres
    cp -r "$(dirname "$manifest")" tokio-postgres
    find tokio-postgres/tests -name '*.rs' ! -name parse.rs -exec sed -i -e "s/5433/$PGPORT/g" -e "s/127\.0\.0\.1:/$PGHOST:/" \
        -e "s/user=postgres/user=$PGUSER password=$PGPASSWORD dbname=$PGDATABASE/" {} +
    roles pass_user password md5_user password scram_user password
    (cd tokio-postgres && CARGO_TARGET_DIR="$at/target" timeout 3600 cargo test --all-features --test test) > tokio_postgres.log 2>&1 || true
    sed -n 's/^test result: [a-zA-Z]*\. \([0-9]* passed\); \([0-9]* failed\); \([0-9]*\) ignored.*/tokio-postgres: \1, \2, \3 skipped/p' \
        tokio_postgres.log
}

# A file of tests of `pg` is a program that ends with its first failure, so it counts as one test. Those of the other packages
# run one by one too, since an error that nothing catches ends all.
node_postgres() {
    [ -d node-postgres/packages ] || return 0
    if [ ! -d node_modules ]; then
        npm install --silent --no-save --no-package-lock --prefix "$at" pg@8.23.0 pg-pool@3.14.0 pg-cursor@2.22.0 async@2.6.4 \
            bluebird@3.7.2 co@4.6.0 pg-copy-streams@0.3.0 mocha@11.8.0 lodash@4.17.21 expect.js@0.3.1 tsx@4.23.15 \
            concat-stream@1.0.1 stream-spec@0.3.6 JSONStream@1.3.5
    fi
    roles scram_test password
    export SCRAM_TEST_PGUSER=scram_test SCRAM_TEST_PGPASSWORD=password PGTESTNOSSL=true
    : > node_postgres.log
    passed=0 failed=0
    for file in $(cd node-postgres/packages/pg && find test/integration -name '*-tests.js' | sort); do
        case $file in */ssl-tests.js) continue ;; esac # it needs a server with TLS
        if (cd node-postgres/packages/pg && timeout 60 node "$file") >> node_postgres.log 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
    echo "<testsuite name=\"pg\" tests=\"$((passed + failed))\" failures=\"$failed\">" > node_postgres-pg.xml
    for package in pg-pool pg-cursor pg-query-stream; do
        for file in node-postgres/packages/$package/test/*.[jt]s; do
            file=$(basename "$file")
            (cd node-postgres/packages/$package && timeout 300 "$at/node_modules/.bin/mocha" --exit --no-config --timeout 10000 \
                --require tsx/cjs --reporter xunit --reporter-option "output=$at/node_postgres-$package-$file.xml" "test/$file") \
                >> node_postgres.log 2>&1 || true
        done
    done
    counted node-postgres node_postgres-*.xml
}

[ $# -gt 0 ] || set -- sqlalchemy psycopg2 psycopg3 asyncpg pg8000 tokio_postgres node_postgres pgjdbc
for suite; do "$suite"; done
