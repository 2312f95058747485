#!/bin/sh
# Brings a fresh Debian machine with rustup to the point where Atoll builds, and says what it does.
# Changes nothing where nothing is missing. As root it installs what is missing; as anyone else it
# names the command and stops. With the argument `tests` it also gets the programs that tests compare
# with; tests that are skipped for want of one are counted, and accepted by `make test MAY_SKIP=…`. With
# the argument `drivers` it gets the drivers of other languages with which the server is tried, and a
# browser, and prints the variables by which the tests find them. The argument `tools` says that no SQL
# engine is going to be compiled.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

# What is tried of PyPI and of npm.
PYTHON_DRIVERS="psycopg[binary] sqlalchemy asyncpg pg8000 pyarrow adbc-driver-flightsql adbc-driver-manager"
NODE_DRIVERS="pg"

say() { echo "setup: $*" >&2; }
stop() {
    say "$*"
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# .cargo/config.toml compiles for x86-64-v3; a program built so dies on an older cpu.
check_cpu() {
    [ "$(uname -m)" = x86_64 ] || return 0
    flags=" $(sed -n '/^flags/{s/.*: //p;q}' /proc/cpuinfo) "
    for flag in avx avx2 bmi1 bmi2 f16c fma abm movbe; do
        case "$flags" in
        *" $flag "*) ;;
        *) stop "this cpu lacks $flag, which x86-64-v3 asks for." \
            "Remove the target-cpu flag from .cargo/config.toml to build for it." ;;
        esac
    done
}

# zstd, xz and mimalloc are C, and Rust links through cc: a compiler that finds the C library.
links_c() {
    has cc || return 1
    program=$(mktemp)
    result=0
    echo 'int main(void) { return 0; }' | cc -x c -o "$program" - 2>/dev/null || result=1
    rm -f "$program"
    return $result
}

check_packages() {
    packages=
    links_c || packages="$packages build-essential"
    [ ! -e .git ] || has git || packages="$packages git"
    [ -n "$packages" ] || return 0
    install="apt-get install --yes --no-install-recommends$packages"
    has apt-get || stop "missing:$packages (Debian's names). Install them, then try again."
    if [ "$(id -u)" -ne 0 ]; then
        stop "missing:$packages. Run: sudo sh -c 'apt-get update && $install'"
    fi
    say "missing:$packages; running apt-get update, then $install"
    apt-get update >&2
    DEBIAN_FRONTEND=noninteractive $install >&2
}

# Without rustup, the distribution's Rust serves when it is the pinned one, with both tools.
check_plain_rust() {
    has rustc && has cargo-clippy && has cargo-fmt &&
        [ "$(rustc --version | cut -d ' ' -f 2)" = "$channel" ]
}

has_toolchain() {
    rustup toolchain list | grep -q "^$channel\(-\| \|\$\)" || return 1
    installed=$(rustup component list --installed --toolchain "$channel" 2>/dev/null) || return 1
    for component in $components; do
        echo "$installed" | grep -q "^$component" || return 1
    done
}

check_rust() {
    channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    components=$(sed -n 's/^components *= *\[\(.*\)\]/\1/p' rust-toolchain.toml | tr -d '",')
    if ! has rustup; then
        check_plain_rust && return 0
        stop "rustup is missing. Run: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    fi
    has_toolchain && return 0
    say "installing Rust $channel with $components, as rust-toolchain.toml asks (rustup)"
    # shellcheck disable=SC2086 # one flag for each component
    rustup toolchain install "$channel" --profile minimal --no-self-update \
        $(printf -- '--component %s ' $components) >&2
}

# numactl and lstopo are independent witnesses of what Atoll says of a machine; QEMU and busybox make
# the lab's guests, whose kernel `atoll lab setup` fetches.
get_witnesses() {
    packages=
    has numactl || packages="$packages numactl"
    has lstopo-no-graphics || packages="$packages hwloc-nox"
    has qemu-system-x86_64 || packages="$packages qemu-system-x86"
    has busybox || packages="$packages busybox-static"
    [ -n "$packages" ] || return 0
    install="apt-get install --yes --no-install-recommends$packages"
    if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
        say "some tests need programs that are missing:$packages (Debian's names)." \
            "Install them, or accept the skips as make test says at its end"
        return 0
    fi
    say "tests need:$packages; running $install"
    { apt-get update && DEBIAN_FRONTEND=noninteractive $install; } >&2 ||
        say "that failed; the tests that need them will be skipped, as make test says at its end"
}

# Clients of the server in Python, JavaScript and Java, in a directory of their own, and Chromium for the
# console. What cannot be had is said, and the tests that need it are skipped.
get_drivers() {
    drivers=${ATOLL_DRIVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/atoll/drivers}
    mkdir -p "$drivers"
    packages=
    has psql || packages="$packages postgresql-client"
    has node && has npm || packages="$packages nodejs npm"
    has java || packages="$packages default-jdk-headless"
    [ -e /usr/share/java/postgresql.jar ] || packages="$packages libpostgresql-jdbc-java"
    has chromium || packages="$packages chromium"
    if [ -n "$packages" ]; then
        install="apt-get install --yes --no-install-recommends$packages"
        if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
            say "missing:$packages (Debian's names). Run: sudo sh -c 'apt-get update && $install'"
        else
            say "missing:$packages; running $install"
            { apt-get update && DEBIAN_FRONTEND=noninteractive $install; } >&2 ||
                say "that failed; the tests that need them will be skipped"
        fi
    fi
    [ -x "$drivers/python/bin/python" ] || python3 -m venv "$drivers/python" >&2
    # shellcheck disable=SC2086 # one argument for each package
    "$drivers/python/bin/python" -m pip install --quiet --disable-pip-version-check $PYTHON_DRIVERS >&2 ||
        say "pip failed; the tests of Python's drivers will be skipped"
    # shellcheck disable=SC2086 # one argument for each package
    ! has npm || npm install --silent --no-fund --no-audit --prefix "$drivers/node" $NODE_DRIVERS >&2 ||
        say "npm failed; the test of node-postgres will be skipped"
    echo "export ATOLL_DRIVERS_PYTHON='$drivers/python/bin/python'"
    echo "export NODE_PATH='$drivers/node/node_modules'"
}

# Silence for 30 minutes looks like a hang.
announce_build() {
    [ "$1" != tools ] || return 0
    target=${CARGO_TARGET_DIR:-target}
    for library in "$target"/release/deps/libdatafusion-*.rlib; do
        [ ! -e "$library" ] || return 0
    done
    say "first build: compiling DataFusion takes some 30 minutes on two cores;" \
        "later builds compile what changed (kept in $target)"
}

if [ "${1:-}" = drivers ]; then
    get_drivers
    exit 0
fi
check_cpu
check_packages
check_rust
[ "${1:-}" != tests ] || get_witnesses
announce_build "${1:-}"
