//! The shared libraries of a program, by asking the loader.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::LabError;

/// Whether a file begins as an ELF file does.
pub(super) fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// The loader's answer for an ELF file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Libraries {
    /// Its libraries and the loader itself; none of a static program.
    pub(super) paths: Vec<PathBuf>,
    /// Names of those that the loader does not find.
    pub(super) missing: Vec<String>,
}

/// The libraries of an ELF file. Its path has no links in it: the loader takes `$ORIGIN` for the directory
/// of the path that it is given, the kernel for that of the file.
#[doc(alias = "ldd")]
pub(super) fn libraries(program: &Path) -> Result<Libraries, LabError> {
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::file("ldd", "asking for a program's libraries"))?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// What `ldd` prints.
pub(super) fn parse(text: &str) -> Libraries {
    let mut found = Libraries::default();
    for line in text.lines().map(str::trim) {
        let (name, path) = line.split_once(" => ").unwrap_or((line, line));
        if path.starts_with("not found") {
            found.missing.push(name.to_owned());
            continue;
        }
        // The address comes last, and a path may have parentheses of its own.
        let Some((path, _)) = path.rsplit_once(" (0x") else { continue };
        if path.contains('/') {
            found.paths.push(PathBuf::from(path));
        }
    }
    found
}
