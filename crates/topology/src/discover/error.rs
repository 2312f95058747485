//! Why a machine could not be discovered.

use std::path::PathBuf;

use atoll_sys::RootError;

/// Why a machine could not be discovered, or one of its files could not be shown. Every variant about a file has its
/// full path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] RootError),
    /// A file has unexpected content.
    #[error("{}: expected {expected}, found '{found}'", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// What was found, its first 40 characters.
        found: String,
    },
    /// No file describes a cpu: the directory does not hold the sysfs and procfs of a machine.
    #[error(
        "{}: no cpu is described there; expected a directory with the sys and proc of a machine, \
         such as {}", root.display(), root.join("sys/devices/system/cpu").display()
    )]
    NoCpus {
        /// The directory that was read.
        root: PathBuf,
    },
}
