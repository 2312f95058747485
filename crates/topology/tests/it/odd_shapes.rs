//! Trees written by hand, each modelled on real kernels, firmware or containers.

use atoll_testkit::machines;
use atoll_topology::{Bytes, Knowledge, Machine, NodeId, PackageId, Quantity, SideCache, Source};

use atoll_testkit::tree::{CPU, NODE, Tree, cores, domains, nodes, set};

/// Two nodes of two cpus.
fn two_by_two() -> Tree {
    Tree::bare()
        .with(&format!("{NODE}/online"), "0-1")
        .with_node(0, "0-1", "10 21")
        .with_node(1, "2-3", "21 10")
}

#[test]
fn a_kernel_without_numa_is_one_node_with_all_cpus_and_the_machine_s_memory() {
    let machine = Tree::bare().discover_all();
    assert_eq!(nodes(&machine), ["0: 0-3"]);
    assert_eq!(machine.nodes[0].memory, Bytes(4096 << 10));
    assert_eq!(machine.nodes[0].memory_free, Bytes(1024 << 10));
    assert_eq!(machine.distances, [[10]]);
    assert_eq!(machine.distances_source, Source::Assumed);
}

#[test]
fn a_kernel_that_only_lists_online_cpus_gives_a_complete_machine() {
    let machine = Tree::bare().discover_all();
    assert_eq!(domains(&machine), ["0-3"]);
    assert_eq!(cores(&machine), ["0", "1", "2", "3"]);
    assert_eq!(machine.packages.len(), 1);
    assert_eq!((machine.packages[0].id, machine.packages[0].model.as_ref()), (PackageId(0), None));
    assert_eq!(machine.caches_source, Source::Assumed);
    assert_eq!((machine.pages_source, machine.page_size), (Source::Assumed, Bytes(4096)));
    assert_eq!(machine.huge_page_size, None);
    assert_eq!(machine.name, "unnamed");
}

#[test]
fn where_caches_are_unknown_each_node_is_one_domain() {
    let machine = two_by_two().discover_all();
    assert_eq!(domains(&machine), ["0-1", "2-3"]);
    assert_eq!(machine.domains[0].cache_level, None);
}

#[test]
fn a_domain_never_spans_nodes_though_the_cache_does() {
    let machine = two_by_two().with_cache("0-3", 3, 3, "0-3").discover_all();
    assert_eq!(domains(&machine), ["0-1", "2-3"]);
    assert_eq!(machine.domains[1].cache_level, Some(3));
    assert_eq!(machine.domains[1].cache, Some(Bytes(1 << 20)));
}

#[test]
fn the_highest_level_counts_whatever_the_order_of_the_indexes() {
    let tree = two_by_two()
        .with_cache("0-1", 0, 3, "0-1")
        .with_cache("2-3", 0, 3, "2-3")
        .with_cache("0", 1, 2, "0")
        .with_cache("1", 1, 2, "1");
    assert_eq!(domains(&tree.discover_all()), ["0-1", "2-3"]);
}

#[test]
fn cpus_of_one_node_with_and_without_a_third_level_are_different_domains() {
    // As on hybrid processors whose low-power cores lie outside the third-level cache.
    let tree = Tree::bare().with_cache("0-1", 3, 3, "0-1").with_cache("2-3", 2, 2, "2-3");
    let machine = tree.discover_all();
    assert_eq!(domains(&machine), ["0-1", "2-3"]);
    let levels: Vec<_> = machine.domains.iter().map(|domain| domain.cache_level).collect();
    assert_eq!(levels, [Some(3), Some(2)]);
}

#[test]
fn an_instruction_cache_is_no_last_level_cache() {
    let kind = format!("{CPU}/cpu0/cache/index9/type");
    let tree = Tree::bare().with_cache("0-3", 1, 2, "0-3").with_cache("0", 9, 4, "0");
    assert_eq!(domains(&tree.with(&kind, "Instruction\n").discover_all()), ["0-3"]);
}

