//! The number of workers of each domain of a machine, and their bindings. Pure: machine and
//! options in, groups out.

use atoll_topology::{CpuId, CpuSet, Domain, DomainId, Machine, Node, NodeId};

use crate::{Pin, RuntimeError, RuntimeOptions, THREADS_MAX};

/// A group before it has threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    pub(crate) node: NodeId,
    pub(crate) domain: DomainId,
    /// Cpus of the domain to be used.
    pub(crate) cpus: CpuSet,
    /// The cpus each worker is bound to, ordered by cpu.
    pub(crate) seats: Vec<CpuSet>,
}

/// The groups that get at least one worker, ordered by node, then domain.
pub(crate) fn plan(
    machine: &Machine,
    options: &RuntimeOptions,
) -> Result<Vec<GroupPlan>, RuntimeError> {
    let usable = |cpus: &CpuSet| match &options.cpus {
        Some(wanted) => cpus.intersection(wanted),
        None => cpus.clone(),
    };
    let mut nodes: Vec<&Node> =
        machine.nodes_with_cpus().filter(|node| !usable(&node.cpus).is_empty()).collect();
    nodes.sort_by_key(|node| node.id);
    let cpus: Vec<usize> = nodes.iter().map(|node| usable(&node.cpus).len()).collect();
    let threads = threads(machine, options, cpus.iter().sum())?;
    let mut groups = Vec::new();
    for (node, workers) in nodes.into_iter().zip(spread(threads, &cpus)) {
        groups.extend(plan_node(machine, node, workers, options.pin, &usable)?);
    }
    Ok(groups)
}

fn threads(
    machine: &Machine,
    options: &RuntimeOptions,
    cpus: usize,
) -> Result<usize, RuntimeError> {
    if cpus == 0 {
        return Err(RuntimeError::NoCpus { machine: machine.name.clone() });
    }
    let asked = options.threads.unwrap_or(cpus);
    if (1..=THREADS_MAX).contains(&asked) {
        Ok(asked)
    } else {
        Err(RuntimeError::Threads { asked, max: THREADS_MAX })
    }
}

fn plan_node(
    machine: &Machine,
    node: &Node,
    workers: usize,
    pin: Pin,
    usable: &dyn Fn(&CpuSet) -> CpuSet,
) -> Result<Vec<GroupPlan>, RuntimeError> {
    let mut domains: Vec<&Domain> = machine.domains_of(node.id).collect();
    domains.sort_by_key(|domain| domain.id);
    check_domains(node, &domains)?;
    let cpus: Vec<CpuSet> = domains.iter().map(|domain| usable(&domain.cpus)).collect();
    let counts: Vec<usize> = cpus.iter().map(CpuSet::len).collect();
    let groups = domains.into_iter().zip(cpus).zip(spread(workers, &counts));
    let groups = groups.filter(|(_, workers)| *workers > 0);
    Ok(groups
        .map(|((domain, cpus), workers)| GroupPlan {
            node: node.id,
            domain: domain.id,
            seats: seats(machine, &cpus, workers, pin),
            cpus,
        })
        .collect())
}

fn check_domains(node: &Node, domains: &[&Domain]) -> Result<(), RuntimeError> {
    let all = domains.iter().fold(CpuSet::new(), |all, domain| all.union(&domain.cpus));
    let count: usize = domains.iter().map(|domain| domain.cpus.len()).sum();
    if all == node.cpus && count == all.len() {
        Ok(())
    } else {
        Err(RuntimeError::Domains { node: node.id, cpus: node.cpus.clone(), domains: all })
    }
}

/// Distributes threads over places with this many cpus each: one to each place in turn while it has cpus left;
/// every full round over all cpus gives each place its cpus once more.
fn spread(threads: usize, cpus: &[usize]) -> Vec<usize> {
    let all: usize = cpus.iter().sum();
    let (rounds, mut left) = (threads / all, threads % all);
    let mut dealt = vec![0; cpus.len()];
    while left > 0 {
        for (place, dealt) in dealt.iter_mut().enumerate() {
            if left > 0 && *dealt < cpus[place] {
                *dealt += 1;
                left -= 1;
            }
        }
    }
    dealt.iter().zip(cpus).map(|(dealt, cpus)| dealt + rounds * cpus).collect()
}

fn seats(machine: &Machine, cpus: &CpuSet, workers: usize, pin: Pin) -> Vec<CpuSet> {
    match pin {
        Pin::Node => vec![cpus.clone(); workers],
        Pin::Cpu => {
            let mut order: Vec<CpuId> = cpus.iter().collect();
            order.sort_by_key(|cpu| (sibling_rank(machine, *cpu), *cpu));
            let mut chosen: Vec<CpuId> = order.into_iter().cycle().take(workers).collect();
            chosen.sort();
            chosen.into_iter().map(|cpu| CpuSet::from_iter([cpu])).collect()
        }
    }
}

/// Number of earlier hardware threads of the same core.
fn sibling_rank(machine: &Machine, cpu: CpuId) -> usize {
    let core = machine.cores.iter().find(|core| core.cpus.contains(cpu));
    core.and_then(|core| core.cpus.iter().position(|sibling| sibling == cpu)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn fewer_threads_than_places_go_to_the_first_places() {
        assert_eq!(spread(2, &[4, 4, 4]), [1, 1, 0]);
    }

    #[test]
    fn fewer_threads_than_cpus_are_spread_evenly_until_a_place_is_full() {
        assert_eq!(spread(8, &[2, 16]), [2, 6]);
        assert_eq!(spread(5, &[4, 4]), [3, 2]);
    }

    #[test]
    fn more_threads_than_cpus_follow_the_cpus() {
        assert_eq!(spread(9, &[1, 3]), [3, 6]);
        assert_eq!(spread(13, &[1, 3]), [4, 9]);
    }
}
