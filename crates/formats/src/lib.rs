//! Machines as files: read with every mistake named by file and line, written so that reading gives
//! the same machine again; and as trees and pictures for people.
//!
//! | Module | What it has |
//! |---|---|
//! | [`toml`], [`xml`], [`numactl`] | machine files, hwloc's XML, the words of `numactl -H` |
//! | [`dump`] | the kernel's own files about a machine in one text |
//! | [`store`] | measured facts kept from run to run, and all that is known of the live machine |
//! | [`render`] | trees, pictures and JSON |
//!
//! It is a crate of its own because it fences off the parsers of TOML and XML: the model of the machine
//! (`atoll-topology`), which everything imports, needs neither.

#![forbid(unsafe_code)]

pub mod dump;
pub mod numactl;
mod open;
pub mod render;
pub mod store;
pub mod toml;
pub mod xml;

pub use open::{MachineOpenError, open, parse, read, read_from, shipped};

/// Longest text of a machine file, 16 MiB: core-to-core figures of 1,024 cpus fit, and reading
/// another file ends soon.
pub const TEXT_MAX: usize = 16 << 20;

/// Most cpus that the caches of a file name together: a machine full of cpus with 16 caches over each.
const NAMED_CPUS_MAX: usize = 16 * atoll_topology::CPUS_MAX as usize;

/// Why a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}{}: {}; expected {}",
    line.map(|line| format!(":{line}")).unwrap_or_default(), printable(found), printable(expected)
)]
pub struct FormatError {
    /// Name of the file, `-` for stdin.
    pub file: String,
    /// Line of the mistake, from 1, where it has one.
    pub line: Option<usize>,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

/// A text of a file as a message may show it: control characters, which could steer a terminal, are
/// written as `\u{1b}`.
fn printable(text: &str) -> String {
    let letter = |letter: char| match letter.is_control() {
        true => letter.escape_unicode().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(letter).collect()
}
