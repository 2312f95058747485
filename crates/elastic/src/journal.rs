//! A journal of changes, each written and synced before it is made, so that `atoll elastic undo` finds it after a
//! crash.
//!
//! One file for each run, a JSON line for each record, in a directory that only its owner may enter. The directory and
//! the files are opened without following symbolic links, and files are opened relative to the directory's descriptor:
//! even if others may write to the directory, they cannot redirect us to another file. A line that a crash cut short is
//! ignored: its change was not made.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use atoll_process::inspect::{ProcessId, identify};
use atoll_sys::Root;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdir, open, openat, renameat, unlinkat};

/// Maximum size of a journal: about 100,000 records.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of targets of one process.
const TARGETS_MAX: u32 = 1024;
/// Suffix of a journal's name.
const SUFFIX: &str = ".journal";
/// Suffix of a status file's name.
const STATUS: &str = ".status";
/// The format of the records.
const JOURNAL_VERSION: u32 = 1;
/// Changes with every boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A setting of a DBMS and its value; None if it is not set.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// Something about to be changed, with its old value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// The first one.
    Begin {
        /// The format.
        version: u32,
        /// The boot ID.
        boot: String,
        /// The process that writes the journal.
        pid: u32,
        /// When it started.
        start: u64,
        /// The target, as the user named it.
        target: String,
    },
    /// A process whose threads will be bound.
    Process {
        /// Its number.
        pid: u32,
        /// When it started.
        start: u64,
        /// Its original affinity.
        cpus: String,
    },
    /// A thread that will be bound, or may lose its affinity.
    Thread {
        /// Its process.
        pid: u32,
        /// Its number.
        tid: u32,
        /// When it started.
        start: u64,
        /// Its original affinity.
        cpus: String,
    },
    /// Cpus to which threads will be bound from now on.
    Given {
        /// The cpus.
        cpus: String,
    },
    /// A control group that will be created.
    GroupMade {
        /// Its directory.
        path: String,
        /// The group from which its processes come.
        home: String,
    },
    /// A process that will be moved to a group.
    Moved {
        /// Its number.
        pid: u32,
        /// When it started.
        start: u64,
        /// Its present group.
        from: String,
        /// Its future group.
        to: String,
    },
    /// A file of a control group that will be written.
    FileWritten {
        /// The file.
        path: String,
        /// Its present value.
        before: String,
    },
    /// A group whose children will have the cpuset controller.
    ControllerEnabled {
        /// The group's directory.
        path: String,
    },
    /// A unit of systemd whose cpus will be set.
    UnitSet {
        /// Its name.
        unit: String,
        /// Its AllowedCPUs; empty if they are not set.
        before: String,
    },
    /// A process whose pages will be moved, which cannot be undone.
    PagesMoved {
        /// Its number.
        pid: u32,
        /// When it started.
        start: u64,
        /// Their present nodes.
        from: String,
        /// Their future nodes.
        to: String,
    },
    /// Settings of a DBMS that will follow the cores.
    KnobSet {
        /// The adapter, as the user named it.
        adapter: String,
        /// Their present values.
        settings: Vec<KnobSetting>,
    },
}

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The directory is not private.
    #[error(
        "{}: {what}; expected a directory of this user that others may not enter (mode 0700). \
         Remove it, or name another one with --journal",
        path.display()
    )]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// It cannot be created, opened, written or synced.
    #[error("{}: {source}; name a directory that this user may write with --journal", path.display())]
    Failed {
        /// The directory or file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A line is not a record.
    #[error("{}:{line}: not a record of a journal of version {JOURNAL_VERSION}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        reason: String,
    },
}

/// The directory of journals.
#[derive(Debug)]
pub struct JournalDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

/// A journal that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundJournal {
    /// The file's name in the directory.
    pub name: String,
    /// Its records.
    pub records: Vec<Record>,
}

