//! The load of schedules, against the bounds.

use atoll_primitives::shuffle::{LinkLoad, Moved, Order, Schedule, Shuffle, Wiring};
use atoll_testkit::machines;
use atoll_topology::{Knowledge, Machine, NodeId};
use proptest::prelude::*;

use super::{declared, machine, ring, workers};

fn naive(moved: Moved) -> Shuffle {
    Shuffle { order: Order::Naive, ..ring(moved) }
}

/// Maximum of workers at one controller, and of transfers over one direction of a link, in any step.
fn most(machine: &Machine, schedule: &Schedule) -> (usize, usize) {
    let wiring = schedule.wiring(machine);
    let steps = (0..schedule.workers()).map(|step| wiring.load(schedule, step));
    steps.fold((0, 0), |(controller, link), load| {
        let controllers = load.controllers.values().copied().max().unwrap_or(0);
        let links = load.links.iter().map(|it| it.transfers).max().unwrap_or(0);
        assert_eq!(load.unrouted, 0);
        (controller.max(controllers), link.max(links))
    })
}

/// The paper's bounds on a fully connected machine of S nodes with P workers each.
#[track_caller]
fn check_connected(machine: &Machine, sockets: usize, threads: usize) {
    let nodes = workers(&vec![threads; sockets]);
    let share = threads.div_ceil(sockets);
    for moved in Moved::ALL {
        let schedule = Schedule::new(machine, nodes.clone(), ring(moved));
        let links = if moved == Moved::Threads || sockets == 1 { 0 } else { share };
        assert_eq!(most(machine, &schedule), (threads, links), "{sockets} × {threads}, {moved}");
        let all = Schedule::new(machine, nodes.clone(), naive(moved));
        let (controller, _) = most(machine, &all);
        assert_eq!(controller, sockets * threads, "naive has all at one controller");
    }
}

#[test]
fn the_ring_meets_the_papers_bounds_on_the_papers_machine_where_naive_has_all_at_one_node() {
    let machine = declared("nehalem-ex-4");
    for threads in [1, 2, 3, 4, 7, 8, 16] {
        check_connected(&machine, 4, threads);
    }
    let schedule = Schedule::new(&machine, workers(&[8; 4]), ring(Moved::Pulled));
    let wiring = schedule.wiring(&machine);
    assert!(wiring.is_fully_connected());
    for step in 0..32 {
        let load = wiring.load(&schedule, step);
        assert!(load.links.iter().all(|link| link.transfers == 2), "all links alike in each step");
    }
    let schedule = Schedule::new(&machine, workers(&[8; 4]), naive(Moved::Pulled));
    let load = wiring.load(&schedule, 0);
    let used = load.links.iter().filter(|link| link.transfers > 0);
    assert!(used.clone().all(|link| (link.from, link.transfers) == (NodeId(0), 8)));
    assert_eq!((used.count(), load.links.len()), (3, 12), "three of twelve");
}

#[test]
fn on_a_machine_that_is_not_connected_the_ring_stays_within_rounding_of_the_computed_bound() {
    for (name, counts) in [
        ("intel-4-square", vec![1; 4]),
        ("intel-4-square", vec![8; 4]),
        ("intel-8", vec![1; 8]),
        ("intel-8", vec![2; 8]),
        ("intel-8", vec![8; 8]),
        ("symas-8", vec![2; 8]),
        ("intel-8", vec![3, 1, 2, 2, 4, 1, 1, 2]),
    ] {
        let knowledge = atoll_formats::open(name).expect("a machine that ships");
        let schedule = Schedule::new(&knowledge.machine, workers(&counts), ring(Moved::Pulled));
        let all = (0..).map(NodeId).take(counts.len());
        let wiring =
            Wiring::from_knowledge(&Knowledge::from_machine(knowledge.machine.clone()), all);
        assert!(!wiring.is_fully_connected());
        for bound in wiring.bounds(&schedule) {
            assert!(
                bound.least <= bound.most && bound.most <= bound.least + bound.pairs,
                "{bound:?}"
            );
        }
        let (_, links) = most(&knowledge.machine, &schedule);
        let naive = Schedule::new(&knowledge.machine, workers(&counts), naive(Moved::Pulled));
        assert!(
            links < most(&knowledge.machine, &naive).1
                || counts.len() == counts.iter().sum::<usize>()
        );
    }
}

/// Sum over the steps of the busiest link's transfers, and the total of the busiest link overall.
fn time_and_least(machine: &Machine, schedule: &Schedule) -> (usize, usize) {
    let wiring = schedule.wiring(machine);
    let steps = (0..schedule.workers()).map(|step| wiring.load(schedule, step).links);
    let steps: Vec<_> = steps.collect();
    let busiest = |loads: &Vec<LinkLoad>| loads.iter().map(|it| it.transfers).max().unwrap_or(0);
    let all = |at: usize| steps.iter().map(|loads| loads[at].transfers).sum();
    (steps.iter().map(busiest).sum(), (0..steps[0].len()).map(all).max().unwrap_or(0))
}

#[test]
fn on_a_square_and_a_cube_no_order_does_better_when_nodes_have_workers_for_all_others() {
    for (name, nodes) in [("intel-4-square", 4), ("intel-8", 8)] {
        let machine = declared(name);
        let even = workers(&vec![nodes; nodes]);
        let schedule = Schedule::new(&machine, even, ring(Moved::Pulled));
        let (time, least) = time_and_least(&machine, &schedule);
        assert_eq!(time, least, "{name}");
    }
}

#[test]
fn with_a_worker_on_each_node_an_order_is_found_that_loads_a_cube_less_than_the_plain_ring() {
    let machine = declared("intel-8");
    let schedule = Schedule::new(&machine, workers(&[1; 8]), ring(Moved::Pulled));
    let (found, least) = time_and_least(&machine, &schedule);
    // The plain ring: node n reads from n + t in step t. Naive: all from one.
    let routes = schedule.wiring(&machine);
    let plain = Schedule::new(&super::machine(&[1; 8]), workers(&[1; 8]), ring(Moved::Pulled));
    let plain: usize = (0..8)
        .map(|step| routes.load(&plain, step).links.iter().map(|it| it.transfers).max().unwrap())
        .sum();
    let naive = Schedule::new(&machine, workers(&[1; 8]), naive(Moved::Pulled));
    assert!(least <= found && found < plain, "{least} {found} {plain}");
    assert!(found < time_and_least(&machine, &naive).0);
}

#[test]
fn machines_without_declared_links_have_routes_that_their_distances_suggest() {
    for machine in machines::all() {
        let nodes = machine.nodes_with_cpus().flat_map(|node| [node.id; 2]).collect();
        let schedule = Schedule::new(&machine, nodes, ring(Moved::Pulled));
        let wiring = schedule.wiring(&machine);
        for step in 0..schedule.workers() {
            assert_eq!(wiring.load(&schedule, step).unrouted, 0, "{}", machine.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_ring_meets_the_papers_bounds_for_any_sockets_and_threads(
        sockets in 1_usize..9,
        threads in 1_usize..9,
    ) {
        check_connected(&machine(&vec![1; sockets]), sockets, threads);
    }

    #[test]
    fn an_uneven_ring_stays_within_rounding_of_the_bound(
        counts in proptest::collection::vec(1_usize..9, 2..7),
    ) {
        let machine = machine(&vec![1; counts.len()]);
        let schedule = Schedule::new(&machine, workers(&counts), ring(Moved::Pulled));
        for bound in schedule.wiring(&machine).bounds(&schedule) {
            prop_assert!(bound.most <= bound.least + 2, "{:?}", bound);
        }
    }
}
