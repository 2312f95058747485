//! Shuffles on machines of many shapes.

mod batches;
mod integers;
mod loads;
mod schedules;
mod visits;

use std::sync::Arc;

use atoll_placement::Arena;
use atoll_primitives::Context;
use atoll_primitives::shuffle::{Coordination, Moved, Order, Shuffle};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_topology::{Bytes, Machine, MachineBuilder, NodeId, NodeShape};

const ORDERS: [Order; 3] = [Order::Naive, Order::Random(42), Order::Ring];

/// Every order × what moves × coordination.
fn shuffles() -> impl Iterator<Item = Shuffle> {
    let coordinations = [Coordination::Tight, Coordination::Loose];
    ORDERS.into_iter().flat_map(move |order| {
        Moved::ALL.into_iter().flat_map(move |moved| {
            coordinations.into_iter().map(move |coordination| Shuffle {
                order,
                moved,
                coordination,
            })
        })
    })
}

fn ring(moved: Moved) -> Shuffle {
    Shuffle { order: Order::Ring, moved, coordination: Coordination::Tight }
}

/// Workers on a synthetic machine.
fn context(machine: Machine, threads: Option<usize>) -> Context {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let options = RuntimeOptions { threads, ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(&machine), kernel.clone(), options);
    Context::new(runtime.expect("the runtime starts"), Arena::new(machine, kernel, None))
}

/// Nodes of this many cpus each, at equal distances.
fn machine(cpus: &[u32]) -> Machine {
    let nodes = (0..).zip(cpus);
    let nodes = nodes
        .map(|(id, cpus)| NodeShape::with_cpus(NodeId(id), 1, *cpus, 1).memory(Bytes(1 << 30)));
    let builder = nodes.fold(MachineBuilder::new("test"), MachineBuilder::node);
    let row = |from| (0..cpus.len()).map(|to| if from == to { 10 } else { 21 }).collect();
    builder.distances((0..cpus.len()).map(row).collect()).build().expect("a machine that can be")
}

/// This many workers on each node.
fn workers(counts: &[usize]) -> Vec<NodeId> {
    let nodes = (0..).map(NodeId).zip(counts);
    nodes.flat_map(|(node, count)| std::iter::repeat_n(node, *count)).collect()
}

/// A bundled machine description.
fn declared(name: &str) -> Machine {
    atoll_formats::open(name).expect("a machine that ships").machine
}
