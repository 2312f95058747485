//! A data directory of this machine.
//!
//! Directories are made with mode 0700 and files with 0600; a symbolic link in place of a file is
//! refused. Calls that a signal interrupts are repeated by the standard library.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;

use super::{
    DataFile, DirectoryLock, FileError, FileErrorKind, FileOperation, Files, directory_of,
};

/// Permissions of files and directories.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// The file whose lock is the directory's; it contains the number of the process that locked it last.
pub(crate) const LOCK_NAME: &str = "lock";
/// Zeros are written in pieces of this size: few calls, little memory.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// A data directory of this machine.
#[derive(Clone, Debug)]
pub struct LiveFiles {
    directory: PathBuf,
}

/// An open file of the directory.
#[derive(Debug)]
struct LiveFile {
    file: File,
    path: PathBuf,
    name: String,
}

impl LiveFiles {
    /// A data directory, which is created if it does not exist; its parent must exist.
    pub fn create(directory: &Path) -> Result<Self, FileError> {
        let files = Self { directory: directory.to_owned() };
        files.create_directory("")?;
        Ok(files)
    }

    /// A new directory. Returns an error of kind [`FileErrorKind::Exists`] if it exists.
    pub fn create_new(directory: &Path) -> Result<Self, FileError> {
        let made = DirBuilder::new().mode(DIRECTORY_MODE).create(directory);
        made.map_err(error_at(FileOperation::Create, directory))?;
        sync_directory(parent(directory))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Gives the directory another name beside its own, which no other file has.
    pub fn move_to(&self, directory: &Path) -> Result<(), FileError> {
        let moved = fs::rename(&self.directory, directory);
        moved.map_err(error_at(FileOperation::Rename, &self.directory))?;
        sync_directory(parent(directory))
    }

    /// An existing data directory.
    pub fn open(directory: &Path) -> Result<Self, FileError> {
        let found = fs::metadata(directory).and_then(|found| match found.is_dir() {
            true => Ok(()),
            false => Err(ErrorKind::NotADirectory.into()),
        });
        found.map_err(|error| error_at(FileOperation::Open, directory)(error))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.directory.clone() } else { self.directory.join(name) }
    }

    fn sync_directory_of(&self, name: &str) -> Result<(), FileError> {
        sync_directory(&self.path(directory_of(name)))
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW.bits() as i32;
        options.read(true).write(true).mode(FILE_MODE).custom_flags(flags);
        options
    }

    fn open_with(
        &self,
        operation: FileOperation,
        options: &OpenOptions,
        name: &str,
    ) -> Result<LiveFile, FileError> {
        let path = self.path(name);
        let file = options.open(&path).map_err(error_at(operation, &path))?;
        Ok(LiveFile { file, path, name: name.to_owned() })
    }
}

impl Files for LiveFiles {
    fn lock(&self) -> Result<DirectoryLock, FileError> {
        let file = self.open_with(FileOperation::Lock, Self::options().create(true), LOCK_NAME)?;
        match file.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.locked(&file)),
            Err(TryLockError::Error(error)) => {
                return Err(error_at(FileOperation::Lock, &self.directory)(error));
            }
        }
        let number = process::id().to_string();
        file.truncate(0)?;
        file.write_at(0, number.as_bytes())?;
        Ok(DirectoryLock::new(HeldLock(file)))
    }

    fn create_directory(&self, name: &str) -> Result<(), FileError> {
        let path = self.path(name);
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
            done => done.map_err(error_at(FileOperation::Create, &path))?,
        }
        sync_directory(parent(&path))
    }

    fn create(&self, name: &str, bytes: u64) -> Result<Arc<dyn DataFile>, FileError> {
        let file = self.open_with(FileOperation::Create, Self::options().create_new(true), name)?;
        let made = file.fill(bytes).and_then(|()| self.sync_directory_of(name));
        if let Err(error) = made {
            // A file that was not made must not take the space that was missing.
            let _ = self.remove(name);
            return Err(error);
        }
        Ok(Arc::new(file))
    }

    fn create_unsynced(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError> {
        let created = Self::options().create_new(true).clone();
        Ok(Arc::new(self.open_with(FileOperation::Create, &created, name)?))
    }

    fn sync_names(&self, directory: &str) -> Result<(), FileError> {
        sync_directory(&self.path(directory))
    }

    fn reserve(&self, name: &str, bytes: u64) -> Result<(), FileError> {
        let file = self.open_with(FileOperation::Create, Self::options().create_new(true), name)?;
        let made = file.allocate(bytes).and_then(|()| self.sync_directory_of(name));
        if made.is_err() {
            let _ = self.remove(name);
        }
        made
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError> {
        Ok(Arc::new(self.open_with(FileOperation::Open, &Self::options(), name)?))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        let path = self.path(from);
        fs::rename(&path, self.path(to)).map_err(error_at(FileOperation::Rename, &path))?;
        self.sync_directory_of(to)?;
        match directory_of(from) == directory_of(to) {
            true => Ok(()),
            false => self.sync_directory_of(from),
        }
    }

    fn remove(&self, name: &str) -> Result<(), FileError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(error_at(FileOperation::Remove, &path))?;
        self.sync_directory_of(name)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, FileError> {
        let path = self.path(directory);
        match file_names(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map_err(error_at(FileOperation::List, &path)),
        }
    }
}

impl LiveFiles {
    /// The error if another process holds the lock.
    fn locked(&self, file: &LiveFile) -> FileError {
        let mut text = vec![0; file.bytes().unwrap_or(0).min(16) as usize];
        let pid = file.read_at(0, &mut text).ok().and_then(|()| str::from_utf8(&text).ok());
        let pid: Option<u32> = pid.and_then(|pid| pid.parse().ok());
        let holder = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
        FileError {
            operation: FileOperation::Lock,
            file: self.directory.display().to_string(),
            kind: FileErrorKind::Locked(pid),
            reason: format!("it is in use by {holder}; one process at a time may open it"),
        }
    }
}

/// The locked file, which is unlocked at once: closing it is not enough, because a child of this process has it
/// open until it runs its own program.
struct HeldLock(LiveFile);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // It is unlocked at the latest when the file is closed.
        let _ = self.0.file.unlock();
    }
}

