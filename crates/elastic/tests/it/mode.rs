//! The choice of the next core: figure 2 of Dominico 2018, and machines of other shapes.

use std::collections::BTreeSet;

use atoll_elastic::mode::{CoreChoice, CoreIds, CoreTable, Mode, PageQueue};
use atoll_testkit::machines;
use atoll_topology::{CpuSet, Machine, NodeId};

fn table(machine: &Machine) -> CoreTable {
    CoreTable::new(machine, &machine.cpus.iter().map(|cpu| cpu.id).collect())
}

/// Gives all cores one by one, then releases them; returns the cpus of each, in order.
fn order(table: &CoreTable, mode: Mode, pages: &PageQueue) -> (Vec<String>, Vec<String>) {
    let saturated = BTreeSet::new();
    let (mut given, mut free) = (CoreIds::new(), table.ids());
    let cpus = |id| table.core(id).unwrap().cpus.to_string();
    let (mut gave, mut released) = (Vec::new(), Vec::new());
    loop {
        let choice = CoreChoice { table, given: &given, free: &free, pages, saturated: &saturated };
        let Some(core) = choice.give(mode) else { break };
        assert!(free.remove(&core) && given.insert(core));
        gave.push(cpus(core));
    }
    assert!(free.is_empty());
    loop {
        let choice = CoreChoice { table, given: &given, free: &free, pages, saturated: &saturated };
        let Some(core) = choice.release(mode) else { break };
        assert!(given.remove(&core) && free.insert(core));
        released.push(cpus(core));
    }
    assert!(given.is_empty());
    (gave, released)
}

fn pages(counts: &[(u32, u64)]) -> PageQueue {
    PageQueue::of_nodes(counts.iter().map(|(node, pages)| (NodeId(*node), *pages)))
}

#[test]
fn dense_fills_a_node_before_the_next_as_in_figure_2b() {
    let (gave, released) =
        order(&table(&machines::four_nodes()), Mode::Dense, &PageQueue::default());
    let numbers: Vec<String> = (0..16).map(|cpu| cpu.to_string()).collect();
    assert_eq!(gave, numbers);
    assert_eq!(released, numbers.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn sparse_goes_round_the_nodes_as_in_figure_2a() {
    let (gave, released) =
        order(&table(&machines::four_nodes()), Mode::Sparse, &PageQueue::default());
    let round = |k: usize| (0..4).map(move |node| (node * 4 + k).to_string());
    let rounds: Vec<String> = (0..4).flat_map(round).collect();
    assert_eq!(gave, rounds);
    assert_eq!(released, rounds.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn adaptive_begins_where_most_pages_are_and_ends_where_fewest_are() {
    let table = table(&machines::four_nodes());
    let (gave, released) = order(&table, Mode::Adaptive, &pages(&[(2, 900), (1, 100), (3, 50)]));
    let nodes = |cpus: &[String]| -> Vec<u32> {
        cpus.iter().map(|cpu| cpu.parse::<u32>().unwrap() / 4).collect()
    };
    assert_eq!(nodes(&gave), [2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3, 0, 0, 0, 0]);
    assert_eq!(nodes(&released), [0, 0, 0, 0, 3, 3, 3, 3, 1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn adaptive_without_pages_is_dense() {
    let table = table(&machines::sub_numa_clusters());
    let nothing = PageQueue::default();
    assert_eq!(order(&table, Mode::Adaptive, &nothing), order(&table, Mode::Dense, &nothing));
}

#[test]
fn hardware_threads_of_a_core_stay_together_and_domains_are_filled_one_by_one() {
    let machine = machines::two_nodes();
    let table = table(&machine);
    let (gave, _) = order(&table, Mode::Dense, &PageQueue::default());
    assert_eq!(gave.len(), machine.cores.len());
    let domain_of = |cpus: &String| {
        let cpus = CpuSet::parse(cpus).unwrap();
        assert_eq!(cpus.len(), 2, "both threads of a core");
        machine.cpu(cpus.first().unwrap()).unwrap().domain
    };
    let domains: Vec<_> = gave.iter().map(domain_of).collect();
    assert!(domains.chunks(2).all(|pair| pair[0] == pair[1]), "{domains:?}");
    let (gave, _) = order(&table, Mode::Sparse, &PageQueue::default());
    let domains: BTreeSet<_> = gave[..4].iter().map(domain_of).collect();
    assert_eq!(domains.len(), 4, "the first four cores have a last-level cache each");
}

#[test]
fn every_machine_gives_each_core_once_in_every_mode() {
    for machine in machines::all() {
        let table = table(&machine);
        for mode in Mode::ALL {
            for pages in [PageQueue::default(), pages(&[(0, 5), (1, 7), (77, 9)])] {
                let (gave, released) = order(&table, mode, &pages);
                assert_eq!(gave.len(), table.len(), "{} {mode:?}", machine.name);
                assert_eq!(released.len(), table.len(), "{} {mode:?}", machine.name);
            }
        }
    }
}

#[test]
fn a_core_is_exchanged_only_for_one_near_many_more_pages() {
    let table = table(&machines::four_nodes());
    let given = table.within(&CpuSet::parse("0").unwrap());
    let free = &table.ids() - &given;
    let saturated = BTreeSet::new();
    let exchange = |mode, pages: &PageQueue| {
        CoreChoice { table: &table, given: &given, free: &free, pages, saturated: &saturated }
            .exchange(mode)
            .map(|(away, to)| (away.0, to.0))
    };
    assert_eq!(exchange(Mode::Adaptive, &pages(&[(0, 10), (2, 100)])), Some((0, 8)));
    assert_eq!(exchange(Mode::Adaptive, &pages(&[(0, 60), (2, 100)])), None);
    assert_eq!(exchange(Mode::Adaptive, &PageQueue::default()), None);
    assert_eq!(exchange(Mode::Dense, &pages(&[(2, 100)])), None);
}

#[test]
fn a_saturated_node_comes_last() {
    let table = table(&machines::four_nodes());
    let given = table.within(&CpuSet::parse("8-9").unwrap());
    let free = &table.ids() - &given;
    let saturated = BTreeSet::from([NodeId(2)]);
    for mode in Mode::ALL {
        let pages = pages(&[(2, 100)]);
        let choice = CoreChoice {
            table: &table,
            given: &given,
            free: &free,
            pages: &pages,
            saturated: &saturated,
        };
        let core = table.core(choice.give(mode).unwrap()).unwrap();
        assert_ne!(core.node, NodeId(2), "{mode:?}");
    }
}

#[test]
fn cores_outside_of_what_is_allowed_are_not_in_the_table() {
    let machine = machines::two_nodes();
    let table = CoreTable::new(&machine, &CpuSet::parse("0,3").unwrap());
    let cpus: Vec<String> = table.iter().map(|core| core.cpus.to_string()).collect();
    assert_eq!(cpus, ["0", "3"]);
}
