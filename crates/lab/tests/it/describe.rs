//! Machines as guests: for the machines that ship, those of testkit and random ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use atoll_lab::{DescribeError, Guest, GuestShape};
use atoll_simulation::{Counting, Setup};
use atoll_testkit::machines;
use atoll_topology::{
    Bytes, Knowledge, Machine, MachineBuilder, NodeId, NodeShape, Numbering, PackageId,
};
use proptest::prelude::*;

fn shipped() -> impl Iterator<Item = Knowledge> {
    atoll_formats::shipped().iter().map(|(name, _)| atoll_formats::open(name).unwrap())
}

fn all() -> impl Iterator<Item = Knowledge> {
    shipped().chain(machines::all().into_iter().map(Knowledge::from_machine))
}

/// The values of a flag.
fn values(guest: &Guest, flag: &str) -> Vec<String> {
    let words: Vec<String> =
        guest.qemu_arguments().into_iter().map(|word| word.into_string().unwrap()).collect();
    words.chunks(2).filter(|pair| pair[0] == flag).map(|pair| pair[1].clone()).collect()
}

/// `a=1,b=2` after a first word.
fn fields(value: &str) -> BTreeMap<&str, &str> {
    value.split(',').filter_map(|field| field.split_once('=')).collect()
}

fn numa<'a>(values: &'a [String], kind: &str) -> Vec<BTreeMap<&'a str, &'a str>> {
    let is_kind = |value: &&String| value.split(',').next() == Some(kind);
    values.iter().filter(is_kind).map(|value| fields(value)).collect()
}

/// What holds for every guest.
fn check(known: &Knowledge, guest: &Guest) {
    let (declared, cut) = (&known.machine, &guest.knowledge().machine);
    check_structure(cut);
    assert_eq!(cut.nodes.len(), declared.nodes.len(), "{}", cut.name);
    assert_eq!(cut.nodes_with_cpus().count(), declared.nodes_with_cpus().count());
    assert_eq!(cut.nodes_with_memory().count(), declared.nodes_with_memory().count());
    assert!(cut.cpus.len() <= declared.cpus.len());
    check_arguments(guest);
    check_setup(guest, &guest.setup(Counting::User, PathBuf::from("/report")));
}

/// The cut machine is whole: numbers without gaps, every list about the same cpus.
fn check_structure(cut: &Machine) {
    for (index, node) in cut.nodes.iter().enumerate() {
        assert_eq!(node.id.index(), index, "{}", cut.name);
    }
    let with_cpus: Vec<bool> = cut.nodes.iter().map(|node| !node.cpus.is_empty()).collect();
    assert!(with_cpus.is_sorted_by(|a, b| a >= b), "Linux numbers nodes with cpus first");
    for (index, cpu) in cut.cpus.iter().enumerate() {
        assert_eq!(cpu.id.index(), index);
        let holders = cut.nodes.iter().filter(|node| node.cpus.contains(cpu.id));
        assert_eq!(holders.map(|node| node.id).collect::<Vec<_>>(), [cpu.node]);
        assert!(cut.domains[cpu.domain.index()].cpus.contains(cpu.id));
        assert_eq!(cut.domains[cpu.domain.index()].node, cpu.node);
        assert!(cut.cores[cpu.core.index()].cpus.contains(cpu.id));
        assert_eq!(cut.cores[cpu.core.index()].domain, cpu.domain);
        assert!(cut.packages[cpu.package.index()].cpus.contains(cpu.id));
    }
    assert!(cut.cpus.is_sorted_by_key(|cpu| cpu.node), "Linux numbers nodes by their first cpus");
    for link in &cut.links {
        assert!(link.a < link.b && cut.node(link.b).is_some());
    }
}

fn check_arguments(guest: &Guest) {
    let cut = &guest.knowledge().machine;
    let options = values(guest, "-numa");
    let seats = numa(&options, "cpu");
    let distinct: BTreeSet<String> = seats.iter().map(|seat| format!("{seat:?}")).collect();
    assert_eq!(distinct.len(), seats.len(), "every place is on one node");
    let smp = &values(guest, "-smp")[0];
    let smp = fields(smp);
    let number = |key: &str| smp[key].parse::<usize>().unwrap();
    assert_eq!(number("maxcpus"), seats.len());
    let product = ["sockets", "dies", "cores", "threads"].map(number).iter().product::<usize>();
    assert_eq!(product, seats.len());
    assert_eq!(number("cpus") + values(guest, "-device").len(), cut.cpus.len());
    let nodes = cut.nodes.len();
    let distances = numa(&options, "dist");
    assert_eq!(distances.len(), nodes * (nodes - 1), "all pairs, in both directions");
    for distance in distances {
        assert!((11..=254).contains(&distance["val"].parse::<u32>().unwrap()));
    }
    let megabytes = |text: &str| text.trim_end_matches('M').parse::<u64>().unwrap();
    let memories: u64 =
        values(guest, "-object").iter().map(|value| megabytes(fields(value)["size"])).sum();
    assert_eq!(memories, megabytes(&values(guest, "-m")[0]));
    assert_eq!(memories << 20, cut.memory().0);
}

