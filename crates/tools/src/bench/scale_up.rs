//! A measured pass over data, on more threads of a declared machine: which resource saturates first.
//!
//! Threads are dealt evenly to the nodes. Rows that are aligned lie where the threads are that read them; rows that
//! know nothing of nodes all lie on the first one. A thread takes the time for a byte that it took where the pass was
//! measured, so that what is asked is only when memory and links have no more to give.

use anyhow::{Result, anyhow};
use atoll_model::{
    Assumption, Assumptions, ControllerFlow, Costs, Estimate, Flows, LinkFlow, NodeFlow, Resource,
};
use atoll_topology::{Knowledge, Node, NodeId, links_assumed};
use serde::Serialize;

/// Bytes of a line.
const LINE: f64 = 64.0;

/// A pass as it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPass {
    /// The unit of its results: queries, rows.
    pub items: f64,
    /// Bytes that it reads.
    pub bytes: f64,
    /// Time of all threads together in which they are read, ns.
    pub thread_ns: f64,
    /// Further time in which only one thread works, ns.
    pub serial_ns: f64,
}

/// The prediction for another machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleUp {
    /// Name of the machine.
    pub machine: String,
    /// Its assumptions.
    pub notes: Vec<String>,
    /// One for each number of threads that the machine has cpus for.
    pub points: Vec<ScalePoint>,
    /// The first bottleneck other than the threads, if rows are aligned; None without one.
    pub aligned_first: Option<String>,
    /// The same for rows unaware of nodes.
    pub unaware_first: Option<String>,
}

/// So many threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalePoint {
    /// How many.
    pub threads: usize,
    /// Rows where the threads are.
    pub aligned: ScaledPass,
    /// All rows on the first node.
    pub unaware: ScaledPass,
}

/// A pass on this many threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaledPass {
    /// Items a second.
    pub rate: f64,
    /// What takes longest.
    pub narrowest: String,
}

/// The bottleneck.
#[derive(Clone, Copy, PartialEq)]
enum Narrowest {
    /// What only one thread does.
    Serial,
    Machine(Resource),
}

impl Narrowest {
    /// Whether more threads would help.
    fn is_threads(self) -> bool {
        matches!(self, Self::Machine(Resource::Cpus(_)))
    }

    fn name(self) -> String {
        match self {
            Self::Serial => "what one thread does alone".to_owned(),
            Self::Machine(resource) => resource.to_string(),
        }
    }
}

/// Scales a pass up on a machine by its name or file.
///
/// # Errors
/// Where the machine is not known or its links do not connect its nodes.
pub fn scale_up(machine: &str, pass: &MeasuredPass, threads: &[usize]) -> Result<ScaleUp> {
    let mut knowledge = atoll_formats::open(machine)?;
    let mut notes = vec![format!(
        "a thread takes {:.2} ns for a line, as here",
        pass.thread_ns * LINE / pass.bytes
    )];
    if knowledge.machine.links.is_empty() {
        knowledge.machine.links = links_assumed(&knowledge.machine);
        notes.push("links: assumed, as the distances suggest".to_owned());
    }
    let compute = Assumption::new(pass.thread_ns * LINE / pass.bytes, "measured");
    let assumptions = Assumptions { compute_per_access: Some(compute), ..Assumptions::default() };
    let costs = Costs::from_knowledge(&knowledge, &assumptions)?;
    let nodes: Vec<&Node> = knowledge.machine.nodes_with_cpus().collect();
    let cpus: usize = nodes.iter().map(|node| node.cpus.len()).sum();
    let (mut points, mut aligned_first, mut unaware_first) = (Vec::new(), None, None);
    for threads in threads.iter().copied().filter(|threads| *threads <= cpus) {
        let scale = |is_aligned, first: &mut Option<String>| -> Result<_> {
            let flows = flows(&knowledge, &nodes, pass, threads, is_aligned)?;
            let (rate, narrowest) = scaled(&costs, &flows, pass)?;
            let name = narrowest.name();
            if !narrowest.is_threads() && first.is_none() {
                *first = Some(format!("{name} at {threads} threads"));
            }
            Ok(ScaledPass { rate, narrowest: name })
        };
        let aligned = scale(true, &mut aligned_first)?;
        let unaware = scale(false, &mut unaware_first)?;
        points.push(ScalePoint { threads, aligned, unaware });
    }
    let machine = knowledge.machine.name.clone();
    Ok(ScaleUp { machine, notes, points, aligned_first, unaware_first })
}

