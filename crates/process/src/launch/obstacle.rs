//! Obstacles to a placement, with their causes and remedies.

use atoll_sys::{CallError, CallErrorKind, PolicyMode};
use atoll_topology::{Bytes, CpuSet, IdSet, Machine, NodeId, NodeSet, ResolvedSet};

use super::policy::{MemoryPolicy, mode_name};

/// Why the kernel does not, or may not, carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ObstacleCause {
    /// The machine has no such node.
    NoSuchNode,
    /// The machine has no such cpu.
    NoSuchCpu,
    /// The node has no memory, or no cpus.
    NothingThere,
    /// Outside of the process's cpuset or affinity mask.
    NotAllowed,
    /// A seccomp filter or a missing capability (`EPERM`).
    Forbidden,
    /// The kernel lacks the call or the mode.
    KernelTooOld,
    /// The node has almost no free memory.
    NodeFull,
    /// The kernel's error is in the message.
    Other,
}

impl ObstacleCause {
    /// Whether the node or cpu does not exist.
    pub fn is_no_such(self) -> bool {
        matches!(self, Self::NoSuchNode | Self::NoSuchCpu)
    }

    /// Whether this machine or kernel can never do it, regardless of rights.
    pub fn is_not_here(self) -> bool {
        matches!(self, Self::NoSuchNode | Self::NoSuchCpu | Self::NothingThere | Self::KernelTooOld)
    }
}

/// A part of a placement that is refused, impossible or at risk.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Obstacle {
    /// The instance; `None` if it concerns all.
    pub instance: Option<usize>,
    /// The system call that is refused, or omitted because of the obstacle.
    pub call: &'static str,
    /// The cause.
    pub cause: ObstacleCause,
    /// The problem, the cause, and the remedy.
    pub message: String,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.instance {
            Some(instance) => write!(f, "instance {instance}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

pub(super) const AFFINITY: &str = "sched_setaffinity";
pub(super) const POLICY: &str = "set_mempolicy";

fn obstacle(call: &'static str, cause: ObstacleCause, message: String) -> Obstacle {
    Obstacle { instance: None, call, cause, message }
}

/// `node 7`, `nodes 4-5`
fn nodes_text(nodes: &NodeSet) -> String {
    format!("{} {nodes}", by_number(nodes, "node", "nodes"))
}

/// `cpu 7`, `cpus 4-5`
fn cpus_text(cpus: &CpuSet) -> String {
    format!("{} {cpus}", by_number(cpus, "cpu", "cpus"))
}

/// `is` or `are`, `node` or `nodes`: the first for one.
fn by_number<T>(set: &IdSet<T>, one: &'static str, several: &'static str) -> &'static str
where
    T: From<u32> + Into<u32> + Copy,
{
    if set.len() == 1 { one } else { several }
}

/// The resource that nodes provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Give {
    Cpus,
    Memory,
}

impl Give {
    fn call(self) -> &'static str {
        match self {
            Self::Cpus => AFFINITY,
            Self::Memory => POLICY,
        }
    }

    /// The usable nodes that have the resource.
    fn nodes(self, machine: &Machine) -> NodeSet {
        match self {
            Self::Cpus => machine.nodes_with_cpus().map(|node| node.id).collect(),
            Self::Memory => machine.nodes_with_memory().map(|node| node.id).collect(),
        }
    }
}

/// The unusable part of a set of nodes.
pub(super) fn of_nodes(machine: &Machine, set: &ResolvedSet<NodeId>, give: Give) -> Vec<Obstacle> {
    let known: NodeSet = machine.nodes.iter().map(|node| node.id).collect();
    let empty = set.forbidden.intersection(&known).difference(&machine.hidden.nodes);
    let outside = set.forbidden.difference(&empty);
    let mut found = Vec::new();
    if !set.missing.is_empty() {
        let all = known.union(&machine.hidden.nodes);
        found.push(of_missing_nodes(&set.missing, &all, give));
    }
    if !empty.is_empty() {
        found.push(of_empty_nodes(machine, &empty, give));
    }
    if !outside.is_empty() {
        found.push(of_outside_nodes(machine, &outside, give));
    }
    found
}

fn of_missing_nodes(missing: &NodeSet, all: &NodeSet, give: Give) -> Obstacle {
    let (those, here) = (nodes_text(missing), nodes_text(all));
    let does = by_number(missing, "does", "do");
    let message = format!("{those} {does} not exist; this machine has {here}");
    obstacle(give.call(), ObstacleCause::NoSuchNode, message)
}

/// Nodes without the resource, as far as known: the node of a cpu outside of
/// the affinity mask is unknown.
fn of_empty_nodes(machine: &Machine, empty: &NodeSet, give: Give) -> Obstacle {
    let (those, have) = (nodes_text(empty), by_number(empty, "has", "have"));
    let allowed: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    match give {
        Give::Cpus if !machine.hidden.cpus.is_empty() => {
            let message = format!(
                "{those} {have} none of the cpus that this process may use ({allowed}: its \
                 affinity mask or cpuset); --all asks for others anyway, which helps against an \
                 affinity mask"
            );
            obstacle(give.call(), ObstacleCause::NotAllowed, message)
        }
        Give::Cpus => {
            obstacle(give.call(), ObstacleCause::NothingThere, format!("{those} {have} no cpus"))
        }
        Give::Memory => {
            obstacle(give.call(), ObstacleCause::NothingThere, format!("{those} {have} no memory"))
        }
    }
}

