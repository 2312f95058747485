use std::process::Command;

use atoll_formats::numactl::{self, DistanceWidth, HardwareError, NO_NUMA};
use atoll_sys::Root;
use atoll_testkit::{Need, machines, skip};
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, Source};

use atoll_testkit::tree::{NODE, Tree, set};

const MIB: u64 = 1 << 20;

#[test]
fn a_described_machine_is_printed_as_numactl_prints_it() {
    assert_eq!(
        numactl::write(&machines::sparse_nodes(), DistanceWidth::Narrow),
        "available: 6 nodes (0,8,252-255)\n\
         node 0 cpus: 0 1 2 3 4 5 6 7\nnode 0 size: 8192 MB\nnode 0 free: 8192 MB\n\
         node 8 cpus: 8 9 10 11 12 13 14 15\nnode 8 size: 8192 MB\nnode 8 free: 8192 MB\n\
         node 252 cpus:\nnode 252 size: 2048 MB\nnode 252 free: 2048 MB\n\
         node 253 cpus:\nnode 253 size: 2048 MB\nnode 253 free: 2048 MB\n\
         node 254 cpus:\nnode 254 size: 2048 MB\nnode 254 free: 2048 MB\n\
         node 255 cpus:\nnode 255 size: 2048 MB\nnode 255 free: 2048 MB\n\
         node distances:\n\
         node   0   8  252  253  254  255 \n  \
           0:  10  40  50  50  50  50 \n  \
           8:  40  10  50  50  50  50 \n \
          252:  50  50  10  50  50  50 \n \
          253:  50  50  50  10  50  50 \n \
          254:  50  50  50  50  10  50 \n \
          255:  50  50  50  50  50  10 \n"
    );
}

#[test]
fn later_releases_of_numactl_have_wider_columns() {
    let text = numactl::write(&machines::two_nodes(), DistanceWidth::Wide);
    let matrix = text.split_once("node distances:\n").unwrap().1;
    assert_eq!(matrix, "node     0    1 \n   0:   10   21 \n   1:   21   10 \n");
}

#[test]
fn what_is_written_is_read_again() {
    for machine in machines::all() {
        for columns in [DistanceWidth::Narrow, DistanceWidth::Wide] {
            let read = numactl::parse(&numactl::write(&machine, columns), "four.txt").unwrap();
            let read = read.machine;
            let cpus = |machine: &Machine| -> Vec<_> {
                machine.cpus.iter().map(|cpu| (cpu.id, cpu.node)).collect()
            };
            let memory = |machine: &Machine| -> Vec<_> {
                machine.nodes.iter().map(|node| (node.id, node.memory, node.memory_free)).collect()
            };
            assert_eq!(cpus(&read), cpus(&machine));
            assert_eq!(memory(&read), memory(&machine));
            assert_eq!(read.distances, machine.distances);
            assert_eq!((read.name.as_str(), read.source), ("four", Source::Declared));
            assert_eq!(read.domains.len(), machine.nodes_with_cpus().count(), "one for each node");
            assert_eq!((read.caches_source, read.cores.len()), (Source::Assumed, read.cpus.len()));
        }
    }
}

#[test]
fn a_tree_is_printed_as_its_machine() {
    for machine in machines::all() {
        let printed =
            numactl::hardware(&Tree::from_machine(&machine).root(), DistanceWidth::Narrow).unwrap();
        assert_eq!(printed, numactl::write(&machine, DistanceWidth::Narrow));
    }
}

