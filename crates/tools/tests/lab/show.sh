# show.sh CODE: prints what the kernel holds for this process and ends with the code. The policy of a
# mapping stands between its address and what it maps.
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$$/status)
policy=$(sed -n '1{s/^[0-9a-f]* //;s/ \(file=\|anon=\|heap\|stack\).*//;p;}' /proc/$$/numa_maps)
echo "cpus=$cpus policy=$policy"
exit "$1"