#[test]
fn siblings_with_distant_numbers_are_one_core_also_under_the_old_name() {
    let siblings = |tree: Tree, name: &str| {
        [(0, "0,2"), (2, "0,2"), (1, "1,3"), (3, "1,3")].iter().fold(tree, |tree, (cpu, list)| {
            tree.with(&format!("{CPU}/cpu{cpu}/topology/{name}"), list)
        })
    };
    for name in ["core_cpus_list", "thread_siblings_list"] {
        assert_eq!(cores(&siblings(Tree::bare(), name).discover_all()), ["0,2", "1,3"], "{name}");
    }
}

#[test]
fn offline_cpus_are_not_in_the_machine_and_not_hidden() {
    let tree = Tree::from_machine(&machines::two_nodes())
        .with(&format!("{CPU}/online"), "0-5,8-15")
        .with(&format!("{NODE}/node0/cpulist"), "0-5");
    let machine = tree.discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-5", "1: 8-15"]);
    assert!(machine.hidden.cpus.is_empty());
}

#[test]
fn cpus_outside_the_affinity_mask_are_hidden() {
    let machine = Tree::from_machine(&machines::two_nodes()).discover_only("1-2,9", "0-1").unwrap();
    assert_eq!(nodes(&machine), ["0: 1-2", "1: 9"]);
    assert_eq!(cores(&machine), ["1", "2", "9"]);
    assert_eq!(machine.hidden.cpus, set("0,3-8,10-15"));
    assert!(machine.hidden.nodes.is_empty());
}

#[test]
fn the_process_s_status_bounds_the_machine() {
    let status = "Name:\tx\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n";
    let tree = Tree::from_machine(&machines::two_nodes()).with("proc/self/status", status);
    let machine = tree.discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-3"]);
    assert_eq!(machine.distances, [[10]]);
    assert_eq!(machine.hidden.nodes.to_string(), "1");
}

#[test]
fn a_status_without_the_lists_allows_everything() {
    let tree = Tree::from_machine(&machines::two_nodes()).with("proc/self/status", "Name:\tx\n");
    assert_eq!(tree.discover().unwrap().cpus.len(), 16);
}

#[test]
fn cpus_whose_node_s_memory_is_not_allowed_stay_with_no_memory() {
    let machine = Tree::from_machine(&machines::two_nodes()).discover_only("0-15", "0").unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7", "1: 8-15"]);
    assert_eq!(machine.nodes[1].memory, Bytes(0));
    assert_eq!(machine.nodes[1].memory_free, Bytes(0));
    assert_eq!(machine.hidden.nodes.to_string(), "1");
    assert_eq!(machine.nearest_with_memory(NodeId(1)).unwrap().id, NodeId(0));
}

#[test]
fn memory_whose_cpus_are_not_allowed_stays_with_no_cpus() {
    let machine = Tree::from_machine(&machines::two_nodes()).discover_only("0-7", "0-1").unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7", "1: "]);
    assert_eq!(machine.nodes[1].memory, Bytes(32 << 30));
    assert_eq!(machine.nodes[1].package, None);
}

#[test]
fn a_node_of_cpus_only_is_never_in_mems_allowed_and_yet_not_hidden() {
    let machine =
        Tree::from_machine(&machines::eight_uneven_nodes()).discover_only("0-31", "0-5").unwrap();
    assert_eq!(machine.hidden.nodes.to_string(), "7-8");
    assert!(machine.node(NodeId(6)).is_some());
}

