#!/bin/sh
# Runs small projects of real clients (ORMs, migration tools, data frames, poolers) against a server that is running.
#
#   PGHOST=127.0.0.1 PGPORT=5432 PGUSER=postgres PGPASSWORD=pw PGDATABASE=postgres run.sh DIRECTORY [CLIENT ...]
#
# The role is a superuser, and the database is an empty one: what projects leave behind is dropped. A client is a folder
# beside this file; pip, npm, go or mvn install into DIRECTORY what it names with its versions. Its project changes a schema,
# reads it back, inserts, queries, rolls back, drops, and checks all results step by step. What it prints goes to
# DIRECTORY/CLIENT.log; here there is a line for each. The exit code is 1 if one fails. A client that cannot be installed
# is skipped; so is one whose folder names programs of the system that are missing.
set -eu
: "${PGHOST:?}" "${PGPORT:?}" "${PGUSER:?}" "${PGPASSWORD:?}" "${PGDATABASE:?}"
export PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?run.sh DIRECTORY [CLIENT ...]}"
at=$(cd "$1" && pwd)
shift
export PYTHONDONTWRITEBYTECODE=1

# installed CLIENT: its packages, in DIRECTORY/CLIENT.
installed() {
    from=$here/$1 to=$at/$1
    for program in $(cat "$from/programs" 2>/dev/null); do
        command -v "$program" || { echo "the program $program is not installed" && return 1; }
    done
    [ -e "$to/installed" ] && cmp -s "$to/installed" "$from/$(manifest "$from")" && return
    rm -rf "$to"
    mkdir -p "$to"
    case $(manifest "$from") in
    requirements.txt) python3 -m venv "$to/venv" && "$to/venv/bin/pip" install -q -r "$from/requirements.txt" ;;
    package.json) cp "$from/package.json" "$to" && npm install --silent --no-audit --no-fund --prefix "$to" ;;
    go.mod) (cd "$from" && go build -o "$to/program" .) ;;
    pom.xml)
        cp "$from/pom.xml" "$to"
        mvn -q -B -f "$to" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies "-DoutputDirectory=$to/lib"
        ;;
    *) echo "$from names no packages" && return 1 ;;
    esac && cp "$from/$(manifest "$from")" "$to/installed"
}

manifest() {
    for file in requirements.txt package.json go.mod pom.xml; do
        [ -e "$1/$file" ] && echo $file && return
    done
}

# project CLIENT: a copy of it, since node looks for packages beside the program, and since Python takes a folder `polars`
# beside `steps.py` for the package.
project() {
    to=$at/$1
    rm -rf "$to/project"
    cp -r "$here/$1" "$to/project"
    cp "$here"/steps.* "$to"
    cd "$to/project"
    case $(manifest .) in
    requirements.txt) timeout 600 "$to/venv/bin/python" project.py ;;
    package.json) timeout 600 node project.js ;;
    go.mod) go build -o "$to/program" . && timeout 600 "$to/program" ;;
    pom.xml) javac -d . -cp "$to/lib/*" Project.java && timeout 600 java -cp ".:$to/lib/*" Project ;;
    esac
}

emptied() {
    [ -x "$at/empty/bin/python" ] || { python3 -m venv "$at/empty" && "$at/empty/bin/pip" install -q 'psycopg[binary]==3.3.9'; }
    "$at/empty/bin/python" "$here/empty.py"
}

[ $# -gt 0 ] || set -- $(cd "$here" && ls -d */ | tr -d /)
failures=0
for client; do
    [ -d "$here/$client" ] || { echo "run.sh: '$client' is not a client; expected one of: $(cd "$here" && ls -d */ | tr -d / | tr '\n' ' ')" >&2; exit 2; }
    if ! installed "$client" > "$at/$client.log" 2>&1; then
        echo "$client: skipped, since it cannot be installed ($at/$client.log)"
        continue
    fi
    emptied
    code=0
    (project "$client") > "$at/$client.log" 2>&1 || code=$?
    echo "$client: $(grep -c '^ok ' "$at/$client.log" || true) steps passed, $(grep -c '^FAILED ' "$at/$client.log" || true) failed" \
        "$(sed -n 's/^FAILED //p' "$at/$client.log" | sed '1s/^/(/; $s/$/)/; $!s/$/,/' | tr '\n' ' ')"
    [ $code = 0 ] || failures=1
done
exit $failures
