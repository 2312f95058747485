//! Malformed set-ups and accesses: an error or nothing, never a panic.

use atoll_marker::Marker;
use atoll_simulation::{CacheShape, Crossing, Setup, Simulation};
use atoll_topology::{Bytes, CoreId, DomainId, LinkId};
use proptest::prelude::*;

use crate::machines::{Guest, any_machine, four_nodes};
use crate::reference::PAGE;

/// A change that makes a set-up wrong, and what the error names.
type Mistake = (&'static str, fn(&mut Setup));

const MISTAKES: &[Mistake] = &[
    ("version", |setup| setup.version += 1),
    ("cpus", |setup| setup.cpus.clear()),
    ("cpus", |setup| setup.cpus = vec![setup.cpus[0]; 1025]),
    ("cpus[1].node", |setup| setup.cpus[1].node = 4),
    ("cpus[1].domain", |setup| setup.cpus[1].domain = DomainId(u32::MAX)),
    ("cpus[7].core", |setup| setup.cpus[7].core = CoreId(0)),
    ("nodes", |setup| setup.nodes.clear()),
    ("nodes", |setup| setup.nodes = vec![setup.nodes[0]; 65]),
    ("nodes[1].memory", |setup| setup.nodes[1].memory = Bytes(5)),
    ("nodes[2].id", |setup| setup.nodes[2].id = setup.nodes[1].id),
    ("16 TiB", |setup| setup.nodes[1].memory = Bytes(1 << 50)),
    ("16 TiB", |setup| {
        setup.nodes.iter_mut().for_each(|node| node.memory = Bytes(u64::MAX / PAGE * PAGE));
    }),
    ("low_memory", |setup| setup.low_memory = Bytes(1)),
    ("low_memory", |setup| setup.low_memory = Bytes(1 << 33)),
    ("line", |setup| setup.line = 0),
    ("line", |setup| setup.line = 48),
    ("line", |setup| setup.line = 8192),
    ("l1", |setup| setup.l1.sets = 0),
    ("l1", |setup| setup.l1 = CacheShape { sets: 1 << 24, ways: 4096 }),
    ("l2", |setup| setup.l2 = Some(CacheShape { sets: 1, ways: 0 })),
    ("llc", |setup| setup.llc[3].ways = u32::MAX),
    ("llc", |setup| setup.llc[3].sets = 0),
    ("llc", |setup| setup.llc[3] = CacheShape { sets: 1 << 24, ways: 64 }),
    ("domain", |setup| setup.llc.clear()),
    ("too few sets", |setup| {
        setup.nodes.iter_mut().for_each(|node| node.memory = Bytes(1 << 42));
    }),
    ("dtlb", |setup| setup.dtlb.sets = u32::MAX),
    ("links", |setup| setup.links = usize::MAX),
    ("routes", |setup| setup.routes.clear()),
    ("routes[2]", |setup| setup.routes[2].clear()),
    ("routes[0][1]", |setup| setup.links = 0),
    ("routes[3][3]", |setup| {
        setup.routes[3][3].push(Crossing { link: LinkId(0), forward: true });
    }),
    ("routes[0][1]", |setup| {
        setup.routes[0][1] = vec![Crossing { link: LinkId(0), forward: true }; 1000];
    }),
];

#[test]
fn a_set_up_of_no_machine_is_refused_by_the_name_of_what_is_wrong() {
    for (name, mistake) in MISTAKES {
        let mut setup = four_nodes();
        assert_eq!(setup.check(), Ok(()));
        mistake(&mut setup);
        let error = setup.check().expect_err(name).to_string();
        assert!(error.contains(name), "{error} does not name {name}");
        assert!(Simulation::new(setup).is_err());
    }
}

#[test]
fn a_set_up_survives_json() {
    let setup = four_nodes();
    let json = serde_json::to_string(&setup).unwrap();
    assert_eq!(serde_json::from_str::<Setup>(&json).unwrap(), setup);
}

#[test]
fn the_largest_caches_take_no_memory_until_they_are_used() {
    let mut setup = four_nodes();
    setup.llc = vec![CacheShape { sets: 1 << 20, ways: 16 }; 4];
    setup.nodes.iter_mut().for_each(|node| node.memory = Bytes(1 << 42));
    let guest = Guest::new(setup);
    guest.load(0, guest.start(3));
    guest.marker(0, Marker::Tag(1)).unwrap();
    guest.load(0, guest.ram() - 8);
    let total = guest.simulation.report().total;
    assert_eq!((total.loads[0][3], total.tags[0].pages[3]), (2, 1));
}

fn any_marker() -> impl Strategy<Value = Marker> {
    prop_oneof![
        any::<u8>().prop_map(Marker::Open),
        any::<u8>().prop_map(Marker::Close),
        any::<u8>().prop_map(Marker::Tag),
        any::<u8>().prop_map(Marker::Say),
        any::<u8>().prop_map(Marker::Witness),
        Just(Marker::Ready),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn any_accesses_and_markers_in_any_order_are_borne(
        setup in any_machine(),
        calibrated in any::<bool>(),
        events in proptest::collection::vec(
            (any::<usize>(), any::<u64>(), any::<u64>(), any::<(u32, bool, bool)>(),
             proptest::option::of(any_marker())),
            1..200,
        ),
    ) {
        let guest = if calibrated { Guest::new(setup) } else { Guest::uncalibrated(setup) };
        let ram = guest.ram();
        for (cpu, address, block, (bytes, is_store, is_known), marker) in events {
            let cpu = if is_known { cpu % guest.setup.cpus.len() } else { cpu };
            if let Some(marker) = marker {
                let _ = guest.marker(cpu, marker);
            }
            let block = if is_known { guest.block(block % ram) } else { block };
            guest.simulation.access(cpu, address, bytes, is_store, || Some(block));
            guest.simulation.instructions(cpu, address);
        }
        let report = guest.simulation.report();
        // The markers at random may be those of a calibration too.
        let failure = &report.calibration.failure;
        prop_assert!(!calibrated || failure.is_none(), "{:?}", failure);
        prop_assert!(failure.is_none() || report.total.loads.iter().flatten().sum::<u64>() == 0);
        let json = serde_json::to_string(&report).unwrap();
        prop_assert_eq!(serde_json::from_str::<atoll_simulation::Report>(&json).unwrap(), report);
    }
}