#[test]
fn a_node_has_the_memory_of_its_own_file_and_facts_name_the_file_that_was_read() {
    let memory = |tree: &Tree| -> Vec<(f64, String)> {
        let known = Knowledge::discover_at(&tree.root(), &Default::default()).unwrap();
        let facts = known.all_facts().filter(|fact| fact.quantity == Quantity::Memory);
        facts.map(|fact| (fact.value, fact.origin.clone())).collect()
    };
    let one = Tree::bare().with(&format!("{NODE}/online"), "0").with_node(0, "0-3", "10");
    assert_eq!(memory(&one), [(f64::from(1024 << 10), format!("/{NODE}/node0/meminfo"))]);
    let kernel_without_numa = memory(&Tree::bare());
    assert_eq!(kernel_without_numa, [(f64::from(4096 << 10), "/proc/meminfo".to_owned())]);
}

#[test]
fn nodes_without_memory_figures_share_the_machine_s_memory() {
    let meminfo = |node: u32| format!("{NODE}/node{node}/meminfo");
    let machine = two_by_two().without(&meminfo(0)).without(&meminfo(1)).discover_all();
    let memory: Vec<u64> = machine.nodes.iter().map(|node| node.memory.0).collect();
    assert_eq!((memory, machine.memory_source), (vec![2048 << 10; 2], Source::Assumed));
    let one_of_two = two_by_two().without(&meminfo(1)).discover_all();
    let memory: Vec<u64> = one_of_two.nodes.iter().map(|node| node.memory.0).collect();
    assert_eq!(memory, [1024 << 10, 0]);
    assert!(one_of_two.assumptions[0].contains("node1/meminfo: the node's memory is missing"));
}

#[test]
fn masks_of_old_kernels_are_equivalent_to_lists() {
    let lists = two_by_two().with_cache("0-1", 3, 3, "0-1").with_cache("2-3", 3, 3, "2-3");
    let core = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/thread_siblings");
    let masks = [("0", "00000000,00000003"), ("1", "0000000c\n")].iter().fold(
        two_by_two().without(&format!("{NODE}/online")).without(&format!("{CPU}/online")),
        |tree, (node, mask)| {
            tree.without(&format!("{NODE}/node{node}/cpulist"))
                .with(&format!("{NODE}/node{node}/cpumap"), mask)
        },
    );
    let masks = (0..4).fold(masks, |tree, cpu| {
        let (cache, mask) =
            (format!("{CPU}/cpu{cpu}/cache/index3"), if cpu < 2 { "3" } else { "c" });
        tree.with(&core(cpu), mask)
            .with_cache(&cpu.to_string(), 3, 3, "")
            .without(&format!("{cache}/shared_cpu_list"))
            .with(&format!("{cache}/shared_cpu_map"), mask)
    });
    let (masks, lists) = (masks.discover_all(), lists.discover_all());
    assert_eq!((&masks.nodes, &masks.caches), (&lists.nodes, &lists.caches));
    assert_eq!(domains(&masks), ["0-1", "2-3"]);
    assert_eq!(cores(&masks), ["0-1", "2-3"]);
}

#[test]
fn parts_of_a_node_that_numa_fake_cuts_are_memory_near_to_its_cpus() {
    // x86 shows the cpus of a node in every part; the kernel assigns them to the first.
    let tree = Tree::bare()
        .with(&format!("{NODE}/online"), "0-3")
        .with_node(0, "0-1", "10 10 20 20")
        .with_node(1, "0-1", "10 10 20 20")
        .with_node(2, "2-3", "20 20 10 10")
        .with_node(3, "2-3", "20 20 10 10");
    let machine = tree.discover_all();
    assert_eq!(nodes(&machine), ["0: 0-1", "1: ", "2: 2-3", "3: "]);
    let near: Vec<String> = machine.nodes.iter().map(|node| node.near.to_string()).collect();
    assert_eq!(near, ["", "0-1", "", "2-3"]);
    assert_eq!(machine.nodes[1].memory, Bytes(1024 << 10));
    assert_eq!(machine.assumptions.len(), 2, "{:?}", machine.assumptions);
}

