use atoll_sys::SplitMix64;
use atoll_testkit::generated::{self, chance};
use atoll_testkit::tree::{CPU, NODE, Tree};
use atoll_topology::{CpuSet, DiscoverError, Machine, NodeId, mask};

const SEEDS: std::ops::Range<u64> = 0..40;

/// The machine without assumptions about how it was read.
fn meant(machine: Machine) -> Machine {
    Machine { assumptions: Vec::new(), ..machine }
}

/// Replaces a file by what a function makes of its text.
fn changed(tree: Tree, name: &str, change: impl Fn(&str) -> String) -> Tree {
    let text = tree.root().read_text(name).unwrap();
    tree.with(name, change(&text))
}

/// A list as the mask of older kernels.
fn mask_of(list: &str) -> String {
    mask::write(&CpuSet::parse(list).unwrap()).replace("0x", "")
}

/// Every part refers to existing parts, and no cpu is missing or duplicated.
fn assert_whole(machine: &Machine, seed: u64) {
    assert!(!machine.cpus.is_empty() && !machine.nodes.is_empty(), "seed {seed}");
    for cpu in &machine.cpus {
        assert!(
            machine.node(cpu.node).is_some_and(|node| node.cpus.contains(cpu.id)),
            "seed {seed}"
        );
        let core = &machine.cores[cpu.core.index()];
        let domain = &machine.domains[cpu.domain.index()];
        assert!(core.cpus.contains(cpu.id) && domain.cpus.contains(cpu.id), "seed {seed}");
        assert_eq!((core.domain, domain.node), (cpu.domain, cpu.node), "seed {seed}");
    }
    let counted: usize = machine.nodes.iter().map(|node| node.cpus.len()).sum();
    assert_eq!(counted, machine.cpus.len(), "seed {seed}");
    let nodes = machine.nodes.len();
    assert!(
        machine.distances.len() == nodes && machine.distances.iter().all(|row| row.len() == nodes)
    );
    assert!(machine.nodes.iter().all(|node| node.cpus.is_empty() || node.near.is_empty()));
}

#[test]
fn what_discovery_says_is_what_the_generator_meant() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        assert_eq!(Tree::from_machine(&machine).discover().unwrap(), machine, "seed {seed}");
        assert_whole(&machine, seed);
    }
}

#[test]
fn masks_instead_of_lists_and_no_list_of_what_is_online_say_the_same() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        let mut tree = Tree::from_machine(&machine);
        let online = [format!("{CPU}/online"), format!("{NODE}/online")];
        for name in tree.files() {
            let mask =
                name.replace("cpulist", "cpumap").replace("shared_cpu_list", "shared_cpu_map");
            let mask = mask.strip_suffix("_list").unwrap_or(&mask);
            if online.contains(&name) {
                tree = tree.without(&name);
            } else if mask != name {
                let text = mask_of(&tree.root().read_text(&name).unwrap());
                tree = tree.without(&name).with(mask, text);
            }
        }
        let found = tree.discover().unwrap();
        assert_eq!(found.assumptions.len(), 1, "seed {seed}: {:?}", found.assumptions);
        assert_eq!(meant(found), machine, "seed {seed}");
    }
}

#[test]
fn copies_padded_with_zeros_say_the_same() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        let mut random = SplitMix64::new(seed);
        let mut tree = Tree::from_machine(&machine);
        for name in tree.files() {
            // A copy of the auxiliary vector is as long as the vector.
            if chance(&mut random, 30) && !name.ends_with("auxv") {
                tree = changed(tree, &name, |text| format!("{text}{}", "\0".repeat(64)));
            }
        }
        assert_eq!(tree.discover().unwrap(), machine, "seed {seed}");
    }
}

#[test]
fn cpus_in_several_lists_or_in_none_live_where_the_kernel_links_them() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        let mut random = SplitMix64::new(seed);
        let mut tree = Tree::from_machine(&machine);
        for cpu in &machine.cpus {
            tree = tree.with(&format!("{CPU}/cpu{}/node{}/online", cpu.id, cpu.node), "1");
        }
        let all: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
        let wrong = if chance(&mut random, 50) { all } else { CpuSet::new() };
        for node in machine.nodes.iter().filter(|node| !node.cpus.is_empty()) {
            let list = if chance(&mut random, 60) { &wrong } else { &node.cpus };
            tree = tree.with(&format!("{NODE}/node{}/cpulist", node.id), list.to_string());
        }
        assert_eq!(meant(tree.discover().unwrap()), machine, "seed {seed}");
    }
}

#[test]
fn cpus_offline_are_as_if_the_process_might_not_use_them_but_are_not_hidden() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        let mut random = SplitMix64::new(seed);
        let online: CpuSet =
            machine.cpus.iter().map(|cpu| cpu.id).filter(|_| chance(&mut random, 60)).collect();
        if online.is_empty() {
            continue;
        }
        let nodes: atoll_topology::NodeSet =
            machine.nodes_with_memory().map(|node| node.id).collect();
        let whole = Tree::from_machine(&machine);
        let expected = whole.discover_only(&online.to_string(), &nodes.to_string()).unwrap();
        let tree = whole.with(&format!("{CPU}/online"), online.to_string());
        let found = tree.discover().unwrap();
        assert!(found.hidden.cpus.is_empty(), "seed {seed}");
        assert_eq!(Machine { hidden: expected.hidden.clone(), ..found }, expected, "seed {seed}");
    }
}

#[test]
fn a_machine_whose_files_are_missing_or_damaged_is_described() {
    for seed in 0..120 {
        let machine = generated::machine(seed);
        let mut random = SplitMix64::new(seed);
        let mut tree = Tree::from_machine(&machine);
        for name in tree.files() {
            let junk =
                ["", "x", "-1", "0", "0-99999999", "5-4", "0,2", "\0", "99999999999999999999 kB"];
            tree = match random.below(100) {
                0..10 => tree.without(&name),
                10..20 => tree.with(&name, junk[random.below(junk.len() as u64) as usize]),
                20..22 => tree.with(&name, b"\xff\xfe"),
                _ => tree,
            };
        }
        match tree.discover() {
            Ok(found) => assert_whole(&found, seed),
            Err(error) => {
                assert!(matches!(error, DiscoverError::NoCpus { .. }), "seed {seed}: {error}")
            }
        }
    }
}

#[test]
fn nearest_memory_and_cpus_of_any_machine_are_there() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        for NodeId(id) in machine.nodes.iter().map(|node| node.id) {
            assert!(machine.nearest_with_cpus(NodeId(id)).is_some(), "seed {seed}");
        }
    }
}
