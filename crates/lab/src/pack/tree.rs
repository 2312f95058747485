//! The files of a guest, at the paths that they have here.
//!
//! Symbolic links stay links, on the way to a file too, so that a library packed under two names is
//! packed once and `/lib` is a link in the guest where it is one here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::cpio::{Archive, Rights};
use super::libraries;
use crate::LabError;

/// As many links as Linux follows.
const LINKS_MAX: usize = 40;
/// More files than any program needs, and few enough to unpack in a minute.
const ENTRIES_MAX: usize = 200_000;
/// Filled in by the guest's own kernel.
const KERNELS_OWN: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The tree of packed files.
#[derive(Debug, Default)]
pub(super) struct PackTree {
    entries: BTreeMap<PathBuf, PackEntry>,
    /// Files whose libraries are in already.
    linked: BTreeSet<PathBuf>,
    /// Libraries that the loader does not find, each with a file that needs it.
    missing: BTreeMap<String, PathBuf>,
    notes: Vec<String>,
}

#[derive(Debug)]
enum PackEntry {
    Directory(Rights),
    Link(OsString),
    /// A file here, and its size.
    File(Rights, u64),
    Text(Rights, Vec<u8>),
}

impl PackTree {
    /// Adds a file or directory (not what is in it) with all that is on the way to it; where it is in
    /// the end. The path is absolute.
    pub(super) fn add(&mut self, path: &Path) -> Result<PathBuf, LabError> {
        let failed = |source| LabError::file(path, "packing")(source);
        let mut here = PathBuf::from("/");
        let mut rest = parts(path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let metadata = fs::symlink_metadata(&next).map_err(failed)?;
            if metadata.is_symlink() {
                links += 1;
                if links > LINKS_MAX {
                    return Err(failed(io::Error::other("too many symbolic links")));
                }
                let target = fs::read_link(&next).map_err(failed)?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                rest.extend(parts(&target));
                self.insert(next, PackEntry::Link(target.into_os_string()))?;
            } else {
                let entry = entry(&metadata).ok_or_else(|| {
                    failed(io::Error::other("neither a file nor a directory; leave it out"))
                })?;
                self.insert(next.clone(), entry)?;
                here = next;
            }
        }
        Ok(here)
    }

    /// Adds a program, library or any other file, and its libraries, if any.
    pub(super) fn add_with_libraries(&mut self, path: &Path) -> Result<PathBuf, LabError> {
        let real = self.add(path)?;
        if !self.linked.insert(real.clone()) || !libraries::is_elf(&real) {
            return Ok(real);
        }
        let found = libraries::libraries(&real)?;
        for library in found.paths {
            let library = std::path::absolute(&library)
                .map_err(LabError::file(&library, "finding a library"))?;
            self.add(&library)?;
        }
        for library in found.missing {
            self.missing.entry(library).or_insert_with(|| real.clone());
        }
        Ok(real)
    }

    /// The library that this file needs and that the loader does not find.
    pub(super) fn missing_of(&self, file: &Path) -> Option<&str> {
        self.missing.iter().find(|(_, needs)| *needs == file).map(|(library, _)| library.as_str())
    }

    /// Warnings: links that lead nowhere, missing files, libraries that are neither
    /// found nor packed.
    pub(super) fn into_notes(mut self) -> Vec<String> {
        let packed: BTreeSet<&OsStr> =
            self.entries.keys().filter_map(|path| path.file_name()).collect();
        let missing = self.missing.iter().filter(|(name, _)| !packed.contains(OsStr::new(name)));
        self.notes.extend(missing.map(|(library, needs)| {
            format!("{} needs the library {library}, which was not found", needs.display())
        }));
        self.notes
    }

    /// Adds a file with its libraries, or a directory with all that is in it.
    pub(super) fn add_all(&mut self, path: &Path) -> Result<(), LabError> {
        self.add_all_but(path, &[])
    }

