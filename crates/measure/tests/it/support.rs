//! A short measurement of a simulated machine.

use std::sync::Arc;
use std::time::Duration;

use atoll_measure::{BUFFER_MIN, MeasureOptions, MeasureReport, MeasurementKind, measure};
use atoll_placement::Kernel;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Fact, Machine, Quantity};

/// These parts, as short as possible.
pub(crate) fn brief(parts: &[MeasurementKind]) -> MeasureOptions {
    MeasureOptions {
        parts: parts.iter().copied().collect(),
        buffer: Some(BUFFER_MIN),
        repetitions: 2,
        warm_up: Duration::ZERO,
        window: Duration::from_millis(1),
        pairs_max: 3,
        ..MeasureOptions::quick()
    }
}

/// A machine and its simulated kernel.
pub(crate) struct World {
    pub(crate) machine: Arc<Machine>,
    pub(crate) kernel: Arc<SimulatedKernel>,
}

impl World {
    pub(crate) fn new(machine: Machine) -> Self {
        let machine = Arc::new(machine);
        let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
        Self { machine, kernel }
    }

    pub(crate) fn measure(&self, options: &MeasureOptions) -> MeasureReport {
        let kernel: Arc<dyn Kernel> = self.kernel.clone();
        measure(&self.machine, &kernel, options, &mut |_| ()).unwrap()
    }
}

/// Facts of a quantity.
pub(crate) fn facts_of(report: &MeasureReport, quantity: Quantity) -> Vec<&Fact> {
    report.facts.iter().filter(|fact| fact.quantity == quantity).collect()
}

/// Whether a note holds this text.
pub(crate) fn noted(report: &MeasureReport, text: &str) -> bool {
    report.notes.iter().any(|note| note.contains(text))
}