#[test]
fn a_tree_shows_what_the_machine_leaves_out() {
    let tree = Tree::from_machine(&machines::two_nodes())
        .with(&format!("{NODE}/node4/cpumap"), "00000000,00000000\n")
        .with(&format!("{NODE}/node4/meminfo"), "Node 4 MemTotal: 0 kB\nNode 4 MemFree: 0 kB\n")
        .with(&format!("{NODE}/node1/cpumap"), "8000ff00\n")
        .without(&format!("{NODE}/node1/meminfo"));
    let printed = numactl::hardware(&tree.root(), DistanceWidth::Narrow).unwrap();
    assert!(printed.starts_with("available: 3 nodes (0-1,4)\n"), "{printed}");
    assert!(printed.contains("node 4 cpus:\nnode 4 size: 0 MB\nnode 4 free: 0 MB\n"), "{printed}");
    assert!(printed.contains("node 1 cpus: 8 9 10 11 12 13 14 15 31\n"), "{printed}");
    assert!(printed.contains("node 1 size: <not available>\nnode 1 free: 0 MB\n"), "{printed}");
    let read = numactl::parse(&printed, "-").unwrap().machine;
    assert_eq!(read.nodes.len(), 2, "a node with neither cpus nor memory is not part of a machine");
}

#[test]
fn a_tree_without_distances_says_so_and_is_read() {
    let tree = Tree::from_machine(&machines::two_nodes())
        .without(&format!("{NODE}/node0/distance"))
        .without(&format!("{NODE}/node1/distance"));
    let printed = numactl::hardware(&tree.root(), DistanceWidth::Narrow).unwrap();
    assert!(printed.ends_with("\nNo distance information available.\n"), "{printed}");
    let machine = numactl::parse(&printed, "-").unwrap().machine;
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
    assert_eq!(machine.distances_source, Source::Assumed);
}

#[test]
fn a_kernel_without_numa_is_reported_with_numactls_message() {
    let error = numactl::hardware(&Tree::bare().root(), DistanceWidth::Narrow).unwrap_err();
    assert!(matches!(error, HardwareError::NoNuma));
    assert_eq!(error.to_string(), "No NUMA available on this system");
    let error = numactl::parse(NO_NUMA, "-").unwrap_err().to_string();
    assert!(error.starts_with("-:1: 'No NUMA available on this system'"), "{error}");
}

#[test]
fn a_kernel_file_that_cannot_be_parsed_is_named() {
    for (name, text) in [("node0/cpumap", "0-3"), ("node99999999/cpumap", "0")] {
        let tree = Tree::from_machine(&machines::one_node()).with(&format!("{NODE}/{name}"), text);
        let error =
            numactl::hardware(&tree.root(), DistanceWidth::Narrow).expect_err(name).to_string();
        assert!(error.contains("/sys/devices/system/node"), "{error}");
    }
}

