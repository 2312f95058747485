//! `/proc/PID/maps`: the mappings and their kinds.

use std::path::{Path, PathBuf};

use atoll_sys::Root;

use super::read::{FileLines, Unread};

const EXPECTED: &str = "'START-END PERMISSIONS OFFSET DEVICE INODE PATH'";

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingKind {
    /// The heap of `brk`.
    Heap,
    /// The stack of the first thread; those of other threads are anonymous memory.
    Stack,
    /// Private memory without a file: large allocations, arenas, stacks of threads.
    Anonymous,
    /// System V shared memory.
    SharedSysv,
    /// POSIX shared memory: files in `/dev/shm`.
    SharedPosix,
    /// Memory shared with children: anonymous with `MAP_SHARED`, shown as `/dev/zero`.
    SharedAnonymous,
    /// `memfd_create`.
    SharedMemfd,
    /// Shared memory of any kind, if only the sum is known.
    Shared,
    /// Explicit huge pages, shared or private.
    HugePages,
    /// The program and its libraries.
    Program,
    /// Other files.
    File,
    /// Unknown kind: only the sum is known.
    Unknown,
}

impl MappingKind {
    /// The kind, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::SharedSysv => "shared (System V)",
            Self::SharedPosix => "shared (POSIX)",
            Self::SharedAnonymous => "shared (anonymous)",
            Self::SharedMemfd => "shared (memfd)",
            Self::Shared => "shared",
            Self::HugePages => "huge pages (explicit)",
            Self::Program => "program, libraries",
            Self::File => "files",
            Self::Unknown => "unknown",
        }
    }

    /// The kind, for programs: as in JSON and in metrics.
    pub fn key(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::SharedSysv => "shared_sysv",
            Self::SharedPosix => "shared_posix",
            Self::SharedAnonymous => "shared_anonymous",
            Self::SharedMemfd => "shared_memfd",
            Self::Shared => "shared",
            Self::HugePages => "huge_pages",
            Self::Program => "program",
            Self::File => "file",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it is shared memory, which several processes map as one.
    pub fn is_shared(self) -> bool {
        matches!(
            self,
            Self::SharedSysv
                | Self::SharedPosix
                | Self::SharedAnonymous
                | Self::SharedMemfd
                | Self::Shared
        )
    }
}

/// An object that several processes map: its device and its inode.
pub(in crate::inspect) type SegmentId = (u32, u32, u64);

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct ProcessMapping {
    pub(in crate::inspect) start: u64,
    pub(in crate::inspect) end: u64,
    /// Whether it can be read, written or executed: other mappings are reserved, and never touched.
    pub(in crate::inspect) usable: bool,
    pub(in crate::inspect) kind: MappingKind,
    /// The mapped object; `None` for private memory and mappings that may hold private copies.
    pub(in crate::inspect) segment: Option<SegmentId>,
    /// Offset of the mapping in the object, in bytes.
    pub(in crate::inspect) offset: u64,
}

/// Mappings in address order.
pub(in crate::inspect) struct Maps {
    lines: FileLines,
    /// The executable, parts of which are mapped without the right to execute.
    program: Option<PathBuf>,
}

impl Maps {
    pub(in crate::inspect) fn open(root: &Root, pid: u32) -> Result<Self, Unread> {
        let lines = FileLines::open(root, &format!("/proc/{pid}/maps"))?;
        let program = std::fs::read_link(root.path(&format!("/proc/{pid}/exe"))?).ok();
        Ok(Self { lines, program })
    }

    /// The next mapping; `None` after the last.
    pub(in crate::inspect) fn next(&mut self) -> Result<Option<ProcessMapping>, Unread> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        match parse(&line, self.program.as_deref()) {
            Some(mapping) => Ok(Some(mapping)),
            None => {
                let found = line.into_owned();
                Err(self.lines.malformed(EXPECTED, &found).into())
            }
        }
    }
}

