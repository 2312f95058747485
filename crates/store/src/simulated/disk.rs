//! The simulated directory: names as seen and as on disk, and calls that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use atoll_sys::SplitMix64;

use super::content::{SimulatedContent, Survival};
use crate::files::{FileError, FileErrorKind, FileOperation, directory_of};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The device fails (`EIO`) and nothing happens.
    Device,
    /// The disk is full (`ENOSPC`) and nothing happens.
    NoSpace,
    /// The device fails after half of the bytes are written; for calls other than writes, after everything
    /// has happened.
    Late,
}

/// A file, whatever its name.
pub(super) type FileNumber = usize;

/// A change of names, on disk when its directory is synced.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Directory(String),
    Create { name: String, number: FileNumber },
    Rename { from: String, to: String, number: FileNumber },
    Remove(String),
}

#[derive(Clone, Debug, Default)]
struct Names {
    directories: BTreeSet<String>,
    files: BTreeMap<String, FileNumber>,
}

#[derive(Debug, Default)]
pub(super) struct SimulatedDisk {
    contents: Vec<SimulatedContent>,
    seen: Names,
    synced: Names,
    /// Changes that are seen but not synced, oldest first.
    changes: Vec<NameChange>,
    pub(super) is_locked: Arc<AtomicBool>,
    pub(super) calls: u64,
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) power_cut: Option<u64>,
    pub(super) space: Option<u64>,
}

impl NameChange {
    fn touches(&self, directory: &str) -> bool {
        let is_in = |name: &str| directory_of(name) == directory;
        match self {
            Self::Directory(name) | Self::Remove(name) | Self::Create { name, .. } => is_in(name),
            Self::Rename { from, to, .. } => is_in(from) || is_in(to),
        }
    }
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Directory(name) => drop(self.directories.insert(name.clone())),
            NameChange::Create { name, number } => drop(self.files.insert(name.clone(), *number)),
            NameChange::Remove(name) => drop(self.files.remove(name)),
            NameChange::Rename { from, to, number } => {
                self.files.remove(from);
                self.files.insert(to.clone(), *number);
            }
        }
    }

    fn has_directory(&self, name: &str) -> bool {
        name.is_empty() || self.directories.contains(name)
    }
}

impl SimulatedDisk {
    /// Counts a call, and fails it if a test requested that.
    pub(super) fn call(&mut self, operation: FileOperation, name: &str) -> Result<(), FileError> {
        match self.count() {
            None => Ok(()),
            Some(fault) => Err(failed(operation, name, fault)),
        }
    }

    /// Counts a call; returns how it fails.
    fn count(&mut self) -> Option<Fault> {
        let call = self.calls;
        self.calls += 1;
        if self.power_cut.is_some_and(|first| call >= first) {
            return Some(Fault::Device);
        }
        self.fault.filter(|(number, _)| *number == call).map(|(_, fault)| fault)
    }

    pub(super) fn content(&self, number: FileNumber) -> &SimulatedContent {
        &self.contents[number]
    }

    pub(super) fn content_mut(&mut self, number: FileNumber) -> &mut SimulatedContent {
        &mut self.contents[number]
    }

    pub(super) fn find(
        &self,
        operation: FileOperation,
        name: &str,
    ) -> Result<FileNumber, FileError> {
        let number = self.seen.files.get(name).copied();
        number.ok_or_else(|| {
            error(operation, name, FileErrorKind::NotFound, "the file does not exist")
        })
    }

