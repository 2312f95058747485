//! The Python that has the rivals: one that is named, or a virtual environment made on first use. See
//! `rivals/README.md` of this crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cache;

const REQUIREMENTS: &str = include_str!("../../rivals/requirements.txt");
/// Advice for users without the project's Python environment.
const OTHERWISE: &str = "name another Python with --python, or leave its engines out with --rivals";

/// The interpreter: the one given (`--python`, `$ATOLL_PYTHON`), else that of the environment in the
/// user's cache directory, which is made unless it is there; that takes a minute and the network.
///
/// # Errors
/// When the environment cannot be made, with what to do.
pub fn find(given: Option<&Path>, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    match given {
        Some(python) => Ok(python.to_owned()),
        None => environment(&cache::directory()?.join("engines"), progress),
    }
}

fn environment(directory: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    let python = directory.join("bin/python3");
    let installed = directory.join("installed.txt");
    if !fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
        progress("installing DuckDB, Polars and DataFusion in a virtual environment of their own");
        install(directory, &python)?;
        write(&installed, REQUIREMENTS)?;
    }
    Ok(python)
}

fn install(directory: &Path, python: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let make = &mut Command::new("python3");
    let make = make.args(["-m", "venv", "--clear"]).arg(directory);
    run(make, "python3 cannot make a virtual environment (Debian needs the package python3-venv)")?;
    let requirements = directory.join("requirements.txt");
    write(&requirements, REQUIREMENTS)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let install = &mut Command::new(python);
    run(
        install.args(pip).arg(requirements),
        "pip cannot install the rivals; its messages are above",
    )
}

/// Runs a command and discards its stdout.
fn run(command: &mut Command, failure: &str) -> Result<()> {
    let context = || format!("{failure}; {OTHERWISE}");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    ensure!(status.with_context(context)?.success(), context());
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
