//! A data directory in memory, for tests: of this crate and of those above it.
//!
//! [`SimulatedFiles`] keeps the written and the synced contents of every file. Tests end a process
//! ([`SimulatedFiles::restart`]), cut the power ([`SimulatedFiles::crash`]), make one call fail
//! ([`SimulatedFiles::fail_at`]) and fill the disk ([`SimulatedFiles::set_space`]); the outcome is a
//! function of the calls and the seed.
//!
//! A power cut leaves everything that was synced; each sector of 512 bytes that was written after it
//! in any of the versions it had since; and any of the changes of names whose directory was not synced.
//! A failed sync drops the data to be synced, as Linux does: reads still see it, a later sync does
//! not write it, and a power cut may lose it.

mod content;
mod disk;

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::files::{
    DataFile, DirectoryLock, FileError, FileErrorKind, FileOperation, Files, directory_of,
};
use disk::{FileNumber, NameChange, SimulatedDisk};

pub use disk::Fault;

/// A data directory in memory whose power can be cut. Clones are the same directory.
#[derive(Clone, Debug, Default)]
pub struct SimulatedFiles {
    disk: Arc<Mutex<SimulatedDisk>>,
}

#[derive(Debug)]
struct SimulatedFile {
    disk: Arc<Mutex<SimulatedDisk>>,
    number: FileNumber,
    name: String,
}

/// Releases the directory when it is dropped.
struct SimulatedLock(Arc<AtomicBool>);

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl SimulatedFiles {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The directory after a power cut: the synced data, and any part of the rest.
    pub fn crash(&self, seed: u64) -> Self {
        Self { disk: Arc::new(Mutex::new(self.disk.lock().crash(seed))) }
    }

    /// The directory as the next process finds it after this one was killed: everything that was written, and
    /// data not yet on disk is still not.
    pub fn restart(&self) -> Self {
        Self { disk: Arc::new(Mutex::new(self.disk.lock().restart())) }
    }

    /// Number of calls: creates, opens, writes, truncates, syncs of files and directories,
    /// renames and removes. Creating a file counts as several.
    pub fn calls(&self) -> u64 {
        self.disk.lock().calls
    }

    /// Makes the call with this number, counted from 0, fail once.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.disk.lock().fault = Some((call, fault));
    }

    /// Makes the call with this number and all after it fail, as if the power had been cut there.
    pub fn cut_power_at(&self, call: u64) {
        self.disk.lock().power_cut = Some(call);
    }

    /// Limits the total size of all files; None for no limit.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.disk.lock().space = bytes;
    }

    /// Total size of all files, in bytes.
    pub fn used(&self) -> u64 {
        self.disk.lock().used()
    }

    fn file(&self, number: FileNumber, name: &str) -> Arc<dyn DataFile> {
        Arc::new(SimulatedFile { disk: Arc::clone(&self.disk), number, name: name.to_owned() })
    }
}

impl Files for SimulatedFiles {
    fn lock(&self) -> Result<DirectoryLock, FileError> {
        let is_locked = Arc::clone(&self.disk.lock().is_locked);
        if is_locked.swap(true, Ordering::AcqRel) {
            return Err(FileError {
                operation: FileOperation::Lock,
                file: "the simulated directory".into(),
                kind: FileErrorKind::Locked(Some(process::id())),
                reason: format!("it is in use by process {}", process::id()),
            });
        }
        Ok(DirectoryLock::new(SimulatedLock(is_locked)))
    }

    fn create_directory(&self, name: &str) -> Result<(), FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Create, name)?;
        disk.change(NameChange::Directory(name.to_owned()));
        disk.sync_directory(directory_of(name))
    }

    fn create(&self, name: &str, bytes: u64) -> Result<Arc<dyn DataFile>, FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Create, name)?;
        let number = disk.create(name)?;
        let made = disk.fill(number, name, bytes);
        if let Err(error) = made {
            let _ = disk.remove(name);
            return Err(error);
        }
        Ok(self.file(number, name))
    }

    fn create_unsynced(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Create, name)?;
        let number = disk.create(name)?;
        Ok(self.file(number, name))
    }

    fn sync_names(&self, directory: &str) -> Result<(), FileError> {
        self.disk.lock().sync_directory(directory)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Open, name)?;
        let number = disk.find(FileOperation::Open, name)?;
        Ok(self.file(number, name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Rename, from)?;
        let number = disk.find(FileOperation::Rename, from)?;
        disk.change(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), number });
        disk.sync_directory(directory_of(to))?;
        disk.sync_directory(directory_of(from))
    }

    fn remove(&self, name: &str) -> Result<(), FileError> {
        self.disk.lock().remove(name)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, FileError> {
        Ok(self.disk.lock().list(directory))
    }
}

impl DataFile for SimulatedFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> Result<u64, FileError> {
        Ok(self.disk.lock().content(self.number).bytes())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let disk = self.disk.lock();
        disk.content(self.number).read(offset, buffer).ok_or_else(|| FileError {
            operation: FileOperation::Read,
            file: self.name.clone(),
            kind: FileErrorKind::Ended,
            reason: "the file ends before".into(),
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.disk.lock().write(self.number, &self.name, offset, bytes)
    }

    fn truncate(&self, bytes: u64) -> Result<(), FileError> {
        let mut disk = self.disk.lock();
        disk.call(FileOperation::Truncate, &self.name)?;
        disk.content_mut(self.number).truncate(bytes);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), FileError> {
        self.disk.lock().sync(self.number, &self.name)
    }
}
