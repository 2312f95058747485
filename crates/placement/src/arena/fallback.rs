//! Fallbacks, counted by reason: placement continues if it cannot be as requested, but never
//! silently.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::Mutex;

use crate::KernelError;

/// Why memory was placed differently than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FallbackReason {
    /// The node has no memory of its own; the nearest that has was used.
    NodeWithoutMemory,
    /// The node was full; the next by distance was used.
    NodeFull,
    /// Free memory could not be read; the node was taken without asking.
    FreeUnknown,
    /// The kernel has no `mbind`; the calling thread touched the pages first.
    PolicyUnsupported,
    /// `mbind` was refused; the calling thread touched the pages first.
    PolicyRefused,
    /// `mbind` failed; the calling thread touched the pages first.
    PolicyFailed,
    /// Pages could not be touched ahead; without a policy the first thread that touches them decides.
    NotPopulated,
    /// The kernel put pages on another node than asked.
    Elsewhere,
    /// Homes could not be read back: the policy is trusted where one is set.
    HomesUnknown,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NodeWithoutMemory => "node without memory, nearest node used",
            Self::NodeFull => "node full, next node by distance used",
            Self::FreeUnknown => "free memory unknown, node not checked",
            Self::PolicyUnsupported => "mbind unsupported, first touch used",
            Self::PolicyRefused => "mbind refused, first touch used",
            Self::PolicyFailed => "mbind failed, first touch used",
            Self::NotPopulated => "pages not touched ahead",
            Self::Elsewhere => "pages found on another node",
            Self::HomesUnknown => "homes not read back",
        })
    }
}

/// How often a reason came up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The reason.
    pub reason: FallbackReason,
    /// How often.
    pub count: u64,
    /// The first case in words: the node, and the kernel's error.
    pub first: String,
}

/// The counters of one arena.
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    by_reason: Mutex<BTreeMap<FallbackReason, Fallback>>,
}

impl Fallbacks {
    /// Counts one case; `detail` is called for the first of its reason only.
    pub(super) fn record(&self, reason: FallbackReason, detail: impl FnOnce() -> String) {
        let mut by_reason = self.by_reason.lock();
        by_reason
            .entry(reason)
            .or_insert_with(|| Fallback { reason, count: 0, first: detail() })
            .count += 1;
    }

    /// Every reason that came up, in the order of [`FallbackReason`].
    pub(super) fn list(&self) -> Vec<Fallback> {
        self.by_reason.lock().values().cloned().collect()
    }
}

/// The reason that a failed `mbind` is counted under.
pub(super) fn policy_reason(error: &KernelError) -> FallbackReason {
    match error {
        KernelError::Unsupported { .. } => FallbackReason::PolicyUnsupported,
        KernelError::Refused { .. } => FallbackReason::PolicyRefused,
        KernelError::OutOfMemory { .. } | KernelError::Failed { .. } => {
            FallbackReason::PolicyFailed
        }
    }
}
