use atoll_testkit::machines;
use atoll_topology::{Allowed, Machine};

use atoll_testkit::tree::{CPU, NODE, Tree, nodes};

/// Discovers a good machine with one file replaced, and returns the assumption about it.
fn assumed(name: &str, text: impl AsRef<[u8]>) -> String {
    let machine = Tree::from_machine(&machines::two_nodes()).with(name, text).discover().unwrap();
    machine.assumptions.join("\n")
}

#[test]
fn every_file_that_cannot_be_parsed_is_named_and_the_machine_described_without_it() {
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
        // The size of a shared cache is read from the first cpu.
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
    let mut tree = Tree::from_machine(&machines::two_nodes());
    for (name, text, part) in cases {
        let good = tree.root().read_bytes(&name).unwrap();
        tree = tree.with(&name, text);
        let machine = tree.discover().unwrap();
        let message = machine.assumptions.join("\n");
        tree = tree.with(&name, good);
        assert_eq!(machine.cpus.len(), 16, "{name} '{text}': {message}");
        assert_eq!(machine.nodes.len(), 2, "{name} '{text}': {message}");
        assert!(message.contains(&format!("/{name}: ")), "{name} '{text}': {message}");
        assert!(message.contains(part), "{name} '{text}': {message}");
    }
    assert_eq!(tree.discover().unwrap().assumptions, [""; 0], "each file was put back");
}

#[test]
fn a_file_that_is_not_text_is_named() {
    let name = format!("{NODE}/node0/distance");
    assert!(assumed(&name, b"10 \xff").contains(&format!("/{name}: not text")));
}

#[test]
fn a_cpu_in_no_node_is_its_linked_node_s_or_the_first_one_s() {
    let list = format!("{NODE}/node1/cpulist");
    let tree = || Tree::from_machine(&machines::two_nodes()).with(&list, "8-14");
    let machine = tree().discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7,15", "1: 8-14"]);
    let expected = "online cpus 15 are in no node's list; taken as cpus of node 0";
    assert!(machine.assumptions[0].contains(expected), "{:?}", machine.assumptions);
    let linked = tree().with(&format!("{CPU}/cpu15/node1/online"), "1").discover().unwrap();
    assert_eq!(nodes(&linked), ["0: 0-7", "1: 8-15"]);
}

#[test]
fn a_cpu_in_two_nodes_is_the_first_one_s_or_its_linked_node_s() {
    let list = format!("{NODE}/node1/cpulist");
    let tree = || Tree::from_machine(&machines::two_nodes()).with(&list, "7-15");
    let machine = tree().discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7", "1: 8-15"]);
    let expected = "cpus 7 are in the lists of nodes 0-1; taken as cpus of node 0";
    assert!(machine.assumptions[0].contains(expected), "{:?}", machine.assumptions);
    let linked = tree().with(&format!("{CPU}/cpu7/node1/online"), "1").discover().unwrap();
    assert_eq!(nodes(&linked), ["0: 0-6", "1: 7-15"]);
}

#[test]
fn a_process_that_may_run_on_no_online_cpu_gets_those_that_are_there() {
    let tree = Tree::from_machine(&machines::two_nodes());
    let machine = tree.discover_only("16-20", "0-1").unwrap();
    assert_eq!(machine.cpus.len(), 16);
    let expected = "online are 0-15, the process may run on 16-20; taken as 0-15";
    assert!(machine.assumptions[0].contains(expected), "{:?}", machine.assumptions);
    let offline = tree.with(&format!("{CPU}/online"), "0-13").discover_only("14-15", "0-1");
    assert_eq!(nodes(&offline.unwrap()), ["0: ", "1: 14-15"]);
}

#[test]
fn long_nonsense_is_cut_in_the_message() {
    let nonsense = "x".repeat(1 << 20);
    for name in [format!("{NODE}/node0/distance"), format!("{CPU}/online")] {
        assert!(assumed(&name, &nonsense).len() < 900, "{name}");
    }
}

#[test]
fn assumptions_are_listed_once_and_limited_in_number() {
    let mut tree = Tree::bare().with(&format!("{CPU}/online"), "0-199");
    for cpu in 0..200 {
        tree = tree.with(&format!("{CPU}/cpu{cpu}/topology/physical_package_id"), "odd");
    }
    assert_eq!(tree.discover_all().assumptions.len(), 64);
}

#[test]
fn an_empty_directory_is_no_machine() {
    let error = Machine::discover_at(&Tree::empty().root(), &Allowed::everything()).unwrap_err();
    assert!(error.to_string().contains("no cpu is described there"), "{error}");
}
