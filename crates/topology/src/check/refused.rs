//! Placement calls that the kernel, or a container's filter, refuses to this process.
//!
//! Each call is tried once without effect: an empty range, no pages, and the policy and affinity of a temporary
//! thread. A filter decides by the call's number.

use atoll_sys::{Bitmap, CallError, CallErrorKind, PolicyMode};

use super::{FileReading, Finding, Severity, scene::Scene};

/// The calls, and what does not work without each.
const CALLS: [(&str, &str); 5] = [
    ("mbind", "memory cannot be placed on a node"),
    ("set_mempolicy", "programs cannot be started with a memory policy"),
    ("get_mempolicy", "policies cannot be read back"),
    ("move_pages", "page placement cannot be verified"),
    ("sched_setaffinity", "threads cannot be bound to cpus"),
];
const STATUS: &str = "/proc/self/status";
const FILTERED: &str = "Permit the calls where this runs (Docker: --cap-add SYS_NICE, or a seccomp \
                        profile of its own; systemd: SystemCallFilter=), or run outside of it.";
const ABSENT: &str = "The kernel is built without NUMA (CONFIG_NUMA), or a sandbox hides the calls: \
                      use another kernel, or run outside of the sandbox.";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    if !scene.is_live() {
        return Vec::new();
    }
    let several = scene.machine().nodes.len() > 1;
    finding(&refused(), several).map(|found| found.from(seccomp(scene))).into_iter().collect()
}

/// The calls that fail.
fn refused() -> Vec<CallError> {
    // The thread's policy and affinity end with it.
    std::thread::scope(|scope| scope.spawn(try_all).join().unwrap_or_default())
}

fn try_all() -> Vec<CallError> {
    let affinity = || {
        let own = atoll_sys::sched_getaffinity(0)?;
        atoll_sys::sched_setaffinity(0, &Bitmap::from_numbers(own).unwrap_or_default())
    };
    let none = Bitmap::default();
    let results = [
        atoll_sys::mbind(0, 0, PolicyMode::Default, &none),
        atoll_sys::set_mempolicy(PolicyMode::Default, &none),
        atoll_sys::get_mempolicy().map(drop),
        atoll_sys::page_nodes(&[]).map(drop),
        affinity(),
    ];
    results.into_iter().filter_map(Result::err).collect()
}

fn finding(refused: &[CallError], several_nodes: bool) -> Option<Finding> {
    if refused.is_empty() {
        return None;
    }
    let names: Vec<&str> = refused.iter().map(|error| error.call).collect();
    let lost = CALLS.iter().filter(|(call, _)| names.contains(call)).map(|(_, lost)| *lost);
    let why = format!("Without them, {}.", lost.collect::<Vec<_>>().join("; "));
    let is_absent = |error: &CallError| error.kind() == CallErrorKind::Unsupported;
    let severity = if several_nodes { Severity::Warning } else { Severity::Note };
    let what = format!("This process is refused {}", names.join(", "));
    Some(
        Finding::new(severity, "calls_refused", what, &why)
            .from(refused.iter().map(|error| FileReading {
                file: format!("{}()", error.call),
                value: error.errno_name().to_string(),
            }))
            .advice(if refused.iter().all(is_absent) { ABSENT } else { FILTERED }),
    )
}

/// The `Seccomp` line if the process runs under a filter (2).
fn seccomp(scene: &Scene<'_>) -> Option<FileReading> {
    let text = scene.text(STATUS)?;
    let value = text.lines().find_map(|line| line.strip_prefix("Seccomp:"))?.trim();
    Some(FileReading { file: STATUS.to_owned(), value: format!("Seccomp: {value}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: i32 = 1;
    const ENOSYS: i32 = 38;

    #[test]
    fn every_refused_call_is_named_with_its_error_and_what_is_lost() {
        let refused = [("mbind", EPERM), ("move_pages", ENOSYS)];
        let refused = refused.map(|(call, errno)| CallError { call, errno });
        let found = finding(&refused, true).unwrap();
        assert_eq!((found.severity, found.name), (Severity::Warning, "calls_refused"));
        assert_eq!(found.what, "This process is refused mbind, move_pages");
        assert!(found.why.contains("placed on a node; page placement cannot be verified"));
        let read: Vec<_> = found.read.iter().map(|read| (&*read.file, &*read.value)).collect();
        assert_eq!(read, [("mbind()", "EPERM"), ("move_pages()", "ENOSYS")]);
        assert!(found.advice.unwrap().contains("SYS_NICE"));
    }

    #[test]
    fn a_kernel_without_numa_is_told_and_one_node_needs_no_placement() {
        let found = finding(&[CallError { call: "mbind", errno: ENOSYS }], false).unwrap();
        assert_eq!(found.severity, Severity::Note);
        assert!(found.advice.unwrap().contains("CONFIG_NUMA"));
        assert!(finding(&[], true).is_none());
    }
}
