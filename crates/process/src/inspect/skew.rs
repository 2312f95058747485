//! Problems with where a process runs, and the commands that fix them.

use atoll_topology::{CpuSet, NodeId, NodeSet};

use super::bytes::NodeBytes;
use super::nodes::NodeMap;
use super::procfs::maps::MappingKind;
use super::snapshot::Snapshot;

/// Less memory than this is never reported.
const BYTES_MIN: u64 = 64 << 20;
/// Share of memory on one node from which the memory counts as being there.
const ONE_NODE: f64 = 0.8;
/// Share of local memory below which threads count as far from it.
const FAR: f64 = 0.2;
/// Share of all cpu time from which a node's threads count.
const BUSY: f64 = 0.05;
/// Maximum number of process ids in one command.
const PIDS_MAX: usize = 8;

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Stable name of the rule.
    pub rule: &'static str,
    /// The problem.
    pub what: String,
    /// The command or commands that fix it.
    pub mend: Vec<String>,
}

/// The problems of these processes; empty on a machine with one node.
pub fn warnings(snapshot: &Snapshot, nodes: &NodeMap) -> Vec<Warning> {
    if nodes.nodes().count() < 2 || snapshot.processes.is_empty() {
        return Vec::new();
    }
    let view = SkewInput::new(snapshot, nodes);
    let rules = [one_node, far_threads, excluded_node, cpuset, balancing];
    rules.iter().filter_map(|rule| rule(&view)).collect()
}

/// The input of the rules.
struct SkewInput<'a> {
    snapshot: &'a Snapshot,
    nodes: &'a NodeMap,
    /// Nodes on which threads run.
    running: NodeSet,
    /// The node with the most private and shared memory (files are the page cache's), and its share.
    fullest: Option<(NodeId, f64)>,
    bytes: u64,
}

fn is_own(kind: MappingKind) -> bool {
    !matches!(kind, MappingKind::Program | MappingKind::File | MappingKind::Unknown)
}

/// The node with the largest part, and its share of the parts with a known node.
fn fullest(bytes: &NodeBytes) -> Option<(NodeId, f64, u64)> {
    let known = || bytes.iter().filter_map(|(node, bytes)| Some(((*node)?, *bytes)));
    let total: u64 = known().map(|(_, bytes)| bytes).sum();
    let (node, most) = known().max_by_key(|(node, bytes)| (*bytes, std::cmp::Reverse(*node)))?;
    (total > 0).then(|| (node, most as f64 / total as f64, total))
}

impl<'a> SkewInput<'a> {
    fn new(snapshot: &'a Snapshot, nodes: &'a NodeMap) -> Self {
        let own = fullest(&snapshot.bytes_of(is_own));
        Self {
            snapshot,
            nodes,
            running: running(snapshot),
            fullest: own.map(|(node, share, _)| (node, share)),
            bytes: own.map_or(0, |(_, _, bytes)| bytes),
        }
    }

    fn pids(&self) -> Vec<u32> {
        self.snapshot.processes.iter().map(|process| process.id.pid).collect()
    }

    /// The command that moves the pages of a node to the node where the threads run. Returns no command if
    /// there are several such nodes, since `migratepages` moves all pages of a node to one other.
    fn pages_to_threads(&self, node: NodeId) -> Vec<String> {
        match self.running.first().filter(|_| self.running.len() == 1) {
            Some(to) => vec![self.for_each(|pid| format!("migratepages {pid} {node} {to}"))],
            None => Vec::new(),
        }
    }

    /// One command for each process, or a loop over all of them.
    fn for_each(&self, command: impl Fn(&str) -> String) -> String {
        match self.pids().as_slice() {
            [pid] => command(&pid.to_string()),
            pids => {
                let more = if pids.len() > PIDS_MAX { " …" } else { "" };
                let first: Vec<String> = pids.iter().take(PIDS_MAX).map(u32::to_string).collect();
                format!("for p in {}{more}; do {}; done", first.join(" "), command("$p"))
            }
        }
    }
}

/// Nodes whose threads use a significant share of the time; if nothing runs, those of all threads.
fn running(snapshot: &Snapshot) -> NodeSet {
    let total: f64 = snapshot.nodes.iter().map(|row| row.cpu_share).sum();
    let rows = snapshot.nodes.iter().filter(|row| row.threads > 0);
    let busy = rows.filter(|row| total < 0.01 || row.cpu_share / total >= BUSY);
    busy.filter_map(|row| row.node).collect()
}