/// Items per second, and the bottleneck.
fn scaled(costs: &Costs, flows: &Flows, pass: &MeasuredPass) -> Result<(f64, Narrowest)> {
    let bounds = Estimate::from_flows(costs, flows)?.independent;
    let rate = pass.items / (bounds.lower.0 + pass.serial_ns) * 1e9;
    let narrowest = match bounds.narrowest {
        Some(resource) if bounds.lower.0 >= pass.serial_ns => Narrowest::Machine(resource),
        _ => Narrowest::Serial,
    };
    Ok((rate, narrowest))
}

/// Reads by source and target for this many threads.
fn flows(
    knowledge: &Knowledge,
    nodes: &[&Node],
    pass: &MeasuredPass,
    threads: usize,
    is_aligned: bool,
) -> Result<Flows> {
    let machine = &knowledge.machine;
    let all = machine.nodes.len();
    let mut flows = Flows {
        nodes: vec![
            NodeFlow {
                memory: vec![0; all],
                clean: vec![0; all],
                dirty: vec![0; all],
                ..NodeFlow::default()
            };
            all
        ],
        controllers: vec![ControllerFlow::default(); all],
        links: vec![LinkFlow::default(); machine.links.len()],
    };
    let position = |id: NodeId| machine.nodes.iter().position(|node| node.id == id).unwrap_or(0);
    let home_of_all =
        machine.nodes_with_memory().next().map_or(machine.nodes[0].id, |node| node.id);
    for (node, own) in nodes.iter().zip(dealt(threads, nodes)) {
        let bytes = (pass.bytes * own as f64 / threads as f64) as u64;
        let cores = machine.cores.iter().filter(|core| core.cpus.is_subset(&node.cpus)).count();
        let flow = &mut flows.nodes[position(node.id)];
        flow.busy_cpus = own.min(cores.max(1)) as f64;
        flow.accesses = bytes / LINE as u64;
        let nearest = machine.nearest_with_memory(node.id).map_or(home_of_all, |near| near.id);
        let home = if is_aligned { nearest } else { home_of_all };
        flows.controllers[position(home)].read += bytes;
        let route = knowledge.route(home, node.id).ok_or_else(|| {
            anyhow!("no links connect node {home} with node {} of {}", node.id, machine.name)
        })?;
        for (link, from) in route.links.iter().zip(&route.nodes) {
            let at = machine.links.iter().position(|it| it.id == *link).unwrap_or_default();
            let flow = &mut flows.links[at];
            match machine.links[at].a == *from {
                true => flow.forward += bytes,
                false => flow.backward += bytes,
            }
        }
    }
    Ok(flows)
}

/// Threads of each node: one to each in turn while it has cpus.
fn dealt(threads: usize, nodes: &[&Node]) -> Vec<usize> {
    let mut dealt = vec![0; nodes.len()];
    let mut left = threads;
    while left > 0 {
        let before = left;
        for (own, node) in dealt.iter_mut().zip(nodes) {
            if left > 0 && *own < node.cpus.len() {
                *own += 1;
                left -= 1;
            }
        }
        if before == left {
            break;
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pass of 64 MB in 16 ms of one thread: 4 GB/s.
    const PASS: MeasuredPass =
        MeasuredPass { items: 1000.0, bytes: 64e6, thread_ns: 16e6, serial_ns: 0.0 };

    #[test]
    fn rows_on_one_node_saturate_its_controller_before_aligned_rows_saturate_anything() {
        let found = scale_up("nehalem-ex-4", &PASS, &[1, 2, 4, 8, 16, 32]).expect("it scales");
        let rates: Vec<f64> = found.points.iter().map(|point| point.aligned.rate).collect();
        assert!(rates.is_sorted(), "{rates:?}");
        assert!((rates[0] - 62_500.0).abs() < 1.0, "{rates:?}");
        let last = found.points.last().expect("points");
        assert!(last.aligned.rate > 2.0 * last.unaware.rate, "{last:?}");
        let first = found.unaware_first.expect("something saturates");
        assert!(first.contains("node 0"), "{first}");
    }

    #[test]
    fn serial_work_of_one_thread_bounds_all_others() {
        let pass = MeasuredPass { serial_ns: 4e6, ..PASS };
        let found = scale_up("nehalem-ex-4", &pass, &[1, 8, 32, 1000]).expect("it scales");
        assert_eq!(found.points.len(), 3, "the machine has fewer cpus than 1000");
        let first = found.aligned_first.expect("something saturates");
        assert_eq!(first, "what one thread does alone at 8 threads");
        assert!(found.points.iter().all(|point| point.aligned.rate < 1000.0 / 4e6 * 1e9));
    }

    #[test]
    fn a_machine_that_is_not_known_is_an_error() {
        assert!(scale_up("no-such-machine", &PASS, &[1]).is_err());
    }
}
