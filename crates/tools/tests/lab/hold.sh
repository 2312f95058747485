# hold.sh LABEL INSTANCE: starts a program that takes 8 MiB and waits, and writes down what the kernel
# says of it, and what `where` says:
#   held LABEL INSTANCE CPUS NODE=PAGES,…      cpus it may run on; homes of its 8 MiB
#   where LABEL INSTANCE JSON
#   maps LABEL INSTANCE NODE=BYTES,…           all its pages by the kernel's own count
# The program is busybox's dd, which knows nothing of nodes: it fills its buffer and then waits at a
# full pipe.
label=$1 instance=$2
pipe=/tmp/pipe.$$
mkfifo $pipe
exec 3<>$pipe
dd if=/dev/zero bs=8M count=1 of=$pipe 2>/dev/null &
pid=$!
# A byte arrives when the buffer is full.
dd bs=1 count=1 <&3 >/dev/null 2>&1
{
    cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$pid/status)
    echo "held $label $instance $cpus $(awk -f "$LAB/largest.awk" /proc/$pid/numa_maps)"
    echo "where $label $instance $("$AGENT" where $pid --exact --json | tr -d '\n')"
    echo "maps $label $instance $(awk -f "$LAB/all.awk" /proc/$pid/numa_maps)"
} >/tmp/held.$label.$instance
kill $pid
