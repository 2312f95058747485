//! The setup of the simulation.

use std::path::PathBuf;

use atoll_simulation::{Counting, CpuSeat, Crossing, NodeMemory, SETUP_VERSION, Setup};
use atoll_topology::{CoreId, DomainId, Knowledge, NodeId};

use super::{Guest, LOW_MEMORY, position};

pub(super) fn setup(guest: &Guest, counting: Counting, report: PathBuf) -> Setup {
    let machine = &guest.knowledge.machine;
    let nodes = machine.nodes.iter().map(|node| NodeMemory { id: node.id, memory: node.memory });
    Setup {
        version: SETUP_VERSION,
        counting,
        cpus: seats(guest),
        nodes: nodes.collect(),
        line: guest.model.line,
        l1: guest.model.l1,
        l2: guest.model.l2,
        llc: guest.model.llc.clone(),
        dtlb: guest.model.dtlb,
        links: machine.links.len(),
        routes: routes(&guest.knowledge),
        low_memory: LOW_MEMORY,
        report,
    }
}

/// The seat of every vCPU. A hole never runs: it has a core that no other vCPU shares.
fn seats(guest: &Guest) -> Vec<CpuSeat> {
    let machine = &guest.knowledge.machine;
    let mut next = machine.cores.len() as u32;
    let mut hole = |node: NodeId| {
        let core = CoreId(next);
        next += 1;
        let domain = machine.domains_of(node).next().map_or(DomainId(0), |domain| domain.id);
        CpuSeat { node: position(node), domain, core }
    };
    let seat = |place: &super::sockets::VcpuSlot| match place.cpu.and_then(|cpu| machine.cpu(cpu)) {
        Some(cpu) => CpuSeat { node: position(cpu.node), domain: cpu.domain, core: cpu.core },
        None => hole(place.node),
    };
    guest.sockets.places.iter().map(seat).collect()
}

fn routes(known: &Knowledge) -> Vec<Vec<Vec<Crossing>>> {
    let nodes = &known.machine.nodes;
    let row = |from: NodeId| nodes.iter().map(|to| crossings(known, from, to.id)).collect();
    nodes.iter().map(|from| row(from.id)).collect()
}

fn crossings(known: &Knowledge, from: NodeId, to: NodeId) -> Vec<Crossing> {
    let Some(route) = known.route(from, to) else { return Vec::new() };
    let steps = route.nodes.windows(2).map(|step| step[0] < step[1]);
    route.links.iter().zip(steps).map(|(&link, forward)| Crossing { link, forward }).collect()
}
