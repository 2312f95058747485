//! Errors of the actuators.

use std::io;

use atoll_sys::CallError;
use atoll_topology::CpuSet;

use super::JournalError;

/// Why cores cannot be given. All changes are still in the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActuateError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel does not allow this user to bind the thread.
    #[error(
        "thread {tid} may not be bound: {source}; run as its user or with CAP_SYS_NICE (in a container: \
         --cap-add SYS_NICE)"
    )]
    Refused {
        /// The thread.
        tid: u32,
        /// The kernel's error.
        source: CallError,
    },
    /// None of the cpus may be used any longer.
    #[error(
        "thread {tid} may run on none of cpus {cpus}: its cpuset was changed or they were taken offline; \
         everything is restored. Start again to use what is there now"
    )]
    CpusGone {
        /// The thread.
        tid: u32,
        /// The cpus.
        cpus: CpuSet,
    },
    /// A call failed for another reason.
    #[error("thread {tid}: {source}")]
    Call {
        /// The thread.
        tid: u32,
        /// The kernel's error.
        source: CallError,
    },
    /// A control group file cannot be written or read.
    #[error("{path}: {source}; {advice}")]
    Group {
        /// The file or directory.
        path: String,
        /// The kernel's error.
        source: io::Error,
        /// What to do next.
        advice: &'static str,
    },
    /// Another program changed the cpuset.
    #[error(
        "{path} holds '{found}' where '{written}' was written: another program changes this cpuset; \
         it keeps its present value"
    )]
    GroupChanged {
        /// The file.
        path: String,
        /// What was written.
        written: String,
        /// What it holds.
        found: String,
    },
    /// There is no usable group.
    #[error("no cpuset can be used: {reason}; --actuator affinity binds the threads instead")]
    NoGroup {
        /// Why.
        reason: String,
    },
    /// systemd refused.
    #[error("systemctl {arguments}: {reason}")]
    Unit {
        /// The arguments.
        arguments: String,
        /// Its message.
        reason: String,
    },
}
