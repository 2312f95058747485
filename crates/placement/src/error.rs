//! Why the kernel did not do what placement asked.

/// A call the kernel did not carry out. The three kinds ask for different answers: an unsupported
/// call never works here, a refused one works with other rights, a failed one may work later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The kernel lacks the call or the mode (`ENOSYS`, `EOPNOTSUPP`, `EINVAL` for a new mode).
    #[error("{call} is not supported by this kernel: {reason}")]
    Unsupported {
        /// The system call.
        call: &'static str,
        /// What is missing, and since which Linux it exists where known.
        reason: String,
    },
    /// The kernel or a container forbids it (`EPERM`, `EACCES`; seccomp, cpuset, capability).
    #[error("{call} was refused: {reason}")]
    Refused {
        /// The system call.
        call: &'static str,
        /// What forbids it and what would permit it.
        reason: String,
    },
    /// Memory is used up, of the machine, the node or the cgroup (`ENOMEM`).
    #[error("{call} found no memory: {reason}")]
    OutOfMemory {
        /// The system call.
        call: &'static str,
        /// How much was asked, and where.
        reason: String,
    },
    /// Anything else.
    #[error("{call} failed: {reason}")]
    Failed {
        /// The system call.
        call: &'static str,
        /// The kernel's word for it.
        reason: String,
    },
}
