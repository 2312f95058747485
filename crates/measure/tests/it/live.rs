//! The machine the tests run on: figures exist and are plausible. Its speed is not asserted.

use std::sync::Arc;

use atoll_measure::{MeasurementKind, measure};
use atoll_placement::{Kernel, LiveKernel};
use atoll_topology::{Machine, Quantity};

use crate::support::{brief, facts_of};

#[test]
fn the_live_machine_has_latency_bandwidth_and_handover_times() {
    let machine = Arc::new(Machine::discover().unwrap());
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let options =
        brief(&[MeasurementKind::Latency, MeasurementKind::Bandwidth, MeasurementKind::CoreToCore]);
    let report = measure(&machine, &kernel, &options, &mut |_| ()).unwrap();
    for (quantity, most) in [
        (Quantity::Latency, 1e5),
        (Quantity::ReadBandwidth, 1e5),
        (Quantity::WriteBandwidth, 1e5),
        (Quantity::CopyBandwidth, 1e5),
        (Quantity::CoreToCore, 1e9),
    ] {
        let facts = facts_of(&report, quantity);
        let expected = quantity != Quantity::CoreToCore || machine.cpus.len() > 1;
        assert_eq!(!facts.is_empty(), expected, "{quantity}: {:?}", report.notes);
        assert!(facts.iter().all(|fact| fact.value > 0.0 && fact.value < most), "{facts:?}");
    }
}
