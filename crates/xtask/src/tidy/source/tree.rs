//! The repository as checks see it: every file that is, or would be, committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tidy::source::manifest::CrateManifest;
use crate::tidy::source::rust_code::RustCode;

/// Text beyond this size is data, not something that a rule about words or code could concern.
const TEXT_SIZE_MAX: u64 = 1 << 20;

/// Every file of the repository, by path.
#[derive(Debug)]
pub struct SourceTree {
    files: BTreeMap<String, File>,
}

/// One file of the repository.
#[derive(Debug)]
pub struct File {
    /// Path from the root, with `/`.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Its text; None for binary files and for those above 1 MiB.
    pub text: Option<String>,
}

impl SourceTree {
    /// Reads what git tracks or would add (a checkout), or every file (an unpacked archive).
    pub fn read(root: &Path) -> Result<Self> {
        let paths = if root.join(".git").exists() { git_files(root)? } else { all_files(root)? };
        let mut files = BTreeMap::new();
        for path in paths {
            if let Some(file) = File::read(root, &path)? {
                files.insert(path, file);
            }
        }
        Ok(Self { files })
    }

    /// All files, ordered by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &File> {
        self.files.values()
    }

    /// The file of that path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// Text of the file of that path.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.file(path)?.text.as_deref()
    }

    /// Whether there is a file or a folder of that path; the root is the empty path.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    /// Rust sources.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&File, &str)> {
        let files = self.files().filter(|file| file.path.ends_with(".rs"));
        files.filter_map(|file| Some((file, file.text.as_deref()?)))
    }

    /// Manifests of the crates, by the name of their folder under `crates/`.
    pub(crate) fn crates(&self) -> BTreeMap<&str, CrateManifest> {
        self.files()
            .filter_map(|file| {
                let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
                let manifest = CrateManifest::parse(&file.path, file.text.as_deref()?);
                (!folder.contains('/')).then_some((folder, manifest))
            })
            .collect()
    }
}

impl File {
    /// None for a path that is not there (deleted but still in git's index) or not a plain file.
    fn read(root: &Path, path: &str) -> Result<Option<Self>> {
        let full = root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&full) else { return Ok(None) };
        if !metadata.is_file() {
            return Ok(None);
        }
        let size = metadata.len();
        let text = if size <= TEXT_SIZE_MAX {
            let bytes = fs::read(&full).with_context(|| format!("{path} cannot be read"))?;
            String::from_utf8(bytes).ok()
        } else {
            None
        };
        Ok(Some(Self { path: path.to_owned(), size, text }))
    }

    /// The file's name without its folders.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether its path makes all of it test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.name() == "tests.rs"
    }
}

impl SourceTree {
    /// The Rust sources with comments and literals separated from code.
    pub(crate) fn rust_code(&self) -> impl Iterator<Item = (&File, RustCode)> {
        self.rust_files().map(|(file, text)| (file, RustCode::parse(text)))
    }
}

fn git_files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git cannot be started; tidy asks it which files belong to the project")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Every file under `root` except in `target` and hidden folders that builds and tools make.
fn all_files(root: &Path) -> Result<Vec<String>> {
    const SKIPPED: [&str; 3] = [".git", ".venv", "target"];
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder))
            .with_context(|| format!("folder '{folder}' cannot be read"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string();
            let Ok(name) = name else { bail!("a file name in '{folder}' is not UTF-8") };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match entry.file_type()?.is_dir() {
                true if SKIPPED.contains(&name.as_str()) => {}
                true => folders.push(path),
                false => paths.push(path),
            }
        }
    }
    Ok(paths)
}
