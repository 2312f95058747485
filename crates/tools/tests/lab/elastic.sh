# elastic.sh: 24 threads scan memory on node 2, with automatic balancing off (regions 0 and 1) and on (2 and 3), first where
# the system puts them, then with elastic cores:
#   cpus off|on CPUS            where it may run in the end
#   moves off|on COUNT COUNT    migrations of its threads in four seconds, by the system and with elastic cores
#   followed CORES CORES CORES  cores of a load that rises, falls and rises
#   dense CPUS, sparse CPUS     cores of a load that needs three, by these modes
#   undone BEFORE AFTER         cpus of a load whose run was killed, and after undo
#   moved NODE NODE             node of a load's heap, before and after memory followed its cores to node 0
#   shared CPUS CPUS            cpus of two loads that share the machine
#   alone CPUS                  cpus of the second when the first has ended
#   returned CPUS               its cpus when the run has ended
#   groups COUNT                control groups that are left
cd "$LAB" || exit

# Migrations of the threads of `scan`.
migrations() {
    all=0
    for count in $(sed -n 's/^se.nr_migrations *: *//p' /proc/"$(pidof scan)"/task/*/sched); do
        all=$((all + count))
    done
    echo $all
}

moves() { # seconds before they are counted
    until [ "$(ls /proc/"$(pidof scan)"/task 2>/dev/null | wc -l)" -gt 24 ]; do sleep 0.2; done
    sleep "$1"
    before=$(migrations)
    sleep 4
    echo $(($(migrations) - before))
}

region=0
for balancing in off on; do
    [ $balancing = off ] || echo 1 >/proc/sys/kernel/numa_balancing
    "$AGENT" run -m 2 -- "$SCAN" $region 24 /tmp/counted 1 &
    of_system=$(moves 3)
    touch /tmp/counted
    wait
    rm /tmp/counted
    # The last moments of the trace tell where it ended.
    "$AGENT" elastic run --cores-max 4 --trace /tmp/trace.csv --journal /tmp/journals -- \
        "$AGENT" run -m 2 -- "$SCAN" $((region + 1)) 24 /tmp/counted 1 &
    echo "moves $balancing $of_system $(moves 14)"
    touch /tmp/counted
    wait
    rm /tmp/counted
    echo "cpus $balancing $(tail -n 1 /tmp/trace.csv | sed 's/,[^,]*$//; t x; :x; s/.*"\(.*\)"$/\1/; t; s/.*,//')"
    region=$((region + 2))
done
echo 0 >/proc/sys/kernel/numa_balancing

allowed() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status"; }

load() { # processes that are busy while there is a file /tmp/busy
    for process in 1 2 3; do
        while :; do [ -e /tmp/busy ] || sleep 0.3; done &
    done
    wait
}

load &
pid=$!
"$AGENT" elastic attach --pid $pid --verbose --journal /tmp/journals 2>/tmp/said &
run=$!
followed=""
for wanted in '[3-9] cores' '1 core' '[3-9] cores'; do
    if [ "$wanted" = '1 core' ]; then rm /tmp/busy; else touch /tmp/busy; fi
    until tail -n 1 /tmp/said | grep -q " $wanted on cpu"; do sleep 0.2; done
    followed="$followed $(tail -n 1 /tmp/said | sed 's/.* \([0-9]*\) cores* on cpu.*/\1/')"
done
echo "followed$followed"
kill $run
wait $run
kill $(cat "/proc/$pid/task/$pid/children") $pid

for mode in dense sparse; do
    sh -c 'while :; do :; done & while :; do :; done & wait' &
    pid=$!
    "$AGENT" elastic attach --pid $pid --mode $mode --cores-min 3 --cores-max 3 --verbose \
        --journal /tmp/journals 2>/tmp/said &
    run=$!
    while ! grep -q ' cores on cpus' /tmp/said; do sleep 0.2; done
    kill $run
    wait $run
    echo "$mode $(sed -n 's/.* cores on cpus \([^ ]*\) .*/\1/p' /tmp/said | tail -n 1)"
    kill $(cat "/proc/$pid/task/$pid/children") $pid
done

sh -c 'while :; do :; done' &
pid=$!
"$AGENT" elastic attach --pid $pid --cores-max 1 --journal /tmp/journals --verbose 2>/tmp/said &
run=$!
while ! grep -q ' core on cpu' /tmp/said; do sleep 0.2; done
kill -9 $run
wait $run 2>/dev/null
before=$(allowed $pid)
"$AGENT" elastic undo --journal /tmp/journals
echo "undone $before $(allowed $pid)"
kill $pid
heap() { sed -n 's/.* heap .*\(N[0-9]\)=.*/\1/p' "/proc/$1/numa_maps" | head -n 1; }

"$AGENT" run -m 2 -- sh -c 'x=1; while :; do x=1$x; x=1; done' &
pid=$!
while [ "$(heap $pid)" != N2 ]; do sleep 0.2; done
before=$(heap $pid)
"$AGENT" elastic attach --pid $pid --cpus 0-3 --migrate-memory --journal /tmp/journals &
run=$!
until [ "$(heap $pid)" = N0 ]; do sleep 0.2; done
echo "moved $before $(heap $pid)"
kill $run
wait $run
kill $pid

busy() {
    for process in $(seq "$1"); do
        while :; do :; done &
    done
    wait
}

for target in 'a 2 2' 'b 16 16'; do
    set -- $target
    busy "$2" &
    echo "[[target]]
name = '$1'
pid = $!
policy = { cores_min = 2, cores_max = $3 }" >>/tmp/two.toml
    pids="$pids $!"
done
set -- $pids
"$AGENT" elastic manage --verbose --journal /tmp/journals /tmp/two.toml 2>/tmp/said &
run=$!
until grep -q ' a: 2 cores' /tmp/said && grep -q ' b: 12 cores' /tmp/said; do sleep 0.2; done
echo "shared $(allowed "$1") $(allowed "$2")"
kill $(cat "/proc/$1/task/$1/children") "$1"
until grep -Eq ' b: 1[3-6] cores' /tmp/said; do sleep 0.2; done
echo "alone $(allowed "$2")"
kill $run
wait $run
echo "returned $(allowed "$2")"
kill $(cat "/proc/$2/task/$2/children") "$2"
echo "groups $(find /sys/fs/cgroup -name 'atoll-elastic-*' -type d | wc -l)"
exit 0
