#!/bin/sh
# Records machines of the corpus: boots a kernel on each emulated machine named below, and keeps what
# it shows: <shape>.dump (gathered by the example `dump` of atoll-formats), <shape>.numactl (what
# `numactl -H` prints there) and, for small machines, <shape>.xml (lstopo).
#
#   record.sh <program dump> <directory to write to> [shape...]
#
# Sizes of memory are frozen in the guest by bind mounts, so that all three read the same ones.
set -eu
here=$(dirname "$(readlink -f "$0")")
program=$1 out=$2
shift 2

# node ID MIB CPUS [more]: a node, MIB 0 for none, CPUS - for none
node() {
    id=$1 mib=$2 cpus=$3 more=${4:-}
    [ "$mib" = 0 ] || printf -- ' -object memory-backend-ram,id=m%s,size=%sM' "$id" "$mib"
    printf -- ' -numa node,nodeid=%s' "$id"
    [ "$cpus" = - ] || for range in $cpus; do printf -- ',cpus=%s' "$range"; done
    [ "$mib" = 0 ] || printf -- ',memdev=m%s' "$id"
    printf -- '%s' "$more"
}
# distances ROW...: one row of numbers for each node
distances() {
    from=0
    for row in "$@"; do
        to=0
        for value in $row; do
            [ "$from" = "$to" ] || printf -- ' -numa dist,src=%s,dst=%s,val=%s' "$from" "$to" "$value"
            to=$((to + 1))
        done
        from=$((from + 1))
    done
}
# figures INITIATOR TARGET NANOSECONDS MEGABYTES: latency and bandwidth in the HMAT
figures() {
    printf -- ' -numa hmat-lb,initiator=%s,target=%s,hierarchy=memory,data-type=access-latency,latency=%s' "$1" "$2" "$3"
    printf -- ' -numa hmat-lb,initiator=%s,target=%s,hierarchy=memory,data-type=access-bandwidth,bandwidth=%sM' "$1" "$2" "$4"
}
# a control group of version 2 that the recording moves into
group='echo "+cpuset +memory +cpu" >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/job; echo $$ >/sys/fs/cgroup/job/cgroup.procs; cd /sys/fs/cgroup/job'

# An emulated processor of the other vendor: AMD's has no second threads and one L3 a node in QEMU 7.2.
intel=max,vendor=GenuineIntel

