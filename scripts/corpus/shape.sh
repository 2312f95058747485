#!/bin/sh
# Prints qemu arguments for a regular machine: shape.sh NODES CPUS_EACH [MIB_EACH] [BASE_DISTANCE]
# One package for each node, ring distances 20 + hops when more than two nodes.
set -eu
nodes=$1 cpus=$2 mib=${3:-256} near=${4:-20}
printf -- '-smp %d,sockets=%d,cores=%d,threads=1 -m %dM' $((nodes * cpus)) "$nodes" "$cpus" $((nodes * mib))
for n in $(seq 0 $((nodes - 1))); do
    printf -- ' -object memory-backend-ram,id=m%d,size=%dM -numa node,nodeid=%d,cpus=%d-%d,memdev=m%d' \
        "$n" "$mib" "$n" $((n * cpus)) $((n * cpus + cpus - 1)) "$n"
done
for a in $(seq 0 $((nodes - 1))); do for b in $(seq 0 $((nodes - 1))); do
    [ "$a" = "$b" ] && continue
    d=$(( a > b ? a - b : b - a )); [ $((nodes - d)) -lt "$d" ] && d=$((nodes - d))
    printf -- ' -numa dist,src=%d,dst=%d,val=%d' "$a" "$b" $((near + (d - 1) * 10))
done; done
echo
