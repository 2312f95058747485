//! Set-ups, and guests that run on them.

use atoll_marker::Marker;
use atoll_simulation::{
    CacheShape, CalibrationError, Counting, CpuSeat, Crossing, NodeMemory, SETUP_VERSION, Setup,
    Simulation, TlbShape,
};
use atoll_topology::{Bytes, CoreId, DomainId, LinkId, NodeId};
use proptest::prelude::*;

use crate::reference::PAGE;

/// Cores of each domain, domains of each node, as numbers.
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) domains_per_node: usize,
    pub(crate) cores_per_domain: usize,
    pub(crate) threads_per_core: usize,
    pub(crate) pages_per_node: u64,
}

/// A machine of equal nodes, every two of them joined by a link.
pub(crate) fn machine(shape: &Shape) -> Setup {
    let cores = shape.nodes * shape.domains_per_node * shape.cores_per_domain;
    let seat = |core: usize| {
        let domain = core / shape.cores_per_domain;
        CpuSeat {
            node: domain / shape.domains_per_node,
            domain: DomainId(domain as u32),
            core: CoreId(core as u32),
        }
    };
    let memory = Bytes(shape.pages_per_node * PAGE);
    let node = |id| NodeMemory { id: NodeId(id), memory };
    let (links, routes) = joined(shape.nodes);
    Setup {
        version: SETUP_VERSION,
        counting: Counting::User,
        cpus: (0..cores * shape.threads_per_core)
            .map(|cpu| seat(cpu / shape.threads_per_core))
            .collect(),
        nodes: (0..shape.nodes as u32).map(node).collect(),
        line: 64,
        l1: CacheShape { sets: 4, ways: 2 },
        l2: Some(CacheShape { sets: 8, ways: 4 }),
        llc: vec![CacheShape { sets: 64, ways: 4 }; shape.nodes * shape.domains_per_node],
        dtlb: TlbShape { sets: 4, ways: 4 },
        links,
        routes,
        low_memory: Bytes(memory.0 + PAGE),
        report: "report.json".into(),
    }
}

/// Four nodes of two cpus.
pub(crate) fn four_nodes() -> Setup {
    machine(&Shape {
        nodes: 4,
        domains_per_node: 1,
        cores_per_domain: 2,
        threads_per_core: 1,
        pages_per_node: 1024,
    })
}

/// A link between every two nodes.
fn joined(nodes: usize) -> (usize, Vec<Vec<Vec<Crossing>>>) {
    let pairs: Vec<_> = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect();
    let route = |from: usize, to: usize| -> Vec<Crossing> {
        let pair = (from.min(to), from.max(to));
        let link = pairs.iter().position(|known| *known == pair);
        let crossing = |link| Crossing { link: LinkId(link as u32), forward: from < to };
        link.map(crossing).into_iter().collect()
    };
    let row = |from| (0..nodes).map(|to| route(from, to)).collect();
    (pairs.len(), (0..nodes).map(row).collect())
}

