//! The simulation counts what the reference counts, on any machine and for any accesses.

use atoll_marker::Marker;
use atoll_simulation::Setup;
use proptest::prelude::*;

use crate::machines::{Guest, Shape, any_machine, machine};
use crate::reference::{Access, PAGE, Reference};

/// Something that happens in the guest; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Event {
    Access {
        cpu: usize,
        page: usize,
        offset: u64,
        bytes: u32,
        is_store: bool,
    },
    /// An access to what is not RAM.
    Elsewhere {
        cpu: usize,
        address: u64,
        block: Option<u64>,
    },
    Tag {
        cpu: usize,
        page: usize,
        tag: u8,
    },
    Open(u8),
    Close(u8),
    Instructions {
        cpu: usize,
        count: u64,
    },
}

fn any_event() -> impl Strategy<Value = Event> {
    // A few cpus and pages are met again and again, so that lines are used in every order.
    let number = || prop_oneof![4 => 0usize..3, 1 => any::<usize>()];
    let place = || (number(), number());
    let bytes = prop_oneof![10 => prop::sample::select(vec![1u32, 4, 8]), 1 => 0u32..200];
    let offset = prop_oneof![5 => (0u64..6).prop_map(|i| i * 56), 5 => 0..PAGE];
    prop_oneof![
        100 => (place(), offset, bytes, any::<bool>()).prop_map(
            |((cpu, page), offset, bytes, is_store)| {
                Event::Access { cpu, page, offset, bytes, is_store }
            }
        ),
        2 => (any::<usize>(), any::<u64>(), proptest::option::of(0u64..1 << 32))
            .prop_map(|(cpu, address, block)| Event::Elsewhere { cpu, address, block }),
        2 => (place(), 0u8..4).prop_map(|((cpu, page), tag)| Event::Tag { cpu, page, tag }),
        2 => (0u8..3).prop_map(Event::Open),
        2 => (0u8..3).prop_map(Event::Close),
        1 => (any::<usize>(), 0u64..100).prop_map(|(cpu, count)| Event::Instructions { cpu, count }),
    ]
}

/// Each page of RAM is mapped twice, the second time far away.
fn virtual_address(page: usize, pages: usize, offset: u64) -> u64 {
    let far = if page >= pages { 0x7f00_0000_0000 } else { 0 };
    far + (page % pages) as u64 * 3 * PAGE + offset
}

/// Runs events on both and compares everything.
fn compare(setup: Setup, events: &[Event]) {
    let guest = Guest::new(setup.clone());
    let mut reference = Reference::new(&setup);
    let (cpus, pages) = (setup.cpus.len(), (guest.ram() / PAGE) as usize);
    for event in events.iter().cloned() {
        match event {
            Event::Access { cpu, page, offset, bytes, is_store } => {
                let (cpu, page) = (cpu % cpus, page % (2 * pages));
                let linear = (page % pages) as u64 * PAGE + offset;
                let address = virtual_address(page, pages, offset);
                let block = guest.block(linear);
                guest.simulation.access(cpu, address, bytes, is_store, || Some(block));
                reference.access(Access { cpu, address, linear, bytes, is_store });
            }
            Event::Elsewhere { cpu, address, block } => {
                let address = address | 1 << 47;
                guest.simulation.access(cpu % cpus, address, 8, false, || block);
            }
            Event::Tag { cpu, page, tag } => {
                let (cpu, page) = (cpu % cpus, page % pages);
                let (linear, address) = (page as u64 * PAGE, virtual_address(page, pages, 0));
                guest.marker(cpu, Marker::Tag(tag)).unwrap();
                guest.simulation.access(cpu, address, 1, false, || Some(guest.block(linear)));
                reference.tag(linear, tag);
                let is_store = false;
                reference.access(Access { cpu, address, linear, bytes: 1, is_store });
            }
            Event::Open(region) => {
                guest.marker(0, Marker::Open(region)).unwrap();
                reference.open(region);
            }
            Event::Close(region) => {
                guest.marker(0, Marker::Close(region)).unwrap();
                reference.close(region);
            }
            Event::Instructions { cpu, count } => {
                guest.simulation.instructions(cpu % cpus, count);
                reference.instructions(cpu % cpus, count);
            }
        }
    }
    let (report, reference) = (guest.simulation.report(), reference.finish());
    assert_eq!(report.total, reference.total);
    for region in &report.regions {
        assert_eq!(region.traffic, reference.regions[&region.number], "region {}", region.number);
    }
    assert_eq!(report.regions.len(), reference.regions.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_those_of_the_slow_model(
        setup in any_machine(),
        events in proptest::collection::vec(any_event(), 1..1000),
    ) {
        compare(setup, &events);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn domains_of_more_cores_than_a_word_has_bits_are_counted_the_same(
        events in proptest::collection::vec(any_event(), 3000),
    ) {
        let mut setup = machine(&Shape {
            nodes: 2,
            domains_per_node: 1,
            cores_per_domain: 70,
            threads_per_core: 1,
            pages_per_node: 1,
        });
        setup.llc[0].sets = 3;
        compare(setup, &events);
    }
}
