//! Atomic file replacement: a file is written without a name (or under a temporary name next to the target, if the
//! file system lacks unnamed files), synced, and renamed over the target.
//!
//! Until [`WholeFile::place`], the old file stays unchanged, even if a signal kills the process. Targets that cannot be
//! replaced (a pipe, a terminal, another device, `/dev/stdout`) are written directly.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calls::{linkat_unnamed, open_unnamed};

/// Maximum length of a chain of links, as in the kernel.
const LINKS_MAX: usize = 40;
/// Mode of a new file, less the process's umask.
const MODE: u32 = 0o666;

/// A file that is being written, and gets its name when it is [placed](WholeFile::place). If it is dropped before,
/// nothing remains.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    place: Option<SavePath>,
}

/// Its target.
#[derive(Debug)]
struct SavePath {
    target: PathBuf,
    /// Its temporary name, if any.
    temporary: Option<PathBuf>,
    /// Directories that were created for it, outer ones first.
    made: Vec<PathBuf>,
}

/// Writes a file atomically, replacing an existing one.
pub fn write_whole(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    file.write_all(bytes.as_ref())?;
    file.place()
}

/// Places several files: all or none.
pub fn place_all(mut files: Vec<WholeFile>) -> io::Result<()> {
    files.iter_mut().try_for_each(WholeFile::prepare)?;
    files.into_iter().try_for_each(WholeFile::place)
}

impl WholeFile {
    /// Starts a file that replaces an existing one and inherits its mode. Symbolic links are followed.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_in(path, parent)
    }

    /// Like [`create`](Self::create); missing directories are created when the file is placed.
    pub fn create_with_directories(path: &Path) -> io::Result<Self> {
        Self::create_in(path, nearest_directory)
    }

    fn create_in(path: &Path, directory: fn(&Path) -> &Path) -> io::Result<Self> {
        let Some(target) = resolve(path)? else { return Self::through(path) };
        let old = match fs::metadata(&target) {
            Ok(old) if old.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(old) if !old.is_file() => return Self::through(path),
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (file, temporary) = open(directory(&target))?;
        let file = Self { file, place: Some(SavePath { target, temporary, made: Vec::new() }) };
        if let Some(old) = old {
            take_over(&old, &file.file)?;
        }
        Ok(file)
    }

    /// At the end, for a stdout that is a file to which others write too.
    fn through(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).open(path)?, place: None })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether what is written goes to a reader at once and in this order, as with a pipe.
    pub fn is_stream(&self) -> bool {
        self.place.is_none()
    }

    /// Syncs the file and gives it a name next to its target, so that the final rename can hardly fail.
    fn prepare(&mut self) -> io::Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        self.file.sync_all()?;
        if place.temporary.is_none() {
            make_directories(parent(&place.target), &mut place.made)?;
            let name = |path: &Path| linkat_unnamed(&self.file, path);
            place.temporary = Some(with_free_name(parent(&place.target), name)?.1);
        }
        Ok(())
    }

    /// Moves the file to its target atomically, and syncs the directory.
    pub fn place(mut self) -> io::Result<()> {
        self.prepare()?;
        let Some(place) = &mut self.place else { return self.file.flush() };
        let Some(temporary) = &place.temporary else { return Ok(()) };
        make_directories(parent(&place.target), &mut place.made)?;
        fs::rename(temporary, &place.target)?;
        let Some(place) = self.place.take() else { return Ok(()) };
        sync_directory(parent(&place.target))?;
        place.made.iter().try_for_each(|made| sync_directory(parent(made)))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };
        if let Some(temporary) = &place.temporary {
            let _ = fs::remove_file(temporary);
        }
        // Keeps directories that are no longer empty.
        place.made.iter().rev().for_each(|made| drop(fs::remove_dir(made)));
    }
}

/// The target of `path`. Returns None for a descriptor of a process, such as `/dev/stdout`.
fn resolve(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // A path that is not a link, or does not exist, is the target.
        let Ok(to) = fs::read_link(&path) else { return Ok(Some(path)) };
        if fs::canonicalize(parent(&path))?.starts_with("/proc") {
            return Ok(None);
        }
        path = parent(&path).join(to);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}

