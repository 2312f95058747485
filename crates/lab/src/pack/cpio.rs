//! The archive that a kernel unpacks at boot: cpio in its "newc" form (`Documentation/driver-api/
//! early-userspace/buffer-format.rst` in Linux).

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const TRAILER: &str = "TRAILER!!!";
/// Name and contents each end at a multiple of this.
const ALIGN: u64 = 4;

/// Owner, mode and time of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// Permission bits, with those for set-user-id and such.
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    /// When its contents changed last, in seconds since 1970: compiled forms of a file are recognised as of
    /// today by it.
    pub(super) modified: u32,
}

/// Writes an archive, entry by entry; a directory must come before what is in it.
pub(super) struct Archive<W> {
    out: W,
    bytes: u64,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, bytes: 0, entries: 0 }
    }

    pub(super) fn directory(&mut self, path: &Path, rights: Rights) -> io::Result<()> {
        self.entry(path, DIRECTORY, rights, 0, &mut io::empty())
    }

    pub(super) fn link(&mut self, path: &Path, target: &OsStr) -> io::Result<()> {
        let rights = Rights { mode: 0o777, ..Rights::default() };
        let mut target = target.as_bytes();
        self.entry(path, LINK, rights, target.len() as u64, &mut target)
    }

    /// A file of exactly this many bytes: a longer one is cut, a shorter one is filled with zeros, as a
    /// file that changes while it is read may be either.
    pub(super) fn file(
        &mut self,
        path: &Path,
        rights: Rights,
        bytes: u64,
        contents: &mut dyn Read,
    ) -> io::Result<()> {
        self.entry(path, FILE, rights, bytes, contents)
    }

    /// Ends the archive; its size.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.entry(Path::new(TRAILER), 0, Rights::default(), 0, &mut io::empty())?;
        self.out.flush()?;
        Ok(self.bytes)
    }

    fn entry(
        &mut self,
        path: &Path,
        kind: u32,
        rights: Rights,
        bytes: u64,
        contents: &mut dyn Read,
    ) -> io::Result<()> {
        let size = u32::try_from(bytes).map_err(|_| {
            io::Error::new(io::ErrorKind::FileTooLarge, "an archive's files are below 4 GiB")
        })?;
        let name = path.strip_prefix("/").unwrap_or(path).as_os_str().as_bytes();
        let links = if kind == DIRECTORY { 2 } else { 1 };
        self.entries += 1;
        let fields = [
            self.entries,
            kind | (rights.mode & 0o7777),
            rights.user,
            rights.group,
            links,
            rights.modified,
            size,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        let fields: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        self.put(format!("070701{fields}").as_bytes())?;
        self.put(name)?;
        self.put(b"\0")?;
        self.pad(0)?;
        let copied = io::copy(&mut contents.take(bytes), &mut self.out)?;
        self.bytes += copied;
        self.pad(bytes - copied)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// This many zeros, then more up to a multiple of four.
    fn pad(&mut self, bytes: u64) -> io::Result<()> {
        let end = (self.bytes + bytes).next_multiple_of(ALIGN);
        let zeros = end - self.bytes;
        self.bytes = end;
        io::copy(&mut io::repeat(0).take(zeros), &mut self.out).map(drop)
    }
}