    pub(super) fn list(&self, directory: &str) -> Vec<String> {
        let names = self.seen.files.keys().filter(|name| directory_of(name) == directory);
        names.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    pub(super) fn change(&mut self, change: NameChange) {
        self.seen.apply(&change);
        self.changes.push(change);
    }

    pub(super) fn create(&mut self, name: &str) -> Result<FileNumber, FileError> {
        let fail = |kind, reason| Err(error(FileOperation::Create, name, kind, reason));
        if !self.seen.has_directory(directory_of(name)) {
            return fail(FileErrorKind::NotFound, "the directory does not exist");
        }
        if self.seen.files.contains_key(name) {
            return fail(FileErrorKind::Exists, "there is a file of this name");
        }
        let number = self.contents.len();
        self.contents.push(SimulatedContent::default());
        self.change(NameChange::Create { name: name.to_owned(), number });
        Ok(number)
    }

    /// Writes the zeros of a new file and syncs it with its name.
    pub(super) fn fill(
        &mut self,
        number: FileNumber,
        name: &str,
        bytes: u64,
    ) -> Result<(), FileError> {
        if bytes > 0 {
            self.write(number, name, 0, &vec![0; bytes as usize])?;
        }
        self.sync(number, name)?;
        self.sync_directory(directory_of(name))
    }

    pub(super) fn write(
        &mut self,
        number: FileNumber,
        name: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let fault = self.count().or_else(|| self.no_space(number, offset + bytes.len() as u64));
        let written = match fault {
            None => bytes,
            Some(Fault::Late) => &bytes[..bytes.len() / 2],
            Some(Fault::Device | Fault::NoSpace) => &[],
        };
        if !written.is_empty() {
            self.contents[number].write(offset, written);
        }
        fault.map_or(Ok(()), |fault| Err(failed(FileOperation::Write, name, fault)))
    }

    /// The fault of a write after which the file extends to `end`.
    fn no_space(&self, number: FileNumber, end: u64) -> Option<Fault> {
        let grown = end.saturating_sub(self.contents[number].bytes());
        (grown > 0 && self.space.is_some_and(|space| self.used() + grown > space))
            .then_some(Fault::NoSpace)
    }

    pub(super) fn used(&self) -> u64 {
        self.seen.files.values().map(|file| self.contents[*file].bytes()).sum()
    }

    pub(super) fn sync(&mut self, number: FileNumber, name: &str) -> Result<(), FileError> {
        let fault = self.count();
        match fault {
            None | Some(Fault::Late) => self.contents[number].sync(),
            Some(_) => self.contents[number].forget_dirty(),
        }
        fault.map_or(Ok(()), |fault| Err(failed(FileOperation::Sync, name, fault)))
    }

    pub(super) fn sync_directory(&mut self, directory: &str) -> Result<(), FileError> {
        self.call(FileOperation::Sync, directory)?;
        let changes = mem::take(&mut self.changes);
        let (synced, open) = changes.into_iter().partition(|change| change.touches(directory));
        self.changes = open;
        let synced: Vec<NameChange> = synced;
        synced.iter().for_each(|change| self.synced.apply(change));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), FileError> {
        self.call(FileOperation::Remove, name)?;
        self.find(FileOperation::Remove, name)?;
        self.change(NameChange::Remove(name.to_owned()));
        self.sync_directory(directory_of(name))
    }

    pub(super) fn crash(&self, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let survival = Survival::random(&mut random);
        let mut names = self.synced.clone();
        for change in &self.changes {
            let happened = match survival {
                Survival::Nothing => false,
                Survival::Everything => true,
                Survival::Any => random.below(2) == 0,
            };
            if happened {
                names.apply(change);
            }
        }
        let directories = names.directories.clone();
        names.files.retain(|name, _| {
            directory_of(name).is_empty() || directories.contains(directory_of(name))
        });
        let contents = self.contents.iter().map(|content| content.crash(survival, &mut random));
        let contents = contents.collect();
        Self { contents, seen: names.clone(), synced: names, ..Self::default() }
    }

    pub(super) fn restart(&self) -> Self {
        Self {
            contents: self.contents.clone(),
            seen: self.seen.clone(),
            synced: self.synced.clone(),
            changes: self.changes.clone(),
            space: self.space,
            ..Self::default()
        }
    }
}

fn failed(operation: FileOperation, name: &str, fault: Fault) -> FileError {
    let (kind, reason) = match fault {
        Fault::NoSpace => (FileErrorKind::NoSpace, "no space left on the simulated disk"),
        Fault::Device | Fault::Late => (FileErrorKind::Failed, "the simulated disk failed"),
    };
    error(operation, name, kind, reason)
}

fn error(operation: FileOperation, name: &str, kind: FileErrorKind, reason: &str) -> FileError {
    FileError { operation, file: name.to_owned(), kind, reason: reason.to_owned() }
}
