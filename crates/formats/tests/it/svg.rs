use atoll_formats::render;
use atoll_testkit::{machines, svg_texts as texts};
use atoll_topology::{
    Bytes, Cache, CacheKind, CpuKind, CpuSet, Fact, Knowledge, Link, LinkId, Machine,
    MachineBuilder, NodeId, NodeShape, Quantity, Source, Subject,
};
use proptest::prelude::*;

fn picture(machine: Machine) -> Vec<String> {
    texts(&render::svg(&Knowledge::from_machine(machine)))
}

fn path(from: u32, to: u32, quantity: Quantity, value: f64) -> Fact {
    let subject = Subject::Path { from: NodeId(from), to: NodeId(to) };
    Fact::new(subject, quantity, value, Source::Measured, "a stopwatch")
}

fn linked(machine: Machine, pairs: &[(u32, u32)]) -> Knowledge {
    let link = |(id, &(a, b)): (u32, &(u32, u32))| Link {
        id: LinkId(id),
        a: NodeId(a),
        b: NodeId(b),
        kind: "QPI".to_owned(),
    };
    let links = (0..).zip(pairs).map(link).collect();
    Knowledge::from_machine(Machine { links, links_source: Source::Declared, ..machine })
}

#[test]
fn every_package_node_domain_and_cpu_has_its_name_in_the_picture() {
    for machine in machines::all() {
        let texts = picture(machine.clone());
        let has = |text: String| assert!(texts.contains(&text), "{text} of {}", machine.name);
        machine.packages.iter().for_each(|package| has(format!("package {}", package.id)));
        machine.nodes.iter().for_each(|node| has(format!("node {}", node.id)));
        machine.domains.iter().for_each(|domain| has(format!("domain {}", domain.id)));
        machine.cpus.iter().for_each(|cpu| has(cpu.id.to_string()));
    }
}

#[test]
fn distances_stand_in_the_picture_of_several_nodes_only() {
    let title = "Distances".to_owned();
    assert!(!picture(machines::one_node()).contains(&title));
    let texts = picture(machines::four_nodes());
    assert!(texts.contains(&title));
    assert_eq!(texts.iter().filter(|text| *text == "31").count(), 4 + 1, "cells and legend");
}

#[test]
fn figures_stand_in_the_picture_with_their_unit_and_source() {
    let mut knowledge = Knowledge::from_machine(machines::two_nodes());
    assert!(!render::svg(&knowledge).contains("Latency"));
    knowledge.facts.push(path(0, 1, Quantity::Latency, 142.4));
    knowledge.facts.push(path(1, 0, Quantity::ReadBandwidth, 31.25));
    let texts = texts(&render::svg(&knowledge));
    for text in ["Latency, ns", "142", "Read bandwidth, GB/s", "31.2"] {
        assert!(texts.contains(&text.to_owned()), "{text} in {texts:?}");
    }
    assert!(texts.concat().contains("latency measured (a stopwatch)"), "{texts:?}");
}

#[test]
fn links_of_one_kind_share_a_line_of_the_legend_with_their_figures() {
    let mut knowledge = linked(machines::four_nodes(), &[(0, 1), (1, 3), (2, 3), (0, 2)]);
    for id in 0..3 {
        let subject = Subject::Link(LinkId(id));
        let fact = |quantity, value| Fact::new(subject, quantity, value, Source::Declared, "");
        knowledge.facts.push(fact(Quantity::ReadBandwidth, 12.8));
    }
    let texts = texts(&render::svg(&knowledge));
    assert!(texts.contains(&"3 × QPI, 12.8 GB/s".to_owned()), "{texts:?}");
    assert!(texts.contains(&"1 × QPI".to_owned()), "{texts:?}");
}

