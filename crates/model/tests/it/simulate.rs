//! Flow-level simulation against hand-made cases, and the paper's four-socket machine.

use atoll_model::simulate::{
    Access, AccessKind, Interconnect, Observed, Protocol, SimulationError, StateCosts, ThreadState,
    Waiting, Work, calibrate,
};
use atoll_topology::{Knowledge, NodeId};

/// Nothing but data.
const PLAIN: Protocol = Protocol { header: 0.0, snoop: 0.0, meeting: 1.0 };

/// Li 2013, section 2: "3.2 GHz" links of two bytes at both edges; table 1; 61 and 99 GB/s.
const SECTION_2: Observed = Observed {
    link_raw: 12.8,
    link: 10.9,
    link_shared: 5.3,
    threads: 12,
    all_remote: 61.0,
    all_local: 99.0,
};

fn nehalem() -> Knowledge {
    atoll_formats::open("nehalem-ex-4").expect("a machine that ships")
}

fn access(at: u32, home: u32, bytes: f64) -> Access {
    Access { at: NodeId(at), home: NodeId(home), bytes, kind: AccessKind::Read }
}

fn read(at: u32, home: u32, bytes: f64) -> Work {
    Work { accesses: vec![access(at, home, bytes)], own: 0.0 }
}

/// GB/s of so many threads that read once.
fn bandwidth(machine: &Interconnect, threads: &[(usize, Work)]) -> f64 {
    let all = threads.iter().flat_map(|(count, work)| vec![vec![work.clone()]; *count]);
    let outcome = machine.run(&all.collect::<Vec<_>>(), Waiting::Tight);
    outcome.expect("the machine has links").bandwidth()
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= tolerance, "{found} is not within {tolerance} of {expected}");
}

#[test]
fn threads_share_a_controller_and_a_link_is_no_wider_than_it_is() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    assert_near(bandwidth(&machine, &[(12, read(0, 0, 1e6))]), 24.7, 1e-9);
    assert_near(bandwidth(&machine, &[(12, read(0, 1, 1e6))]), 10.9, 1e-9);
    // Two links into node 0 and its own controller at once: they do not slow each other down.
    let three = [(12, read(0, 0, 1e9)), (12, read(0, 1, 1e9)), (12, read(0, 2, 1e9))];
    let alone = 24.7_f64.min(8.0 * 64.0 * 10.0 / 150.0);
    assert!(bandwidth(&machine, &three) <= alone + 2.0 * 10.9);
}

#[test]
fn a_thread_has_as_much_in_flight_as_its_core_and_no_more() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    for (home, latency) in [(0, 150.0), (1, 185.0)] {
        assert_near(bandwidth(&machine, &[(1, read(0, home, 1e6))]), 640.0 / latency, 1e-9);
    }
    // Twelve threads on eight cores read what eight can: slower memory would not be saturated.
    let work = Work { own: 1e6, ..Work::default() };
    let threads = vec![vec![work]; 3];
    let outcome = machine.run(&threads, Waiting::Tight).unwrap();
    assert_eq!((outcome.time, outcome.bandwidth()), (1e6, 0.0));
}

#[test]
fn shares_are_max_min_fair() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    // Twelve threads behind a link get its 10.9 GB/s; the four at home the rest of 24.7.
    let far = vec![vec![read(1, 0, 10.9e6 / 12.0)]; 12];
    let near = vec![vec![read(0, 0, 13.8e6 / 4.0)]; 4];
    let outcome = machine.run(&[far, near].concat(), Waiting::Loose).unwrap();
    assert_near(outcome.time, 1e6, 1e-6);
}

#[test]
fn tight_waits_for_the_slowest_of_each_step_and_loose_does_not() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    let (long, short) = (read(0, 0, 2e6), read(0, 0, 1e6));
    let threads = vec![vec![long.clone(), short.clone()], vec![short, long]];
    let time = |waiting| machine.run(&threads, waiting).unwrap().time;
    assert_near(time(Waiting::Tight) / time(Waiting::Loose), 4.0 / 3.0, 1e-6);
}

#[test]
fn calibration_gives_back_what_it_was_calibrated_on() {
    let protocol = calibrate(&nehalem(), &SECTION_2).unwrap();
    let machine = Interconnect::from_knowledge(&nehalem(), protocol).unwrap();
    assert_near(bandwidth(&machine, &[(12, read(0, 1, 1e6))]), 10.9, 0.01);
    let square = atoll_formats::open("intel-4-square").unwrap();
    let square = Interconnect::from_knowledge(&square, protocol).unwrap();
    // Two hops, and another node's flow over the second of the links.
    let both = [(12, read(0, 3, 1e6)), (12, read(1, 3, 1e6))];
    assert_near(bandwidth(&square, &both), 10.6, 0.01);
    let everywhere = |remote: bool| {
        let homes = |at: u32| (0..4).filter(move |home| (*home != at) == remote);
        let count = if remote { 4 } else { 12 };
        let works = (0..4).flat_map(|at| homes(at).map(move |home| (count, read(at, home, 1e6))));
        bandwidth(&machine, &works.collect::<Vec<_>>())
    };
    assert_near(everywhere(true), 61.0, 0.03);
    assert_near(everywhere(false), 99.0, 0.03);
}

