//! Why a machine could not be discovered.

use std::path::PathBuf;

use atoll_sys::RootError;

use crate::discover::Allowed;
use crate::{CpuSet, SetError};

/// Why a machine could not be discovered. Every variant about a file names it in full.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A file that every kernel has could not be read, or an optional one is there and refused.
    #[error(transparent)]
    Read(#[from] RootError),
    /// A file holds something else than expected.
    #[error("{}: expected {expected}, found '{found}'", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What belongs there.
        expected: &'static str,
        /// What is there, its first 40 characters.
        found: String,
    },
    /// A file does not hold a list of cpus or nodes.
    #[error("{}: {source}", path.display())]
    Set {
        /// The file.
        path: PathBuf,
        /// What is wrong with the list.
        source: SetError,
    },
    /// Two files contradict each other; a machine that changes while it is read looks so, too.
    #[error("{}: {contradiction}; if a cpu or a node was just switched, try again", path.display())]
    Inconsistent {
        /// The file that was read last.
        path: PathBuf,
        /// The contradiction.
        contradiction: String,
    },
    /// No cpu is both online and allowed.
    #[error("no cpu to run on: online are {online}, allowed are {allowed}; widen the affinity mask or the cpuset", allowed = allowed.cpus_text())]
    NoCpus {
        /// Cpus online.
        online: CpuSet,
        /// What the process is allowed.
        allowed: Allowed,
    },
}