#[test]
fn nodes_of_a_square_lie_around_the_ring_as_they_are_linked() {
    let square = linked(machines::four_nodes(), &[(0, 1), (1, 3), (2, 3), (0, 2)]);
    let svg = render::svg(&square);
    let lines: Vec<&str> = svg.lines().filter(|line| line.starts_with("<line")).collect();
    let number = |line: &str, key: &str| -> f64 {
        let rest = line.split_once(&format!("{key}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let is_edge = |line: &&&str| {
        let same = |a, b| (number(line, a) - number(line, b)).abs() < 0.2;
        same("x1", "x2") || same("y1", "y2")
    };
    // One line of the legend, four edges, no diagonal.
    assert_eq!(lines.iter().filter(is_edge).count(), 5, "{lines:?}");
    assert_eq!(lines.len(), 5);
}

#[test]
fn names_are_text_whatever_they_contain() {
    let name = "<script>alert('&amp;')</script>\u{1b}\u{0}\u{fffe}]]>";
    let builder = MachineBuilder::new(name).model("\"><image href='x'/>");
    let machine = builder.node(NodeShape::with_cpus(NodeId(0), 1, 2, 1)).build().unwrap();
    let mut knowledge = linked(machine, &[(0, 0)]);
    knowledge.machine.links[0].kind = "</svg><!--".to_owned();
    knowledge
        .facts
        .push(Fact { origin: "<?xml?>".to_owned(), ..path(0, 0, Quantity::Latency, 1.0) });
    let svg = render::svg(&knowledge);
    let texts = texts(&svg);
    assert!(texts[0].starts_with("<script>alert('&amp;')</script>"), "{}", texts[0]);
    assert!(!svg.contains("<script") && !svg.contains("<image") && !svg.contains("<!--"));
    assert!(!svg.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn the_largest_machines_are_small_pictures() {
    for text in ["node:4096 core:2", "node:96 l3:2 core:8 pu:2", "core:65535", "l3:8192 core:4"] {
        let machine = Machine::synthetic(text).unwrap();
        let mut knowledge = Knowledge::from_machine(machine);
        for node in &knowledge.machine.nodes {
            let latency = f64::from(node.id.0 * 37 % 101);
            knowledge.facts.push(path(0, node.id.0, Quantity::Latency, latency));
        }
        let svg = render::svg(&knowledge);
        assert!(svg.len() < 1_000_000, "{text}: {} bytes", svg.len());
        assert!(texts(&svg).len() > 3, "{text}");
    }
}

#[test]
fn figures_of_nodes_themselves_are_one_row() {
    let mut knowledge = Knowledge::from_machine(machines::four_nodes());
    for node in 0..4 {
        knowledge.facts.push(path(node, node, Quantity::Latency, 80.0 + f64::from(node)));
    }
    let row = texts(&render::svg(&knowledge));
    assert_eq!(row.iter().filter(|text| *text == "own").count(), 1);
    assert!(render::figures(&knowledge).contains("   own   80   81   82   83\n"));
    assert_eq!(render::figures(&knowledge).lines().count(), 4, "{}", render::figures(&knowledge));
    knowledge.facts.push(path(0, 3, Quantity::Latency, 140.0));
    assert!(!texts(&render::svg(&knowledge)).contains(&"own".to_owned()));
    assert!(!render::figures(&knowledge).contains("own"));
}

#[test]
fn rows_and_columns_of_many_nodes_are_named() {
    let names = |nodes: u32| -> Vec<u32> {
        let shape = |id| NodeShape::with_cpus(NodeId(id + 100), 1, 1, 1).memory(Bytes(1 << 30));
        let builder = (0..nodes).fold(MachineBuilder::new("many"), |all, id| all.node(shape(id)));
        let texts = picture(builder.build().unwrap());
        let from = texts.iter().position(|text| text == "Distances").unwrap();
        let numbers = texts[from..].iter().filter_map(|text| text.parse::<u32>().ok());
        numbers.filter(|number| *number >= 100).collect()
    };
    let all: Vec<u32> = (100..120).collect();
    assert_eq!(names(20), [all.clone(), all].concat());
    let eighth: Vec<u32> = (100..164).step_by(8).collect();
    assert_eq!(names(64), [eighth.clone(), eighth].concat());
}

#[test]
fn dies_kinds_side_caches_and_nearest_cpus_are_in_the_pictures() {
    let mut machine = Machine::synthetic(
        "pack:2 [numa(memory=1GiB)] [numa(memory=8GiB memorysidecachesize=2GiB)] die:2 l3:1 core:2",
    )
    .unwrap();
    let kind = |name: &str, cpus: &str| CpuKind {
        name: name.to_owned(),
        cpus: CpuSet::parse(cpus).unwrap(),
    };
    machine.cpu_kinds = vec![kind("P cores", "0-1"), kind("E cores", "2-7")];
    let known = Knowledge::from_machine(machine);
    let svg = texts(&render::svg(&known)).join("\n");
    let boxes = render::ascii(&known);
    for text in
        ["2 dies", "memory 8 GiB, cache of 2 GiB", "nearest to cpus 4-7", "2 cores; P cores"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
        assert!(boxes.contains(text), "{text}: {boxes}");
    }
    let tree = render::tree(&known.machine);
    for text in ["package 1, die 3: cpus 6-7", "P cores: cpus 0-1", "behind a cache of 2.0 GiB"] {
        assert!(tree.contains(text), "{text}: {tree}");
    }
}

#[test]
fn many_nodes_are_summed_up_in_the_tree_as_in_the_picture() {
    let machine = Machine::synthetic("node:64(memory=2GiB) l3:2 core:4 pu:2").unwrap();
    let line = "nodes 0-63: 64 × 2 GiB; 2 domains, 8 cores, 16 cpus\n";
    assert!(render::tree(&machine).contains(line), "{}", render::tree(&machine));
    assert!(
        picture(machine.clone()).contains(&"64 × 2 GiB; 2 domains, 8 cores, 16 cpus".to_owned())
    );
    let few = Machine::synthetic("node:32(memory=2GiB) core:4").unwrap();
    assert!(render::tree(&few).contains("node 31: 2.0 GiB"));
}

#[test]
fn many_links_are_few_lines() {
    let pairs: Vec<(u32, u32)> = (0..20_000).map(|i| (i % 4, (i + 1) % 4)).collect();
    let mut knowledge = linked(machines::four_nodes(), &pairs);
    for link in &mut knowledge.machine.links {
        link.kind = format!("kind {}", link.id);
    }
    let svg = render::svg(&knowledge);
    assert!(svg.len() < 100_000, "{} bytes", svg.len());
    assert!(svg.contains("19992 kinds more"));
}

fn shapes() -> impl Strategy<Value = Machine> {
    let node = (0u32..3, 1u32..5, 1u32..9, 0u64..1 << 42, 0u32..4);
    proptest::collection::vec(node, 1..40).prop_map(|nodes| {
        let mut builder = MachineBuilder::new("random")
            .node(NodeShape::with_cpus(NodeId(100), 1, 1, 1).memory(Bytes(1)));
        for ((domains, cores, threads, memory, package), id) in nodes.into_iter().zip(0..) {
            let node = NodeShape::with_cpus(NodeId(id), domains, cores, threads);
            let node = node.memory(Bytes(memory + 1)).package(package.into());
            builder = builder.node(node);
        }
        builder.build().unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_machine_is_well_formed_and_its_boxes_fit(machine in shapes()) {
        let text = render::ascii(&Knowledge::from_machine(machine.clone()));
        prop_assert!(text.lines().all(|line| line.chars().count() <= 100), "{}", text);
        let svg = render::svg(&Knowledge::from_machine(machine));
        texts(&svg);
        prop_assert!(svg.len() < 1_000_000);
    }

    #[test]
    fn odd_figures_draw_no_odd_coordinates(value in proptest::num::f64::ANY) {
        let mut knowledge = Knowledge::from_machine(machines::two_nodes());
        knowledge.facts.push(path(0, 1, Quantity::Latency, value));
        knowledge.facts.push(path(1, 0, Quantity::Latency, 100.0));
        let svg = render::svg(&knowledge);
        texts(&svg);
        prop_assert!(!svg.contains("=\"NaN") && !svg.contains("=\"inf"));
    }
}

#[test]
fn hidden_cpus_are_named_in_the_small_print() {
    let mut machine = machines::two_nodes();
    machine.hidden.cpus = CpuSet::parse("64-95").unwrap();
    assert!(picture(machine).contains(&"hidden: cpus 64-95".to_owned()));
}

#[test]
fn a_text_that_its_box_is_made_for_is_not_cut() {
    for name in ["sapphire-rapids-2-snc4", "cxl-2", "epyc-2-nps4", "nehalem-ex-4"] {
        let knowledge = atoll_formats::open(name).unwrap();
        let texts = texts(&render::svg(&knowledge));
        assert!(texts.iter().any(|text| text.contains("cores; L1d")), "{name}: {texts:?}");
        assert!(!texts.iter().any(|text| text.contains('…')), "{name}: {texts:?}");
    }
}

#[test]
fn caches_of_instructions_are_left_out_before_a_line_is_cut() {
    let machine = MachineBuilder::new("mixed").node(NodeShape::with_cpus(NodeId(0), 1, 2, 1));
    let mut machine = machine.build().unwrap();
    let cache = |level, kind, cpu, kib: u64| Cache {
        level,
        kind,
        cpus: CpuSet::parse(cpu).unwrap(),
        size: Some(Bytes(kib << 10)),
        line: None,
        ways: None,
    };
    let kinds = [CacheKind::Data, CacheKind::Instruction];
    for (cpu, kib) in [("0", 32), ("1", 64)] {
        machine.caches.extend(kinds.map(|kind| cache(1, kind, cpu, kib)));
        machine.caches.push(cache(2, CacheKind::Unified, cpu, kib * 32));
    }
    let texts = picture(machine);
    let line = "2 cores; L1d 32 KiB to 64 KiB, L2 1 MiB to 2 MiB";
    assert!(texts.iter().any(|text| text == line), "{texts:?}");
}
