# strategies.sh: every strategy of `run`, alone and one instance for each node. Prints the lines of
# hold.sh, and `refused LABEL CODE` for what could not be started.
run() { # label, then the flags of `atoll run`
    label=$1
    shift
    "$AGENT" run "$@" -- sh "$LAB/hold.sh" "$label" '{i}' 2>/tmp/err.$label ||
        echo "refused $label $?"
    cat /tmp/held.$label.* 2>/dev/null
}
# Page by page: huge pages would make four pieces of the 8 MiB.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo "balancing $(cat /proc/sys/kernel/numa_balancing)"
for strategy in aligned 'ahead(1)' 'ahead(2)' farthest interleave; do
    run "$strategy" --placement "$strategy" --instances nodes
done
for strategy in default spread 'subset(2)' local 'preferred(1)'; do
    run "$strategy" --placement "$strategy" --instances 1
done
run membind --instances 1 -N 0 -m 1
run physcpubind --instances 1 -C 0 -l
run interleave-two --instances 1 -i 0-1
run preferred-many --instances 1 -P 1