/// The nearest existing ancestor directory.
fn nearest_directory(path: &Path) -> &Path {
    let mut directory = parent(path);
    while !directory.exists() {
        directory = parent(directory);
    }
    directory
}

/// A new file in a directory, and its name if it has one.
fn open(directory: &Path) -> io::Result<(File, Option<PathBuf>)> {
    // Names are given through procfs.
    if Path::new("/proc/self/fd").exists()
        && let Ok(file) = open_unnamed(directory, MODE)
    {
        return Ok((file, None));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(MODE);
    let (file, path) = with_free_name(directory, |path| options.open(path))?;
    Ok((file, Some(path)))
}

/// Runs an operation with a free name in the directory; also returns the name.
fn with_free_name<T>(
    directory: &Path,
    act: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".atoll-{}-{number}", process::id()));
        match act(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return Ok((done?, path)),
        }
    }
}

/// Gives the new file the owner and mode of the old one.
fn take_over(old: &Metadata, new: &File) -> io::Result<()> {
    // Before the mode, some of whose bits it clears. Only root may give files to others.
    let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    new.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}

fn make_directories(directory: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    if directory.file_name() == Some(OsStr::new(".")) || directory.is_dir() {
        return Ok(());
    }
    make_directories(parent(directory), made)?;
    match fs::create_dir(directory) {
        Ok(()) => made.push(directory.to_owned()),
        // Another file of the same query created it first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Waits until the names in a directory are on disk. Where directories cannot be synced or read, the
/// names are in place all the same.
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error)
            if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) =>
        {
            Ok(())
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_when_it_is_whole_and_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(file);
        assert_eq!(names(directory.path()), ["a.txt"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(names(directory.path()), ["a.txt"]);
    }

    #[test]
    fn links_are_followed_also_to_what_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/b", at("a")).unwrap();
        symlink("c", at("deep/b")).unwrap();
        for text in ["first", "second"] {
            write_whole(&at("a"), text).unwrap();
            assert_eq!(fs::read_to_string(at("deep/c")).unwrap(), text);
        }
        assert!(at("a").is_symlink() && at("deep/b").is_symlink());
        symlink("loop", at("loop")).unwrap();
        assert!(write_whole(&at("loop"), "").unwrap_err().to_string().contains("links"));
    }

    #[test]
    fn what_cannot_be_replaced_is_written_to() {
        write_whole(Path::new("/dev/null"), "gone").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut open = File::create(&path).unwrap();
        open.write_all(b"before ").unwrap();
        use std::os::fd::AsRawFd;
        let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
        write_whole(Path::new(&descriptor), "after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before after");
        assert_eq!(write_whole(directory.path(), "").unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn directories_are_made_when_the_file_is_placed_and_only_then() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/c");
        let start = || WholeFile::create_with_directories(&path).unwrap();
        drop(start());
        let mut prepared = start();
        prepared.prepare().unwrap();
        drop(prepared);
        assert!(names(directory.path()).is_empty());
        place_all(vec![start()]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        assert!(WholeFile::create(&directory.path().join("x/y")).is_err());
    }

    #[test]
    fn where_one_of_several_cannot_be_placed_none_is() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let files = ["a", "b/c"].map(|name| WholeFile::create_with_directories(&at(name)).unwrap());
        fs::write(at("b"), "in the way").unwrap();
        place_all(files.into()).unwrap_err();
        assert_eq!(names(directory.path()), ["b"]);
    }

    #[test]
    fn a_named_file_beside_is_as_good() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let start = || {
            let (file, path) =
                with_free_name(directory.path(), |path| File::create_new(path)).unwrap();
            let place =
                SavePath { target: target.clone(), temporary: Some(path), made: Vec::new() };
            WholeFile { file, place: Some(place) }
        };
        drop(start());
        assert!(names(directory.path()).is_empty());
        start().place().unwrap();
        assert_eq!(names(directory.path()), ["a"]);
    }
}