/// Nodes outside of the cpuset.
pub(super) fn of_outside_nodes(machine: &Machine, outside: &NodeSet, give: Give) -> Obstacle {
    let (those, are) = (nodes_text(outside), by_number(outside, "is", "are"));
    let list = match give {
        Give::Cpus => "Cpus_allowed_list",
        Give::Memory => "Mems_allowed_list",
    };
    let message = format!(
        "{those} {are} outside the cpuset of this process ({}: {list} in /proc/self/status); \
         widen the cpuset",
        nodes_text(&give.nodes(machine))
    );
    obstacle(give.call(), ObstacleCause::NotAllowed, message)
}

/// The unusable part of a set of cpus.
pub(super) fn of_cpus(
    machine: &Machine,
    set: &ResolvedSet<atoll_topology::CpuId>,
) -> Vec<Obstacle> {
    let allowed: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let mut found = Vec::new();
    if !set.missing.is_empty() {
        let (those, does) = (cpus_text(&set.missing), by_number(&set.missing, "does", "do"));
        let message = format!("{those} {does} not exist here; this process may use {allowed}");
        found.push(obstacle(AFFINITY, ObstacleCause::NoSuchCpu, message));
    }
    if !set.forbidden.is_empty() {
        let message = format!(
            "{} {} outside the affinity mask or cpuset of this process ({allowed}); --all asks \
             for it anyway, which helps against an affinity mask",
            cpus_text(&set.forbidden),
            by_number(&set.forbidden, "is", "are")
        );
        found.push(obstacle(AFFINITY, ObstacleCause::NotAllowed, message));
    }
    found
}

/// The obstacle for an error of `sched_setaffinity`.
pub(super) fn of_affinity(error: CallError, cpus: &CpuSet) -> Obstacle {
    let (cause, reason) = match (error.kind(), error.errno_name()) {
        (_, "EINVAL") => (
            ObstacleCause::NotAllowed,
            "none of them is online and inside the cpuset (Cpus_allowed_list)",
        ),
        (CallErrorKind::Refused, _) => (ObstacleCause::Forbidden, SECCOMP),
        (CallErrorKind::Unsupported, _) => {
            (ObstacleCause::KernelTooOld, "a sandbox hides the call")
        }
        _ => (ObstacleCause::Other, "the kernel gives no reason"),
    };
    let errno = error.errno_name();
    let message = format!("binding threads to {} was refused: {errno}: {reason}", cpus_text(cpus));
    obstacle(AFFINITY, cause, message)
}

const SECCOMP: &str = "a seccomp filter forbids the call or a capability is missing; permit it \
                       (Docker: --cap-add SYS_NICE), or run outside of the container";

/// The obstacle for an error of `set_mempolicy`.
pub(super) fn of_policy(error: CallError, policy: &MemoryPolicy) -> Obstacle {
    let (cause, reason) = match (error.kind(), error.errno_name()) {
        (_, "EINVAL") => match since(policy) {
            Some(linux) => (ObstacleCause::KernelTooOld, format!("it requires Linux {linux}")),
            None => (
                ObstacleCause::NotAllowed,
                format!(
                    "none of {} is in Mems_allowed_list of /proc/self/status (its cpuset)",
                    nodes_text(&policy.nodes)
                ),
            ),
        },
        (CallErrorKind::Refused, _) => (ObstacleCause::Forbidden, SECCOMP.to_owned()),
        (CallErrorKind::Unsupported, _) => (
            ObstacleCause::KernelTooOld,
            "the kernel is built without NUMA (CONFIG_NUMA), or a sandbox hides the call"
                .to_owned(),
        ),
        _ => (ObstacleCause::Other, "the kernel gives no reason".to_owned()),
    };
    let errno = error.errno_name();
    let message = format!("memory policy {policy} was refused: {errno}: {reason}");
    obstacle(POLICY, cause, message)
}

/// The Linux version that introduced a mode which a current kernel may lack.
fn since(policy: &MemoryPolicy) -> Option<&'static str> {
    match policy.mode {
        PolicyMode::WeightedInterleave => Some("6.9"),
        PolicyMode::PreferredMany => Some("5.15"),
        PolicyMode::Bind if policy.balancing => Some("5.12 (with CONFIG_NUMA_BALANCING)"),
        _ => None,
    }
}

/// The obstacle for a node with `left` bytes of free memory.
pub(super) fn of_full_node(
    policy: &MemoryPolicy,
    node: NodeId,
    left: Bytes,
    of: Bytes,
) -> Obstacle {
    let then = match policy.mode {
        PolicyMode::Bind => {
            "beyond that the kernel kills the program (OOM); free some, or prefer \
                             the node instead of binding to it"
        }
        _ => "the rest goes to other nodes; free some, or choose another node",
    };
    let mode = mode_name(policy.mode);
    let message = format!("node {node} is nearly full: {left} of {of} for {mode} memory; {then}");
    obstacle(POLICY, ObstacleCause::NodeFull, message)
}