impl FoundJournal {
    /// The process that wrote it.
    pub fn writer(&self) -> Option<ProcessId> {
        match self.records.first()? {
            Record::Begin { pid, start, .. } => Some(ProcessId { pid: *pid, start: *start }),
            _ => None,
        }
    }

    /// Its target.
    pub fn target(&self) -> &str {
        match self.records.first() {
            Some(Record::Begin { target, .. }) => target,
            _ => "",
        }
    }

    /// Whether its writer still runs and will undo it.
    pub fn is_live(&self, root: &Root) -> bool {
        self.writer().is_some_and(|id| identify(root, id.pid).ok() == Some(id))
    }

    /// Whether it predates the last boot: then only knobs that a DBMS keeps are left to undo.
    pub fn is_stale(&self, root: &Root) -> bool {
        let now = root.read_text(BOOT_ID).unwrap_or_default();
        match self.records.first() {
            Some(Record::Begin { boot, .. }) => boot != now.trim(),
            _ => false,
        }
    }
}

impl JournalDirectory {
    /// The default directory: `/run/atoll-elastic` for root, below `$XDG_RUNTIME_DIR` for other users, else in `/tmp`
    /// under a name with the user's number.
    pub fn usual() -> PathBuf {
        let user = std::fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or(u32::MAX);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
        match (user, runtime) {
            (0, _) => PathBuf::from("/run/atoll-elastic"),
            (_, Some(runtime)) => Path::new(&runtime).join("atoll-elastic"),
            (user, None) => std::env::temp_dir().join(format!("atoll-elastic-{user}")),
        }
    }

    /// Opens it; creates it if missing.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |source: rustix::io::Errno| JournalError::Failed {
            path: path.to_owned(),
            source: source.into(),
        };
        match mkdir(path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match open(path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                let what = "it is a symbolic link or a file".to_owned();
                return Err(JournalError::Unsafe { path: path.to_owned(), what });
            }
            Err(error) => return Err(failed(error)),
        };
        let directory = Self { path: path.to_owned(), directory };
        directory.check()?;
        Ok(directory)
    }

    fn check(&self) -> Result<(), JournalError> {
        let own = std::fs::metadata("/proc/self").map(|own| own.uid());
        let file = self.directory.try_clone().map(File::from);
        let found = file.and_then(|file| file.metadata());
        let (own, found) = match (own, found) {
            (Ok(own), Ok(found)) => (own, found),
            (Err(source), _) | (_, Err(source)) => return Err(self.failed("", source)),
        };
        let what = match (found.uid() == own, found.mode() & 0o077) {
            (true, 0) => return Ok(()),
            (false, _) => format!("it belongs to user {}", found.uid()),
            (true, mode) => format!("others may use it (mode {:o})", 0o700 | mode),
        };
        Err(JournalError::Unsafe { path: self.path.clone(), what })
    }

    fn failed(&self, name: &str, source: io::Error) -> JournalError {
        JournalError::Failed { path: self.path.join(name), source }
    }

    /// Starts a journal of the process `writer`.
    pub fn begin(
        &self,
        root: &Root,
        writer: ProcessId,
        target: &str,
    ) -> Result<Journal, JournalError> {
        let (name, file) = self.new_file(writer)?;
        let directory = self.directory.try_clone().map_err(|error| self.failed(&name, error))?;
        let path = self.path.join(&name);
        let mut journal = Journal { directory, file, name, path };
        journal.write(&[Record::Begin {
            version: JOURNAL_VERSION,
            boot: root.read_text(BOOT_ID).unwrap_or_default().trim().to_owned(),
            pid: writer.pid,
            start: writer.start,
            target: target.to_owned(),
        }])?;
        Ok(journal)
    }

    /// A separate file for each target of a process.
    fn new_file(&self, writer: ProcessId) -> Result<(String, File), JournalError> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut number = 0_u32;
        loop {
            let name = format!("{}-{}-{number}{SUFFIX}", writer.pid, writer.start);
            match openat(&self.directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok((name, File::from(file))),
                Err(rustix::io::Errno::EXIST) if number < TARGETS_MAX => number += 1,
                Err(error) => return Err(self.failed(&name, error.into())),
            }
        }
    }

    /// All journals, ordered by name.
    pub fn list(&self) -> Result<Vec<FoundJournal>, JournalError> {
        let entries =
            Dir::read_from(&self.directory).map_err(|error| self.failed("", error.into()))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.failed("", error.into()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(SUFFIX) {
                names.push(name);
            }
        }
        names.sort_unstable();
        names.into_iter().map(|name| self.read(name)).collect()
    }

    fn text(&self, name: &str) -> Result<String, JournalError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::empty())
            .map_err(|error| self.failed(name, error.into()))?;
        let mut text = String::new();
        File::from(file)
            .take(JOURNAL_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|error| self.failed(name, error))?;
        Ok(text)
    }

    fn read(&self, name: String) -> Result<FoundJournal, JournalError> {
        let text = self.text(&name)?;
        let path = self.path.join(&name);
        let records = parse(&text).map_err(|(line, reason)| JournalError::Malformed {
            path,
            line,
            reason,
        })?;
        Ok(FoundJournal { name, records })
    }

    /// Writes the status text of a run next to its journals, replacing the previous one.
    pub fn put_status(&self, writer: ProcessId, text: &str) -> Result<(), JournalError> {
        let name = status_name(writer);
        let part = format!("{name}.part");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = openat(
            &self.directory,
            part.as_str(),
            flags | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|error| self.failed(&part, error.into()))?;
        File::from(file).write_all(text.as_bytes()).map_err(|error| self.failed(&part, error))?;
        renameat(&self.directory, part.as_str(), &self.directory, name.as_str())
            .map_err(|error| self.failed(&name, error.into()))
    }

    /// The status text of a process; None if it wrote none.
    pub fn status(&self, writer: ProcessId) -> Option<String> {
        self.text(&status_name(writer)).ok()
    }

    /// Removes the status text.
    pub fn remove_status(&self, writer: ProcessId) {
        // It may not exist.
        let _ = unlinkat(&self.directory, status_name(writer).as_str(), AtFlags::empty());
    }

    /// Removes a journal after its changes were undone.
    pub fn remove(&self, name: &str) -> Result<(), JournalError> {
        unlinkat(&self.directory, name, AtFlags::empty())
            .map_err(|error| self.failed(name, error.into()))
    }
}

