//! Finds the files that a statement names.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use atoll_topology::nearest_name;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path as StorePath;

use tempfile::TempPath;

use crate::source::glob;

/// A file that is read.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// The path as the statement names it.
    pub(crate) path: PathBuf,
    /// The content of a pipe, which can be read only once; removed with the last reference.
    spooled: Option<Arc<TempPath>>,
    pub(crate) size: u64,
    modified: SystemTime,
    pub(crate) compression: FileCompressionType,
}

impl SourceFile {
    fn new(path: PathBuf) -> Result<Self> {
        let mut metadata = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
        let mut spooled = None;
        if !metadata.is_file() {
            let content = spool(&path, &metadata)?;
            metadata = std::fs::metadata(&content)?;
            spooled = Some(Arc::new(content));
        }
        let (size, modified) =
            (metadata.len(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        Ok(Self { path, spooled, size, modified, compression: FileCompressionType::UNCOMPRESSED })
    }

    /// The file of an object of the local store.
    pub(crate) fn of_object(object: &ObjectMeta, compression: FileCompressionType) -> Self {
        let path = datafusion::object_store::local::LocalFileSystem::new();
        let path = path.path_to_filesystem(&object.location);
        let path = path.unwrap_or_else(|_| PathBuf::from(object.location.to_string()));
        Self {
            path,
            spooled: None,
            size: object.size,
            modified: object.last_modified.into(),
            compression,
        }
    }

    /// The path as the statement names it.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Keeps its bytes in place, if needed.
    pub(crate) fn spooled(&self) -> Option<Arc<TempPath>> {
        self.spooled.clone()
    }

    /// The path of its bytes.
    fn content(&self) -> &Path {
        self.spooled.as_deref().map_or(&self.path, |spooled| spooled)
    }

    /// Opens it without decompression.
    pub(crate) fn open(&self) -> Result<File> {
        File::open(self.content()).map_err(|error| unreadable(&self.path, &error))
    }

    /// Opens its decompressed content.
    pub(crate) fn open_content(&self) -> Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.compression.convert_read(self.open()?)?))
    }

    /// An error while its content is read.
    pub(crate) fn failed(&self, error: &io::Error) -> DataFusionError {
        let is_cut = error.kind() == io::ErrorKind::UnexpectedEof
            || ["incomplete", "deflate"].iter().any(|it| error.to_string().contains(it));
        match self.compression.is_compressed() && is_cut {
            true => exec_datafusion_err!(
                "'{}' is truncated: its compressed data ends too early",
                self.name()
            ),
            false => exec_datafusion_err!("'{}' cannot be read: {}", self.name(), plain(error)),
        }
    }

    /// The time of its last change, in microseconds.
    pub(crate) fn modified_us(&self) -> Option<i64> {
        let since = self.modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok()
    }

    /// The file as object stores know it.
    pub(crate) fn object(&self) -> Result<ObjectMeta> {
        let content = self.content();
        // Object stores know no `..`, which only the file system can follow.
        let absolute = match content.components().any(|part| part == Component::ParentDir) {
            true => content.canonicalize().map_err(|error| unreadable(&self.path, &error))?,
            false => std::path::absolute(content)?,
        };
        let location = StorePath::from_absolute_path(&absolute)
            .map_err(|error| exec_datafusion_err!("'{}' cannot be read: {error}", self.name()))?;
        let last_modified = self.modified.into();
        Ok(ObjectMeta { location, last_modified, size: self.size, e_tag: None, version: None })
    }
}

/// An error of the operating system without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

/// The whole content of a pipe, such as standard input, in a file.
fn spool(path: &Path, metadata: &Metadata) -> Result<TempPath> {
    let is_input = path.starts_with("/dev/stdin") || path.starts_with("/dev/fd");
    if !metadata.file_type().is_fifo() && !is_input {
        return exec_err!("'{}' cannot be read: it is neither a file nor a pipe", path.display());
    }
    let mut pipe = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut content = tempfile::NamedTempFile::new()?;
    io::copy(&mut pipe, &mut content).map_err(|error| unreadable(path, &error))?;
    Ok(content.into_temp_path())
}

