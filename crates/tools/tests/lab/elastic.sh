# elastic.sh: four threads scan memory on node 2, first where the system puts them (region 0), then with
# elastic cores (region 1):
#   cpus CPUS                   where it may run in the end
#   dense CPUS, sparse CPUS     cores of a load that needs three, by these modes
#   undone BEFORE AFTER         cpus of a load whose run was killed, and after undo
#   groups COUNT                control groups that are left
cd "$LAB" || exit
echo 0 >/proc/sys/kernel/numa_balancing
"$AGENT" run -m 2 -- "$SCAN" 0 4 3 2

# The last moments of the trace tell where it ended.
"$AGENT" elastic run --cores-max 4 --trace /tmp/trace.csv --journal /tmp/journals -- \
    "$AGENT" run -m 2 -- "$SCAN" 1 4 20 2
echo "cpus $(tail -n 1 /tmp/trace.csv | sed 's/,[^,]*$//; t x; :x; s/.*"\(.*\)"$/\1/; t; s/.*,//')"

allowed() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status"; }

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
echo "groups $(find /sys/fs/cgroup -name 'atoll-elastic-*' -type d | wc -l)"
exit 0