impl LiveFile {
    /// Makes a new file this many zeros long, on disk.
    fn fill(&self, bytes: u64) -> Result<(), FileError> {
        if bytes == 0 {
            // Data written into it is synced with its length.
            return Ok(());
        }
        self.allocate(bytes)?;
        let mut offset = 0;
        while offset < bytes {
            let piece = (bytes - offset).min(ZEROS.len() as u64);
            self.write_at(offset, &ZEROS[..piece as usize])?;
            offset += piece;
        }
        self.file.sync_all().map_err(self.error(FileOperation::Sync))
    }

    /// Allocates the space in one piece, so that a full disk is found before anything is written. If
    /// the file system cannot, writing zeros takes the space as well.
    fn allocate(&self, bytes: u64) -> Result<(), FileError> {
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::INTR) => {}
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(errno) => return Err(self.error(FileOperation::Create)(errno.into())),
            }
        }
    }

    fn error(&self, operation: FileOperation) -> impl Fn(io::Error) -> FileError + '_ {
        error_at(operation, &self.path)
    }
}

impl DataFile for LiveFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> Result<u64, FileError> {
        let metadata = self.file.metadata().map_err(self.error(FileOperation::Read))?;
        Ok(metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        self.file.read_exact_at(buffer, offset).map_err(self.error(FileOperation::Read))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all_at(bytes, offset).map_err(self.error(FileOperation::Write))
    }

    fn truncate(&self, bytes: u64) -> Result<(), FileError> {
        self.file.set_len(bytes).map_err(self.error(FileOperation::Truncate))
    }

    fn begin_sync(&self) {
        // File systems without it write when they are synced.
        let _ = atoll_sys::sync_file_range_write(&self.file);
    }

    fn sync_data(&self) -> Result<(), FileError> {
        self.file.sync_data().map_err(self.error(FileOperation::Sync))
    }
}

fn error_at(operation: FileOperation, path: &Path) -> impl Fn(io::Error) -> FileError + '_ {
    move |error| FileError::new(operation, path.display().to_string(), &error)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Waits until the names in a directory are on disk. File systems that cannot sync directories return
/// EINVAL; their names are on disk without it.
fn sync_directory(path: &Path) -> Result<(), FileError> {
    match File::open(path).and_then(|directory| directory.sync_all()) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        done => done.map_err(error_at(FileOperation::Sync, path)),
    }
}

fn file_names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a child has the file between fork and exec.
    #[test]
    fn a_lock_is_free_again_while_others_have_its_file_open() {
        let above = tempfile::tempdir().unwrap();
        let files = LiveFiles::create(&above.path().join("data")).unwrap();
        let options = LiveFiles::options().create(true).clone();
        let file = files.open_with(FileOperation::Lock, &options, LOCK_NAME).unwrap();
        file.file.try_lock().unwrap();
        let open = file.file.try_clone().unwrap();
        files.lock().unwrap_err();
        drop(HeldLock(file));
        files.lock().unwrap();
        drop(open);
    }
}
