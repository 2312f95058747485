//! Every check on a fake machine: it reports its anomaly and is silent without it.

use atoll_testkit::machines;
use atoll_topology::check::{self, Finding, Severity};
use atoll_topology::{
    Bytes, CpuId, Fact, HugePages, Knowledge, Machine, Quantity, Source, Subject,
};
use insta::assert_snapshot;

use atoll_testkit::tree::{CPU, NODE, Tree};

/// Settings as they should be.
fn calm(machine: &Machine) -> Tree {
    let mut tree = Tree::from_machine(machine)
        .with("proc/sys/kernel/numa_balancing", "0\n")
        .with("proc/sys/vm/zone_reclaim_mode", "0\n")
        .with("proc/sys/vm/swappiness", "60\n")
        .with("proc/sys/vm/overcommit_memory", "0\n")
        .with("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet\n")
        .with("sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n")
        .with(&format!("{CPU}/smt/control"), "on\n")
        .with(&format!("{CPU}/isolated"), "\n")
        .with(&format!("{CPU}/nohz_full"), "(null)\n");
    for cpu in &machine.cpus {
        tree = tree
            .with(&format!("{CPU}/cpu{}/cpufreq/scaling_governor", cpu.id), "performance\n")
            .with(&format!("{CPU}/cpu{}/cpufreq/scaling_driver", cpu.id), "acpi-cpufreq\n");
    }
    tree
}

fn two() -> Tree {
    calm(&machines::two_nodes())
}

fn findings(tree: &Tree) -> Vec<Finding> {
    findings_in(tree, tree.discover().unwrap())
}

fn findings_in(tree: &Tree, machine: Machine) -> Vec<Finding> {
    check::check(&Knowledge::from_machine(machine), &tree.root())
}

fn names(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.name).collect()
}

/// The one finding of a tree, which reads the file that was written and changes it so.
fn only(tree: &Tree, name: &str) -> Finding {
    let findings = findings(tree);
    assert_eq!(names(&findings), [name]);
    let finding = findings.into_iter().next().unwrap();
    assert!(!finding.why.is_empty() && !finding.read.is_empty(), "{finding:?}");
    assert!(finding.command.is_some() || finding.advice.is_some(), "{finding:?}");
    finding
}

fn command(tree: &Tree, name: &str) -> String {
    only(tree, name).command.unwrap()
}

#[test]
fn nothing_is_odd_about_machines_that_are_as_they_should_be() {
    for machine in [
        machines::one_node(),
        machines::two_nodes(),
        machines::four_nodes(),
        machines::sub_numa_clusters(),
        machines::sparse_nodes(),
    ] {
        assert_eq!(names(&findings(&calm(&machine))), [""; 0], "{}", machine.name);
    }
    assert_eq!(check::text(&[]), "");
}

#[test]
fn an_uneven_machine_gets_findings_for_what_is_uneven() {
    let found = findings(&calm(&machines::eight_uneven_nodes()));
    let mut names = names(&found);
    names.dedup();
    let expected = ["memory_uneven", "node_without_memory", "memory_uneven"];
    assert_eq!(names, [&expected[..], &["distances_uneven", "threads_uneven"]].concat());
    assert_eq!(found.iter().filter(|finding| finding.name == "memory_uneven").count(), 4);
}

#[test]
fn automatic_balancing_matters_on_several_nodes_only() {
    let on = |tree: Tree| tree.with("proc/sys/kernel/numa_balancing", "1\n");
    let command = command(&on(two()), "numa_balancing");
    assert_eq!(command, "sysctl -w kernel.numa_balancing=0");
    assert_eq!(names(&findings(&on(calm(&machines::one_node())))), [""; 0]);
    let tiers_only = two().with("proc/sys/kernel/numa_balancing", "2\n");
    assert_eq!(names(&findings(&tiers_only)), [""; 0]);
}

#[test]
fn a_node_that_reclaims_before_it_borrows_is_found() {
    let tree = two().with("proc/sys/vm/zone_reclaim_mode", "1\n");
    assert_eq!(command(&tree, "zone_reclaim"), "sysctl -w vm.zone_reclaim_mode=0");
}

#[test]
fn transparent_huge_pages_that_are_off_or_stall_are_found() {
    let thp = "sys/kernel/mm/transparent_hugepage";
    let off = two().with(&format!("{thp}/enabled"), "always madvise [never]\n");
    assert_eq!(command(&off, "huge_pages_off"), format!("echo madvise > /{thp}/enabled"));
    let always = || two().with(&format!("{thp}/enabled"), "[always] madvise never\n");
    assert_eq!(names(&findings(&always())), [""; 0]);
    let stalls = always().with(&format!("{thp}/defrag"), "[always] defer madvise never\n");
    assert_eq!(command(&stalls, "huge_pages_stall"), format!("echo defer+madvise > /{thp}/defrag"));
}

