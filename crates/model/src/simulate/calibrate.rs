//! Fits a protocol to measurements.

use atoll_topology::{Knowledge, NodeId};

use super::interconnect::LINE;
use super::{Access, AccessKind, Interconnect, Protocol, SimulationError, Waiting, Work};

/// Iterations of the search: each leaves 0.618 of the interval, in total 10⁻⁹ of it.
const ROUNDS: usize = 43;
/// Bytes that a thread reads in a simulated measurement: any number gives the same bandwidth.
const READ: f64 = 1e6;

/// Measurements of a machine whose nodes are all linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Raw bandwidth of a link in one direction, including headers, GB/s: its clock times its width.
    pub link_raw: f64,
    /// Data over one link in one direction, alone, GB/s.
    pub link: f64,
    /// Data of each of two such flows of different nodes over one link, GB/s.
    pub link_shared: f64,
    /// Threads on each node in the measurements below.
    pub threads: u32,
    /// Total of all nodes reading from all others, GB/s.
    pub all_remote: f64,
    /// Total of all nodes reading their own memory, GB/s.
    pub all_local: f64,
}

/// Fits the protocol to the measurements: the header from the link's data and raw bandwidth, the loss of meeting flows
/// from two flows and one, and the snoop by least squared relative deviations of the two measurements of all nodes at
/// once, simulated on this machine.
pub fn calibrate(knowledge: &Knowledge, seen: &Observed) -> Result<Protocol, SimulationError> {
    check("a link's raw bandwidth", seen.link_raw, seen.link, "more than that of its data")?;
    check("a link's bandwidth", seen.link, seen.link_shared, "more than that of a flow")?;
    check("remote bandwidth", seen.all_remote, 0.0, "more than 0")?;
    check("local bandwidth", seen.all_local, 0.0, "more than 0")?;
    let header = LINE * (seen.link_raw / seen.link - 1.0);
    let meeting = (2.0 * seen.link_shared / seen.link).min(1.0);
    let with = |snoop| Protocol { header, snoop, meeting };
    let deviation = |snoop| {
        let machine = Interconnect::from_knowledge(knowledge, with(snoop))?;
        let remote = machine.everywhere(knowledge, seen.threads, true)?;
        let local = machine.everywhere(knowledge, seen.threads, false)?;
        let squared = |simulated: f64, measured: f64| (simulated / measured - 1.0).powi(2);
        Ok(squared(remote, seen.all_remote) + squared(local, seen.all_local))
    };
    Ok(with(least(deviation, 0.0, LINE)?))
}

fn check(
    what: &'static str,
    value: f64,
    above: f64,
    expected: &'static str,
) -> Result<(), SimulationError> {
    match value.is_finite() && above.is_finite() && value > above {
        true => Ok(()),
        false => Err(SimulationError::Observed { what, value, expected }),
    }
}

/// The minimum of a unimodal function, by golden-section search.
fn least(
    function: impl Fn(f64) -> Result<f64, SimulationError>,
    mut low: f64,
    mut high: f64,
) -> Result<f64, SimulationError> {
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..ROUNDS {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        match function(a)? < function(b)? {
            true => high = b,
            false => low = a,
        }
    }
    Ok((low + high) / 2.0)
}

impl Interconnect {
    /// GB/s of this number of threads on each node that read their own node's memory, or evenly that of all others.
    fn everywhere(
        &self,
        knowledge: &Knowledge,
        threads: u32,
        remote: bool,
    ) -> Result<f64, SimulationError> {
        let nodes: Vec<NodeId> = knowledge.machine.nodes_with_cpus().map(|node| node.id).collect();
        let work = |at: NodeId, home: NodeId, bytes| Work {
            accesses: vec![Access { at, home, bytes, kind: AccessKind::Read }],
            own: 0.0,
        };
        let others = |at: NodeId| nodes.iter().copied().filter(move |home| *home != at);
        let mut all = Vec::new();
        for &at in &nodes {
            let homes: Vec<NodeId> = if remote { others(at).collect() } else { vec![at] };
            let turns = homes.iter().cycle().take(threads as usize);
            all.extend(turns.map(|home| vec![work(at, *home, READ)]));
        }
        Ok(self.run(&all, Waiting::Tight)?.bandwidth())
    }
}