fn check_setup(guest: &Guest, setup: &Setup) {
    let cut = &guest.knowledge().machine;
    setup.check().unwrap_or_else(|error| panic!("{}: {error}", cut.name));
    let taken = setup.cpus.iter().filter(|seat| seat.core.index() < cut.cores.len());
    for (cpu, seat) in cut.cpus.iter().zip(taken) {
        let of_cpu = (cpu.node.index(), cpu.domain, cpu.core);
        assert_eq!((seat.node, seat.domain, seat.core), of_cpu, "in the order of the numbers");
    }
    for (from, row) in setup.routes.iter().enumerate() {
        for (to, route) in row.iter().enumerate() {
            let mut here = NodeId(from as u32);
            for crossing in route {
                let link = &cut.links[crossing.link.index()];
                let ends = if crossing.forward { (link.a, link.b) } else { (link.b, link.a) };
                assert_eq!(ends.0, here);
                here = ends.1;
            }
            assert!(route.is_empty() || here.index() == to);
        }
    }
}

#[test]
fn every_machine_is_a_guest_of_at_most_sixteen_cpus_or_one_a_node() {
    for known in all() {
        let guest = Guest::try_from_knowledge(&known, &GuestShape::default()).unwrap();
        check(&known, &guest);
        let cut = &guest.knowledge().machine;
        assert!(cut.cpus.len() <= 16.max(cut.nodes.len()), "{}", cut.name);
        assert!(cut.memory().0 <= 8 << 30, "{}", cut.name);
    }
}

#[test]
fn a_guest_is_as_large_as_asked_for_and_says_what_was_cut() {
    let known = atoll_formats::open("symas-8").unwrap();
    let memory_per_node = Some(Bytes(1 << 30));
    let shape = GuestShape { cpus_per_node: Some(3), memory_per_node, ..GuestShape::default() };
    let guest = Guest::try_from_knowledge(&known, &shape).unwrap();
    let cut = &guest.knowledge().machine;
    assert_eq!(cut.cpus.len(), 24);
    assert_eq!(cut.memory(), Bytes(8 << 30));
    assert_eq!(guest.notes()[0], "3 of 8 cpus a node");
    assert_eq!(guest.notes()[1], "1.0 GiB of 64.0 GiB memory a node");
    let whole = GuestShape { cpus_per_node: Some(100), ..GuestShape::default() };
    assert_eq!(
        Guest::try_from_knowledge(&known, &whole).unwrap().knowledge().machine.cpus.len(),
        64
    );
}

#[test]
fn whole_cores_stay_and_threads_can_be_left_out() {
    let known = atoll_formats::open("westmere-ex-4").unwrap();
    let cores = |shape: &GuestShape| {
        let guest = Guest::try_from_knowledge(&known, shape).unwrap();
        let machine = &guest.knowledge().machine;
        (machine.cores.len(), machine.cpus.len())
    };
    let four = GuestShape { cpus_per_node: Some(4), ..GuestShape::default() };
    assert_eq!(cores(&four), (8, 16));
    assert_eq!(cores(&GuestShape { threads_per_core: Some(1), ..four.clone() }), (16, 16));
    assert_eq!(cores(&GuestShape { cpus_per_node: Some(1), ..four }), (4, 4));
}

#[test]
fn cut_cores_come_from_every_domain_in_turn() {
    let builder = MachineBuilder::new("wide");
    let node = NodeShape::with_cpus(NodeId(0), 4, 8, 1).memory(Bytes(1 << 30));
    let known = Knowledge::from_machine(builder.node(node).build().unwrap());
    let shape = GuestShape { cpus_per_node: Some(4), ..GuestShape::default() };
    let guest = Guest::try_from_knowledge(&known, &shape).unwrap();
    assert_eq!(guest.knowledge().machine.domains.len(), 4);
    assert_eq!(fields(&values(&guest, "-smp")[0])["dies"], "4");
}

#[test]
fn an_uneven_machine_keeps_its_shape_with_holes() {
    let known = Knowledge::from_machine(machines::eight_uneven_nodes());
    let guest = Guest::try_from_knowledge(&known, &GuestShape::default()).unwrap();
    let cut = &guest.knowledge().machine;
    assert_eq!(cut.packages.len(), known.machine.packages.len());
    assert!(!values(&guest, "-device").is_empty());
    // Node 5 of the declared machine has memory only, so the kernel numbers it last.
    assert!(guest.notes().iter().any(|note| note.contains("5 is 7")), "{:?}", guest.notes());
    assert!(cut.nodes[7].cpus.is_empty());
    // Distances go with their nodes: from declared node 8 to declared node 0 and back.
    assert_eq!((cut.distances[6][0], cut.distances[0][6]), (40, 41));
}

