use atoll_testkit::machines;
use atoll_topology::Limits;

use atoll_testkit::tree::Tree;

const V1_MOUNTS: &str = "\
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
37 31 0:34 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
";

fn v2(group: &str) -> Tree {
    Tree::from_machine(&machines::two_nodes()).with("proc/self/cgroup", format!("0::{group}\n"))
}

fn v1(group: &str, mounts: &str) -> Tree {
    let groups = format!("4:memory:{group}\n2:cpu,cpuacct:{group}\n1:name=systemd:/\n0::/\n");
    Tree::from_machine(&machines::two_nodes())
        .with("proc/self/cgroup", groups)
        .with("proc/self/mountinfo", mounts)
}

fn limits(tree: &Tree) -> Limits {
    tree.discover().unwrap().limits
}

fn memory(tree: &Tree) -> Option<(u64, String)> {
    limits(tree).memory.map(|limit| (limit.bytes.0, limit.file))
}

#[test]
fn a_process_in_no_limited_group_has_no_limits() {
    assert_eq!(limits(&v2("/")), Limits::default());
    assert_eq!(limits(&v1("/", V1_MOUNTS)), Limits::default());
}

#[test]
fn the_narrowest_memory_limit_on_the_way_up_counts() {
    let tree = v2("/a/b/c")
        .with("sys/fs/cgroup/a/b/c/memory.max", "max\n")
        .with("sys/fs/cgroup/a/b/memory.max", "1048576\n")
        .with("sys/fs/cgroup/a/memory.max", "2097152\n")
        .with("sys/fs/cgroup/other/memory.max", "4096\n");
    assert_eq!(memory(&tree), Some((1 << 20, "/sys/fs/cgroup/a/b/memory.max".to_owned())));
}

#[test]
fn a_memory_limit_above_the_machine_s_memory_is_none() {
    let whole = machines::two_nodes().memory().0;
    let with = |bytes: u64| v2("/a").with("sys/fs/cgroup/a/memory.max", bytes.to_string());
    assert_eq!(memory(&with(whole)), None);
    assert_eq!(memory(&with(whole - 1)).unwrap().0, whole - 1);
}

#[test]
fn cpu_time_is_quota_by_period() {
    let tree = v2("/a/b")
        .with("sys/fs/cgroup/a/cpu.max", "150000 100000\n")
        .with("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    let limit = limits(&tree).cpu_time.unwrap();
    assert_eq!((limit.cpus, limit.file.as_str()), (1.5, "/sys/fs/cgroup/a/cpu.max"));
}

#[test]
fn version_1_limits_are_found_under_their_controllers() {
    let tree = v1("/job", V1_MOUNTS)
        .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n")
        .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
        .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    let limits = limits(&tree);
    assert_eq!(limits.memory.unwrap().bytes.0, 1 << 20);
    assert_eq!(limits.cpu_time.unwrap().cpus, 0.5);
}

#[test]
fn in_a_container_the_group_is_found_below_the_group_that_is_mounted() {
    let mounts = V1_MOUNTS.replace("0:32 / ", "0:32 /docker/abc ");
    let tree = v1("/docker/abc/job", &mounts)
        .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
    assert_eq!(memory(&tree).unwrap().0, 1 << 20);
    let at_top =
        v1("/docker/abc", &mounts).with("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
    assert_eq!(memory(&at_top).unwrap().0, 2 << 20);
}

#[test]
fn a_group_outside_the_view_of_the_process_counts_from_the_mount_s_top() {
    for group in ["/../../outside", "/.."] {
        let tree = v2(group).with("sys/fs/cgroup/memory.max", "1048576\n");
        assert_eq!(memory(&tree).unwrap().1, "/sys/fs/cgroup/memory.max", "{group}");
    }
}

#[test]
fn a_mount_of_a_neighbouring_name_is_not_the_group_s() {
    let mounts = V1_MOUNTS.replace("0:32 / ", "0:32 /docker/ab ");
    let tree = v1("/docker/abc", &mounts)
        .with("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n");
    assert_eq!(memory(&tree), None);
}

#[test]
fn a_machine_without_control_groups_has_no_limits() {
    let tree = v2("/").without("proc/self/cgroup").without("proc/self/mountinfo");
    assert_eq!(limits(&tree), Limits::default());
}