#[test]
fn huge_pages_on_one_node_only_are_found() {
    let mut machine = machines::two_nodes();
    let pool = |total| HugePages { size: Bytes(2 << 20), total, free: total };
    machine.nodes[0].huge_pages = vec![pool(512)];
    machine.nodes[1].huge_pages = vec![pool(0)];
    let found = findings_in(&two(), machine.clone());
    assert_eq!(names(&found), ["huge_pages_uneven"]);
    let file = format!("/{NODE}/node1/hugepages/hugepages-2048kB/nr_hugepages");
    assert_eq!(found[0].command, Some(format!("echo 512 > {file}")));
    machine.nodes[1].huge_pages = vec![pool(512)];
    assert_eq!(names(&findings_in(&two(), machine)), [""; 0]);
}

#[test]
fn one_command_gives_huge_pages_to_all_nodes_without() {
    let mut machine = machines::four_nodes();
    let pool = |total| HugePages { size: Bytes(2 << 20), total, free: total };
    for (node, total) in machine.nodes.iter_mut().zip([4, 0, 2, 0]) {
        node.huge_pages = vec![pool(total)];
    }
    let found = findings_in(&calm(&machine), machine.clone());
    assert_eq!(names(&found), ["huge_pages_uneven"]);
    let file = |node| format!("/{NODE}/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let expected = format!("for node in 1 3; do echo 4 > {}; done", file("$node"));
    assert_eq!(found[0].command, Some(expected));
    let read: Vec<&str> = found[0].read.iter().map(|reading| reading.file.as_str()).collect();
    assert_eq!(read, [file("1"), file("3")]);
}

/// Two nodes of which the first has `free` MiB of 32 GiB free and `cache` MiB of file cache.
fn filled(free: u64, cache: u64, shared: u64) -> Tree {
    let line = |key: &str, mib: u64| format!("Node 0 {key} {} kB\n", mib << 10);
    let lines = [("MemTotal:", 32 << 10), ("MemFree:", free), ("FilePages:", cache)];
    let lines = lines.into_iter().chain([("Shmem:", shared)]);
    let meminfo: String = lines.map(|(key, mib)| line(key, mib)).collect();
    two().with(&format!("{NODE}/node0/meminfo"), meminfo)
}

#[test]
fn a_full_node_next_to_an_empty_one_is_found_with_what_fills_it() {
    let cache = only(&filled(1000, 20_000, 1000), "node_full");
    assert_eq!(cache.command.as_deref(), Some("sync && echo 1 > /proc/sys/vm/drop_caches"));
    assert!(cache.advice.unwrap().starts_with("18.6 GiB of it is file cache"));
    let shared = only(&filled(1000, 20_000, 19_000), "node_full");
    assert_eq!(shared.command, None, "shared memory cannot be dropped");
    assert_eq!(names(&findings(&filled(4000, 20_000, 0))), [""; 0]);
    let mut both = filled(1000, 0, 0).discover().unwrap();
    both.nodes[1].memory_free = both.nodes[0].memory_free;
    assert_eq!(names(&findings_in(&two(), both)), [""; 0], "all nodes are full");
}

#[test]
fn governors_are_found_by_group() {
    let governor = |cpu| format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
    let tree = two().with(&governor(3), "powersave\n").with(&governor(4), "schedutil\n");
    let tree = tree.with(&governor(5), "schedutil\n");
    let found = findings(&tree);
    let what: Vec<(Severity, &str)> =
        found.iter().map(|finding| (finding.severity, finding.what.as_str())).collect();
    let expected = [
        (Severity::Warning, "Cpus 3 run under the governor 'powersave'"),
        (Severity::Note, "Cpus 4-5 run under the governor 'schedutil'"),
    ];
    assert_eq!(what, expected);
    let tree = two().with(&governor(3), "powersave\n");
    let tree = tree.with(&format!("{CPU}/cpu3/cpufreq/scaling_driver"), "intel_pstate\n");
    assert_eq!(only(&tree, "governor").severity, Severity::Note);
}

fn swapped(used: u64, available: u64) -> Tree {
    let lines = [("MemTotal:", 67_108_864), ("MemFree:", 67_108_864), ("MemAvailable:", available)];
    let lines = lines.into_iter().chain([("SwapTotal:", 8 << 20), ("SwapFree:", (8 << 20) - used)]);
    let meminfo: String = lines.map(|(key, kb)| format!("{key} {kb} kB\n")).collect();
    two().with("proc/meminfo", meminfo).with("proc/sys/vm/swappiness", "1\n")
}

#[test]
fn swap_in_use_is_taken_back_only_where_memory_has_room() {
    assert_eq!(names(&findings(&swapped(1000, 1 << 20))), [""; 0]);
    let room = only(&swapped(4 << 20, 8 << 20), "swap_used");
    assert_eq!(room.command.as_deref(), Some("swapoff -a && swapon -a"));
    assert_eq!(only(&swapped(4 << 20, 1 << 20), "swap_used").command, None);
    let eager = swapped(0, 1).with("proc/sys/vm/swappiness", "60\n");
    assert_eq!(command(&eager, "swappiness"), "sysctl -w vm.swappiness=1");
}

#[test]
fn strict_accounting_is_found_where_it_wastes_memory() {
    let strict = |limit: u64| {
        let meminfo = format!("MemTotal: 1000 kB\nMemFree: 1000 kB\nCommitLimit: {limit} kB\n");
        let tree = two().with("proc/sys/vm/overcommit_memory", "2\n");
        tree.with("proc/meminfo", meminfo)
    };
    assert_eq!(command(&strict(500), "overcommit"), "sysctl -w vm.overcommit_ratio=95");
    assert_eq!(names(&findings(&strict(950))), [""; 0]);
}

#[test]
fn threads_switched_off_and_cpus_offline_are_distinguished() {
    let smt = format!("{CPU}/smt/control");
    let off = || two().with(&format!("{CPU}/present"), "0-31\n").with(&smt, "off\n");
    assert_eq!(command(&off(), "smt_off"), format!("echo on > /{smt}"));
    assert_eq!(only(&off().with(&smt, "forceoff\n"), "smt_off").command, None);
    let offline = two().with(&format!("{CPU}/present"), "0-17\n");
    let expected = "for cpu in 16 17; do echo 1 > /sys/devices/system/cpu/cpu$cpu/online; done";
    assert_eq!(command(&offline, "cpus_offline"), expected);
    let one = two().with(&format!("{CPU}/present"), "0-16\n");
    assert_eq!(only(&one, "cpus_offline").what, "Cpu 16 is offline");
}

#[test]
fn isolated_and_tickless_cpus_are_found() {
    assert_eq!(only(&two().with(&format!("{CPU}/isolated"), "2-3\n"), "isolated").command, None);
    only(&two().with(&format!("{CPU}/nohz_full"), "2-3\n"), "nohz_full");
}

#[test]
fn what_is_hidden_by_affinity_or_by_a_cpuset_has_its_own_command() {
    let found = findings_in(&two(), two().discover_only("0-7", "0-1").unwrap());
    assert_eq!(names(&found), ["cpus_hidden"]);
    assert_eq!(found[0].command.as_deref(), Some("taskset -a -p -c 0-15 $$"));
    assert!(!found[0].as_root);
    let group = "sys/fs/cgroup/atoll";
    let tree = two()
        .with(&format!("{group}/cpuset.cpus.effective"), "0-7\n")
        .with(&format!("{group}/cpuset.mems.effective"), "0\n");
    let found = findings_in(&tree, tree.discover_only("0-7", "0").unwrap());
    assert_eq!(names(&found), ["cpus_hidden", "nodes_hidden"]);
    let commands: Vec<_> = found.iter().filter_map(|f| f.command.as_deref()).collect();
    let expected = [
        "echo 0-15 > /sys/fs/cgroup/atoll/cpuset.cpus",
        "echo 0-1 > /sys/fs/cgroup/atoll/cpuset.mems",
    ];
    assert_eq!(commands, expected);
    let isolated = two().with(&format!("{CPU}/isolated"), "8-15\n");
    let found = findings_in(&isolated, isolated.discover_only("0-7", "0-1").unwrap());
    assert_eq!(names(&found), ["isolated"], "that explains why they are outside the mask");
}

#[test]
fn limits_of_control_groups_are_found() {
    let tree = two()
        .with("sys/fs/cgroup/atoll/memory.max", "1073741824\n")
        .with("sys/fs/cgroup/atoll/cpu.max", "150000 100000\n");
    let found = findings(&tree);
    assert_eq!(names(&found), ["memory_limit", "cpu_limit"]);
    assert_eq!(found[0].command.as_deref(), Some("echo max > /sys/fs/cgroup/atoll/memory.max"));
    assert_eq!(found[1].command.as_deref(), Some("echo max > /sys/fs/cgroup/atoll/cpu.max"));
    let quiet = two().with("sys/fs/cgroup/atoll/cpu.max", "3200000 100000\n");
    assert_eq!(names(&findings(&quiet)), [""; 0], "more than all cpus is not a limit");
}

#[test]
fn several_packages_in_one_node_are_found() {
    let tree = calm(&machines::two_nodes()).without(NODE);
    let finding = only(&tree.with("proc/x", ""), "nodes_hidden_by_firmware");
    assert!(finding.advice.unwrap().contains("CONFIG_NUMA"));
    let off = two().with("proc/cmdline", "quiet numa=off\n");
    assert_eq!(only(&off, "numa_switched_off").read[0].value, "numa=off");
}

#[test]
fn uninformative_distances_are_found() {
    let distances = |there: &str, back: &str| {
        let tree = two().with(&format!("{NODE}/node0/distance"), there);
        tree.with(&format!("{NODE}/node1/distance"), back)
    };
    only(&distances("10 10", "10 10"), "distances_flat");
    only(&distances("10 255", "255 10"), "node_unreachable");
    assert_eq!(only(&distances("10 21", "31 10"), "distances_uneven").read.len(), 2);
    let machine = Machine::synthetic("node:3 core:2").unwrap();
    let found = findings_in(&calm(&machine), machine);
    assert_eq!(names(&found), ["distances_assumed"]);
}

/// What core-to-core measurements say of two nodes' first domain of four cores.
fn measured(time: impl Fn(u32, u32) -> f64) -> Vec<Finding> {
    let machine = machines::one_node();
    let mut knowledge = Knowledge::from_machine(machine);
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        if from != to {
            let subject = Subject::CpuPair { from: CpuId(from), to: CpuId(to) };
            let fact = (subject, Quantity::CoreToCore, time(from, to));
            knowledge.facts.push(Fact::new(fact.0, fact.1, fact.2, Source::Measured, "measured"));
        }
    }
    check::check(&knowledge, &calm(&machines::one_node()).root())
}