#[test]
fn divided_caches_have_fewer_sets_and_as_many_ways() {
    let known = atoll_formats::open("westmere-ex-4").unwrap();
    let setup = |cache_divisor| {
        let shape = GuestShape { cache_divisor, ..GuestShape::default() };
        Guest::try_from_knowledge(&known, &shape).unwrap().setup(Counting::Region, PathBuf::new())
    };
    let (whole, small) = (setup(1), setup(16));
    assert_eq!((whole.l1.sets, whole.l1.ways), (64, 8));
    let bytes =
        |setup: &Setup| u64::from(setup.llc[0].sets) * u64::from(setup.llc[0].ways) * setup.line;
    assert_eq!(bytes(&whole), 24 << 20);
    assert_eq!(bytes(&whole), 16 * bytes(&small));
    assert_eq!((small.l1.sets, small.l1.ways, small.llc[0].ways), (4, 8, whole.llc[0].ways));
    assert!(setup(65_536).l1.sets == 1 && setup(65_536).check().is_ok());
}

#[test]
fn latencies_of_all_paths_become_a_firmware_table() {
    let with = |name: &str| {
        let guest =
            Guest::try_from_knowledge(&atoll_formats::open(name).unwrap(), &GuestShape::default())
                .unwrap();
        (values(&guest, "-machine")[0].contains("hmat=on"), values(&guest, "-numa"))
    };
    let (is_on, options) = with("cxl-2");
    assert!(is_on);
    let table = numa(&options, "hmat-lb");
    // Two nodes with cpus, three with memory.
    assert_eq!(table.len(), 6);
    let is_path =
        |entry: &&BTreeMap<&str, &str>| entry["initiator"] == "1" && entry["target"] == "2";
    assert_eq!(table.iter().find(is_path).unwrap()["latency"], "290");
    let (is_on, options) = with("symas-8");
    assert!(!is_on && numa(&options, "hmat-lb").is_empty());
}

#[test]
fn machines_that_cannot_be_emulated_are_refused_with_advice() {
    let mut without_memory = machines::one_node();
    without_memory.nodes[0].memory = Bytes(0);
    let refused = |machine: Machine, shape: &GuestShape| {
        Guest::try_from_knowledge(&Knowledge::from_machine(machine), shape).unwrap_err()
    };
    let error = refused(without_memory, &GuestShape::default());
    assert!(matches!(error, DescribeError::Without { what: "memory", .. }));
    let many = (0..200).fold(MachineBuilder::new("many"), |builder, id| {
        builder.node(NodeShape::with_cpus(NodeId(id), 1, 1, 1).memory(Bytes(1 << 30)))
    });
    let error = refused(many.build().unwrap(), &GuestShape::default());
    assert!(matches!(error, DescribeError::TooMany { what: "nodes", .. }));
    let wide = MachineBuilder::new("wide")
        .node(NodeShape::with_cpus(NodeId(0), 1, 300, 1).memory(Bytes(1 << 30)));
    let all = GuestShape { cpus_per_node: Some(300), ..GuestShape::default() };
    assert!(refused(wide.build().unwrap(), &all).to_string().contains("--cpus"));
}

/// Nodes: package, domains, cores, threads, GiB; none of the first three makes it memory only.
fn random_machine() -> impl Strategy<Value = Machine> {
    let node = (0u32..4, 0u32..4, 1u32..5, 1u32..3, 0u64..100);
    let numbering = prop_oneof![Just(Numbering::CoreByCore), Just(Numbering::ThreadsLast)];
    (prop::collection::vec(node, 1..10), numbering, 1u32..4).prop_filter_map(
        "a machine has cpus and memory",
        |(nodes, numbering, step)| {
            let mut builder = MachineBuilder::new("random").numbering(numbering);
            for (index, &(package, domains, cores, threads, gib)) in nodes.iter().enumerate() {
                let id = NodeId(index as u32 * step);
                let node = NodeShape::with_cpus(id, domains, cores, threads);
                builder = builder.node(node.package(PackageId(package)).memory(Bytes(gib << 30)));
            }
            let machine = builder.build().ok()?;
            machine.nodes_with_memory().next()?;
            Some(machine)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_machine_is_a_guest_or_is_refused(
        machine in random_machine(),
        cpus_per_node in prop::option::of(1u32..40),
        threads_per_core in prop::option::of(1u32..3),
        memory_per_node in prop::option::of((1u64..1 << 34).prop_map(Bytes)),
        cache_divisor in 0u32..100,
    ) {
        let shape = GuestShape { cpus_per_node, threads_per_core, memory_per_node, cache_divisor };
        let known = Knowledge::from_machine(machine);
        if let Ok(guest) = Guest::try_from_knowledge(&known, &shape) {
            check(&known, &guest);
        }
    }
}
