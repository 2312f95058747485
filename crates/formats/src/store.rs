//! Measured figures kept across runs: one file per machine, named by its [`Fingerprint`], in the format of machine
//! files, so that the file of one machine describes it on another.
//!
//! The file is private. It is replaced atomically by a rename while the directory's lock is held, so that a crash
//! leaves the old or the new one and concurrent runs do not lose each other's figures. It holds the whole machine;
//! facts about domains or links are not kept, since Atoll renumbers them within what a process may use.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use atoll_sys::{Root, WholeFile};

use crate::{FormatError, toml};
use atoll_topology::{
    Allowed, DiscoverError, Fact, Fingerprint, Knowledge, Limits, Machine, Source, Subject,
};

/// Size limit: about ten times the file of a machine of 64 nodes with every path measured.
const FILE_BYTES_MAX: u64 = 64 << 20;
const LOCK: &str = ".lock";

/// Why measured figures could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No environment variable names the directory.
    #[error("no directory for measured figures; set ATOLL_DATA to a directory, or HOME")]
    NoDirectory,
    /// The file is damaged.
    #[error(
        "cannot read measured figures: {source}; correct the file, or remove it and measure again"
    )]
    Damaged {
        /// The error, with the file and line.
        source: FormatError,
    },
    /// Reading or writing failed.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The machine to which the figures belong could not be read.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
}

/// The directory of this user's figures: `$ATOLL_DATA/machines`, else `$XDG_DATA_HOME/atoll/machines`, else
/// `~/.local/share/atoll/machines`. It need not exist.
#[doc(alias = "ATOLL_DATA")]
pub fn directory() -> Result<PathBuf, StoreError> {
    directory_in(|name| env::var_os(name))
}

/// Like [`directory`], with the environment as a function. Empty variables are ignored, and so is a relative
/// `XDG_DATA_HOME` (XDG Base Directory Specification).
pub fn directory_in(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, StoreError> {
    let path = |name| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let data = path("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| Some(path("HOME")?.join(".local/share")));
    let atoll = path("ATOLL_DATA").or_else(|| Some(data?.join("atoll")));
    atoll.map(|atoll| atoll.join("machines")).ok_or(StoreError::NoDirectory)
}

/// The file of a machine's figures. `whole` is the unrestricted machine: see [`Fingerprint`].
pub fn file(directory: &Path, whole: &Machine) -> PathBuf {
    directory.join(format!("{}.toml", Fingerprint::from_machine(whole)))
}

/// The stored facts of a machine; empty if nothing was ever measured.
pub fn load(directory: &Path, whole: &Machine) -> Result<Vec<Fact>, StoreError> {
    let path = file(directory, whole);
    let Some(text) = read(&path)? else { return Ok(Vec::new()) };
    let known = toml::parse(&text, &path.display().to_string());
    let known = known.map_err(|source| StoreError::Damaged { source })?;
    Ok(known.facts.into_iter().filter(|fact| is_kept(fact, whole)).collect())
}

/// Adds measured facts to those stored for a machine, newer ones replacing older ones ([`Knowledge::merge`]), and
/// returns the file. Facts that are not measured, or are about domains, links or parts that the machine does not
/// have, are left out.
pub fn save(directory: &Path, whole: &Machine, facts: &[Fact]) -> Result<PathBuf, StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed(directory, "creating the directory"))?;
    let _lock = lock(directory)?;
    // The limits are this process's, not the machine's.
    let mut known = Knowledge::from_machine(Machine { limits: Limits::default(), ..whole.clone() });
    known.merge(load(directory, whole)?);
    known.merge(facts.iter().filter(|fact| is_kept(fact, whole)).cloned());
    let path = file(directory, whole);
    replace(&path, toml::write(&known).as_bytes())?;
    Ok(path)
}

/// [`save`] for the machine that this process runs on, in [`directory`].
pub fn save_live(facts: &[Fact]) -> Result<PathBuf, StoreError> {
    let whole = Machine::discover_at(&Root::live(), &Allowed::everything())?;
    save(&directory()?, &whole, facts)
}

/// Knowledge of the live machine.
#[derive(Debug)]
pub struct Live {
    /// The knowledge that could be read.
    pub knowledge: Knowledge,
    /// Why stored figures could not be read, if so: a warning to show.
    pub warning: Option<StoreError>,
}

/// Discovery, and the stored figures of this machine from [`directory`].
pub fn live() -> Result<Live, DiscoverError> {
    let root = Root::live();
    let allowed = Allowed::of_process(&root);
    match directory() {
        Ok(directory) => live_at(&root, &allowed, &directory),
        Err(error) => {
            let knowledge = Knowledge::discover_at(&root, &allowed)?;
            Ok(Live { knowledge, warning: Some(error) })
        }
    }
}

/// Like [`live`], for the machine under `root` with the figures in a directory. Figures about nodes and cpus that the
/// process may not use are left out.
pub fn live_at(root: &Root, allowed: &Allowed, directory: &Path) -> Result<Live, DiscoverError> {
    let mut knowledge = Knowledge::discover_at(root, allowed)?;
    let whole = whole(root, &knowledge.machine)?;
    let warning = match load(directory, &whole) {
        Ok(facts) => {
            let machine = knowledge.machine.clone();
            knowledge.merge(facts.into_iter().filter(|fact| machine.has(fact.subject)));
            None
        }
        Err(error) => Some(error),
    };
    Ok(Live { knowledge, warning })
}

/// The unrestricted machine; `machine` is the part that the process may use.
fn whole(root: &Root, machine: &Machine) -> Result<Machine, DiscoverError> {
    if machine.hidden.cpus.is_empty() && machine.hidden.nodes.is_empty() {
        return Ok(machine.clone());
    }
    Machine::discover_at(root, &Allowed::everything())
}

fn is_kept(fact: &Fact, whole: &Machine) -> bool {
    let is_numbered_by_atoll = matches!(fact.subject, Subject::Domain(_) | Subject::Link(_));
    fact.source == Source::Measured && !is_numbered_by_atoll && whole.has(fact.subject)
}

fn failed(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), doing, source }
}

/// A file's text. Returns None if it does not exist.
fn read(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Opening a pipe would wait for a writer.
        Ok(metadata) if !metadata.is_file() => return Err(damaged(path, "not a regular file")),
        _ => {}
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed(path, "reading"))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed(path, "reading"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(damaged(path, "more than 64 MiB"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| damaged(path, "bytes that are not UTF-8"))
}

fn damaged(path: &Path, found: &str) -> StoreError {
    let file = path.display().to_string();
    let (found, expected) = (found.to_owned(), "a machine file".to_owned());
    StoreError::Damaged { source: FormatError { file, line: None, found, expected } }
}

/// Locks the directory against other processes; closing the file releases the lock.
fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.map_err(failed(&path, "opening the lock"))?;
    file.lock().map_err(failed(&path, "locking"))?;
    Ok(file)
}

/// Replaces a private file atomically.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let replaced = WholeFile::create(path).and_then(|mut file| {
        file.file().set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.place()
    });
    replaced.map_err(failed(path, "writing"))
}