    /// As [`Self::add_all`], without entries of these names.
    pub(super) fn add_all_but(&mut self, path: &Path, left_out: &[&str]) -> Result<(), LabError> {
        let mut open = vec![self.add_with_libraries(path)?];
        while let Some(real) = open.pop() {
            if !real.is_dir() || KERNELS_OWN.iter().any(|own| real == Path::new(own)) {
                continue;
            }
            let listed = fs::read_dir(&real).map_err(LabError::file(&real, "listing"))?;
            for entry in listed {
                let inner = entry.map_err(LabError::file(&real, "listing"))?;
                if left_out.iter().any(|name| inner.file_name() == *name) {
                    continue;
                }
                let kind = inner.file_type().map_err(LabError::file(inner.path(), "packing"))?;
                if kind.is_dir() {
                    open.push(self.add(&inner.path())?);
                } else if kind.is_symlink() {
                    self.add_link(&inner.path());
                } else if kind.is_file() {
                    self.add_with_libraries(&inner.path())?;
                } else {
                    self.notes
                        .push(format!("{}: not a regular file, left out", inner.path().display()));
                }
            }
        }
        Ok(())
    }

    /// A link within a directory may lead nowhere, and to a directory that was not asked for.
    fn add_link(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(target) if target.is_dir() || target.is_file() => {
                if let Err(error) = self.add(path) {
                    self.notes.push(error.to_string());
                }
            }
            _ => self.notes.push(format!("{}: dangling symbolic link, left out", path.display())),
        }
    }

    /// Adds a text at a path that need not exist here.
    pub(super) fn add_text(&mut self, path: &Path, mode: u32, text: Vec<u8>) {
        let rights = Rights { mode, ..Rights::default() };
        self.add_parents(path);
        self.entries.insert(path.to_owned(), PackEntry::Text(rights, text));
    }

    /// Adds a link at a path that need not exist here.
    pub(super) fn add_new_link(&mut self, path: &Path, target: &Path) {
        self.add_parents(path);
        self.entries.insert(path.to_owned(), PackEntry::Link(target.into()));
    }

    /// Directories that are not in it yet.
    fn add_parents(&mut self, path: &Path) {
        let rights = Rights { mode: 0o755, ..Rights::default() };
        for parent in path.ancestors().skip(1).filter(|parent| parent.parent().is_some()) {
            self.entries.entry(parent.to_owned()).or_insert(PackEntry::Directory(rights));
        }
    }

    /// Whether there is something at that path, which has no links in it.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// Writes it all.
    pub(super) fn write(&self, out: impl Write) -> Result<u64, LabError> {
        let failed =
            |source| LabError::file(std::env::temp_dir(), "writing the archive of files")(source);
        let mut archive = Archive::new(out);
        for (path, entry) in &self.entries {
            let written = match entry {
                PackEntry::Directory(rights) => archive.directory(path, *rights),
                PackEntry::Link(target) => archive.link(path, target),
                PackEntry::Text(rights, text) => {
                    archive.file(path, *rights, text.len() as u64, &mut text.as_slice())
                }
                PackEntry::File(rights, bytes) => {
                    let mut file = File::open(path).map_err(LabError::file(path, "packing"))?;
                    archive.file(path, *rights, *bytes, &mut file)
                }
            };
            written.map_err(failed)?;
        }
        archive.finish().map_err(failed)
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        let size = |entry: &PackEntry| match entry {
            PackEntry::File(_, bytes) => *bytes,
            PackEntry::Text(_, text) => text.len() as u64,
            PackEntry::Directory(_) | PackEntry::Link(_) => 0,
        };
        self.entries.values().map(size).fold(0, u64::saturating_add)
    }

    fn insert(&mut self, path: PathBuf, entry: PackEntry) -> Result<(), LabError> {
        self.entries.insert(path, entry);
        if self.entries.len() > ENTRIES_MAX {
            return Err(LabError::Unusable {
                what: format!("more than {ENTRIES_MAX} files"),
                reason: "are too many to pack; leave out some of --with".to_owned(),
            });
        }
        Ok(())
    }
}

/// The parts of a path, the last one first; `..` is one of them.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

fn entry(metadata: &Metadata) -> Option<PackEntry> {
    let rights = Rights {
        mode: metadata.mode(),
        user: metadata.uid(),
        group: metadata.gid(),
        modified: u32::try_from(metadata.mtime()).unwrap_or(0),
    };
    if metadata.is_dir() {
        return Some(PackEntry::Directory(rights));
    }
    metadata.is_file().then_some(PackEntry::File(rights, metadata.len()))
}