#[test]
fn memory_alone_is_near_to_the_cpus_that_the_firmware_names() {
    let tree = two_by_two()
        .with(&format!("{NODE}/online"), "0-2")
        .with(&format!("{NODE}/node0/distance"), "10 21 17")
        .with(&format!("{NODE}/node1/distance"), "21 10 28")
        .with_node(2, "", "17 28 10")
        .with(&format!("{NODE}/node2/access0/initiators/node1/online"), "1");
    assert_eq!(tree.discover_all().nodes[2].near, set("2-3"));
}

#[test]
fn where_nothing_lists_the_cpus_online_cpuinfo_does() {
    let tree = Tree::bare().without(&format!("{CPU}/online"));
    let machine = tree.with("proc/cpuinfo", "processor\t: 0\n\nprocessor\t: 5\n").discover_all();
    assert_eq!(nodes(&machine), ["0: 0,5"]);
    assert!(machine.assumptions[0].contains("taken as those of /proc/cpuinfo: 0,5"));
}

#[test]
fn a_machine_whose_node_directory_is_empty_is_one_node() {
    for online in ["", "\n"] {
        let machine = Tree::bare().with(&format!("{NODE}/online"), online).discover_all();
        assert_eq!(nodes(&machine), ["0: 0-3"]);
        assert_eq!(machine.nodes[0].memory, Bytes(4096 << 10));
    }
}

#[test]
fn a_cache_without_a_list_of_cpus_belongs_to_its_core() {
    let siblings = |tree: Tree, cpu: u32| {
        tree.with(
            &format!("{CPU}/cpu{cpu}/topology/core_cpus_list"),
            if cpu < 2 { "0-1" } else { "2-3" },
        )
    };
    let tree = (0..4).fold(Tree::bare().with_cache("0-3", 3, 3, ""), siblings);
    assert_eq!(domains(&tree.discover_all()), ["0-1", "2-3"]);
}

#[test]
fn a_core_whose_threads_leave_out_the_cpu_itself_is_ignored() {
    let tree = Tree::bare().with(&format!("{CPU}/cpu1/topology/core_cpus_list"), "\n");
    assert_eq!(cores(&tree.discover_all()), ["0", "1", "2", "3"]);
}

#[test]
fn dies_are_listed_for_packages_that_have_several() {
    let die = |tree: Tree, (cpu, die): (u32, &str)| {
        tree.with(&format!("{CPU}/cpu{cpu}/topology/die_id"), die)
    };
    let dies = |ids: [&str; 4]| (0..4).zip(ids).fold(Tree::bare(), die).discover_all().dies;
    assert!(dies(["0"; 4]).is_empty() && dies(["-1"; 4]).is_empty());
    let found: Vec<_> =
        dies(["4", "0", "0", "4"]).into_iter().map(|die| (die.id, die.cpus.to_string())).collect();
    assert_eq!(found, [(0, "1-2".to_owned()), (4, "0,3".to_owned())]);
}

#[test]
fn kinds_of_cpus_come_from_devices_or_capacities_or_frequencies() {
    let kinds = |tree: Tree| -> Vec<String> {
        let kinds = tree.discover_all().cpu_kinds;
        kinds.iter().map(|kind| format!("{}: {}", kind.name, kind.cpus)).collect()
    };
    let each = |file: &str, values: [u32; 4]| {
        (0..4).zip(values).fold(Tree::bare(), |tree, (cpu, value)| {
            tree.with(&format!("{CPU}/cpu{cpu}/{file}"), value.to_string())
        })
    };
    let capacities = || each("cpu_capacity", [446, 446, 1024, 1024]);
    assert_eq!(kinds(capacities()), ["capacity 446: 0-1", "capacity 1024: 2-3"]);
    let devices = capacities()
        .with("sys/devices/cpu_atom/cpus", "1-3\n")
        .with("sys/devices/cpu_core/cpus", "0\n");
    assert_eq!(kinds(devices), ["P cores: 0", "E cores: 1-3"]);
    let frequencies = [5_500_000, 5_300_000, 4_000_000, 4_000_000];
    let frequencies = each("cpufreq/cpuinfo_max_freq", frequencies);
    assert_eq!(kinds(frequencies), ["up to 5.5 GHz: 0-1", "up to 4.0 GHz: 2-3"]);
    assert!(kinds(each("cpu_capacity", [1024; 4])).is_empty());
    assert!(kinds(Tree::bare()).is_empty());
}

