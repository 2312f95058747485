//! The cache of the benchmarks: data and the rivals' programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// `atoll/bench` in the user's cache directory (`XDG_CACHE_HOME`, else `.cache` in `HOME`).
///
/// # Errors
/// Where neither variable is set: there is no place to keep anything.
pub(crate) fn directory() -> Result<PathBuf> {
    place(|name| std::env::var_os(name))
}

/// A directory for databases that goes with this value: in the one that the user named, else among the
/// temporary files.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn databases(named: Option<&Path>) -> Result<tempfile::TempDir> {
    let mut name = tempfile::Builder::new();
    name.prefix("atoll-bench-");
    let made = named.map_or_else(|| name.tempdir(), |directory| name.tempdir_in(directory));
    made.context("cannot create a directory for the databases; name one with --directory")
}

fn place(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let base = base.context("neither XDG_CACHE_HOME nor HOME is set to a directory; set one")?;
    Ok(base.join("atoll").join("bench"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_has_it() {
        let both = |name: &str| (name == "XDG_CACHE_HOME").then(|| "/c".into());
        assert_eq!(place(both).unwrap(), PathBuf::from("/c/atoll/bench"));
        let home = |name: &str| (name == "HOME").then(|| "/h".into());
        assert_eq!(place(home).unwrap(), PathBuf::from("/h/.cache/atoll/bench"));
    }

    #[test]
    fn without_a_home_there_is_no_cache() {
        assert!(place(|_| None).is_err());
        assert!(place(|_| Some("relative".into())).is_err());
    }
}