# describe SHAPE: sets `machine` (qemu arguments), `setup` (run in the guest first), `xml` (keep it),
# `hmat` (whether the machine has that table) and `cpu`
describe() {
    setup=true xml=yes hmat=off cpu=max
    case $1 in
    two-nodes)
        machine="-smp 4,sockets=2,cores=2 -m 512M$(node 0 256 0-1)$(node 1 256 2-3)" ;;
    two-nodes-numa-off)
        machine="-smp 4,sockets=2,cores=2 -m 512M$(node 0 256 0-1)$(node 1 256 2-3)"; export APPEND=numa=off ;;
    four-nodes-square)
        machine=$("$here/shape.sh" 4 2 256 21) ;;
    eight-nodes-twelve-links)
        machine="-smp 16,sockets=8,cores=2 -m 1024M"
        for n in 0 1 2 3 4 5 6 7; do machine="$machine$(node $n 128 $((n * 2))-$((n * 2 + 1)))"; done
        machine="$machine$(distances '10 16 16 22 16 22 22 28' '16 10 22 16 22 16 28 22' '16 22 10 16 22 28 16 22' \
            '22 16 16 10 28 22 22 16' '16 22 22 28 10 16 16 22' '22 16 28 22 16 10 22 16' '22 28 16 22 16 22 10 16' '28 22 22 16 22 16 16 10')" ;;
    twelve-nodes)
        machine=$("$here/shape.sh" 12 1 96 17) ;;
    more-than-64-nodes)
        machine="-smp 8,sockets=8 -m $((72 * 64))M" xml=no
        for n in $(seq 0 71); do machine="$machine$(node "$n" 64 "$([ "$n" -lt 8 ] && echo "$n" || echo -)")"; done ;;
    uneven)
        machine="-smp 9,sockets=1,cores=9 -m 1056M$(node 0 640 0-4)$(node 1 96 5)$(node 2 320 6-8)" ;;
    nodes-without-cpus)
        machine="-smp 4,sockets=2,cores=2 -m 896M$(node 0 256 0-1)$(node 1 256 2-3)$(node 2 256 -)$(node 3 128 -)"
        machine="$machine$(distances '10 21 17 28' '21 10 28 17' '17 28 10 38' '28 17 38 10')" ;;
    cpus-without-memory)
        machine="-smp 6,sockets=3,cores=2 -m 512M$(node 0 256 0-1)$(node 1 0 2-3)$(node 2 256 4-5)" ;;
    memory-on-one-node)
        machine="-smp 4,sockets=2,cores=2 -m 512M$(node 0 512 0-1)$(node 1 0 2-3)" ;;
    asymmetric-distances)
        machine="-smp 3,sockets=3 -m 768M$(node 0 256 0)$(node 1 256 1)$(node 2 256 2)"
        machine="$machine$(distances '10 14 31' '25 10 16' '40 22 10')" ;;
    offline-cpus)
        machine=$("$here/shape.sh" 2 4 256 21)
        setup='for cpu in 2 3 4 7; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done' ;;
    offline-node)
        machine=$("$here/shape.sh" 3 2 256 21)
        setup='for cpu in 2 3; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done' ;;
    sub-numa-clusters)
        cpu=$intel
        machine="-smp 16,sockets=2,cores=4,threads=2 -m 1024M$(node 0 256 0-3)$(node 1 256 4-7)$(node 2 256 8-11)$(node 3 256 12-15)"
        machine="$machine$(distances '10 12 21 21' '12 10 21 21' '21 21 10 12' '21 21 12 10')" ;;
    domains-in-nodes)
        cpu=$intel
        machine="-smp 16,sockets=2,dies=4,cores=2,threads=1 -m 512M$(node 0 256 0-7)$(node 1 256 8-15)" ;;
    nodes-per-socket-4)
        machine="-smp 16,sockets=2,dies=4,cores=2,threads=1 -m 1024M"
        for n in 0 1 2 3 4 5 6 7; do machine="$machine$(node $n 128 $((n * 2))-$((n * 2 + 1)))"; done
        machine="$machine$(distances '10 12 12 12 32 32 32 32' '12 10 12 12 32 32 32 32' '12 12 10 12 32 32 32 32' '12 12 12 10 32 32 32 32' \
            '32 32 32 32 10 12 12 12' '32 32 32 32 12 10 12 12' '32 32 32 32 12 12 10 12' '32 32 32 32 12 12 12 10')" ;;
    node-over-packages)
        machine="-smp 8,sockets=4,cores=2 -m 512M$(node 0 256 0-3)$(node 1 256 4-7)" ;;
    smt)
        cpu=$intel
        machine="-smp 8,sockets=2,cores=2,threads=2 -m 512M$(node 0 256 0-3)$(node 1 256 4-7)" ;;
    cxl-memory)
        hmat=on
        machine="-smp 4,sockets=2,cores=2 -m 1024M$(node 0 256 0-1 ,initiator=0)$(node 1 256 2-3 ,initiator=1)$(node 2 512 - ,initiator=0)"
        machine="$machine$(distances '10 21 14' '21 10 24' '14 24 10')"
        machine="$machine$(figures 0 0 100 20480)$(figures 0 1 180 10240)$(figures 0 2 320 8192)"
        machine="$machine$(figures 1 0 180 10240)$(figures 1 1 100 20480)$(figures 1 2 420 6144)" ;;
    memory-side-cache)
        hmat=on
        machine="-smp 4,sockets=2,cores=2 -m 512M$(node 0 256 0-1 ,initiator=0)$(node 1 256 2-3 ,initiator=1)"
        machine="$machine$(figures 0 0 90 20480)$(figures 0 1 170 10240)$(figures 1 0 170 10240)$(figures 1 1 90 20480)"
        machine="$machine -numa hmat-cache,node-id=0,size=16M,level=1,associativity=direct,policy=write-back,line=64"
        machine="$machine -numa hmat-cache,node-id=1,size=16M,level=1,associativity=direct,policy=write-back,line=64" ;;
    huge-pages)
        machine=$("$here/shape.sh" 2 2 256 21)
        setup='n=/sys/devices/system/node; echo 8 >$n/node0/hugepages/hugepages-2048kB/nr_hugepages; echo 3 >$n/node1/hugepages/hugepages-2048kB/nr_hugepages; echo never >/sys/kernel/mm/transparent_hugepage/enabled; echo 0 >/proc/sys/kernel/numa_balancing' ;;
    cpuset-v2)
        machine=$("$here/shape.sh" 4 2 256 21)
        setup="$group; echo 1-4,7 >cpuset.cpus; echo 1-2 >cpuset.mems; cd /" ;;
    cpuset-v1)
        machine=$("$here/shape.sh" 4 2 256 21)
        setup='umount /sys/fs/cgroup; mount -t tmpfs t /sys/fs/cgroup; mkdir /sys/fs/cgroup/cpuset /sys/fs/cgroup/memory; mount -t cgroup -o cpuset c /sys/fs/cgroup/cpuset; mount -t cgroup -o memory c /sys/fs/cgroup/memory; cd /sys/fs/cgroup/cpuset; mkdir job; cd job; echo 4-6 >cpuset.cpus; echo 0,3 >cpuset.mems; echo $$ >cgroup.procs; mkdir /sys/fs/cgroup/memory/job; cd /sys/fs/cgroup/memory/job; echo 100M >memory.limit_in_bytes; echo $$ >cgroup.procs; cd /' ;;
    container-limits)
        machine=$("$here/shape.sh" 2 2 256 21)
        setup="$group; echo 134217728 >memory.max; echo 150000 100000 >cpu.max; cd /" ;;
    affinity) # lstopo does not look at it
        machine=$("$here/shape.sh" 2 4 256 21) xml=no
        setup='taskset -p 0x3a $$ >/dev/null' ;;
    *) echo "record.sh: no shape $1" >&2; exit 64 ;;
    esac
}