#[test]
fn caches_in_front_of_memory_are_listed_nearest_to_the_cpus_first() {
    let cache = |tree: Tree, (index, size, line): (u32, &str, &str)| {
        let directory = format!("{NODE}/node1/memory_side_cache/index{index}");
        tree.with(&format!("{directory}/size"), size).with(&format!("{directory}/line_size"), line)
    };
    let tree =
        [(1, "8388608\n", "64\n"), (2, "1048576\n", "0\n")].into_iter().fold(two_by_two(), cache);
    let machine = tree.discover_all();
    assert!(machine.nodes[0].side_caches.is_empty());
    let cache = |level, size, line| SideCache { level, size: Bytes(size), line };
    let expected = [cache(2, 1 << 20, None), cache(1, 8 << 20, Some(Bytes(64)))];
    assert_eq!(machine.nodes[1].side_caches, expected);
}

#[test]
fn a_node_online_with_neither_memory_nor_cpus_is_left_out_with_its_distances() {
    let empty = "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n";
    let tree = Tree::bare()
        .with(&format!("{NODE}/online"), "0-2")
        .with_node(0, "0-1", "10 77 21")
        .with_node(1, "", "77 10 77")
        .with_node(2, "2-3", "22 77 10")
        .with(&format!("{NODE}/node1/meminfo"), empty);
    let machine = tree.discover_all();
    assert_eq!(nodes(&machine), ["0: 0-1", "2: 2-3"]);
    assert_eq!(machine.distances, [[10, 21], [22, 10]]);
}

#[test]
fn distances_that_differ_there_and_back_are_kept() {
    let tree = two_by_two().with(&format!("{NODE}/node1/distance"), "31 10\n");
    assert_eq!(tree.discover_all().distances, [[10, 21], [31, 10]]);
}

#[test]
fn one_node_without_distances_makes_all_of_them_assumed() {
    let machine = two_by_two().without(&format!("{NODE}/node1/distance")).discover_all();
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
    assert_eq!(machine.distances_source, Source::Assumed);
}

#[test]
fn a_node_over_two_packages_belongs_to_none() {
    let tree = two_by_two().with(&format!("{CPU}/cpu1/topology/physical_package_id"), "1\n");
    let machine = tree.discover_all();
    assert_eq!(machine.nodes[0].package, None);
    assert_eq!(machine.nodes[1].package, Some(PackageId(0)));
}

#[test]
fn a_package_that_firmware_does_not_number_is_package_0() {
    let tree = Tree::bare().with(&format!("{CPU}/cpu2/topology/physical_package_id"), "-1\n");
    assert_eq!(tree.discover_all().packages[0].cpus, set("0-3"));
}

#[test]
fn packages_without_unique_numbers_are_distinguished_by_their_cpus() {
    let packages = |ids: [&str; 4], siblings: [&str; 4]| -> Vec<String> {
        let tree =
            (0..4).zip(ids).zip(siblings).fold(Tree::bare(), |tree, ((cpu, id), siblings)| {
                let topology = format!("{CPU}/cpu{cpu}/topology");
                tree.with(&format!("{topology}/physical_package_id"), id)
                    .with(&format!("{topology}/core_siblings"), siblings)
            });
        let packages = tree.discover_all().packages;
        packages.iter().map(|package| format!("{}: {}", package.id, package.cpus)).collect()
    };
    // As on POWER, s390 and IA-64.
    assert_eq!(packages(["-1"; 4], ["3", "3", "c", "c"]), ["0: 0-1", "1: 2-3"]);
    assert_eq!(packages(["0", "0", "1", "1"], ["1", "2", "c", "c"]), ["0: 0", "1: 2-3", "2: 1"]);
    // Sets that contradict each other decide nothing.
    assert_eq!(packages(["0", "0", "1", "1"], ["3", "7", "c", "c"]), ["0: 0-1", "1: 2-3"]);
    assert_eq!(packages(["0", "0", "1", "1"], ["0", "3", "c", "c"]), ["0: 0-1", "1: 2-3"]);
}

