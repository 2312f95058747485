//! The order in which the cpus of a node join a measurement.

use atoll_topology::{CpuId, Machine, Node};

/// Cpus of a node in the order in which threads take them: first one of each core, round-robin over the domains so
/// that few threads cover all caches and paths, then their siblings in the same order.
pub(crate) fn in_order(machine: &Machine, node: &Node) -> Vec<CpuId> {
    let mut ranked: Vec<_> = machine
        .cpus
        .iter()
        .filter(|cpu| node.cpus.contains(cpu.id))
        .map(|cpu| {
            let core = machine.cores.iter().find(|core| core.id == cpu.core);
            let thread =
                core.map_or(0, |core| core.cpus.iter().take_while(|id| *id < cpu.id).count());
            (thread, cpu)
        })
        .collect();
    ranked.sort_by_key(|(thread, cpu)| (*thread, cpu.core, cpu.id));
    let mut seats: Vec<_> = Vec::with_capacity(ranked.len());
    for (i, (thread, cpu)) in ranked.iter().enumerate() {
        let before = &ranked[..i];
        let row = before.iter().filter(|(t, c)| t == thread && c.domain == cpu.domain).count();
        seats.push((*thread, row, cpu.domain, cpu.id));
    }
    seats.sort_unstable();
    seats.into_iter().map(|seat| seat.3).collect()
}

/// The cpu that measures latency: the first of the last core, since the first cores serve interrupts.
pub(crate) fn for_latency(machine: &Machine, node: &Node) -> Option<CpuId> {
    let cores = machine.cores.iter().filter(|core| core.cpus.is_subset(&node.cpus));
    cores.filter_map(|core| core.cpus.first()).max().or_else(|| node.cpus.last())
}

/// Cpus of the node on other cores than `cpu`; on a single core, its other threads.
pub(crate) fn beside(machine: &Machine, node: &Node, cpu: CpuId) -> Vec<CpuId> {
    let mut seats = in_order(machine, node);
    seats.retain(|seat| *seat != cpu);
    let core = |id| machine.cpu(id).map(|cpu| cpu.core);
    let (siblings, others): (Vec<_>, Vec<_>) =
        seats.into_iter().partition(|seat| core(*seat) == core(cpu));
    if others.is_empty() { siblings } else { others }
}

/// Numbers of threads to visit: 1, 2, 4, … and all; or 1 and all.
pub(crate) fn counts(cpus: usize, thorough: bool) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |n: &usize| n.checked_mul(2));
    let mut counts: Vec<usize> =
        doubled.take_while(|n| *n < cpus).take(if thorough { usize::MAX } else { 1 }).collect();
    counts.extend((cpus > 0).then_some(cpus));
    counts
}

#[cfg(test)]
mod tests {
    use atoll_testkit::machines;
    use atoll_topology::NodeId;

    use super::*;

    fn numbers(cpus: &[CpuId]) -> Vec<u32> {
        cpus.iter().map(|cpu| cpu.0).collect()
    }

    #[test]
    fn threads_join_core_by_core_across_domains_and_then_on_siblings() {
        let machine = machines::two_nodes();
        let node = machine.node(NodeId(1)).unwrap();
        assert_eq!(numbers(&in_order(&machine, node)), [8, 12, 10, 14, 9, 13, 11, 15]);
        let machine = machines::sub_numa_clusters();
        let node = machine.node(NodeId(0)).unwrap();
        assert_eq!(numbers(&in_order(&machine, node)), [0, 3, 1, 4, 2, 5, 24, 27, 25, 28, 26, 29]);
    }

    #[test]
    fn every_cpu_has_one_seat_on_every_machine() {
        for machine in machines::all() {
            for node in &machine.nodes {
                let mut seats = in_order(&machine, node);
                seats.sort();
                assert_eq!(seats, node.cpus.iter().collect::<Vec<_>>(), "{}", machine.name);
                assert_eq!(for_latency(&machine, node).is_some(), !seats.is_empty());
            }
        }
    }

    #[test]
    fn load_comes_from_other_cores_where_there_are_some() {
        let machine = machines::two_nodes();
        let node = machine.node(NodeId(0)).unwrap();
        let cpu = for_latency(&machine, node).unwrap();
        assert_eq!(cpu, CpuId(6));
        assert_eq!(numbers(&beside(&machine, node, cpu)), [0, 4, 2, 1, 5, 3]);
        let machine = machines::eight_uneven_nodes();
        let single = machine.node(NodeId(4)).unwrap();
        assert_eq!(beside(&machine, single, single.cpus.first().unwrap()), []);
    }

    #[test]
    fn counts_double_up_to_all() {
        assert_eq!(counts(0, true), [0; 0]);
        assert_eq!(counts(1, true), [1]);
        assert_eq!(counts(6, true), [1, 2, 4, 6]);
        assert_eq!(counts(8, true), [1, 2, 4, 8]);
        assert_eq!(counts(8, false), [1, 8]);
        assert_eq!(counts(1, false), [1]);
    }
}
