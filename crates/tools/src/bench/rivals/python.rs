//! The Python that has the rivals: one that is named, or a virtual environment made on first use. See
//! `rivals/README.md` of this crate.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::terminal;

const REQUIREMENTS: &str = include_str!("../../../rivals/requirements.txt");
/// Names a Python that has what `requirements.txt` lists.
const VARIABLE: &str = "ATOLL_PYTHON";

/// The interpreter: the one given, else `$ATOLL_PYTHON`, else that of the environment in the user's
/// cache directory, which is made unless it is there; that takes a minute and the network.
///
/// # Errors
/// When the environment cannot be made, with what to do.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf> {
    let named = env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    match given.map(Path::to_owned).or(named) {
        Some(python) => Ok(python),
        None => environment(&directory(|name| env::var_os(name))?),
    }
}

/// `atoll/bench/engines` in the user's cache directory (`XDG_CACHE_HOME`, else `.cache` in `HOME`).
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache =
        cache.context("neither XDG_CACHE_HOME nor HOME is set; set one, or give --python")?;
    Ok(cache.join("atoll/bench/engines"))
}

fn environment(directory: &Path) -> Result<PathBuf> {
    let python = directory.join("bin/python3");
    let installed = directory.join("installed.txt");
    if !fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
        terminal::say(
            "installing DuckDB, Polars and DataFusion in a virtual environment of their own",
        );
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
    run(
        make,
        "python3 makes no virtual environment; Debian needs the package python3-venv; or give --python, \
         or --rivals none",
    )?;
    let requirements = directory.join("requirements.txt");
    write(&requirements, REQUIREMENTS)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let install = &mut Command::new(python);
    run(
        install.args(pip).arg(requirements),
        "pip cannot install the rivals; see what it says above; or give --python, or --rivals none",
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_in_the_users_cache() {
        let both = |name: &str| (name == "XDG_CACHE_HOME").then(|| "/c".into());
        assert_eq!(directory(both).unwrap(), PathBuf::from("/c/atoll/bench/engines"));
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        assert_eq!(directory(home).unwrap(), PathBuf::from("/h/.cache/atoll/bench/engines"));
        assert!(directory(|_| None).unwrap_err().to_string().contains("--python"));
    }
}
