//! Shared by a run and QEMU: files without names and pairs of sockets. They are gone with
//! the processes that have them open, however these end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::LabError;
use crate::pack::Packed;

/// How much of a log's end is shown.
const TAIL_BYTES: u64 = 2048;
const TAIL_LINES: usize = 12;

/// The files of a run.
pub(super) struct RunFiles {
    /// The setup of the plugin.
    pub(super) setup: File,
    /// Its report.
    pub(super) report: File,
    pub(super) console: File,
    /// What QEMU and the plugin say.
    pub(super) qemu: File,
}

impl RunFiles {
    pub(super) fn new() -> Result<Self, LabError> {
        Ok(Self { setup: unnamed()?, report: unnamed()?, console: unnamed()?, qemu: unnamed()? })
    }

    /// The last words of the guest's kernel.
    pub(super) fn console_tail(&self) -> String {
        tail(&self.console)
    }

    /// The last words of QEMU and of the plugin.
    pub(super) fn qemu_tail(&self) -> String {
        tail(&self.qemu)
    }

    /// Those that QEMU opens, besides its sockets.
    pub(super) fn passed_on<'a>(&'a self, packed: &'a Packed) -> [BorrowedFd<'a>; 4] {
        [&packed.archive, &self.setup, &self.report, &self.console].map(AsFd::as_fd)
    }
}

/// A file without a name, in `$TMPDIR` or `/tmp`.
fn unnamed() -> Result<File, LabError> {
    crate::pack::unnamed_file()
}

/// The path under which a process opens an inherited descriptor again.
pub(super) fn path_of(descriptor: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// Sockets, one for each port of the guest and one for QEMU's monitor.
pub(super) struct Ports {
    pub(super) out: UnixStream,
    pub(super) err: UnixStream,
    pub(super) control: UnixStream,
    pub(super) monitor: UnixStream,
}

impl Ports {
    /// This process's ends, and QEMU's.
    pub(super) fn pairs() -> Result<(Self, Self), LabError> {
        let pairs = || -> io::Result<(Self, Self)> {
            let (out, err) = (UnixStream::pair()?, UnixStream::pair()?);
            let (control, monitor) = (UnixStream::pair()?, UnixStream::pair()?);
            let own = Self { out: out.0, err: err.0, control: control.0, monitor: monitor.0 };
            Ok((own, Self { out: out.1, err: err.1, control: control.1, monitor: monitor.1 }))
        };
        pairs().map_err(LabError::file("a pair of sockets", "connecting to the guest"))
    }

    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [&self.out, &self.err, &self.control, &self.monitor].map(AsFd::as_fd)
    }
}

/// The last lines of a file, without what steers a terminal.
fn tail(mut file: &File) -> String {
    let mut read = || -> io::Result<Vec<u8>> {
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|letter| !letter.is_control() || *letter == '\n')
        .collect();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_last_lines_without_what_steers_a_terminal() {
        let file = unnamed().unwrap();
        assert_eq!(tail(&file), "");
        let lines: String = (0..3000).map(|line| format!("\x1b[31mline {line}\r\n\n")).collect();
        std::fs::write(path_of(&file), lines).unwrap();
        let tail = tail(&file);
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.ends_with("line 2999") && !tail.contains(['\x1b', '\r']), "{tail}");
    }
}
