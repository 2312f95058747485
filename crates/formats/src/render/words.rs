//! Phrases that the sections share.

use std::fmt::Display;

use atoll_topology::{Bytes, IdSet, Source};

/// Maximum length of a list of cpus that is printed in full.
const LIST_CHARACTERS_MAX: usize = 24;

/// `1 node`, `4 nodes`.
pub(super) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {}", plural(what)),
    }
}

fn plural(what: &str) -> String {
    format!("{what}s")
}

/// `cpu 3`, `cpus 0-3,8`, `no cpus`. A long list is cut in the middle, after a comma.
pub(super) fn list<T>(what: &str, set: &IdSet<T>) -> String
where
    T: From<u32> + Into<u32> + Copy,
{
    match set.len() {
        0 => format!("no {}", plural(what)),
        1 => format!("{what} {set}"),
        _ => format!("{} {}", plural(what), shortened(&set.to_string())),
    }
}

fn shortened(list: &str) -> String {
    if list.len() <= LIST_CHARACTERS_MAX {
        return list.to_owned();
    }
    let (head, last) = list.rsplit_once(',').unwrap_or((list, ""));
    let room = LIST_CHARACTERS_MAX.saturating_sub(last.len() + 2).min(head.len());
    let head = head[..room].rsplit_once(',').map_or("", |(head, _)| head);
    format!("{head},…,{last}")
}

/// `(discovered)`
pub(super) fn source(source: Source) -> &'static str {
    match source {
        Source::Measured => "(measured)",
        Source::Observed => "(observed)",
        Source::Discovered => "(discovered)",
        Source::Declared => "(declared)",
        Source::Synthetic => "(synthetic)",
        Source::Assumed => "(assumed)",
    }
}

/// The values with a separator between them.
pub(super) fn joined<T: Display>(values: impl IntoIterator<Item = T>, separator: &str) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(separator)
}

/// A size in its shortest form: `32 KiB`, `31.2 GiB`.
pub(super) fn compact(size: Bytes) -> String {
    size.to_string().replace(".0 ", " ")
}
