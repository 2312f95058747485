//! Trees written by hand, each after something that real kernels, firmware or containers do.

use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine, NodeId, PackageId, Source};

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
fn a_kernel_that_tells_only_which_cpus_are_online_gives_a_whole_machine() {
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
    let tree = Tree::of(&machines::two_nodes())
        .with(&format!("{CPU}/online"), "0-5,8-15")
        .with(&format!("{NODE}/node0/cpulist"), "0-5");
    let machine = tree.discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-5", "1: 8-15"]);
    assert!(machine.hidden.cpus.is_empty());
}

#[test]
fn cpus_outside_the_affinity_mask_are_hidden() {
    let machine = Tree::of(&machines::two_nodes()).discover_only("1-2,9", "0-1").unwrap();
    assert_eq!(nodes(&machine), ["0: 1-2", "1: 9"]);
    assert_eq!(cores(&machine), ["1", "2", "9"]);
    assert_eq!(machine.hidden.cpus, set("0,3-8,10-15"));
    assert!(machine.hidden.nodes.is_empty());
}

#[test]
fn the_process_s_status_bounds_the_machine() {
    let status = "Name:\tx\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n";
    let tree = Tree::of(&machines::two_nodes()).with("proc/self/status", status);
    let machine = tree.discover().unwrap();
    assert_eq!(nodes(&machine), ["0: 0-3"]);
    assert_eq!(machine.distances, [[10]]);
    assert_eq!(machine.hidden.nodes.to_string(), "1");
}

#[test]
fn a_status_without_the_lists_allows_everything() {
    let tree = Tree::of(&machines::two_nodes()).with("proc/self/status", "Name:\tx\n");
    assert_eq!(tree.discover().unwrap().cpus.len(), 16);
}

#[test]
fn cpus_whose_node_s_memory_is_not_allowed_stay_with_no_memory() {
    let machine = Tree::of(&machines::two_nodes()).discover_only("0-15", "0").unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7", "1: 8-15"]);
    assert_eq!(machine.nodes[1].memory, Bytes(0));
    assert_eq!(machine.nodes[1].memory_free, Bytes(0));
    assert_eq!(machine.hidden.nodes.to_string(), "1");
    assert_eq!(machine.nearest_with_memory(NodeId(1)).unwrap().id, NodeId(0));
}

#[test]
fn memory_whose_cpus_are_not_allowed_stays_with_no_cpus() {
    let machine = Tree::of(&machines::two_nodes()).discover_only("0-7", "0-1").unwrap();
    assert_eq!(nodes(&machine), ["0: 0-7", "1: "]);
    assert_eq!(machine.nodes[1].memory, Bytes(32 << 30));
    assert_eq!(machine.nodes[1].package, None);
}

#[test]
fn a_node_of_cpus_only_is_never_in_mems_allowed_and_yet_not_hidden() {
    let machine = Tree::of(&machines::eight_uneven_nodes()).discover_only("0-31", "0-5").unwrap();
    assert_eq!(machine.hidden.nodes.to_string(), "7-8");
    assert!(machine.node(NodeId(6)).is_some());
}

#[test]
fn memory_that_a_balloon_lends_to_the_host_counts_where_one_node_has_all_memory() {
    let one = Tree::bare().with(&format!("{NODE}/online"), "0").with_node(0, "0-3", "10");
    let machine = one.discover_all();
    assert_eq!(machine.nodes[0].memory, Bytes(4096 << 10));
    assert_eq!(machine.nodes[0].memory_free, Bytes(1024 << 10));
    let machine = two_by_two().discover_all();
    assert_eq!(machine.nodes[0].memory, Bytes(1024 << 10));
    assert_eq!(machine.nodes[0].memory_free, Bytes(512 << 10));
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
fn one_node_that_tells_no_distances_makes_all_of_them_assumed() {
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
    let tree = || Tree::of(&machines::one_node());
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
