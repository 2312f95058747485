//! Unnamed files, which get a name when they are complete, and other file calls.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::CallError;

/// Creates an unnamed file in a directory: it disappears with its last descriptor, however the process ends. Not every
/// file system supports this.
#[doc(alias = "O_TMPFILE")]
pub fn open_unnamed(directory: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(directory)
}

/// Gives an unnamed file its first name, which must be free.
#[doc(alias = "AT_SYMLINK_FOLLOW")]
pub fn linkat_unnamed(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: both texts end in a NUL and outlive the call, which only reads them.
    let failed = unsafe {
        libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) != 0
    };
    match failed {
        true => Err(io::Error::from_raw_os_error(CallError::last("linkat").errno)),
        false => Ok(()),
    }
}

/// Starts writeback of a file's dirty pages without waiting: a hint without guarantees.
#[doc(alias = "SYNC_FILE_RANGE_WRITE")]
pub fn sync_file_range_write(file: &File) -> Result<(), CallError> {
    // SAFETY: the descriptor is open for as long as the file is borrowed; no memory is handed over.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) } {
        0 => Ok(()),
        _ => Err(CallError::last("sync_file_range")),
    }
}

/// Takes the standard output for the caller alone: everything else that this process, or a program that it starts,
/// prints from now on goes to standard error. The buffer of the standard output must be empty.
#[doc(alias = "dup2")]
pub fn take_standard_output() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both descriptors are open in every Rust program, and the second one stays open.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::from_raw_os_error(CallError::last("dup2").errno)),
        _ => Ok(File::from(output)),
    }
}

/// Raises the limit of open files of this process to its hard limit.
#[doc(alias = "setrlimit")]
#[doc(alias = "RLIMIT_NOFILE")]
pub fn raise_open_files() -> Result<(), CallError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is initialised, and the call writes nothing else.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(CallError::last("getrlimit"));
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the limit is initialised and only read.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(CallError::last("setrlimit")),
    }
}