#[test]
fn domains_that_only_measurements_show_are_found() {
    let found = measured(|a, b| if a / 2 == b / 2 { 25.0 + f64::from(a) } else { 90.0 });
    assert_eq!(names(&found), ["domains_hidden"]);
    assert!(found[0].what.contains("cpus {0-1} {2-3}"), "{}", found[0].what);
    assert_eq!(names(&measured(|a, b| 40.0 + f64::from(a + b))), [""; 0], "no gap");
    let one_slow = |a, b| if (a, b) == (0, 3) || (a, b) == (3, 0) { 90.0 } else { 25.0 };
    assert_eq!(names(&measured(one_slow)), [""; 0], "one slow pair is not a domain");
}

#[test]
fn a_file_that_cannot_be_parsed_is_a_note_and_nothing_else_fails() {
    let tree = two()
        .with("proc/sys/kernel/numa_balancing", "\u{1b}[2Jmany\n")
        .with(&format!("{CPU}/isolated"), [0xff, 0xfe])
        .with("sys/kernel/mm/transparent_hugepage/enabled", "always madvise never\n")
        .with("proc/sys/vm/zone_reclaim_mode", "1\n");
    let machine = machines::two_nodes();
    let found = findings_in(&tree, machine);
    assert_eq!(names(&found), ["zone_reclaim", "unknown", "unknown", "unknown"]);
    let text = check::text(&found);
    assert!(text.contains("/proc/sys/kernel/numa_balancing"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn findings_are_printed_with_reason_reading_and_command() {
    let tree = two()
        .with("proc/sys/kernel/numa_balancing", "1\n")
        .with(&format!("{CPU}/isolated"), "2-3\n");
    assert_snapshot!(check::text(&findings(&tree)));
}

#[test]
fn findings_have_stable_keys_as_json() {
    let tree = two().with("proc/sys/vm/zone_reclaim_mode", "1\n");
    let json = serde_json::to_value(findings(&tree)).unwrap();
    let keys: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    let expected = ["name", "severity", "what", "read", "why", "command", "as_root", "advice"];
    assert_eq!(keys, expected);
    assert_eq!(json[0]["severity"], "warning");
    assert_eq!(json[0]["read"][0]["file"], "/proc/sys/vm/zone_reclaim_mode");
    assert_eq!(json[0]["read"][0]["value"], "1");
}
