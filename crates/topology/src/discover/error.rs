//! Why a machine could not be discovered.

use std::path::PathBuf;

use atoll_sys::RootError;

/// Why a machine could not be discovered, or a file of it not be shown as it is. Every variant about a
/// file names it in full.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A file could not be read.
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
    /// Nothing tells of a cpu: what is read is not the sysfs and procfs of a machine.
    #[error(
        "{}: no cpu is described there; expected a directory with the sys and proc of a machine, \
         such as {}", root.display(), root.join("sys/devices/system/cpu").display()
    )]
    NoCpus {
        /// Where they were looked for.
        root: PathBuf,
    },
}
