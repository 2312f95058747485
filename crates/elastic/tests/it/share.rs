//! Several targets on one machine: disjoint nodes, unused cores for the overloaded, minimum shares.

use atoll_elastic::mode::{CoreIds, CoreTable, PageQueue};
use atoll_elastic::session::{Grain, ShareAct, ShareState, first_shares, shares};
use atoll_testkit::machines;
use atoll_topology::{CoreId, Machine, NodeId};

fn table(machine: &Machine) -> CoreTable {
    CoreTable::new(machine, &machine.cpus.iter().map(|cpu| cpu.id).collect())
}

fn ids(numbers: impl IntoIterator<Item = u32>) -> CoreIds {
    numbers.into_iter().map(CoreId).collect()
}

fn pages(node: u32) -> PageQueue {
    PageQueue::of_nodes([(NodeId(node), 100)])
}

fn state(priority: i64, given: CoreIds, free: CoreIds, is_short: bool) -> ShareState {
    let pages = PageQueue::default();
    ShareState { priority, cores_min: 1, given, free, is_short, pages }
}

#[test]
fn first_shares_are_disjoint_nodes_where_the_pages_are() {
    let table = table(&machines::four_nodes());
    let grain = Grain::for_targets(&table, 2);
    assert_eq!(grain, Grain::Node);
    let first = first_shares(&table, grain, &[(1, 1, pages(2)), (5, 6, pages(2))]).unwrap();
    // The target of higher priority gets the node that both want, and the next one.
    assert_eq!(first[1], ids([8, 9, 10, 11, 0, 1, 2, 3]));
    assert_eq!(first[0].len(), 4);
    assert!(first[0].is_disjoint(&first[1]));
}

#[test]
fn shares_that_the_machine_does_not_have_are_refused() {
    let table = table(&machines::four_nodes());
    let wanted = [(1, 9, PageQueue::default()), (1, 9, PageQueue::default())];
    let error = first_shares(&table, Grain::Node, &wanted).unwrap_err().to_string();
    assert!(error.contains("18 cores") && error.contains("16 cores may be given"), "{error}");
}

#[test]
fn a_machine_with_fewer_nodes_than_targets_is_shared_by_domain_or_core() {
    assert_eq!(Grain::for_targets(&table(&machines::two_nodes()), 3), Grain::Domain);
    assert_eq!(Grain::for_targets(&table(&machines::one_node()), 2), Grain::Core);
}

#[test]
fn a_short_target_gets_a_node_that_no_target_has() {
    let table = table(&machines::four_nodes());
    let targets = [state(1, ids(0..4), ids([]), true), state(1, ids(4..5), ids(5..8), false)];
    let acts = shares(&table, Grain::Node, &targets);
    assert_eq!(acts, [(0, ShareAct::Lend(ids(8..12)))]);
}

#[test]
fn unused_nodes_go_back() {
    let table = table(&machines::four_nodes());
    let targets = [state(1, ids(0..2), ids(2..8), false)];
    assert_eq!(shares(&table, Grain::Node, &targets), [(0, ShareAct::Recall(ids(4..8)))]);
}

#[test]
fn a_target_of_lower_priority_yields_but_never_its_last_node() {
    let table = table(&machines::four_nodes());
    let short = || state(9, ids(0..4), ids([]), true);
    let greedy = state(1, ids(4..16), ids([]), true);
    assert_eq!(shares(&table, Grain::Node, &[short(), greedy]), [(1, ShareAct::Yield)]);
    // A node is empty now: it is recalled, and lent in the next turn.
    let yielded = state(1, ids(4..12), ids(12..16), false);
    let acts = shares(&table, Grain::Node, &[short(), yielded]);
    assert_eq!(acts, [(1, ShareAct::Recall(ids(12..16)))]);
    let rich = state(9, ids(0..12), ids([]), true);
    let poor = state(1, ids(12..16), ids([]), true);
    assert_eq!(shares(&table, Grain::Node, &[rich, poor]), []);
}

#[test]
fn targets_of_equal_priority_converge() {
    let table = table(&machines::four_nodes());
    let targets = [state(1, ids(0..4), ids([]), true), state(1, ids(4..16), ids([]), true)];
    assert_eq!(shares(&table, Grain::Node, &targets), [(1, ShareAct::Yield)]);
    let targets = [state(1, ids(0..8), ids([]), true), state(1, ids(8..16), ids([]), true)];
    assert_eq!(shares(&table, Grain::Node, &targets), []);
}
