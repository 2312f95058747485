use std::cmp::Ordering;
use std::collections::BTreeMap;

use atoll_testkit::machines;
use atoll_topology::{
    BestCores, Core, CostBasis, CpuId, CpuSet, Fact, Knowledge, Machine, MachineBuilder, NodeId,
    NodeShape, Numbering, Quantity, QuestionError, Source, Subject,
};
use proptest::prelude::*;

use atoll_testkit::tree::set;

fn all_cpus(machine: &Machine) -> CpuSet {
    machine.cpus.iter().map(|cpu| cpu.id).collect()
}

fn page(node: u32) -> [(NodeId, u64); 1] {
    [(NodeId(node), 1)]
}

fn cores(best: &BestCores) -> Vec<u32> {
    best.cores.iter().map(|core| core.0).collect()
}

fn latency(from: NodeId, to: NodeId, value: f64, source: Source) -> Fact {
    Fact::new(Subject::Path { from, to }, Quantity::Latency, value, source, "a test")
}

/// Latencies of every path, from a function.
fn latencies(machine: &Machine, source: Source, value: impl Fn(u32, u32) -> f64) -> Vec<Fact> {
    let pairs = machine
        .nodes_with_cpus()
        .flat_map(|from| machine.nodes_with_memory().map(move |to| (from.id, to.id)));
    pairs.map(|(from, to)| latency(from, to, value(from.0, to.0), source)).collect()
}

fn node_of(machine: &Machine, core: &Core) -> NodeId {
    machine.domains[core.domain.index()].node
}

/// The quality of a set of cores by the documented criteria 1 to 4; smaller is better.
fn quality(
    machine: &Machine,
    chosen: &[&Core],
    pages: &[(NodeId, u64)],
    free: &CpuSet,
) -> (usize, u64, Vec<std::cmp::Reverse<usize>>, usize) {
    let is_free = |core: &Core| core.cpus.is_subset(free);
    let shared = chosen.iter().filter(|core| !is_free(core)).count();
    let cost_of = |core: &Core, to| machine.distance(node_of(machine, core), to).unwrap();
    let cost =
        |core: &&&Core| pages.iter().map(|&(to, n)| n * u64::from(cost_of(core, to))).sum::<u64>();
    let costs = chosen.iter().map(|core| cost(&core)).sum();
    let mut by_domain: BTreeMap<_, (usize, bool)> = BTreeMap::new();
    for core in chosen {
        let entry = by_domain.entry(core.domain).or_default();
        entry.0 += 1;
        entry.1 |= is_free(core);
    }
    let mut counts: Vec<_> = by_domain.values().map(|&(n, _)| std::cmp::Reverse(n)).collect();
    counts.sort();
    let left_over = machine.cores.iter().filter(|core| {
        let taken_from = by_domain.get(&core.domain).is_some_and(|&(_, free)| free);
        taken_from && is_free(core) && !chosen.iter().any(|other| other.id == core.id)
    });
    (shared, costs, counts, left_over.count())
}

/// The best quality of all sets of so many cores.
fn best_quality(
    machine: &Machine,
    count: usize,
    pages: &[(NodeId, u64)],
    free: &CpuSet,
) -> Option<(usize, u64, Vec<std::cmp::Reverse<usize>>, usize)> {
    let usable: Vec<&Core> = machine
        .cores
        .iter()
        .filter(|core| core.cpus.iter().any(|cpu| free.contains(cpu)))
        .collect();
    let subsets = (0u32..1 << usable.len()).filter(|bits| bits.count_ones() as usize == count);
    let cores = |bits: u32| {
        let picked = usable.iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1);
        picked.map(|(_, core)| *core).collect::<Vec<_>>()
    };
    subsets.map(|bits| quality(machine, &cores(bits), pages, free)).min()
}

#[derive(Clone, Debug)]
struct Question {
    machine: Machine,
    pages: Vec<(NodeId, u64)>,
    free: CpuSet,
}