#[test]
fn a_tree_copied_without_its_status_has_its_cpuset() {
    let copied = |mount: &str, file: &str| {
        let directory = mount.split(' ').nth(1).unwrap().trim_start_matches('/');
        let tree = two_by_two()
            .with("proc/self/cpuset", "/job\n")
            .with("proc/mounts", format!("/dev/sda1 / ext4 rw 0 0\n{mount} 0 0\n"))
            .with(&format!("{directory}/job/{}", file.replace('#', "cpus")), "1-2\n")
            .with(&format!("{directory}/job/{}", file.replace('#', "mems")), "0\n");
        let machine = tree.discover().unwrap();
        (nodes(&machine), machine.hidden.nodes.to_string())
    };
    let expected = (vec!["0: 1".to_owned(), "1: 2".to_owned()], "1".to_owned());
    assert_eq!(copied("none /dev/cpuset cpuset rw", "#"), expected);
    assert_eq!(copied("none /dev/cpuset cgroup rw,cpuset,noprefix", "#"), expected);
    assert_eq!(copied("cgroup /cg/cpuset cgroup rw,cpuset", "cpuset.#"), expected);
    assert_eq!(copied("cgroup2 /sys/fs/cgroup cgroup2 rw", "cpuset.#.effective"), expected);
    assert_eq!(two_by_two().discover().unwrap().cpus.len(), 4);
}

#[test]
fn distances_to_all_possible_nodes_are_those_to_the_nodes_online() {
    let machine = two_by_two()
        .with(&format!("{NODE}/possible"), "0-2")
        .with(&format!("{NODE}/node0/distance"), "10 21 99")
        .with(&format!("{NODE}/node1/distance"), "22 10 99")
        .discover_all();
    assert_eq!(machine.distances, [[10, 21], [22, 10]]);
}

#[test]
fn a_package_has_the_model_of_its_own_cpus() {
    let model = |cpu: u32, name: &str| format!("processor\t: {cpu}\nmodel name\t: {name}\n\n");
    let cpuinfo = [model(0, "Old 1"), model(2, "New 2"), "processor: x\nmodel name: none".into()];
    let package = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/physical_package_id");
    let tree = two_by_two().with("proc/cpuinfo", cpuinfo.concat());
    let machine = tree.with(&package(2), "1").with(&package(3), "1").discover_all();
    let models: Vec<_> = machine.packages.iter().map(|package| package.model.as_deref()).collect();
    assert_eq!(models, [Some("Old 1"), Some("New 2")]);
}

#[test]
fn transparent_huge_pages_that_are_off_are_none() {
    let enabled = "sys/kernel/mm/transparent_hugepage/enabled";
    let tree = || Tree::from_machine(&machines::one_node());
    let size = |tree: Tree| tree.discover().unwrap().huge_page_size;
    assert_eq!(size(tree()), Some(Bytes(2 << 20)));
    assert_eq!(size(tree().with(enabled, "always madvise [never]\n")), None);
}

#[test]
fn cache_lists_that_contradict_each_other_still_give_every_cpu_one_domain() {
    let tree = Tree::bare()
        .with_cache("0", 3, 3, "0-3")
        .with_cache("1", 3, 3, "1-2")
        .with_cache("2", 3, 3, "0-3")
        .with_cache("3", 3, 3, "");
    let machine: Machine = tree.discover_all();
    assert_eq!(domains(&machine), ["0,2", "1", "3"]);
}
