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

/// The libraries of an ELF file and the loader itself; none of a static program.
#[doc(alias = "ldd")]
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, LabError> {
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::file("ldd", "asking for a program's libraries"))?;
    let listed = parse(&String::from_utf8_lossy(&output.stdout));
    listed.map_err(|library| LabError::Library { program: program.to_owned(), library })
}

/// The paths in what `ldd` prints, or the library that it did not find.
pub(super) fn parse(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for line in text.lines().map(str::trim) {
        let (name, path) = line.split_once(" => ").unwrap_or((line, line));
        if path.starts_with("not found") {
            return Err(name.to_owned());
        }
        // The address comes last, and a path may have parentheses of its own.
        let Some((path, _)) = path.rsplit_once(" (0x") else { continue };
        if path.contains('/') {
            paths.push(PathBuf::from(path));
        }
    }
    Ok(paths)
}
