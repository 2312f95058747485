//! Reads sysfs, procfs and cgroupfs under a configurable root: `/` for the live machine, any directory for a tree
//! copied from another machine or written by a test, or a [`MemoryTree`].
//!
//! Files may be hostile (a copied tree is user input), so every read is limited and no name may leave the root with
//! `..`. Symbolic links are followed as the kernel follows them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::MemoryTree;

/// Size limit of a file: `/proc/cpuinfo` of a machine with 8192 cpus has about 12 MiB.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Room for most files of procfs and sysfs.
const READ_BYTES: usize = 4096;

/// Most entries read from one directory: `/sys/devices/system/cpu` has one for each cpu.
pub const DIRECTORY_ENTRIES_MAX: usize = 1 << 17;

/// Why a file or directory under a [`Root`] could not be read. Every variant has the full path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// It does not exist. Kernels differ in their files, so this is often not an error: see
    /// [`Root::read_text_if_present`].
    #[error("{}: no such file; is it mounted, and does this kernel have it?", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The process may not read it.
    #[error("{}: reading it is not permitted; run as a user who may, or relax the container", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// It is larger than any file of its kind.
    #[error("{}: larger than {limit}; a file of the kernel is smaller", path.display())]
    TooLarge {
        /// The file or directory.
        path: PathBuf,
        /// The bound, with its unit.
        limit: String,
    },
    /// It is not UTF-8.
    #[error("{}: not text (byte {position} is not UTF-8)", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that is not UTF-8.
        position: usize,
    },
    /// Its name leaves the root.
    #[error("{name}: a name with '..' leads out of the root {}", root.display())]
    Outside {
        /// The name as given.
        name: String,
        /// The root.
        root: PathBuf,
    },
    /// Reading it failed for another reason.
    #[error("{}: {source}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl RootError {
    fn from_io(path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Failed { path, source },
        }
    }
}

/// The directory that contains `sys`, `proc` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    base: PathBuf,
    /// Replaces the file system; `base` then only names it in messages.
    tree: Option<Arc<MemoryTree>>,
}

