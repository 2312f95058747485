//! Explains an errno of a placement call: what forbids the call and how to permit it.

use std::fmt::Display;

use atoll_sys::{CallError, CallErrorKind, PolicyMode};
use atoll_topology::{Bytes, CpuSet, NodeId, NodeSet};

use crate::KernelError;

const SECCOMP: &str = "a container's seccomp filter forbids it; permit it there (Docker: --cap-add \
                       SYS_NICE), or run outside the container";
const NO_NUMA: &str = "the kernel is built without NUMA (CONFIG_NUMA), or a sandbox hides the call";

/// The kind follows the errno, the reason is the caller's.
fn error(error: CallError, reason: impl Display) -> KernelError {
    let (call, reason) = (error.call, format!("{}: {reason}", error.errno_name()));
    match error.kind() {
        CallErrorKind::Unsupported => KernelError::Unsupported { call, reason },
        CallErrorKind::Refused => KernelError::Refused { call, reason },
        CallErrorKind::OutOfMemory => KernelError::OutOfMemory { call, reason },
        CallErrorKind::Failed => KernelError::Failed { call, reason: failure_text(error) },
    }
}

fn failure_text(error: CallError) -> String {
    let text = std::io::Error::from_raw_os_error(error.errno);
    format!("{}: {text}", error.errno_name())
}

pub(super) fn failed(call: &'static str, reason: impl Display) -> KernelError {
    KernelError::Failed { call, reason: reason.to_string() }
}

pub(super) fn too_large(len: usize) -> KernelError {
    let reason = format!("{} is more than an address space holds", Bytes(len as u64));
    KernelError::OutOfMemory { call: "mmap", reason }
}

pub(super) fn map(call_error: CallError, len: usize) -> KernelError {
    let asked = Bytes(len as u64);
    error(
        call_error,
        format!("{asked} asked; see vm.overcommit_memory, vm.max_map_count, ulimit -v"),
    )
}

pub(super) fn populate(call_error: CallError, len: usize) -> KernelError {
    error(call_error, format!("{} asked on the nodes of the policy", Bytes(len as u64)))
}

/// For `mbind`, `EINVAL` has three causes; the cpuset and the mode decide which.
pub(super) fn mbind(call_error: CallError, mode: PolicyMode, nodes: &NodeSet) -> KernelError {
    match call_error.kind() {
        CallErrorKind::Unsupported => error(call_error, NO_NUMA),
        CallErrorKind::Failed if call_error.errno_name() == "EINVAL" => invalid_policy(
            mode,
            nodes,
            atoll_sys::mems_allowed().ok().map(|nodes| nodes.into_iter().map(NodeId).collect()),
        ),
        CallErrorKind::OutOfMemory => error(call_error, "no kernel memory for one more policy"),
        _ => error(call_error, SECCOMP),
    }
}

fn invalid_policy(mode: PolicyMode, nodes: &NodeSet, allowed: Option<NodeSet>) -> KernelError {
    let call = "mbind";
    match (mode, allowed) {
        (_, Some(allowed)) if !nodes.is_subset(&allowed) => {
            let reason = format!(
                "EINVAL: of nodes {nodes} the process may use only {allowed}: the others are not \
                 online, or outside its cpuset (Mems_allowed in /proc/self/status)"
            );
            KernelError::Refused { call, reason }
        }
        (PolicyMode::WeightedInterleave, _) => {
            let reason = "EINVAL: weighted interleave requires Linux 6.9".to_owned();
            KernelError::Unsupported { call, reason }
        }
        _ => failed(call, format!("EINVAL: mode {mode:?} over nodes '{nodes}' is not valid here")),
    }
}

pub(super) fn move_pages(call_error: CallError) -> KernelError {
    match call_error.kind() {
        CallErrorKind::Unsupported => error(call_error, NO_NUMA),
        _ => error(call_error, SECCOMP),
    }
}

pub(super) fn thread(call_error: CallError) -> KernelError {
    error(call_error, "a sandbox hides or forbids it")
}

pub(super) fn bind_thread(call_error: CallError, cpus: &CpuSet) -> KernelError {
    let call = call_error.call;
    match call_error.errno_name() {
        "EINVAL" => {
            let reason = format!(
                "EINVAL: none of the cpus '{cpus}' is online and inside the cpuset \
                 (Cpus_allowed_list in /proc/self/status)"
            );
            KernelError::Refused { call, reason }
        }
        _ => error(call_error, "a sandbox forbids it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: i32 = 1;
    const ENOMEM: i32 = 12;
    const EINVAL: i32 = 22;
    const ENOSYS: i32 = 38;

    fn call_error(errno: i32) -> CallError {
        CallError { call: "mbind", errno }
    }

    fn nodes(list: &str) -> NodeSet {
        NodeSet::parse(list).unwrap()
    }

    #[test]
    fn a_refusal_names_the_call_and_what_would_permit_it() {
        let error = mbind(call_error(EPERM), PolicyMode::Bind, &nodes("0"));
        assert!(matches!(error, KernelError::Refused { call: "mbind", .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("EPERM") && message.contains("SYS_NICE"), "{message}");
    }

    #[test]
    fn a_kernel_without_numa_is_unsupported_not_refused() {
        let error = mbind(call_error(ENOSYS), PolicyMode::Bind, &nodes("0"));
        assert!(
            matches!(&error, KernelError::Unsupported { reason, .. } if reason.contains("CONFIG_NUMA"))
        );
        assert!(matches!(move_pages(call_error(ENOSYS)), KernelError::Unsupported { .. }));
    }

    #[test]
    fn an_invalid_policy_is_told_apart_by_cpuset_and_mode() {
        let refused = invalid_policy(PolicyMode::Bind, &nodes("0-2"), Some(nodes("0-1")));
        assert!(
            matches!(&refused, KernelError::Refused { reason, .. } if reason.contains("only 0-1"))
        );
        let old = invalid_policy(PolicyMode::WeightedInterleave, &nodes("0"), Some(nodes("0-1")));
        assert!(matches!(&old, KernelError::Unsupported { reason, .. } if reason.contains("6.9")));
        let other = mbind(call_error(EINVAL), PolicyMode::Bind, &NodeSet::new());
        assert!(matches!(other, KernelError::Failed { .. }), "{other}");
    }

    #[test]
    fn used_up_memory_says_how_much_was_asked() {
        let error = populate(call_error(ENOMEM), 3 << 20);
        assert!(
            matches!(&error, KernelError::OutOfMemory { reason, .. } if reason.contains("3.0 MiB"))
        );
    }
}
