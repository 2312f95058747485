//! Processes looked at in written trees: every figure is one that a file of the tree says.

use std::fs;
use std::time::Duration;

use atoll_process::inspect::{
    InspectError, MappingKind, MemoryOptions, Method, ProcessId, Snapshot, Target, WatchOptions,
    Watcher, descendants, find, skew,
};
use atoll_testkit::machines;
use atoll_topology::NodeId;

use crate::inspect_tree::{FakeThread, Forbidden, Homes, Tree};

const PID: u32 = 100;
const MIB: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

fn node(id: u32) -> Option<NodeId> {
    Some(NodeId(id))
}

fn ids(found: &[ProcessId]) -> Vec<u32> {
    found.iter().map(|id| id.pid).collect()
}

/// One process with a thread on cpu 0 and one on the first cpu of the last node.
fn two_threads() -> Tree {
    let tree = Tree::from_machine(&machines::four_nodes());
    tree.process(PID, "server", 1, 77);
    tree.thread(PID, &FakeThread { tid: PID, cpu: 0, cpus: "0-15", nanos: 1_000 });
    tree.thread(PID, &FakeThread { tid: 101, cpu: 12, cpus: "12-15", nanos: 1_000 });
    tree
}

fn maps_of(tree: &Tree, maps: &str, numa_maps: &str) {
    tree.write(&format!("/proc/{PID}/maps"), maps);
    tree.write(&format!("/proc/{PID}/numa_maps"), numa_maps);
}

fn look_with(tree: &Tree, options: WatchOptions) -> Result<Snapshot, InspectError> {
    let homes = Homes(|_| None);
    let id = ProcessId { pid: PID, start: 77 };
    Watcher::new(&[id], options).look(&tree.source(&homes), Duration::ZERO)
}

fn look(tree: &Tree) -> Snapshot {
    look_with(tree, WatchOptions::default()).unwrap()
}

#[test]
fn every_page_is_counted_on_its_node_under_its_kind_and_policy() {
    let tree = two_threads();
    maps_of(
        &tree,
        "1000-3000 r-xp 0 fd:01 5 /opt/my server (1)\n\
         10000-20000 rw-p 0 00:00 0 [heap]\n\
         30000-40000 rw-s 0 00:01 9 /SYSV00000001 (deleted)\n\
         400000-800000 rw-p 0 00:0f 10 /anon_hugepage (deleted)\n\
         7f00-7f00 rw-p 0 00:00 0\n",
        "1000 default file=/opt/my\\040server\\040(1) mapped=2 N0=2 kernelpagesize_kB=4\n\
         10000 default heap anon=3 dirty=3 N0=1 N3=2 kernelpagesize_kB=4\n\
         30000 interleave:0-3 file=/SYSV00000001\\040(deleted) dirty=4 N0=1 N1=1 N2=1 N3=1 \
         kernelpagesize_kB=4\n\
         400000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=2 N1=2 kernelpagesize_kB=2048\n",
    );
    let snapshot = look(&tree);
    let memory = snapshot.processes[0].memory.as_ref().unwrap();
    assert_eq!(memory.method, Method::Exact);
    let bytes = |kind, id| memory.by_kind[&kind].get(&node(id)).copied().unwrap_or(0);
    assert_eq!(bytes(MappingKind::Program, 0), 2 * 4096);
    assert_eq!((bytes(MappingKind::Heap, 0), bytes(MappingKind::Heap, 3)), (4096, 2 * 4096));
    assert_eq!(bytes(MappingKind::SharedSysv, 2), 4096);
    assert_eq!(bytes(MappingKind::HugePages, 1), 4 * MIB);
    let policies: Vec<(&str, u64)> =
        memory.policies.iter().flatten().map(|use_| (&*use_.policy, use_.mappings)).collect();
    assert_eq!(policies, [("bind:1", 1), ("default", 2), ("interleave:0-3", 1)]);
    let rows: Vec<u64> = snapshot.nodes.iter().map(|row| row.bytes).collect();
    assert_eq!(rows, [4 * 4096, 4096 + 4 * MIB, 4096, 3 * 4096]);
    assert_eq!(rows.iter().sum::<u64>(), memory.resident());
}