fn parse(line: &str, program: Option<&Path>) -> Option<ProcessMapping> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start();
        word
    };
    let (range, permissions, offset, device, inode) = (word(), word(), word(), word(), word());
    let path = rest;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let (major, minor) = device.split_once(':')?;
    let (major, minor) =
        (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = inode.parse().ok()?;
    let [read, write, execute, sharing] = permissions.as_bytes() else { return None };
    let is_shared = *sharing == b's';
    let is_program = *execute == b'x' || program.is_some_and(|program| program == Path::new(path));
    let keeps_no_copies = is_shared || *write != b'w';
    let kind = kind(path, is_program, is_shared);
    // A System V segment has its id as inode, and ids begin at 0.
    let has_object = inode != 0 || kind == MappingKind::SharedSysv;
    Some(ProcessMapping {
        start,
        end: (end >= start).then_some(end)?,
        usable: [read, write, execute].into_iter().any(|bit| *bit != b'-'),
        kind,
        offset: hex(offset)?,
        segment: (has_object && keeps_no_copies).then_some((major, minor, inode)),
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn kind(path: &str, is_program: bool, is_shared: bool) -> MappingKind {
    match path {
        "" if is_shared => MappingKind::SharedAnonymous,
        "[heap]" => MappingKind::Heap,
        "[stack]" => MappingKind::Stack,
        "[vdso]" | "[vvar]" | "[vvar_vclock]" | "[vsyscall]" => MappingKind::Program,
        _ if path.starts_with("[anon_shmem:") => MappingKind::SharedAnonymous,
        _ if path.is_empty() || path.starts_with('[') => MappingKind::Anonymous,
        _ => file_kind(path, is_program),
    }
}

/// The kind of a named mapping. Huge pages are recognised by the usual mount point: `numa_maps`
/// marks them whatever their name.
pub(in crate::inspect) fn file_kind(path: &str, is_program: bool) -> MappingKind {
    let file = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = file.rsplit('/').next().unwrap_or(file);
    if file.starts_with("/SYSV") {
        MappingKind::SharedSysv
    } else if file.starts_with("/dev/shm/") {
        MappingKind::SharedPosix
    } else if file == "/dev/zero" {
        MappingKind::SharedAnonymous
    } else if file.starts_with("/memfd:") {
        MappingKind::SharedMemfd
    } else if file == "/anon_hugepage" || file.starts_with("/dev/hugepages/") {
        MappingKind::HugePages
    } else if is_program || name.ends_with(".so") || name.contains(".so.") {
        MappingKind::Program
    } else {
        MappingKind::File
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_mapping_is_known_by_its_line() {
        for (line, kind, segment) in [
            (
                "55f0-5600 rw-p 00000000 00:00 0                          [heap]",
                MappingKind::Heap,
                None,
            ),
            ("7f00-7f10 rw-p 00000000 00:00 0", MappingKind::Anonymous, None),
            (
                "7f00-7f10 rw-p 00000000 00:00 0    [anon:glibc: malloc]",
                MappingKind::Anonymous,
                None,
            ),
            ("7f00-7f10 rw-p 00000000 00:00 0    [stack]", MappingKind::Stack, None),
            (
                "7f00-7f10 rw-s 00000000 00:01 10   /SYSV00001 (deleted)",
                MappingKind::SharedSysv,
                Some(10),
            ),
            (
                "7f00-7f10 rw-s 00000000 00:01 0    /SYSV00001 (deleted)",
                MappingKind::SharedSysv,
                Some(0),
            ),
            ("7f00-7f10 rw-s 00000000 00:1a 2  /dev/shm/a b", MappingKind::SharedPosix, Some(2)),
            ("7f00-7f10 rw-s 0 00:01 3 /dev/zero (deleted)", MappingKind::SharedAnonymous, Some(3)),
            ("7f00-7f10 rw-s 0 00:01 4 /memfd:x (deleted)", MappingKind::SharedMemfd, Some(4)),
            ("7f00-7f10 rw-p 0 00:0f 5 /anon_hugepage (deleted)", MappingKind::HugePages, None),
            ("7f00-7f10 r-xp 0 fd:01 6 /usr/bin/my program", MappingKind::Program, Some(6)),
            ("7f00-7f10 rw-p 0 fd:01 7 /usr/lib/libc.so.6", MappingKind::Program, None),
            ("7f00-7f10 r--s 0 fd:01 8 /data/table (1).bin", MappingKind::File, Some(8)),
        ] {
            let mapping = parse(line, None).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((mapping.kind, mapping.segment.map(|s| s.2)), (kind, segment), "{line}");
            assert!(mapping.usable && mapping.start < mapping.end);
        }
        assert!(!parse("7f00-7f10 ---p 00000000 00:00 0", None).unwrap().usable);
    }

    #[test]
    fn a_line_that_is_no_mapping_is_refused() {
        for line in [
            "",
            "7f00",
            "7f10-7f00 rw-p 0 00:00 0",
            "xy-zz rw-p 0 00:00 0",
            "7f00-7f10 rw 0 00:00 0",
            "7f00-7f10 rw-p x 00:00 0",
            "7f00-7f10 rw-p 0 0000 0",
            "7f00-7f10 rw-p 0 00:00 x",
            "7f00-7f1000000000000000000000 rw-p 0 00:00 0",
        ] {
            assert_eq!(parse(line, None), None, "{line}");
        }
    }
}
