# cpuset.sh: what a process in a cpuset that leaves it nodes 0 and 1 sees and gets.
cgroup=/sys/fs/cgroup/two
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup
echo 0-1 >$cgroup/cpuset.mems
cpus=$(cat /sys/devices/system/node/node0/cpulist),$(cat /sys/devices/system/node/node1/cpulist)
echo "$cpus" >$cgroup/cpuset.cpus
echo $$ >$cgroup/cgroup.procs
echo "topo $("$AGENT" topo --json | tr -d '\n')"
"$AGENT" run --placement interleave --instances nodes -- sh "$LAB/hold.sh" hidden '{i}' 2>&1
cat /tmp/held.hidden.*
# The kernel refuses a policy of nodes outside of the cpuset.
"$AGENT" run --strict --all --membind 3 -- true 2>/tmp/refused
echo "strict $? $(tr '\n' ' ' </tmp/refused)"
"$AGENT" run --all --membind 3 -- true 2>/tmp/soft
echo "soft $? $(tr '\n' ' ' </tmp/soft)"