#[test]
fn threads_are_on_the_nodes_of_their_cpus_with_what_the_kernel_counts() {
    let tree = two_threads();
    let snapshot = look(&tree);
    let [first, last] = snapshot.processes[0].threads.as_slice() else { panic!() };
    assert_eq!((first.tid, first.node, last.tid, last.node), (PID, node(0), 101, node(3)));
    assert_eq!((first.cpus_allowed.len(), last.cpus_allowed.to_string()), (16, "12-15".into()));
    assert_eq!((last.switches_voluntary, last.switches_involuntary), (Some(11), Some(12)));
    assert_eq!(
        (last.migrations, last.pages_migrated, last.node_preferred),
        (Some(13), Some(14), None)
    );
    let threads: Vec<u64> = snapshot.nodes.iter().map(|row| row.threads).collect();
    assert_eq!(threads, [1, 0, 0, 1]);
}

#[test]
fn the_use_of_cpus_is_the_time_between_two_looks() {
    let tree = two_threads();
    let homes = Homes(|_| None);
    let mut watcher = Watcher::new(&[ProcessId { pid: PID, start: 77 }], WatchOptions::default());
    watcher.prime(&tree.source(&homes), Duration::ZERO).unwrap();
    tree.thread(PID, &FakeThread { tid: 101, cpu: 13, cpus: "12-15", nanos: 500_001_000 });
    let snapshot = watcher.look(&tree.source(&homes), 2 * SECOND).unwrap();
    let shares: Vec<_> = snapshot.threads().map(|(_, thread)| thread.cpu_share).collect();
    assert_eq!(shares, [Some(0.0), Some(0.25)]);
    assert_eq!(snapshot.processes[0].threads[1].cpu.0, 13);
}

#[test]
fn threads_that_come_and_go_are_known_at_the_next_look() {
    let tree = two_threads();
    let homes = Homes(|_| None);
    let mut watcher = Watcher::new(&[ProcessId { pid: PID, start: 77 }], WatchOptions::default());
    watcher.prime(&tree.source(&homes), Duration::ZERO).unwrap();
    fs::remove_dir_all(tree.path().join("proc/100/task/101")).unwrap();
    tree.thread(PID, &FakeThread { tid: 102, cpu: 4, cpus: "0-15", nanos: 1 });
    // Listed, and gone before it is read.
    fs::create_dir(tree.path().join("proc/100/task/103")).unwrap();
    let snapshot = watcher.look(&tree.source(&homes), SECOND).unwrap();
    let tids: Vec<u32> = snapshot.threads().map(|(_, thread)| thread.tid).collect();
    assert_eq!(tids, [PID, 102]);
}

#[test]
fn a_number_used_again_is_not_the_old_process() {
    let tree = two_threads();
    let homes = Homes(|_| None);
    let id = ProcessId { pid: PID, start: 77 };
    let mut watcher = Watcher::new(&[id], WatchOptions::default());
    watcher.prime(&tree.source(&homes), Duration::ZERO).unwrap();
    tree.process(PID, "other", 1, 78);
    let snapshot = watcher.look(&tree.source(&homes), SECOND).unwrap();
    assert_eq!((snapshot.processes.len(), snapshot.ended), (0, vec![id]));
}

#[test]
fn kernel_threads_and_zombies_have_threads_and_no_memory() {
    let tree = two_threads();
    maps_of(&tree, "", "");
    let snapshot = look(&tree);
    assert_eq!((snapshot.bytes(), snapshot.processes[0].threads.len()), (0, 2));
    assert_eq!(snapshot.missing, []);
}

/// 100 GB of address space of which every 50th page is resident, interleaved over two nodes, beside
/// shared memory on a third.
#[test]
fn a_large_sparse_process_is_sampled_within_its_bound() {
    let tree = two_threads();
    let (space, sparse) = (100_u64 << 30, 50);
    let maps = format!("1000000000-{:x} rw-p 0 00:00 0\n", 0x10_0000_0000 + space)
        + "7f0000000000-7f0040000000 rw-s 0 00:01 9 /dev/zero (deleted)\n";
    tree.write(&format!("/proc/{PID}/maps"), maps);
    tree.status(PID, "VmRSS:\t3145728 kB\nRssAnon:\t2097152 kB\nRssShmem:\t1048576 kB\n");
    let homes = Homes(|address| match address / 4096 {
        page if address >= 0x7f00_0000_0000 => Some(2).filter(|_| page % 2 == 0),
        page => (page % sparse == 0).then_some(u32::from(page / sparse % 2 == 0)),
    });
    let memory = MemoryOptions { exact_bytes_max: 0, ..MemoryOptions::default() };
    let options = WatchOptions { memory, budget: None };
    let mut watcher = Watcher::new(&[ProcessId { pid: PID, start: 77 }], options);
    let snapshot = watcher.look(&tree.source(&homes), Duration::ZERO).unwrap();
    let memory = snapshot.processes[0].memory.as_ref().unwrap();
    let Method::Sampled { looked, resident, error } = memory.method else { panic!("{memory:?}") };
    assert!(resident > 1000 && looked < 400_000 && error < 0.05, "{:?}", memory.method);
    for (id, share) in [(0, 1.0 / 3.0), (1, 1.0 / 3.0), (2, 1.0 / 3.0), (3, 0.0)] {
        let found = snapshot.nodes[id].share;
        assert!((found - share).abs() <= error, "node {id}: {found}, {share} ± {error}");
    }
    assert_eq!(memory.by_kind[&MappingKind::SharedAnonymous][&node(2)], 1 << 30);
    assert_eq!(memory.policies, None);
    assert!(snapshot.missing[0].need.contains("--exact"), "{:?}", snapshot.missing);
}

