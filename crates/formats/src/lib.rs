//! Machine files: errors name the file and line, and a written machine reads back unchanged. Also renders machines
//! as trees and pictures.
//!
//! | Module | Contents |
//! |---|---|
//! | [`toml`], [`xml`], [`numactl`] | machine files, hwloc's XML, the output of `numactl -H` |
//! | [`dump`] | the kernel's own files about a machine in one text |
//! | [`store`] | measured facts kept across runs, and the knowledge of the live machine |
//! | [`render`] | trees, pictures and JSON |
//!
//! It is a separate crate to isolate the TOML and XML parsers: the model of the machine (`atoll-topology`), which
//! everything imports, needs neither.

#![forbid(unsafe_code)]

pub mod dump;
pub mod numactl;
mod open;
pub mod render;
pub mod store;
pub mod toml;
pub mod xml;

pub use open::{MachineOpenError, open, parse, read, read_from, shipped};

/// Size limit of a machine file, 16 MiB: enough for the core-to-core figures of 1,024 cpus, and a wrong file is
/// rejected quickly.
pub const TEXT_MAX: usize = 16 << 20;

/// Limit for the total number of cpus that all caches of a file name: the largest machine with 16 caches per cpu.
const NAMED_CPUS_MAX: usize = 16 * atoll_topology::CPUS_MAX as usize;

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}{}: {}; expected {}",
    line.map(|line| format!(":{line}")).unwrap_or_default(), printable(found), printable(expected)
)]
pub struct FormatError {
    /// The file's name, `-` for stdin.
    pub file: String,
    /// Line of the error, from 1, if known.
    pub line: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// Text of a file, safe to show in a message: control characters, which could affect a terminal, are written as
/// `\u{1b}`.
fn printable(text: &str) -> String {
    let letter = |letter: char| match letter.is_control() {
        true => letter.escape_unicode().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(letter).collect()
}