fn unreadable(path: &Path, error: &io::Error) -> DataFusionError {
    exec_datafusion_err!("'{}' cannot be read: {}", path.display(), plain(error))
}

/// The files of all these names and patterns: names in their order, the files of a pattern sorted.
pub(crate) fn find(texts: &[String]) -> Result<Vec<SourceFile>> {
    if texts.is_empty() {
        return exec_err!("expected a file name, found an empty list");
    }
    let mut files = Vec::new();
    for text in texts {
        files.extend(find_one(text)?);
    }
    Ok(files)
}

fn find_one(text: &str) -> Result<Vec<SourceFile>> {
    let text = local(text)?;
    let path = Path::new(&text);
    if path.is_dir() {
        return in_directory(path);
    }
    // A name may contain wildcards.
    if path.symlink_metadata().is_ok() {
        return Ok(vec![SourceFile::new(path.to_owned())?]);
    }
    let found = match glob::is_pattern(&text) {
        true => glob::matches(&text).map_err(|error| unreadable(path, &error))?,
        false => Vec::new(),
    };
    let files: Vec<PathBuf> = found.into_iter().filter(|path| !path.is_dir()).collect();
    if files.is_empty() {
        return Err(missing(&text));
    }
    files.into_iter().map(SourceFile::new).collect()
}

/// The path that a text names.
fn local(text: &str) -> Result<String> {
    if let Some(path) = text.strip_prefix("file://") {
        return Ok(path.to_owned());
    }
    if let Some((scheme, _)) = text.split_once("://")
        && !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return exec_err!(
            "'{text}' is not on this machine; only local files can be read, so fetch it first"
        );
    }
    if let Some(rest) = text.strip_prefix("~/")
        && let Some(home) = std::env::var_os("HOME")
    {
        return Ok(Path::new(&home).join(rest).display().to_string());
    }
    if text.is_empty() {
        return exec_err!("expected a file name, found an empty text");
    }
    Ok(text.to_owned())
}

/// All files below a directory except hidden ones and those that tools keep next to their output.
fn in_directory(directory: &Path) -> Result<Vec<SourceFile>> {
    let found = glob::matches(&format!("{}/**", escaped(directory)));
    let found = found.map_err(|error| unreadable(directory, &error))?;
    let is_wanted = |path: &&PathBuf| {
        let below = path.strip_prefix(directory).unwrap_or(path);
        let hidden = |name: &str| name.starts_with(['.', '_']) && !name.contains('=');
        !path.is_dir() && !below.iter().any(|part| hidden(&part.to_string_lossy()))
    };
    let files: Vec<PathBuf> = found.iter().filter(is_wanted).cloned().collect();
    if files.is_empty() {
        return exec_err!("directory '{}' has no files to read", directory.display());
    }
    files.into_iter().map(SourceFile::new).collect()
}

/// The directory as a pattern that matches only itself.
fn escaped(directory: &Path) -> String {
    let text = directory.display().to_string();
    let text = text.trim_end_matches('/');
    text.chars().map(|c| if "*?[".contains(c) { format!("[{c}]") } else { c.to_string() }).collect()
}

fn missing(text: &str) -> DataFusionError {
    let path = Path::new(text);
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if glob::is_pattern(text) {
        return exec_datafusion_err!("no file matches '{text}'");
    }
    if !parent.is_dir() {
        return exec_datafusion_err!(
            "no file matches '{text}': directory '{}' does not exist",
            parent.display()
        );
    }
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let near = wanted.and_then(|wanted| {
        nearest_name(&wanted, names.iter().map(String::as_str)).map(str::to_owned)
    });
    match near {
        Some(near) => {
            let near = path.with_file_name(near);
            exec_datafusion_err!("no file matches '{text}'; did you mean '{}'?", near.display())
        }
        None => exec_datafusion_err!("no file matches '{text}'"),
    }
}
