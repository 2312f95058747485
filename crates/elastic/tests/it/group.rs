//! Control groups created for targets.

use atoll_elastic::actuate::GroupPlan;
use atoll_process::inspect::ProcessId;
use atoll_sys::Root;

#[test]
fn targets_of_one_run_in_one_group_get_groups_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::at(directory.path());
    let put = |file: &str, text: &str| {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/self/mountinfo", "31 24 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
    put("sys/fs/cgroup/cgroup.subtree_control", "cpuset\n");
    for pid in [100, 200] {
        put(&format!("proc/{pid}/cgroup"), "0::/\n");
    }
    let writer = ProcessId { pid: 7, start: 70 };
    let below = |pid| GroupPlan::below(&root, &[ProcessId { pid, start: 1 }], writer).unwrap();
    let (first, second) = (below(100), below(200));
    assert_eq!((&first.home, &first.home), (&second.home, &Some("/sys/fs/cgroup".to_owned())));
    assert_ne!(first.path, second.path);
    assert_eq!(first, below(100));
}
