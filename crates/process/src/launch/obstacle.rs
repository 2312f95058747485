//! What stands in the way of a placement, with its cause and what would remove it.

use atoll_sys::{CallError, CallErrorKind, PolicyMode};
use atoll_topology::{Bytes, CpuSet, Machine, NodeId, NodeSet, ResolvedSet};

use super::plan::{MemoryPolicy, mode_name};

/// Why the kernel does not, or may not, do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
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
    /// The node has next to no memory left.
    NodeFull,
    /// The kernel's word for it is in the message.
    Other,
}

impl Cause {
    /// Whether this machine or kernel can never do it, whatever the rights.
    pub fn is_not_here(self) -> bool {
        matches!(self, Self::NoSuchNode | Self::NoSuchCpu | Self::NothingThere | Self::KernelTooOld)
    }
}

/// A part of a placement that is refused, impossible or in danger.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Obstacle {
    /// The instance; `None` where it concerns all.
    pub instance: Option<usize>,
    /// The system call that is refused, or that is not made because of it.
    pub call: &'static str,
    /// Why.
    pub cause: Cause,
    /// What, why, and what would help.
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

fn obstacle(call: &'static str, cause: Cause, message: String) -> Obstacle {
    Obstacle { instance: None, call, cause, message }
}

/// `node 7`, `nodes 4-5`
fn nodes_text(nodes: &NodeSet) -> String {
    let plural = if nodes.len() == 1 { "" } else { "s" };
    format!("node{plural} {nodes}")
}

/// What of a set of nodes cannot be used. `what` is what the nodes were to give: `memory` or `cpus`.
pub(super) fn of_nodes(
    machine: &Machine,
    set: &ResolvedSet<NodeId>,
    what: &'static str,
) -> Vec<Obstacle> {
    let call = if what == "memory" { POLICY } else { AFFINITY };
    let known: NodeSet = machine.nodes.iter().map(|node| node.id).collect();
    let empty = set.forbidden.intersection(&known).difference(&machine.hidden.nodes);
    let outside = set.forbidden.difference(&empty);
    let mut found = Vec::new();
    if !set.missing.is_empty() {
        let (those, all) = (nodes_text(&set.missing), known.union(&machine.hidden.nodes));
        let purpose = if what == "memory" { "take memory from" } else { "run on" };
        let here = nodes_text(&all);
        let are = if set.missing.len() == 1 { "is" } else { "are" };
        let message = format!("there {are} no {those} to {purpose}; this machine has {here}");
        found.push(obstacle(call, Cause::NoSuchNode, message));
    }
    if !empty.is_empty() {
        let message = format!("{} has no {what} that can be used", nodes_text(&empty));
        found.push(obstacle(call, Cause::NothingThere, message));
    }
    if !outside.is_empty() {
        let message = format!(
            "{} is outside of what this process may use ({}: its cpuset, Mems_allowed_list in \
             /proc/self/status); widen the cpuset",
            nodes_text(&outside),
            nodes_text(&known)
        );
        found.push(obstacle(call, Cause::NotAllowed, message));
    }
    found
}

/// What of a set of cpus cannot be used.
pub(super) fn of_cpus(
    machine: &Machine,
    set: &ResolvedSet<atoll_topology::CpuId>,
) -> Vec<Obstacle> {
    let allowed: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let mut found = Vec::new();
    if !set.missing.is_empty() {
        let message = format!("there is no cpu {} online; here: {allowed}", set.missing);
        found.push(obstacle(AFFINITY, Cause::NoSuchCpu, message));
    }
    if !set.forbidden.is_empty() {
        let message = format!(
            "cpu {} is outside of what this process may use ({allowed}: its affinity mask or \
             cpuset); --all asks for it all the same, which helps where it is the mask",
            set.forbidden
        );
        found.push(obstacle(AFFINITY, Cause::NotAllowed, message));
    }
    found
}

/// The kernel's answer to `sched_setaffinity`.
pub(super) fn of_affinity(error: CallError, cpus: &CpuSet) -> Obstacle {
    let (cause, reason) = match (error.kind(), error.errno_name()) {
        (_, "EINVAL") => {
            (Cause::NotAllowed, "none of them is online and inside the cpuset (Cpus_allowed_list)")
        }
        (CallErrorKind::Refused, _) => (Cause::Forbidden, SECCOMP),
        (CallErrorKind::Unsupported, _) => (Cause::KernelTooOld, "a sandbox hides the call"),
        _ => (Cause::Other, "the kernel says no more"),
    };
    let errno = error.errno_name();
    let message = format!("binding threads to cpus {cpus} was refused: {errno}: {reason}");
    obstacle(AFFINITY, cause, message)
}

const SECCOMP: &str = "a seccomp filter forbids the call or a capability is missing; permit it \
                       (Docker: --cap-add SYS_NICE), or run outside of the container";

/// The kernel's answer to `set_mempolicy`.
pub(super) fn of_policy(error: CallError, policy: &MemoryPolicy) -> Obstacle {
    let (cause, reason) = match (error.kind(), error.errno_name()) {
        (_, "EINVAL") => match since(policy) {
            Some(linux) => (Cause::KernelTooOld, format!("it came with Linux {linux}")),
            None => (
                Cause::NotAllowed,
                format!(
                    "none of {} is in Mems_allowed_list of /proc/self/status (its cpuset)",
                    nodes_text(&policy.nodes)
                ),
            ),
        },
        (CallErrorKind::Refused, _) => (Cause::Forbidden, SECCOMP.to_owned()),
        (CallErrorKind::Unsupported, _) => (
            Cause::KernelTooOld,
            "the kernel is built without NUMA (CONFIG_NUMA), or a sandbox hides the call"
                .to_owned(),
        ),
        _ => (Cause::Other, "the kernel says no more".to_owned()),
    };
    let errno = error.errno_name();
    let message = format!("memory policy {policy} was refused: {errno}: {reason}");
    obstacle(POLICY, cause, message)
}

/// The Linux that brought a mode which a kernel of today may lack.
fn since(policy: &MemoryPolicy) -> Option<&'static str> {
    match policy.mode {
        PolicyMode::WeightedInterleave => Some("6.9"),
        PolicyMode::PreferredMany => Some("5.15"),
        PolicyMode::Bind if policy.balancing => Some("5.12 (with CONFIG_NUMA_BALANCING)"),
        _ => None,
    }
}

/// A node that has `left` of its memory.
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
        _ => "what is beyond that goes to other nodes; free some, or choose another node",
    };
    let mode = mode_name(policy.mode);
    let message = format!("node {node} is nearly full: {left} of {of} for {mode} memory; {then}");
    obstacle(POLICY, Cause::NodeFull, message)
}