/// Figure 6: thread k = 8 s + p of 32 reads in step t from this socket.
fn figure_6(socket_of: impl Fn(usize, usize) -> (usize, usize)) -> f64 {
    let protocol = calibrate(&nehalem(), &SECTION_2).unwrap();
    let machine = Interconnect::from_knowledge(&nehalem(), protocol).unwrap();
    let step = |k, t| {
        let (at, home) = socket_of(k, t);
        read(at as u32, home as u32, 1e6)
    };
    let threads: Vec<Vec<Work>> = (0..32).map(|k| (0..32).map(|t| step(k, t)).collect()).collect();
    machine.run(&threads, Waiting::Tight).unwrap().bandwidth()
}

#[test]
fn section_2_predicts_the_bars_of_figure_6_within_a_tenth() {
    assert_near(figure_6(|k, t| (k / 8, t / 8)), 22.0, 0.1);
    assert_near(figure_6(|k, t| (k / 8, (k + t) % 4)), 70.0, 0.1);
    assert_near(figure_6(|k, t| ((k + t) % 4, (k + t) % 4)), 94.0, 0.1);
}

#[test]
fn a_state_that_outgrows_the_caches_costs_a_thread_away_from_it_more() {
    let costs = StateCosts::from_knowledge(&nehalem()).unwrap();
    let state = |bytes| ThreadState { bytes, accesses: 1e6, threads: 8.0 };
    let sum = |accesses: &[Access]| accesses.iter().map(|it| it.bytes).sum::<f64>();
    let small = state(256.0 * 1024.0);
    assert_eq!(costs.stays(&small, NodeId(0)), (vec![], 0.0));
    let (moved, waits) = costs.moves(&small, NodeId(1), NodeId(0));
    assert_near(sum(&moved), 2.0 * 256.0 * 1024.0, 1e-6);
    assert_eq!(waits, 0.0);
    assert!(moved.iter().all(|it| (it.at, it.home) == (NodeId(1), NodeId(0))));
    let large = state(6.0 * 1024.0 * 1024.0);
    let (stayed, _) = costs.stays(&large, NodeId(0));
    assert_near(sum(&stayed), 0.5e6 * 128.0, 1e-6);
    assert!(sum(&costs.moves(&large, NodeId(1), NodeId(0)).0) > sum(&stayed));
    let (copied, _) = costs.copies(&large, NodeId(1), NodeId(0));
    assert_near(sum(&copied), sum(&stayed) + 2.0 * large.bytes, 1e-6);
}

#[test]
fn what_no_machine_has_is_an_error() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    let run = |work| machine.run(&[vec![work]], Waiting::Tight).unwrap_err();
    assert_eq!(run(read(0, 7, 1.0)), SimulationError::NoSuchNode { node: NodeId(7) });
    assert!(matches!(run(read(0, 1, f64::NAN)), SimulationError::Bytes { .. }));
    assert!(matches!(run(read(0, 1, -1.0)), SimulationError::Bytes { .. }));
    let mut unlinked = nehalem();
    unlinked.machine.links.clear();
    let error = Interconnect::from_knowledge(&unlinked, PLAIN).unwrap_err();
    assert!(matches!(error, SimulationError::NoRoute { .. }), "{error}");
    for wrong in [
        Observed { link_raw: 10.0, ..SECTION_2 },
        Observed { link_shared: 11.0, ..SECTION_2 },
        Observed { all_local: f64::NAN, ..SECTION_2 },
        Observed { all_remote: 0.0, ..SECTION_2 },
    ] {
        let error = calibrate(&nehalem(), &wrong).unwrap_err();
        assert!(matches!(error, SimulationError::Observed { .. }), "{error}");
    }
}

#[test]
fn no_threads_and_no_steps_take_no_time() {
    let machine = Interconnect::from_knowledge(&nehalem(), PLAIN).unwrap();
    for threads in [vec![], vec![vec![]], vec![vec![read(0, 0, 0.0)]]] {
        for waiting in [Waiting::Tight, Waiting::Loose] {
            let outcome = machine.run(&threads, waiting).unwrap();
            assert_eq!((outcome.time, outcome.bandwidth()), (0.0, 0.0));
        }
    }
}
