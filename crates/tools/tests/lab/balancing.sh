# balancing.sh: where a program's 8 MiB are after it was moved from node 0 to node 1:
#   after LABEL NODE=PAGES,…
# The program is busybox's dd, which writes its buffer again and again.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
mount -t debugfs debugfs /sys/kernel/debug
echo 100 >/sys/kernel/debug/sched/numa_balancing/scan_delay_ms

pages() { awk -f "$LAB/largest.awk" /proc/$1/numa_maps; }

moved() { # label, longest wait in seconds, then the flags of `atoll run`
    label=$1 seconds=$2
    shift 2
    "$AGENT" run "$@" -- dd if=/dev/zero of=/dev/null bs=8M 2>/dev/null &
    pid=$!
    while [ "$(pages $pid)" != 0=2048 ]; do sleep 0.2; done
    taskset -pc 2-3 $pid >/dev/null
    waited=0
    while [ $waited -lt $seconds ] && [ "$(pages $pid)" != 1=2048 ]; do
        sleep 1
        waited=$((waited + 1))
    done
    echo "after $label $(pages $pid)"
    kill $pid
    wait $pid 2>/dev/null
}

echo 1 >/proc/sys/kernel/numa_balancing
moved on 60 -N 0
took=$((waited + 3))
moved on-membind $took -N 0 -m 0
echo 0 >/proc/sys/kernel/numa_balancing
moved off $took -N 0

exit 0
