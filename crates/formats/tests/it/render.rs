use std::time::{Duration, UNIX_EPOCH};

use atoll_formats::render;
use atoll_testkit::machines;
use atoll_topology::{
    Bytes, CpuTimeLimit, Fact, Knowledge, Limits, Link, LinkId, Machine, MemoryLimit, NodeId,
    Quantity, Source, Subject,
};
use insta::assert_snapshot;

use atoll_testkit::tree::Tree;

#[test]
fn one_node_lists_its_cores() {
    assert_snapshot!(render::tree(&machines::one_node()));
}

#[test]
fn four_nodes_show_their_distances() {
    assert_snapshot!(render::tree(&machines::four_nodes()));
}

#[test]
fn eight_uneven_nodes_show_what_each_lacks() {
    assert_snapshot!(render::tree(&machines::eight_uneven_nodes()));
}

#[test]
fn sub_numa_clusters_hang_below_their_packages() {
    assert_snapshot!(render::tree(&machines::sub_numa_clusters()));
}

#[test]
fn what_a_synthetic_machine_leaves_out_is_assumed() {
    assert_snapshot!(render::tree(&Machine::synthetic("pack:2 core:8 pu:2").unwrap()));
}

#[test]
fn many_identical_cores_take_one_line_for_each_domain() {
    let text = "pack:2 node:1(memory=384GiB) l3:12(size=32MiB) core:8 pu:2";
    assert_snapshot!(render::tree(&Machine::synthetic(text).unwrap()));
}

#[test]
fn what_is_hidden_or_limited_is_shown_with_the_reason() {
    let tree = Tree::from_machine(&machines::two_nodes());
    let mut machine = tree.discover_only("0-3,8,10,12,14", "0").unwrap();
    machine.limits = Limits {
        memory: Some(MemoryLimit {
            bytes: Bytes(2 << 30),
            file: "/sys/fs/cgroup/app/memory.max".to_owned(),
        }),
        cpu_time: Some(CpuTimeLimit { cpus: 1.5, file: "/sys/fs/cgroup/app/cpu.max".to_owned() }),
    };
    assert_snapshot!(render::tree(&machine));
}

#[test]
fn links_and_figures_follow_the_distances_with_their_source_and_age() {
    let (a, b) = (NodeId(0), NodeId(1));
    let links = vec![Link { id: LinkId(0), a, b, kind: "UPI".to_owned() }];
    let machine = Machine { links, links_source: Source::Declared, ..machines::two_nodes() };
    let mut knowledge = Knowledge::from_machine(machine);
    let mut fact = |subject, quantity, value, source| {
        knowledge.facts.push(Fact::new(subject, quantity, value, source, "a program"));
        knowledge.facts.last_mut().unwrap().at = Some(UNIX_EPOCH + Duration::from_secs(86_400));
    };
    fact(Subject::Path { from: a, to: b }, Quantity::Latency, 142.4, Source::Measured);
    fact(Subject::Path { from: b, to: b }, Quantity::Latency, 81.25, Source::Measured);
    fact(Subject::Path { from: b, to: b }, Quantity::Latency, 1.0, Source::Assumed);
    fact(Subject::Link(LinkId(0)), Quantity::ReadBandwidth, 20.8, Source::Declared);
    let with_facts = render::tree_with_facts(&knowledge);
    let tree = render::tree(&knowledge.machine);
    assert_snapshot!(with_facts.strip_prefix(tree.as_str()).unwrap());
}

#[test]
fn json_has_every_key_with_bytes_as_numbers() {
    let text = serde_json::to_string_pretty(&render::json(&machines::one_node())).unwrap();
    assert_snapshot!(text);
}

#[test]
fn json_says_null_where_nothing_is_known() {
    let json = render::json(&Machine::synthetic("pack:2 core:1").unwrap());
    assert!(json["nodes"][0]["package"].is_null());
    assert!(json["domains"][0]["cache_bytes"].is_null());
    assert!(json["packages"][0]["model"].is_null());
    assert_eq!(json["sources"]["caches"], "assumed");
    assert_eq!(json["memory_bytes"], 1u64 << 30);
}

#[test]
fn trees_fit_a_terminal() {
    let wide = Machine::synthetic("node:32(memory=999GiB) l3:2(size=512MiB) core:9 pu:2").unwrap();
    let many = Machine::synthetic("node:1024 core:2").unwrap();
    let alternating = alternating_numbers();
    for machine in machines::all().iter().chain([&wide, &many, &alternating]) {
        for line in render::tree(machine).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// Two nodes whose cpus alternate, as some firmware numbers them.
fn alternating_numbers() -> Machine {
    let list = |first: u32| (first..128).step_by(2).map(|cpu| cpu.to_string()).collect::<Vec<_>>();
    Tree::bare()
        .with("sys/devices/system/cpu/online", "0-127")
        .with("sys/devices/system/node/online", "0-1")
        .with_node(0, &list(0).join(","), "10 21")
        .with_node(1, &list(1).join(","), "21 10")
        .discover_all()
}

#[test]
fn a_long_list_of_cpus_is_cut_in_the_middle() {
    let tree = render::tree(&alternating_numbers());
    assert!(tree.contains("cpus 0,2,4,6,8,10,12,14,…,126"), "{tree}");
}