/// Machines of all kinds, with caches small enough to overflow.
pub(crate) fn any_machine() -> impl Strategy<Value = Setup> {
    let shape = (1usize..=4, 1usize..=2, 1usize..=3, 1usize..=2);
    let caches = (
        (1u32..=5, 1u32..=3),
        proptest::option::of((1u32..=7, 1u32..=3)),
        (1u32..=6, proptest::collection::vec((1u32..=3, 1u32..=6), 8)),
        (1u32..=3, 1u32..=3),
    );
    let memory = proptest::collection::vec(0u64..=3, 4);
    let rest = (memory, 0u64..=6, prop::sample::select(vec![16u64, 64, 256, 4096]), any::<bool>());
    (shape, caches, rest).prop_map(|(shape, (l1, l2, (common, llc), dtlb), rest)| {
        let (nodes, domains_per_node, cores_per_domain, threads_per_core) = shape;
        let (memory, low, line, in_regions) = rest;
        let shape = |(sets, ways)| CacheShape { sets, ways };
        let mut setup = machine(&Shape {
            nodes,
            domains_per_node,
            cores_per_domain,
            threads_per_core,
            pages_per_node: 1,
        });
        setup.l1 = shape(l1);
        setup.l2 = l2.map(shape);
        for (cache, (times, ways)) in setup.llc.iter_mut().zip(llc) {
            *cache = shape((common * times, ways));
        }
        setup.dtlb = TlbShape { sets: dtlb.0, ways: dtlb.1 };
        for (node, pages) in setup.nodes.iter_mut().zip(memory) {
            node.memory = Bytes(pages * PAGE);
        }
        setup.nodes[nodes - 1].memory.0 += PAGE;
        setup.low_memory = Bytes(low * PAGE);
        setup.line = line;
        setup.counting = if in_regions { Counting::Region } else { Counting::User };
        setup
    })
}

/// A simulation and the block addresses of its guest: each node's range is elsewhere.
pub(crate) struct Guest {
    pub(crate) setup: Setup,
    pub(crate) simulation: Simulation,
}

impl Guest {
    /// A calibrated guest.
    pub(crate) fn new(setup: Setup) -> Self {
        let guest = Self::uncalibrated(setup);
        guest.calibrate().expect("a calibration without contradiction");
        guest
    }

    pub(crate) fn uncalibrated(setup: Setup) -> Self {
        let simulation = Simulation::new(setup.clone()).expect("a set-up of a machine");
        Self { setup, simulation }
    }

    pub(crate) fn calibrate(&self) -> Result<(), CalibrationError> {
        for node in 0..self.setup.nodes.len() {
            if self.setup.nodes[node].memory.0 > 0 {
                self.witness(node, self.start(node), Some(self.block(self.start(node))));
            }
        }
        self.marker(0, Marker::Ready)
    }

    /// Says that a linear address is on a node, and loads it.
    pub(crate) fn witness(&self, node: usize, linear: u64, block: Option<u64>) {
        self.say(self.physical(linear));
        let id = self.setup.nodes[node].id.0;
        self.marker(0, Marker::Witness(id as u8)).unwrap();
        self.simulation.access(0, 0x7000, 1, false, || block);
    }

    pub(crate) fn say(&self, number: u64) {
        for shift in (0..16).rev() {
            self.marker(0, Marker::Say((number >> (4 * shift)) as u8 & 15)).unwrap();
        }
    }

    pub(crate) fn marker(&self, cpu: usize, marker: Marker) -> Result<(), CalibrationError> {
        self.simulation.marker(cpu, marker)
    }

    /// Accesses a linear address at the virtual address that is the same.
    pub(crate) fn load(&self, cpu: usize, linear: u64) {
        self.simulation.access(cpu, linear, 8, false, || Some(self.block(linear)));
    }

    pub(crate) fn store(&self, cpu: usize, linear: u64) {
        self.simulation.access(cpu, linear, 8, true, || Some(self.block(linear)));
    }

    /// First linear address of a node.
    pub(crate) fn start(&self, node: usize) -> u64 {
        self.setup.nodes[..node].iter().map(|node| node.memory.0).sum()
    }

    pub(crate) fn ram(&self) -> u64 {
        self.start(self.setup.nodes.len())
    }

    pub(crate) fn block(&self, linear: u64) -> u64 {
        let node = (0..self.setup.nodes.len())
            .rfind(|node| self.start(*node) <= linear && self.setup.nodes[*node].memory.0 > 0)
            .expect("a node with memory");
        // The last node comes first.
        (100 - node as u64) * (1 << 42) + linear - self.start(node)
    }

    pub(crate) fn physical(&self, linear: u64) -> u64 {
        match self.setup.low_memory.0 {
            low if linear < low => linear,
            low => linear - low + (1 << 32),
        }
    }
}
