//! Reading the small values that sysfs and procfs are made of.

use std::path::PathBuf;

use atoll_sys::Root;

use crate::discover::DiscoverError;
use crate::{Bytes, IdSet};

/// An error for a file that holds something else than expected.
pub(super) fn malformed(
    root: &Root,
    name: &str,
    expected: &'static str,
    found: &str,
) -> DiscoverError {
    let found = found.trim().chars().take(40).collect();
    with_path(root, name, |path| DiscoverError::Malformed { path, expected, found })
}

/// An error for a file that contradicts another.
pub(super) fn inconsistent(root: &Root, name: &str, contradiction: String) -> DiscoverError {
    with_path(root, name, |path| DiscoverError::Inconsistent { path, contradiction })
}

fn with_path(
    root: &Root,
    name: &str,
    error: impl FnOnce(PathBuf) -> DiscoverError,
) -> DiscoverError {
    match root.path(name) {
        Ok(path) => error(path),
        Err(outside) => outside.into(),
    }
}

/// Reads text as a list of ids; `name` is the file it came from.
pub(super) fn set_in<T>(root: &Root, name: &str, text: &str) -> Result<IdSet<T>, DiscoverError>
where
    T: From<u32> + Into<u32> + Copy,
{
    IdSet::parse(text)
        .map_err(|source| with_path(root, name, |path| DiscoverError::Set { path, source }))
}

/// Reads a file that holds a list of ids.
pub(super) fn set<T>(root: &Root, name: &str) -> Result<IdSet<T>, DiscoverError>
where
    T: From<u32> + Into<u32> + Copy,
{
    set_in(root, name, &root.read_text(name)?)
}

/// Reads a file that holds a list of ids; `None` where there is none.
pub(super) fn set_if_present<T>(root: &Root, name: &str) -> Result<Option<IdSet<T>>, DiscoverError>
where
    T: From<u32> + Into<u32> + Copy,
{
    root.read_text_if_present(name)?.map(|text| set_in(root, name, &text)).transpose()
}

/// Reads a file that holds one number; `None` where there is none.
pub(super) fn number_if_present(root: &Root, name: &str) -> Result<Option<i64>, DiscoverError> {
    let number = |text: String| {
        text.trim().parse().map_err(|_| malformed(root, name, "a whole number", &text))
    };
    root.read_text_if_present(name)?.map(number).transpose()
}

/// Reads the value of a line such as `MemTotal:   6252756 kB`, also with words before the key.
pub(super) fn kilobytes(
    root: &Root,
    name: &str,
    text: &str,
    key: &str,
) -> Result<Bytes, DiscoverError> {
    let expected = "lines such as 'MemTotal: 1024 kB' for MemTotal and MemFree";
    let value = text.lines().find_map(|line| line.split_once(key)).map(|(_, value)| value);
    let number = value.and_then(|value| value.trim().strip_suffix("kB"));
    number
        .and_then(|number| number.trim().parse::<u64>().ok())
        .and_then(|number| number.checked_mul(1024))
        .map(Bytes)
        .ok_or_else(|| malformed(root, name, expected, value.unwrap_or(text)))
}