/// Machines of one to four nodes with at most a dozen cores, few distinct distances so that there are
/// ties, and a random part of their cpus free.
fn questions() -> impl Strategy<Value = Question> {
    let node = (1u32..3, 1u32..4, 1u32..3);
    let nodes = proptest::collection::vec(node, 1..5).prop_filter("few cores", |nodes| {
        nodes.iter().map(|(domains, cores, _)| domains * cores).sum::<u32>() <= 12
    });
    let distances = proptest::collection::vec(0u32..3, 16);
    let pages = proptest::collection::vec((0u32..4, 0u64..3), 0..4);
    let busy = proptest::collection::vec(0u32..3, 24);
    (nodes, distances, pages, busy, any::<bool>()).prop_map(
        |(nodes, distances, pages, busy, last)| {
            let count = nodes.len();
            let shape = |(&(domains, cores, threads), id): (&(u32, u32, u32), u32)| {
                NodeShape::with_cpus(NodeId(id), domains, cores, threads)
            };
            let builder = nodes
                .iter()
                .zip(0..)
                .map(shape)
                .fold(MachineBuilder::new("q"), MachineBuilder::node);
            let row = |a: usize| {
                (0..count)
                    .map(|b| if a == b { 10 } else { 10 + 5 * distances[a * 4 + b] })
                    .collect()
            };
            let numbering = if last { Numbering::ThreadsLast } else { Numbering::CoreByCore };
            let builder = builder.numbering(numbering).distances((0..count).map(row).collect());
            let machine = builder.build().unwrap();
            let pages =
                pages.into_iter().map(|(node, n)| (NodeId(node % count as u32), n)).collect();
            let is_free = |cpu: &CpuId| busy[cpu.index() % busy.len()] > 0;
            let free = all_cpus(&machine).iter().filter(is_free).collect();
            Question { machine, pages, free }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_best_cores_are_as_good_as_the_best_of_all_sets(question in questions()) {
        let Question { machine, pages, free } = question;
        let knowledge = Knowledge::from_machine(machine.clone());
        for count in 0..=machine.cores.len() {
            let answer = knowledge.best_cores(count, &pages, &free);
            let Some(best) = best_quality(&machine, count, &pages, &free) else {
                let refused = matches!(answer, Err(QuestionError::TooFewCores { .. }));
                prop_assert!(refused);
                continue;
            };
            let answer = answer.unwrap();
            let chosen: Vec<&Core> =
                answer.cores.iter().map(|id| &machine.cores[id.index()]).collect();
            prop_assert_eq!(chosen.len(), count);
            prop_assert_eq!(quality(&machine, &chosen, &pages, &free), best.clone());
            prop_assert_eq!(answer.cpus.len(), count);
            prop_assert!(answer.cpus.union(&answer.siblings).is_subset(&free));
            let accesses = count as u64 * pages.iter().map(|&(_, n)| n).sum::<u64>();
            let mean = if accesses == 0 { 0.0 } else { best.1 as f64 / accesses as f64 };
            prop_assert!((answer.cost - mean).abs() < 1e-9);
        }
    }

    #[test]
    fn the_nearest_node_is_nearer_than_every_other_that_has_the_cores(
        question in questions(),
        count in 0usize..4,
    ) {
        let Question { machine, pages, free } = question;
        let cost = |node: NodeId| -> u64 {
            pages.iter().map(|&(to, n)| n * u64::from(machine.distance(node, to).unwrap())).sum()
        };
        let cores_free = |node: NodeId| {
            let here = machine.cores.iter().filter(|core| node_of(&machine, core) == node);
            here.filter(|core| core.cpus.is_subset(&free)).count()
        };
        let ids = machine.nodes.iter().map(|node| node.id);
        let expected = ids.filter(|&id| cores_free(id) >= count).min_by_key(|&id| (cost(id), id));
        match (Knowledge::from_machine(machine.clone()).nearest(&pages, count, &free), expected) {
            (Ok(found), Some(node)) => {
                prop_assert_eq!((found.node, found.cores_free), (node, cores_free(node)));
            }
            (found, expected) => prop_assert!(found.is_err() && expected.is_none()),
        }
    }
}

#[test]
fn whole_domains_are_preferred_to_parts_of_several() {
    // Domains of two cores each: one domain taken whole, not two in part.
    let machine = machines::two_nodes();
    let knowledge = Knowledge::from_machine(machine.clone());
    let best = knowledge.best_cores(2, &page(0), &all_cpus(&machine)).unwrap();
    assert_eq!((cores(&best), best.cpus.to_string()), (vec![0, 1], "0,2".to_owned()));
    assert_eq!((best.siblings.to_string(), best.cost), ("1,3".to_owned(), 10.0));
    // The first domain has one core left: the second holds both threads.
    let best = knowledge.best_cores(2, &page(0), &set("2-15")).unwrap();
    assert_eq!(cores(&best), [2, 3]);
}

#[test]
fn a_core_shared_with_another_program_comes_after_every_free_core_even_a_remote_one() {
    let knowledge = Knowledge::from_machine(machines::two_nodes());
    // On node 0 only the second thread of core 0 is free; node 1 is free.
    let free = set("1,8-15");
    assert_eq!(cores(&knowledge.best_cores(4, &page(0), &free).unwrap()), [4, 5, 6, 7]);
    let best = knowledge.best_cores(5, &page(0), &free).unwrap();
    assert_eq!(
        (cores(&best), best.cpus.to_string()),
        (vec![0, 4, 5, 6, 7], "1,8,10,12,14".to_owned())
    );
    assert_eq!(best.cost, f64::from(10 + 4 * 21) / 5.0);
}

#[test]
fn equally_good_places_are_taken_by_the_smallest_numbers() {
    let machine = machines::four_nodes();
    let knowledge = Knowledge::from_machine(machine.clone());
    let pages = [(NodeId(1), 7), (NodeId(2), 7)];
    let best = knowledge.best_cores(3, &pages, &all_cpus(&machine)).unwrap();
    // Every node has the mean distance of either (10 + 31) / 2 or 21: nodes 1 and 2 are nearer.
    assert_eq!((cores(&best), best.cost), (vec![4, 5, 6], 20.5));
    let nearest = knowledge.nearest(&pages, 4, &all_cpus(&machine)).unwrap();
    assert_eq!((nearest.node, nearest.cost), (NodeId(1), 20.5));
}

#[test]
fn latencies_count_if_one_source_has_them_all() {
    let machine = machines::two_nodes();
    // By latency node 1 is nearer to the memory of node 0, whatever the distances say.
    let odd = |from: u32, _| if from == 1 { 70.0 } else { 90.0 };
    let mut facts = latencies(&machine, Source::Measured, odd);
    let free = all_cpus(&machine);
    let nearest = |facts: &[Fact]| {
        let knowledge = Knowledge { machine: machine.clone(), facts: facts.to_vec() };
        let found = knowledge.nearest(&page(0), 1, &free).unwrap();
        (found.node.0, found.cost, found.basis)
    };
    assert_eq!(nearest(&facts), (1, 70.0, CostBasis::Latency(Source::Measured)));
    let last = facts.pop().unwrap();
    let by_distance = CostBasis::Distance(Source::Synthetic);
    assert_eq!(nearest(&facts), (0, 10.0, by_distance));
    // The missing one from another source is not mixed in, but a whole set of that source counts.
    facts.push(Fact { source: Source::Declared, ..last });
    assert_eq!(nearest(&facts), (0, 10.0, by_distance));
    facts.extend(latencies(&machine, Source::Declared, odd));
    assert_eq!(nearest(&facts), (1, 70.0, CostBasis::Latency(Source::Declared)));
    assert_eq!(nearest(&latencies(&machine, Source::Assumed, odd)), (0, 10.0, by_distance));
}

#[test]
fn the_newest_of_repeated_latencies_counts() {
    let machine = machines::one_node();
    let now = std::time::SystemTime::now();
    let node = NodeId(0);
    let newest = Fact { at: Some(now), ..latency(node, node, 80.0, Source::Measured) };
    let facts = vec![newest, latency(node, node, 60.0, Source::Measured)];
    let free = all_cpus(&machine);
    let nearest = Knowledge { machine, facts }.nearest(&page(0), 1, &free).unwrap();
    assert_eq!(nearest.cost, 80.0);
}

#[test]
fn a_memory_only_node_is_served_by_the_nearest_cpus() {
    let machine = machines::eight_uneven_nodes();
    let knowledge = Knowledge::from_machine(machine.clone());
    let free = all_cpus(&machine);
    let nearest = |cores| knowledge.nearest(&page(5), cores, &free).map(|found| found.node.0);
    assert_eq!(nearest(4), Ok(0));
    assert_eq!(nearest(5), Ok(8));
    assert_eq!(nearest(6), Err(QuestionError::TooFewCores { asked: 6, free: 5 }));
}

#[test]
fn data_on_a_node_that_is_not_there_is_an_error_that_names_it() {
    let knowledge = Knowledge::from_machine(machines::sparse_nodes());
    let free = all_cpus(&knowledge.machine);
    let error = knowledge.best_cores(1, &page(3), &free).unwrap_err();
    assert_eq!(
        error.to_string(),
        "node 3 does not exist or may not be used by this process; expected one of 0,8,252-255"
    );
    assert!(knowledge.nearest(&page(3), 1, &free).is_err());
}

#[test]
fn more_cores_than_are_free_are_refused_with_both_numbers() {
    let knowledge = Knowledge::from_machine(machines::one_node());
    let error = knowledge.best_cores(3, &page(0), &set("1-2")).unwrap_err();
    assert_eq!(error.to_string(), "3 cores requested, 2 free; request fewer, or free some");
}

#[test]
fn weights_as_large_as_they_get_still_order() {
    let machine = machines::two_nodes();
    let free = all_cpus(&machine);
    let pages = [(NodeId(0), u64::MAX), (NodeId(1), u64::MAX - 1), (NodeId(1), u64::MAX)];
    let nearest = Knowledge::from_machine(machine).nearest(&pages, 1, &free).unwrap();
    assert_eq!(nearest.node, NodeId(1));
    assert_eq!(nearest.cost.total_cmp(&10.0), Ordering::Greater);
}
