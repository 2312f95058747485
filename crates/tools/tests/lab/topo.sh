# topo.sh: the machine as `topo` and as the kernel tell it.
echo "topo $("$AGENT" topo --json | tr -d '\n')"
for node in /sys/devices/system/node/node[0-9]*; do
    number=${node##*node}
    echo "kernel $number $(cat $node/cpulist | sed 's/^$/-/') $(tr ' ' ',' <$node/distance)"
done
clock=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)
echo "clock $clock $(tr ' ' '\n' </proc/cmdline | grep ^tsc=)"