all="two-nodes two-nodes-numa-off four-nodes-square eight-nodes-twelve-links twelve-nodes more-than-64-nodes uneven
nodes-without-cpus cpus-without-memory memory-on-one-node asymmetric-distances offline-cpus offline-node
sub-numa-clusters domains-in-nodes nodes-per-socket-4 node-over-packages smt cxl-memory memory-side-cache
huge-pages cpuset-v2 cpuset-v1 container-limits affinity"

pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
cp "$program" "$pack/dump"
mkdir "$pack/lib"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$pack/lib/"; done
cat >"$pack/record" <<'RECORD'
freeze() {
    mkdir -p "/tmp/frozen$(dirname "$1")"
    cat "$1" >"/tmp/frozen$1"
    mount --bind "/tmp/frozen$1" "$1"
}
for file in /sys/devices/system/node/node*/meminfo /proc/meminfo; do freeze "$file"; done
echo "=== dump"; dump "$1"
echo "=== numactl"; numactl -H
echo "=== xml"; lstopo --of xml --no-io 2>/dev/null
echo "=== console"; lstopo --of console --no-io 2>/dev/null
RECORD

[ $# -gt 0 ] || set -- $all
for shape in "$@"; do
    unset APPEND
    describe "$shape"
    echo "$shape" >&2
    CPU=$cpu HMAT=$hmat "$here/boot.sh" "$machine" "$pack" "$setup; . /pack/record $shape" >"$pack/output" || {
        echo "record.sh: $shape failed" >&2
        tail -5 "$pack/output" >&2
        continue
    }
    awk -v out="$pack/part" '/^=== /{file = out "." $2; printf "" >file; next} {print >file}' "$pack/output"
    cp "$pack/part.dump" "$out/$shape.dump"
    cp "$pack/part.numactl" "$out/$shape.numactl"
    [ "$xml" = no ] || cp "$pack/part.xml" "$out/$shape.xml"
    [ -z "${CONSOLE:-}" ] || cp "$pack/part.console" "$CONSOLE/$shape.console"
done
