//! Records of runs that were never made: a machine's simulation, fed by hand.

use atoll_lab::record::{RunDescription, RunRecord};
use atoll_lab::{Guest, GuestShape};
use atoll_marker::Marker;
use atoll_model::Assumptions;
use atoll_simulation::{Counting, Setup, Simulation};
use atoll_topology::Knowledge;

/// A simulation that is calibrated, and where each node's memory begins.
pub(crate) struct Sample {
    known: Knowledge,
    setup: Setup,
    simulation: Simulation,
    next: u64,
}

/// Nodes' block addresses lie this far apart.
const APART: u64 = 1 << 40;
const GIB: u64 = 1 << 30;
const LINE: u64 = 64;

impl Sample {
    /// The machine, cut as the lab cuts it, with caches an eighth of their size.
    pub(crate) fn new(known: &Knowledge, counting: Counting) -> Self {
        let shape = GuestShape { cache_divisor: 8, ..GuestShape::default() };
        let guest = Guest::try_from_knowledge(known, &shape).unwrap();
        let setup = guest.setup(counting, "/tmp/report".into());
        let simulation = Simulation::new(setup.clone()).unwrap();
        Self { known: guest.knowledge().clone(), setup, simulation, next: 1 }
    }

    /// Announces where every node's memory is.
    pub(crate) fn calibrate(self) -> Self {
        let mut linear = 0;
        for (at, node) in self.setup.nodes.iter().enumerate().filter(|(_, node)| node.memory.0 > 0)
        {
            let low = self.setup.low_memory.0;
            let physical = if linear < low { linear } else { linear - low + 4 * GIB };
            for nibble in (0..16).rev() {
                let said = Marker::Say((physical >> (4 * nibble) & 15) as u8);
                self.simulation.marker(0, said).unwrap();
            }
            self.simulation.marker(0, Marker::Witness(node.id.0 as u8)).unwrap();
            self.simulation.access(0, 0x1000, 1, false, || Some(at as u64 * APART));
            linear += node.memory.0;
        }
        self.simulation.marker(0, Marker::Ready).unwrap();
        self
    }

    /// A cpu of a node, by position.
    pub(crate) fn cpu(&self, node: usize) -> usize {
        self.setup.cpus.iter().position(|seat| seat.node == node).unwrap()
    }

    /// A marker that the first cpu executes.
    pub(crate) fn marker(&self, marker: Marker) {
        self.simulation.marker(0, marker).unwrap();
    }

    /// Loads and stores of a node's cpu, one of four a store, at random among this many lines
    /// of another node's memory.
    pub(crate) fn accesses(&mut self, from: usize, to: usize, lines: u64, count: u64) {
        let cpu = self.cpu(from);
        for _ in 0..count {
            self.next =
                self.next.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (self.next >> 33) % lines * LINE;
            let block = to as u64 * APART + at;
            let is_store = self.next >> 40 & 3 == 0;
            self.simulation.access(cpu, to as u64 * GIB + at, 8, is_store, || Some(block));
        }
        self.simulation.instructions(cpu, 6 * count);
    }

    /// The record of all that.
    pub(crate) fn record(&self) -> RunRecord {
        let run = RunDescription {
            command: ["scan", "--table", "orders <&>"].map(str::to_owned).to_vec(),
            machine: self.known.machine.name.clone(),
            notes: vec!["256 MiB of 64 GiB a node".to_owned()],
            cache_divisor: 8,
            balancing: Some(false),
            code: 0,
            boot_seconds: 4.25,
            wall_seconds: 12.5,
            qemu_version: "7.2.22".to_owned(),
            kernel_release: "6.1.0-40-cloud-amd64".to_owned(),
        };
        let report = self.simulation.report();
        RunRecord::new(run, &self.known, report, &Assumptions::default()).unwrap()
    }
}

/// Every node's cpus access their own memory most and every other node's some, in two regions, and
/// tagged pages.
pub(crate) fn busy(known: &Knowledge) -> RunRecord {
    let mut sample = Sample::new(known, Counting::User).calibrate();
    let with_cpus: Vec<usize> = (0..sample.setup.nodes.len())
        .filter(|node| sample.setup.cpus.iter().any(|seat| seat.node == *node))
        .collect();
    let with_memory: Vec<usize> = (0..sample.setup.nodes.len())
        .filter(|node| sample.setup.nodes[*node].memory.0 > 0)
        .collect();
    // Large machines have many pairs of nodes.
    let most = (8000 / (with_cpus.len() * with_memory.len()) as u64).max(1);
    sample.marker(Marker::Tag(3));
    sample.accesses(with_cpus[0], with_memory[0], 1, 1);
    for region in [1, 4] {
        sample.marker(Marker::Open(region));
        for &from in &with_cpus {
            for &to in &with_memory {
                let count = if from == to { 1000 } else { 20 * u64::from(region) };
                sample.accesses(from, to, 30_000, count.min(most));
            }
        }
        sample.marker(Marker::Close(region));
    }
    sample.record()
}
