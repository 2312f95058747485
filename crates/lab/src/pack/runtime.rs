//! Programs of languages that have a library of their own, which they find by themselves: Python and Java.
//!
//! They are asked here for its place. The program asked may be a shim, a script that starts one of several
//! versions (pyenv, asdf): it is the version that answers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program with its language's library.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Runtime {
    /// The program itself, if the given one was a shim.
    pub(super) program: PathBuf,
    /// The directory of the library.
    pub(super) library: PathBuf,
    /// Names of what no program needs, or may be large and is to be asked for (`--with`).
    pub(super) left_out: &'static [&'static str],
}

const PYTHON_SAYS: &str =
    "import os, sys; print(sys.executable); print(os.path.dirname(os.__file__))";
const PYTHON_LEFT_OUT: [&str; 4] = ["test", "idlelib", "site-packages", "dist-packages"];
const JAVA_LEFT_OUT: [&str; 7] = ["jmods", "legal", "man", "docs", "demo", "include", "src.zip"];

/// Asks a program for its runtime files; None if it is not one of these or does not answer.
pub(super) fn detect(program: &Path) -> Option<Runtime> {
    let name = program.file_name()?.to_str()?;
    let version = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    if name.strip_prefix("python").is_some_and(version) {
        return python(&asked(program, &["-c", PYTHON_SAYS])?);
    }
    (name == "java").then(|| java(&asked(program, &["-XshowSettings:properties", "-version"])?))?
}

fn asked(program: &Path, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then_some(output)
}

fn python(output: &Output) -> Option<Runtime> {
    let text = std::str::from_utf8(&output.stdout).ok()?;
    let mut lines = text.lines().map(PathBuf::from);
    runtime(lines.next()?, lines.next()?, &PYTHON_LEFT_OUT)
}

fn java(output: &Output) -> Option<Runtime> {
    let text = std::str::from_utf8(&output.stderr).ok()?;
    let home = text.lines().find_map(|line| line.trim().strip_prefix("java.home = "))?;
    runtime(Path::new(home).join("bin/java"), PathBuf::from(home), &JAVA_LEFT_OUT)
}

fn runtime(
    program: PathBuf,
    library: PathBuf,
    left_out: &'static [&'static str],
) -> Option<Runtime> {
    let is_there = program.is_absolute() && program.is_file() && library.is_absolute();
    (is_there && library.is_dir()).then_some(Runtime { program, library, left_out })
}