fn status_name(writer: ProcessId) -> String {
    format!("{}-{}{STATUS}", writer.pid, writer.start)
}

/// The records of complete lines.
fn parse(text: &str) -> Result<Vec<Record>, (usize, String)> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut records = Vec::new();
    for (i, line) in whole.lines().enumerate() {
        let record = serde_json::from_str(line).map_err(|error| (i + 1, error.to_string()))?;
        match (&record, i) {
            (Record::Begin { version, .. }, 0) if *version == JOURNAL_VERSION => {}
            (Record::Begin { version, .. }, 0) => {
                return Err((
                    1,
                    format!("version {version} was written by another release of Atoll"),
                ));
            }
            (Record::Begin { .. }, _) | (_, 0) => {
                return Err((i + 1, "only the first line may begin a journal".to_owned()));
            }
            _ => {}
        }
        records.push(record);
    }
    Ok(records)
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    directory: OwnedFd,
    file: File,
    name: String,
    path: PathBuf,
}

impl Journal {
    /// Writes records and syncs them. Their changes may be made once this has returned.
    pub fn write(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let failed = |source| JournalError::Failed { path: self.path.clone(), source };
        let mut text = String::new();
        for record in records {
            let line = serde_json::to_string(record).map_err(io::Error::other).map_err(failed)?;
            text.push_str(&line);
            text.push('\n');
        }
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()).map_err(failed)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it after everything was undone.
    pub fn finish(self) -> Result<(), JournalError> {
        unlinkat(&self.directory, self.name.as_str(), AtFlags::empty())
            .map_err(|error| JournalError::Failed { path: self.path, source: error.into() })
    }
}
