//! Writes the entries as lines; equal files of many cpus or nodes share a line.

use std::collections::HashMap;
use std::fmt::Write;

use super::entry::{DumpEntry, DumpPath};
use super::{FIRST_LINE, LAST_LINE};
use atoll_topology::{CpuId, CpuSet};

const HEADING: &str = "\
# A machine as the kernel shows it, for `atoll topo --machine FILE`. Host name, serial numbers and
# mounts are left out; the names of control groups are in it: read it before you send it.
";

/// The dump: one group of paths for each kind of file, each group in order.
pub(super) fn write(groups: &[Vec<(DumpPath, DumpEntry)>]) -> String {
    let mut text = format!("{FIRST_LINE}\n{HEADING}");
    for group in groups {
        for (path, found) in merged(group) {
            line(&mut text, &path, found);
        }
    }
    text.push_str(LAST_LINE);
    text.push('\n');
    text
}

/// Names with braces where paths differ only in their number, ordered by their first number.
fn merged(group: &[(DumpPath, DumpEntry)]) -> Vec<(String, &DumpEntry)> {
    let mut order: Vec<(&str, &str, &DumpEntry, CpuSet)> = Vec::new();
    let mut seen: HashMap<(&str, &str, &DumpEntry), usize> = HashMap::new();
    for (place, found) in group {
        let (before, number, behind) = split(place);
        let index = *seen.entry((before, behind, found)).or_insert(order.len());
        if index == order.len() {
            order.push((before, behind, found, CpuSet::new()));
        }
        if let Some(number) = number {
            order[index].3.insert(CpuId(number));
        }
    }
    let name = |before: &str, behind: &str, numbers: &CpuSet| match numbers.len() {
        0 => escaped(before),
        1 => format!("{}{numbers}{}", escaped(before), escaped(behind)),
        _ => format!("{}{{{numbers}}}{}", escaped(before), escaped(behind)),
    };
    let lines = order.into_iter();
    lines.map(|(before, behind, found, numbers)| (name(before, behind, &numbers), found)).collect()
}

/// The parts of a path before and after its number.
fn split(place: &DumpPath) -> (&str, Option<u32>, &str) {
    match place.number {
        None => (&place.path, None, ""),
        Some((start, number)) => {
            let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
            (&place.path[..start], Some(number), &place.path[start + digits..])
        }
    }
}

fn line(text: &mut String, path: &str, found: &DumpEntry) {
    let _ = match found {
        DumpEntry::Directory => writeln!(text, "{path} dir"),
        DumpEntry::Refused(reason) => writeln!(text, "# {path}: {reason}"),
        DumpEntry::File(contents) => match plain(contents) {
            None => writeln!(text, "{path} hex{}", hex(contents)),
            Some(lines) => match lines.strip_suffix('\n') {
                Some("") => writeln!(text, "{path} ="),
                Some(line) if !line.contains('\n') => writeln!(text, "{path} = {line}"),
                _ => writeln!(text, "{path} :{}", block(lines)),
            },
        },
    };
}

/// The contents as text if the conversion is lossless.
fn plain(contents: &[u8]) -> Option<&str> {
    let text = str::from_utf8(contents).ok()?;
    let printable = text.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control());
    (printable && (text.is_empty() || text.ends_with('\n'))).then_some(text)
}

fn block(lines: &str) -> String {
    lines.lines().map(|line| format!("\n| {line}")).collect()
}

/// Words of eight bytes.
fn hex(contents: &[u8]) -> String {
    let word =
        |bytes: &[u8]| bytes.iter().fold(" ".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    contents.chunks(8).map(word).collect()
}

fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'{' | b'}' | b'\\' => _ = write!(text, "\\{byte:03o}"),
            0x21..=0x7e => text.push(char::from(byte)),
            _ => _ = write!(text, "\\{byte:03o}"),
        }
    }
    text
}