#[test]
fn what_may_not_be_read_is_named_with_the_right_it_takes() {
    let tree = two_threads();
    tree.write(&format!("/proc/{PID}/maps"), "1000-9000 rw-p 0 00:00 0\n");
    tree.status(PID, "VmRSS:\t12 kB\nRssAnon:\t8 kB\nRssFile:\t4 kB\n");
    let memory = MemoryOptions { exact_bytes_max: 0, ..MemoryOptions::default() };
    let options = WatchOptions { memory, budget: None };
    let mut watcher = Watcher::new(&[ProcessId { pid: PID, start: 77 }], options);
    let snapshot = watcher.look(&tree.source(&Forbidden), Duration::ZERO).unwrap();
    assert_eq!((snapshot.bytes(), snapshot.nodes.last().unwrap().node), (12 * 1024, None));
    assert_eq!(snapshot.threads().count(), 2);
    assert!(snapshot.missing[0].need.contains("CAP_SYS_PTRACE"), "{:?}", snapshot.missing);
}

#[test]
fn a_malformed_file_is_named_with_its_line() {
    for (file, text, wanted) in [
        ("numa_maps", "1000 default\nzz", "numa_maps:2: expected 'ADDRESS POLICY"),
        ("maps", "1000-2000 rw-p 0 00:00 0\n2000", "maps:2: expected 'START-END"),
        ("status", "Name:\tx\nVmRSS:\tmuch kB\n", "status:2: expected a size"),
        ("status", "Mems_allowed_list:\t3-1\n", "status:1: expected a list"),
        ("task/101/status", "Name: x\nCpus_allowed_list:\tall\n", "status:2: expected a list"),
        ("task/101/stat", "101 (x S 1", "stat:1: expected 'PID (NAME)"),
    ] {
        let tree = two_threads();
        maps_of(&tree, "1000-2000 rw-p 0 00:00 0\n", "1000 default\n2000 default\n3000 default\n");
        tree.write(&format!("/proc/{PID}/{file}"), text);
        let error = look_with(&tree, WatchOptions::default()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn an_endless_line_and_bytes_that_are_no_text_are_survived() {
    let tree = two_threads();
    maps_of(&tree, "", &"x".repeat(1 << 20));
    let error = look_with(&tree, WatchOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a line of at most 32 KiB"), "{error}");
    maps_of(&tree, "1000-2000 rw-p 0 00:00 0\n", "");
    tree.write(&format!("/proc/{PID}/numa_maps"), b"1000 default file=/a\xff\xfe N1=1\n");
    assert_eq!(look(&tree).nodes[1].bytes, 4096);
}

#[test]
fn a_huge_numa_maps_is_read_line_by_line() {
    let tree = two_threads();
    let count = 200_000;
    let line =
        |i: u64| format!("{:x} bind:1 anon=1 N1=1 kernelpagesize_kB=4\n", 4096 * (2 * i + 1));
    let map = |i: u64| {
        format!("{:x}-{:x} rw-p 00000000 00:00 0\n", 4096 * (2 * i + 1), 4096 * (2 * i + 2))
    };
    let (maps, pages): (Vec<_>, Vec<_>) = (0..count).map(|i| (map(i), line(i))).unzip();
    maps_of(&tree, &maps.concat(), &pages.concat());
    assert_eq!(look(&tree).nodes[1].bytes, count * 4096);
}

#[test]
fn a_process_is_found_by_number_by_either_name_and_by_its_group() {
    let tree = two_threads();
    tree.process(201, "a) b (c", 200, 5);
    tree.process(200, "cut after 15 by", PID, 5);
    tree.write("/proc/200/cmdline", "/usr/bin/cut after 15 bytes\0-x\0");
    tree.write("/sys/fs/cgroup/a/cgroup.procs", "100\n");
    tree.write("/sys/fs/cgroup/a/b c/cgroup.procs", "201\n9999\n");
    let found = |target| find(&tree.root, &target, Some(PID)).map(|found| ids(&found));
    assert_eq!(found(Target::parse("100")).unwrap(), [100]);
    assert_eq!(found(Target::parse("a) b (c")).unwrap(), [201]);
    assert_eq!(found(Target::parse("cut after 15 bytes")).unwrap(), [200]);
    for path in ["a", "/a", "/sys/fs/cgroup/a"] {
        assert_eq!(found(Target::Cgroup(path.into())).unwrap(), [100, 201], "{path}");
    }
    assert!(matches!(found(Target::Pid(9)), Err(InspectError::NoProcess { pid: 9 })));
    assert!(matches!(found(Target::parse("server")), Err(InspectError::NoName { .. })));
    assert!(matches!(found(Target::Cgroup("z".into())), Err(InspectError::NoGroup { .. })));
    let root = find(&tree.root, &Target::Pid(PID), None).unwrap();
    assert_eq!(ids(&descendants(&tree.root, &root).unwrap()), [100, 200, 201]);
}

/// Rules that warn where threads run on nodes 0 and 3.
fn rules(tree: &Tree) -> Vec<&'static str> {
    skew::warnings(&look(tree), &tree.nodes).iter().map(|warning| warning.rule).collect()
}

#[test]
fn each_skew_is_warned_of_with_the_command_that_mends_it() {
    let tree = two_threads();
    let maps = "30000-90000000 rw-s 0 00:01 9 /dev/zero (deleted)\n";
    maps_of(&tree, maps, "30000 default N0=60000 N1=1000\n");
    let warnings = skew::warnings(&look(&tree), &tree.nodes);
    assert_eq!(warnings[0].rule, "memory_on_one_node");
    assert!(warnings[0].what.starts_with("98 % of the shared memory is on node 0"), "{warnings:?}");
    assert_eq!(warnings[0].mend.len(), 1, "migratepages spreads nothing: {warnings:?}");
    assert!(warnings[0].mend[0].starts_with("atoll run -i all "), "{warnings:?}");

    maps_of(&tree, maps, "30000 interleave:0-3 N0=20000 N1=20000 N2=20000 N3=20000\n");
    assert_eq!(rules(&tree), [""; 0]);
    // Too little to matter.
    maps_of(&tree, maps, "30000 default N0=100\n");
    assert_eq!(rules(&tree), [""; 0]);

    tree.thread(PID, &FakeThread { tid: PID, cpu: 12, cpus: "12-15", nanos: 1 });
    maps_of(&tree, maps, "30000 default N1=60000\n");
    assert_eq!(rules(&tree), ["affinity_excludes_memory"]);
    let mend = &skew::warnings(&look(&tree), &tree.nodes)[0].mend;
    assert_eq!(mend, &["migratepages 100 1 3", "taskset -acp 4-7,12-15 100"]);

    tree.thread(PID, &FakeThread { tid: PID, cpu: 12, cpus: "0-15", nanos: 1 });
    assert_eq!(rules(&tree), ["threads_far_from_memory"]);
    let mend = &skew::warnings(&look(&tree), &tree.nodes)[0].mend;
    assert_eq!(mend, &["migratepages 100 1 3", "taskset -acp 4-7 100"]);

    tree.status(PID, "Mems_allowed_list:\t0-1\n");
    assert!(rules(&tree).contains(&"cpuset_limits_nodes"));
    tree.thread(PID, &FakeThread { tid: PID, cpu: 0, cpus: "0-15", nanos: 1 });
    tree.write("/proc/sys/kernel/numa_balancing", "1\n");
    assert!(rules(&tree).contains(&"balancing_on"));
}

#[test]
fn one_node_has_nothing_to_warn_of() {
    let tree = Tree::from_machine(&machines::one_node());
    tree.process(PID, "server", 1, 77);
    tree.thread(PID, &FakeThread { tid: PID, cpu: 0, cpus: "0-3", nanos: 1 });
    maps_of(&tree, "30000-90000000 rw-p 0 00:00 0\n", "30000 default N0=60000\n");
    assert_eq!(rules(&tree), [""; 0]);
}