impl Root {
    /// The machine this process runs on.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// A tree elsewhere.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into(), tree: None }
    }

    /// A tree in memory. `name` is its root in messages, such as the file it came from.
    pub fn of_tree(name: impl Into<PathBuf>, tree: MemoryTree) -> Self {
        Self { base: name.into(), tree: Some(Arc::new(tree)) }
    }

    /// Whether this is the machine the process runs on.
    pub fn is_live(&self) -> bool {
        self.tree.is_none() && self.base == Path::new("/")
    }

    /// The path of a file. `name` is its path on the described machine (`/proc/stat`, with or without the leading
    /// slash).
    pub fn path(&self, name: &str) -> Result<PathBuf, RootError> {
        let relative = Path::new(name.trim_start_matches('/'));
        if relative.components().any(|part| part == Component::ParentDir) {
            return Err(RootError::Outside { name: name.to_owned(), root: self.base.clone() });
        }
        Ok(self.base.join(relative))
    }

    /// Whether a file or directory of that name exists.
    pub fn exists(&self, name: &str) -> bool {
        self.path(name).is_ok_and(|path| match &self.tree {
            None => path.exists(),
            Some(tree) => tree.exists(name),
        })
    }

    /// Reads a file of up to [`FILE_BYTES_MAX`] bytes.
    pub fn read_bytes(&self, name: &str) -> Result<Vec<u8>, RootError> {
        let path = self.path(name)?;
        if let Some(tree) = &self.tree {
            return match tree.file(name) {
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(RootError::NotFound { path }),
            };
        }
        // Files of procfs claim no length: with room for most of them, two reads do.
        let mut bytes = Vec::with_capacity(READ_BYTES);
        let read = File::open(&path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        match read {
            Err(error) => Err(RootError::from_io(path, error)),
            Ok(length) if length as u64 > FILE_BYTES_MAX => {
                Err(RootError::TooLarge { path, limit: format!("{FILE_BYTES_MAX} bytes") })
            }
            Ok(_) => Ok(bytes),
        }
    }

    /// Reads a text file of up to [`FILE_BYTES_MAX`] bytes, without the zeros at its end: some ways of
    /// copying sysfs pad every file to the length that it claims, a page.
    pub fn read_text(&self, name: &str) -> Result<String, RootError> {
        let mut bytes = self.read_bytes(name)?;
        let padding = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
        bytes.truncate(bytes.len() - padding);
        String::from_utf8(bytes).or_else(|error| {
            let position = error.utf8_error().valid_up_to();
            Err(RootError::NotText { path: self.path(name)?, position })
        })
    }

    /// As [`read_text`](Self::read_text); `None` where there is no such file.
    pub fn read_text_if_present(&self, name: &str) -> Result<Option<String>, RootError> {
        match self.read_text(name) {
            Ok(text) => Ok(Some(text)),
            Err(RootError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Names of a directory's entries in alphabetical order.
    pub fn list(&self, name: &str) -> Result<Vec<String>, RootError> {
        let path = self.path(name)?;
        if let Some(tree) = &self.tree {
            let names = tree.list(name).ok_or(RootError::NotFound { path })?;
            return Ok(names.into_iter().collect());
        }
        let entries =
            fs::read_dir(&path).map_err(|error| RootError::from_io(path.clone(), error))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| RootError::from_io(path.clone(), error))?;
            names.push(entry_name(&path, &entry)?);
            if names.len() > DIRECTORY_ENTRIES_MAX {
                return Err(RootError::TooLarge {
                    path,
                    limit: format!("{DIRECTORY_ENTRIES_MAX} entries"),
                });
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn entry_name(directory: &Path, entry: &fs::DirEntry) -> Result<String, RootError> {
    entry.file_name().into_string().map_err(|name| RootError::NotText {
        path: directory.join(&name),
        position: name.to_string_lossy().find('\u{fffd}').unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn the_live_root_reads_procfs_and_lists_sysfs() {
        let root = Root::live();
        assert!(root.is_live());
        assert!(root.read_text("/proc/self/status").unwrap().contains("Name:"));
        assert!(root.list("/sys/devices/system").unwrap().contains(&"cpu".to_owned()));
    }

    #[test]
    fn names_are_taken_below_the_root_with_or_without_a_leading_slash() {
        let (directory, root) = tree();
        fs::create_dir(directory.path().join("proc")).unwrap();
        fs::write(directory.path().join("proc/stat"), "cpu 1\n").unwrap();
        assert!(!root.is_live());
        assert_eq!(root.read_text("/proc/stat").unwrap(), "cpu 1\n");
        assert_eq!(root.read_text("proc/stat").unwrap(), "cpu 1\n");
        assert_eq!(root.list("proc").unwrap(), ["stat"]);
        assert!(root.exists("/proc/stat") && !root.exists("/proc/uptime"));
    }

    #[test]
    fn an_absent_file_is_told_from_an_empty_one() {
        let (directory, root) = tree();
        fs::write(directory.path().join("empty"), "").unwrap();
        assert_eq!(root.read_text_if_present("empty").unwrap().as_deref(), Some(""));
        assert_eq!(root.read_text_if_present("absent").unwrap(), None);
        assert_eq!(root.read_text_if_present("empty/below").unwrap(), None);
        let message = root.read_text("absent").unwrap_err().to_string();
        assert!(message.contains(&format!("{}/absent", directory.path().display())), "{message}");
    }

    #[test]
    fn a_name_cannot_climb_out_of_the_root() {
        let (_directory, root) = tree();
        for name in ["../etc/passwd", "/proc/../../etc/passwd", ".."] {
            assert!(matches!(root.read_text(name), Err(RootError::Outside { .. })), "{name}");
            assert!(!root.exists(name));
        }
    }

    #[test]
    fn a_file_that_is_not_text_is_an_error_that_names_it() {
        let (directory, root) = tree();
        fs::write(directory.path().join("odd"), b"ab\xff").unwrap();
        let error = root.read_text("odd").unwrap_err();
        assert!(matches!(error, RootError::NotText { position: 2, .. }), "{error:?}");
        assert!(error.to_string().contains("/odd: not text"), "{error}");
        assert_eq!(root.read_bytes("odd").unwrap(), b"ab\xff");
    }

    #[test]
    fn a_copy_padded_with_zeros_reads_as_the_file_itself() {
        let (directory, root) = tree();
        fs::write(directory.path().join("padded"), b"0-3\n\0\0\0\0").unwrap();
        fs::write(directory.path().join("zeros"), b"\0\0\0\0").unwrap();
        assert_eq!(root.read_text("padded").unwrap(), "0-3\n");
        assert_eq!(root.read_text("zeros").unwrap(), "");
        assert_eq!(root.read_bytes("padded").unwrap().len(), 8);
    }

    #[test]
    fn an_endless_file_is_refused_and_does_not_fill_the_memory() {
        let error = Root::live().read_text("/dev/zero").unwrap_err();
        assert!(matches!(error, RootError::TooLarge { .. }), "{error:?}");
        assert!(error.to_string().contains("/dev/zero"), "{error}");
    }

    #[test]
    fn a_tree_in_memory_reads_as_one_on_disk_and_its_errors_name_it() {
        let mut tree = MemoryTree::default();
        tree.add_file("/proc/stat", Arc::from(*b"cpu 1\n")).unwrap();
        let root = Root::of_tree("odd.dump", tree);
        assert!(!root.is_live());
        assert_eq!(root.read_text("/proc/stat").unwrap(), "cpu 1\n");
        assert_eq!(root.list("proc").unwrap(), ["stat"]);
        assert!(root.exists("proc") && !root.exists("/proc/uptime"));
        assert_eq!(root.read_text_if_present("/proc/uptime").unwrap(), None);
        let message = root.read_text("/proc").unwrap_err().to_string();
        assert!(message.contains("odd.dump/proc: no such file"), "{message}");
        assert!(matches!(root.read_text("/../etc"), Err(RootError::Outside { .. })));
    }

    #[test]
    fn a_directory_read_as_a_file_fails_with_its_name() {
        let (directory, root) = tree();
        fs::create_dir(directory.path().join("d")).unwrap();
        let error = root.read_text("d").unwrap_err();
        assert!(matches!(error, RootError::Failed { .. }), "{error:?}");
        assert!(error.to_string().contains("/d: "), "{error}");
    }
}
