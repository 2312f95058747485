//! Finds the files of a dump under a root and reads them.

use std::collections::BTreeSet;

use atoll_sys::{Root, RootError};

use super::entry::{DumpEntry, DumpPath};
use super::files::{DIRECTORIES, FILES, GROUP};
use super::reduce::reduce;
use super::write::write;
use atoll_topology::SET_NUMBER_MAX;
use atoll_topology::group_directories;

/// A dump of the machine under `root`: everything that discovery, the knowledge base and the checks read.
/// `name` replaces the host name. An unreadable file becomes a comment in the dump.
pub fn gather(root: &Root, name: &str) -> String {
    let mut found = Vec::new();
    for (directory, files) in FILES {
        let directories = matching(root, directory);
        for file in *files {
            let places = directories.iter().flat_map(|place| step(root, place, file));
            found.push(read_all(root, places, name));
        }
    }
    for directory in DIRECTORIES {
        let places = matching(root, directory).into_iter();
        found.push(places.map(|place| (place, DumpEntry::Directory)).collect());
    }
    for directory in groups(root) {
        for file in GROUP {
            let place = DumpPath { path: format!("{directory}/{file}"), number: None };
            found.push(read_all(root, [place].into_iter(), name));
        }
    }
    write(&found)
}

/// Directories of the process's control groups, in all hierarchies.
fn groups(root: &Root) -> BTreeSet<String> {
    group_directories(root).unwrap_or_default().into_iter().collect()
}

fn read_all(
    root: &Root,
    places: impl Iterator<Item = DumpPath>,
    name: &str,
) -> Vec<(DumpPath, DumpEntry)> {
    let found = |place: DumpPath| {
        let place = if root.exists(&place.path) { place } else { mask_instead(place) };
        read(root, &place.path, name).map(|found| (place, found))
    };
    places.filter_map(found).collect()
}

/// The mask file equivalent to a list file; old kernels have only the mask.
fn mask_instead(place: DumpPath) -> DumpPath {
    let path = match &place.path {
        path if path.ends_with("/cpulist") => path.replace("/cpulist", "/cpumap"),
        path if path.ends_with("/shared_cpu_list") => path.replace("_list", "_map"),
        path => path.strip_suffix("_list").unwrap_or(path).to_owned(),
    };
    DumpPath { path, ..place }
}

fn read(root: &Root, path: &str, name: &str) -> Option<DumpEntry> {
    match root.read_bytes(path) {
        Ok(contents) => Some(DumpEntry::File(reduce(path, contents, name))),
        Err(RootError::NotFound { .. }) => None,
        Err(RootError::Denied { .. }) => Some(DumpEntry::Refused("reading it is not permitted")),
        // Attributes that do not apply (a speed of a link that is down) fail when read.
        Err(_) => Some(DumpEntry::Refused("reading it failed")),
    }
}

/// The paths that match a pattern, ordered by number.
fn matching(root: &Root, pattern: &str) -> Vec<DumpPath> {
    let mut places = vec![DumpPath { path: String::new(), number: None }];
    for part in pattern.trim_start_matches('/').split('/') {
        places = places.iter().flat_map(|place| step(root, place, part)).collect();
    }
    places
}

/// The entries of a directory that match one component of a pattern. A component without `#` and `*` is taken
/// literally, whether it exists or not.
fn step(root: &Root, place: &DumpPath, part: &str) -> Vec<DumpPath> {
    let below = |name: &str, number: Option<(usize, u32)>| DumpPath {
        path: format!("{}/{name}", place.path),
        number: place.number.or(number),
    };
    if let Some(prefix) = part.strip_suffix('#') {
        let start = place.path.len() + 1 + prefix.len();
        let names = root.list(&place.path).unwrap_or_default();
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|name| number(name.strip_prefix(prefix)?)).collect();
        numbers.sort_unstable();
        let number = |number: u32| below(&format!("{prefix}{number}"), Some((start, number)));
        return numbers.into_iter().map(number).collect();
    }
    if let Some(prefix) = part.strip_suffix('*') {
        let names = root.list(&place.path).unwrap_or_default();
        let names = names.iter().filter(|name| name.starts_with(prefix));
        return names.map(|name| below(name, None)).collect();
    }
    vec![below(part, None)]
}

/// A number as the kernel writes it.
fn number(text: &str) -> Option<u32> {
    let number = text.parse().ok().filter(|&number: &u32| number <= SET_NUMBER_MAX)?;
    (number.to_string() == text).then_some(number)
}