/// Memory on one node, threads on several.
fn one_node(view: &SkewInput<'_>) -> Option<Warning> {
    let shared = fullest(&view.snapshot.bytes_of(MappingKind::is_shared))
        .filter(|(_, share, bytes)| *share >= ONE_NODE && *bytes >= BYTES_MIN);
    let (what, node, share) = match (shared, view.fullest) {
        (Some((node, share, _)), _) => ("shared memory", node, share),
        (None, Some((node, share))) if share >= ONE_NODE && view.bytes >= BYTES_MIN => {
            ("memory", node, share)
        }
        _ => return None,
    };
    if view.running.len() < 2 {
        return None;
    }
    let cause = if is_default(view) {
        ": under the policy 'default' the thread that touches a page first decides, so one loader \
         may have done it"
    } else {
        ""
    };
    // Only a restart spreads pages: migratepages moves each node's pages to one other node, not to several.
    let mend = vec!["atoll run -i all -- COMMAND   # restart it with its pages interleaved".into()];
    Some(Warning {
        rule: "memory_on_one_node",
        what: format!(
            "{:.0} % of the {what} is on node {node} while threads run on nodes {}{cause}",
            100.0 * share,
            view.running
        ),
        mend,
    })
}

/// Whether only the default policy is in force, as far as known.
fn is_default(view: &SkewInput<'_>) -> bool {
    let memories = view.snapshot.processes.iter().filter_map(|process| process.memory.as_ref());
    let mut policies = memories.filter_map(|memory| memory.policies.as_ref()).flatten();
    policies.all(|policy| policy.policy == "default" || policy.policy == "local")
}

/// Threads on nodes that hold little of the memory.
fn far_threads(view: &SkewInput<'_>) -> Option<Warning> {
    let (node, share) = view.fullest.filter(|_| view.bytes >= BYTES_MIN)?;
    let rows = || view.snapshot.nodes.iter();
    let on = rows().filter(|row| row.node.is_some_and(|node| view.running.contains(node)));
    let local: f64 = on.map(|row| row.share).sum();
    if local >= FAR || view.running.is_empty() || share < ONE_NODE {
        return None;
    }
    // That rule says more, and has the same fix.
    if excluded_node(view).is_some() {
        return None;
    }
    let cpus = rows().find(|row| row.node == Some(node)).map(|row| row.cpus.clone());
    let running = &view.running;
    let mut mend = view.pages_to_threads(node);
    if let Some(cpus) = cpus.filter(|cpus| !cpus.is_empty()) {
        mend.push(view.for_each(|pid| format!("taskset -acp {cpus} {pid}")));
    }
    Some(Warning {
        rule: "threads_far_from_memory",
        what: format!(
            "threads run on {} and {:.0} % of the memory is on node {node}",
            named(running),
            100.0 * share
        ),
        mend,
    })
}

/// An affinity that leaves out the node with the memory.
fn excluded_node(view: &SkewInput<'_>) -> Option<Warning> {
    let (node, share) = view.fullest.filter(|(_, share)| *share >= 0.5)?;
    let (_, cpus) = view.nodes.nodes().find(|(id, _)| *id == node)?;
    if view.bytes < BYTES_MIN || cpus.is_empty() {
        return None;
    }
    let mut union = CpuSet::new();
    for (_, thread) in view.snapshot.threads() {
        if !thread.cpus_allowed.is_subset(&union) {
            union = union.union(&thread.cpus_allowed);
        }
    }
    if union.is_empty() || !union.intersection(cpus).is_empty() {
        return None;
    }
    let allowed = union.union(cpus);
    Some(Warning {
        rule: "affinity_excludes_memory",
        what: format!(
            "no thread may run on node {node} (cpus {cpus}), which holds {:.0} % of the memory",
            100.0 * share
        ),
        mend: [
            view.pages_to_threads(node),
            vec![view.for_each(|pid| format!("taskset -acp {allowed} {pid}"))],
        ]
        .concat(),
    })
}

/// A cpuset that allows memory on some nodes only.
fn cpuset(view: &SkewInput<'_>) -> Option<Warning> {
    let all = view.nodes.with_memory();
    let process = view.snapshot.processes.iter().find(|process| {
        let allowed = process.nodes_allowed.intersection(all);
        !allowed.is_empty() && allowed.len() < all.len()
    })?;
    let allowed = process.nodes_allowed.intersection(all);
    let pid = process.id.pid;
    Some(Warning {
        rule: "cpuset_limits_nodes",
        what: format!(
            "the cpuset of process {pid} allows memory on {} only, of nodes {all}",
            named(&allowed)
        ),
        mend: vec![format!(
            "systemctl set-property UNIT AllowedMemoryNodes={all}   # the unit in /proc/{pid}/cgroup; \
             it moves pages"
        )],
    })
}

/// Automatic balancing that is active, or moves pages placed on purpose.
fn balancing(view: &SkewInput<'_>) -> Option<Warning> {
    let mode = view.snapshot.balancing.mode.filter(|mode| *mode != 0)?;
    if view.running.len() < 2 || view.bytes < BYTES_MIN {
        return None;
    }
    Some(Warning {
        rule: "balancing_on",
        what: format!(
            "automatic NUMA balancing is on (mode {mode}): pages without a policy follow the threads \
             that touch them, at the price of page faults"
        ),
        mend: vec!["sysctl kernel.numa_balancing=0".to_owned()],
    })
}

/// `node 0`, `nodes 0-3`
fn named(nodes: &NodeSet) -> String {
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{word} {nodes}")
}