/// Runs a shell command line. Returns None if numactl is not installed or the command is not permitted.
fn shell(line: &str) -> Option<String> {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    if !output.status.success() {
        let need = if output.status.code() == Some(127) { Need::Numactl } else { Need::Permission };
        skip(need, format!("{line}: {}", String::from_utf8_lossy(&output.stderr)));
        return None;
    }
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The column width of the installed numactl, from how it prints the one node that every machine has.
fn columns(text: &str) -> DistanceWidth {
    if text.contains("\nnode    ") { DistanceWidth::Wide } else { DistanceWidth::Narrow }
}

/// Removes the free memory, which changes from call to call.
fn masked(text: &str) -> String {
    text.lines()
        .filter(|line| !line.contains(" free: "))
        .map(|line| line.to_owned() + "\n")
        .collect()
}

#[test]
fn the_live_machine_is_printed_to_the_byte_also_when_bound_to_a_cpu() {
    let first = Machine::discover().unwrap().cpus[0].id;
    for line in ["numactl -H".to_owned(), format!("taskset -c {first} numactl -H")] {
        let Some(expected) = shell(&line) else { return };
        let printed = numactl::hardware(&Root::live(), columns(&expected)).unwrap();
        assert_eq!(masked(&printed), masked(&expected));
        assert_eq!(printed.lines().count(), expected.lines().count());
        assert!(printed.contains("\nnode 0 free: ") && printed.contains(" MB\n"), "{printed}");
    }
}

/// Runs numactl on the tree instead of this machine's, in a separate mount namespace.
#[test]
fn numactl_prints_the_same_of_a_tree() {
    let machines =
        [machines::two_nodes(), machines::sub_numa_clusters(), machines::eight_uneven_nodes()];
    for machine in machines {
        let mut tree = Tree::from_machine(&machine);
        for node in &machine.nodes {
            let bits = node.cpus.iter().fold(0u64, |bits, cpu| bits | 1 << cpu.0);
            let map = format!("{:08x},{:08x}\n", bits >> 32, bits & 0xffff_ffff);
            tree = tree.with(&format!("{NODE}/node{}/cpumap", node.id), map);
        }
        let directory = tree.root().path(NODE).unwrap();
        let mount = format!("mount --bind {} /{NODE} && numactl -H", directory.display());
        let Some(expected) = shell(&format!("unshare -m sh -c '{mount}'")) else { return };
        let printed = numactl::hardware(&tree.root(), columns(&expected)).unwrap();
        assert_eq!(printed, expected);
    }
}

const TEXT: &str = "available: 3 nodes (0-2)
node 0 cpus: 0 1
node 0 size: 100 MB
node 0 free: 50 MB
node 1 cpus:
node 1 size: 0 MB
node 1 free: 0 MB
node 2 cpus: 2-3, 5 (3)
node 2 size: 7 MB
node 2 free: 9 MB
node distances:
node     0    1    2 
   0:   10   15   21 
   1:   15   10   99 
   2:   22   99   10 
";

#[test]
fn a_node_with_nothing_is_left_out_with_its_distances() {
    let machine = numactl::parse(TEXT, "x").unwrap().machine;
    assert_eq!(machine.distances, [[10, 21], [22, 10]]);
    assert_eq!(machine.nodes[1].cpus, CpuSet::parse("2-3,5").unwrap(), "also when compressed");
    assert_eq!(machine.nodes[0].memory_free, Bytes(50 * MIB));
    assert_eq!(machine.nodes[1].memory_free, Bytes(7 * MIB), "no more is free than there is");
}

#[test]
fn a_cpu_in_two_nodes_belongs_to_the_first_as_with_numa_fake() {
    let text = TEXT.replacen("0 1\n", "0 1 2\n", 1);
    assert_ne!(text, TEXT);
    let machine = numactl::parse(&text, "x").unwrap().machine;
    assert_eq!(machine.nodes[0].cpus, set("0-2"));
    assert!(machine.nodes[1..].iter().all(|node| !node.cpus.contains(CpuId(2))));
}

#[test]
fn every_mistake_is_reported_with_file_and_line() {
    for (from, to, expected) in [
        ("available: 3", "inventory: 3", "x:1: 'inventory: 3 nodes (0-2)'; expected 'available: 2"),
        ("available: 3 nodes (0-2)", "available: 0 nodes ()", "x:1: a machine without nodes"),
        ("available: 3 nodes (0-2)", "numactl: no", "x:1: 'numactl: no'; expected 'available: 2"),
        ("node 1 cpus:", "node 1 speed:", "x:5: 'node 1 speed:'; expected 'node 0 cpus: …'"),
        ("node 1 cpus:", "node 65536 cpus:", "x:5: '65536'; expected a number up to 65535"),
        ("node 1 cpus:", "node 1 cpus: 70000", "x:5: "),
        ("node 1 cpus:", "node 0 cpus:", "x:5: a second 'node 0 cpus'"),
        ("0 MB", "0 GB", "x:3: ' 100 GB'; expected a size such as '15706 MB'"),
        ("7 MB", "99999999999999999 MB", "x:9: ' 99999999999999999 MB'; expected a size"),
        ("node     0    1    2 ", "node     0    1 ", "x:12: 'node     0    1'; expected a column"),
        ("   10   99", "   10", "x:14: 2 distances; expected '1:' and 3 distances"),
        ("   2:   22", "   3:   22", "x:15: the row '3'; expected '2:' and 3 distances"),
        ("   22   99   10 \n", "   22   99   10 \nmore", "x:16: 'more'; expected the end"),
    ] {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        let message = numactl::parse(&text, "x").expect_err(to).to_string();
        assert!(message.starts_with(expected), "{to}: {message}");
    }
    assert_eq!(
        numactl::parse("\n", "-").unwrap_err().to_string(),
        "-:1: nothing; expected 'available: 2 nodes (0-1)', the first line of 'numactl -H'"
    );
}
