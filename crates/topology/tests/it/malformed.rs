use atoll_testkit::machines;
use atoll_topology::{Allowed, DiscoverError, Machine};

use atoll_testkit::tree::{CPU, NODE, Tree};

/// Discovers a good machine with one file replaced, and gives the message.
fn message(name: &str, text: impl AsRef<[u8]>) -> String {
    let tree = Tree::of(&machines::two_nodes()).with(name, text);
    tree.discover().expect_err(name).to_string()
}

#[test]
fn every_file_that_cannot_be_understood_is_named_with_what_was_expected() {
    let cpu = |name: &str| format!("{CPU}/cpu3/{name}");
    let node = |name: &str| format!("{NODE}/node1/{name}");
    let cases = [
        (format!("{CPU}/online"), "zero", "is not a set of numbers"),
        (format!("{CPU}/online"), "0-99999999", "is above 65535"),
        (format!("{NODE}/online"), "0-", "is not a set of numbers"),
        (node("cpulist"), "8-7", "runs backwards"),
        (node("distance"), "21", "expected one distance for each node online, found '21'"),
        (node("distance"), "21 ten", "expected one distance for each node online"),
        (node("distance"), "21 10 10", "expected one distance for each node online"),
        (node("distance"), "21 -10", "expected one distance for each node online"),
        (node("meminfo"), "", "expected lines such as 'MemTotal: 1024 kB'"),
        (node("meminfo"), "Node 1 MemTotal: 5 kB\n", "for MemTotal and MemFree"),
        (node("meminfo"), "Node 1 MemTotal: much kB\n", "found 'much kB'"),
        (node("meminfo"), "MemTotal: 99999999999999999999 kB\n", "found '9999"),
        (node("meminfo"), "MemTotal: 18446744073709551615 kB\n", "found '1844"),
        (cpu("topology/core_cpus_list"), "3,x", "'x' is not a number"),
        (cpu("topology/physical_package_id"), "one", "expected a whole number, found 'one'"),
        (cpu("topology/physical_package_id"), "-7", "expected a package number or -1, found '-7'"),
        (cpu("cache/index2/level"), "three", "expected a whole number, found 'three'"),
        (cpu("cache/index2/level"), "-3", "expected a cache level, found '-3'"),
        // Of a shared cache the first cpu tells the size.
        (
            format!("{CPU}/cpu0/cache/index2/size"),
            "big",
            "expected a size such as 32768K, found 'big'",
        ),
        (cpu("cache/index2/shared_cpu_list"), "0-x", "'x' is not a number"),
        ("proc/self/status".into(), "Cpus_allowed_list:\tall\n", "'all' is not a number"),
        ("proc/self/status".into(), "Mems_allowed_list:\t*\n", "'*' is not a number"),
        ("proc/self/auxv".into(), "short", "expected an AT_PAGESZ entry"),
        ("sys/fs/cgroup/atoll/memory.max".into(), "lots", "expected a number of bytes or 'max'"),
        ("sys/fs/cgroup/atoll/cpu.max".into(), "1000", "expected microseconds of quota"),
        ("sys/fs/cgroup/atoll/cpu.max".into(), "1000 0", "expected microseconds of quota"),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size".into(), "3", "a power of two"),
    ];
    let mut tree = Tree::of(&machines::two_nodes());
    for (name, text, part) in cases {
        let good = tree.root().read_bytes(&name).unwrap();
        tree = tree.with(&name, text);
        let message = tree.discover().expect_err(&name).to_string();
        tree = tree.with(&name, good);
        assert!(message.contains(&format!("/{name}: ")), "{name} '{text}': {message}");
        assert!(message.contains(part), "{name} '{text}': {message}");
    }
    assert!(tree.discover().is_ok(), "each file was put back");
}

#[test]
fn a_file_that_is_not_text_is_named() {
    let name = format!("{NODE}/node0/distance");
    assert!(message(&name, b"10 \xff").contains(&format!("/{name}: not text")));
}

#[test]
fn a_file_that_every_kernel_has_is_named_when_it_is_missing() {
    for name in [format!("{CPU}/online"), format!("{NODE}/node1/meminfo"), format!("{NODE}/online")]
    {
        let tree = Tree::of(&machines::two_nodes()).without(&name);
        let message = tree.discover().unwrap_err().to_string();
        assert!(message.contains(&format!("/{name}: no such file")), "{message}");
    }
}

#[test]
fn a_cpu_in_no_node_is_a_contradiction() {
    let message = message(&format!("{NODE}/node0/cpulist"), "0-6");
    assert!(message.contains("cpu 7 is online but in no node's cpulist"), "{message}");
}

#[test]
fn a_cpu_in_two_nodes_is_a_contradiction() {
    let message = message(&format!("{NODE}/node1/cpulist"), "7-15");
    assert!(message.contains("node1/cpulist: cpu 7 is also in the cpulist of node 0"), "{message}");
}

#[test]
fn a_process_that_may_run_on_no_online_cpu_is_told_so() {
    let tree = Tree::of(&machines::two_nodes());
    let error = tree.discover_only("16-20", "0-1").unwrap_err();
    assert!(matches!(error, DiscoverError::NoCpus { .. }));
    let message = error.to_string();
    assert!(message.contains("online are 0-15, allowed are 16-20"), "{message}");
}

#[test]
fn long_nonsense_is_cut_in_the_message() {
    let nonsense = "x".repeat(1 << 20);
    for name in [format!("{NODE}/node0/distance"), format!("{CPU}/online")] {
        assert!(message(&name, &nonsense).len() < 600, "{name}");
    }
}

#[test]
fn an_empty_directory_is_no_machine() {
    let error = Machine::discover_at(&Tree::empty().root(), &Allowed::everything()).unwrap_err();
    assert!(error.to_string().contains("/sys/devices/system/cpu/online: no such file"), "{error}");
}
