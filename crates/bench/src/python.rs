//! The virtual environment of the rival that is a Python package. See `rivals/README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

const REQUIREMENTS: &str = include_str!("../rivals/requirements.txt");
const SCRIPT: &str = include_str!("../rivals/duckdb_engine.py");

/// A program that runs DuckDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    /// The environment's interpreter.
    pub(crate) python: PathBuf,
    /// The script.
    pub(crate) script: PathBuf,
}

/// DuckDB in the interpreter that is given, else in an environment in the cache.
pub(crate) fn rival(
    python: Option<&Path>,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Rival> {
    let Some(python) = python else { return prepare(cache, progress) };
    let directory = cache.join("rivals");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(Rival { python: python.to_owned(), script: write_script(&directory)? })
}

/// Makes the environment unless it is there, which takes a minute and the network.
pub(crate) fn prepare(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Rival> {
    let directory = cache.join("rivals");
    let python = directory.join("bin").join("python3");
    let installed = directory.join("installed.txt");
    if !fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
        progress("installing DuckDB in a virtual environment of its own");
        install(&directory, &python)?;
        write(&installed, REQUIREMENTS)?;
    }
    Ok(Rival { python, script: write_script(&directory)? })
}

fn write_script(directory: &Path) -> Result<PathBuf> {
    let script = directory.join("duckdb_engine.py");
    write(&script, SCRIPT)?;
    Ok(script)
}

fn install(directory: &Path, python: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let make = &mut Command::new("python3");
    let make = make.args(["-m", "venv", "--clear"]).arg(directory);
    run(make, "python3 makes no virtual environment; Debian needs the package python3-venv")?;
    let requirements = directory.join("requirements.txt");
    write(&requirements, REQUIREMENTS)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let install = &mut Command::new(python);
    run(install.args(pip).arg(requirements), "pip cannot install DuckDB; see what it says above")
}

/// Runs a command whose output is none of ours.
fn run(command: &mut Command, otherwise: &'static str) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context(otherwise)?;
    ensure!(status.success(), otherwise);
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
