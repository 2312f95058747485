//! `/proc/PID/numa_maps`: for each mapping its policy and its resident pages by node.
//!
//! The kernel walks every page table entry to write it, so a process with much memory is sampled
//! instead. A mapping without a policy of its own shows that of the process's first thread,
//! and under `/proc/PID/task/TID` that of the thread.

use atoll_sys::Root;
use atoll_topology::NodeId;

use super::maps::{MappingKind, file_kind};
use super::read::{FileLines, Unread};

const EXPECTED: &str = "'ADDRESS POLICY [KEY=VALUE] …' as in numa(7)";
/// Words after the policy that are not `KEY=VALUE`.
const FLAGS: [&str; 3] = ["heap", "stack", "huge"];
/// Keys after the policy, except `N` and a number. A policy may contain `=` too (`bind=static:0`).
const KEYS: [&str; 10] = [
    "file",
    "anon",
    "dirty",
    "mapped",
    "mapmax",
    "swapcache",
    "active",
    "writeback",
    "kernelpagesize_kB",
    "anon_thp",
];

/// A mapping's pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct MappingPages {
    pub(in crate::inspect) start: u64,
    pub(in crate::inspect) policy: String,
    /// Its kind, as far as this file shows it.
    pub(in crate::inspect) kind: MappingKind,
    /// Resident pages by node, of the mapping's own page size.
    pub(in crate::inspect) by_node: Vec<(NodeId, u64)>,
    /// Page size in bytes, if the kernel reports it.
    pub(in crate::inspect) page_size: Option<u64>,
}

/// Mappings in address order.
pub(in crate::inspect) struct NumaMaps {
    lines: FileLines,
}

impl NumaMaps {
    pub(in crate::inspect) fn open(root: &Root, pid: u32) -> Result<Self, Unread> {
        Ok(Self { lines: FileLines::open(root, &format!("/proc/{pid}/numa_maps"))? })
    }

    /// The next mapping; `None` after the last.
    pub(in crate::inspect) fn next(&mut self) -> Result<Option<MappingPages>, Unread> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        match parse(&line) {
            Some(pages) => Ok(Some(pages)),
            None => {
                let found = line.into_owned();
                Err(self.lines.malformed(EXPECTED, &found).into())
            }
        }
    }
}

/// The policy in a line: the text between the address and the first key. Two policies have a
/// space in their name (`prefer (many)`, `weighted interleave`).
pub(in crate::inspect) fn policy_in(line: &str) -> Option<String> {
    let words: Vec<&str> = words_of(line).skip(1).take_while(|word| !is_key(word)).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '\t']).filter(|word| !word.is_empty())
}

fn is_key(word: &str) -> bool {
    let Some((key, _)) = word.split_once('=') else { return FLAGS.contains(&word) };
    KEYS.contains(&key) || node_of(key).is_some()
}

/// `N3`
fn node_of(key: &str) -> Option<NodeId> {
    key.strip_prefix('N')?.parse().ok().map(NodeId)
}

fn parse(line: &str) -> Option<MappingPages> {
    let start = u64::from_str_radix(words_of(line).next()?, 16).ok()?;
    let mut pages = MappingPages {
        start,
        policy: policy_in(line)?,
        kind: MappingKind::Anonymous,
        by_node: Vec::new(),
        page_size: None,
    };
    for word in words_of(line).skip(1).skip_while(|word| !is_key(word)) {
        match word.split_once('=') {
            None => flag(&mut pages, word),
            Some(("file", path)) => {
                if pages.kind != MappingKind::HugePages {
                    pages.kind = file_kind(&path.replace("\\040", " "), false);
                }
            }
            Some(("kernelpagesize_kB", size)) => {
                pages.page_size = Some(size.parse::<u64>().ok()?.checked_mul(1024)?);
            }
            Some((key, count)) => {
                if let Some(node) = node_of(key) {
                    pages.by_node.push((node, count.parse().ok()?));
                }
            }
        }
    }
    Some(pages)
}

fn flag(pages: &mut MappingPages, word: &str) {
    match word {
        "heap" => pages.kind = MappingKind::Heap,
        "stack" => pages.kind = MappingKind::Stack,
        "huge" => pages.kind = MappingKind::HugePages,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_may_hold_spaces_and_equal_signs() {
        for (line, policy) in [
            ("7f00 default", "default"),
            ("7f00 bind:0-1 anon=1 N0=1", "bind:0-1"),
            ("7f00 bind=static:0,2 heap anon=1", "bind=static:0,2"),
            ("7f00 prefer (many):0-1 file=/a N0=1", "prefer (many):0-1"),
            ("7f00 weighted interleave:0-3 N3=4", "weighted interleave:0-3"),
            ("7f00 interleave:0-7 huge anon=2", "interleave:0-7"),
        ] {
            assert_eq!(policy_in(line).as_deref(), Some(policy), "{line}");
        }
    }

    #[test]
    fn pages_are_counted_by_node_with_their_size() {
        let line = "7f00 default file=/anon_hugepage\\040(deleted) huge anon=3 dirty=3 N0=1 N12=2 \
                    kernelpagesize_kB=2048";
        let pages = parse(line).unwrap();
        assert_eq!(pages.by_node, [(NodeId(0), 1), (NodeId(12), 2)]);
        assert_eq!((pages.kind, pages.page_size), (MappingKind::HugePages, Some(2 << 20)));
    }

    #[test]
    fn a_line_that_is_no_mapping_is_refused() {
        for line in [
            "",
            "7f00",
            "zz default",
            "7f00 N0=1",
            "7f00 default N0=x",
            "7f00 default N0=99999999999999999999",
            "7f00 default kernelpagesize_kB=18446744073709551615",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
