//! Names of files with `*`, `?`, `[…]` and `**`, in the order of their bytes, those of a directory before
//! those of directories in it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a text may stand for several files.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files and directories that a pattern matches, sorted.
pub(crate) fn matches(pattern: &str) -> io::Result<Vec<PathBuf>> {
    let (root, rest) = match pattern.strip_prefix('/') {
        Some(rest) => (PathBuf::from("/"), rest),
        None => (PathBuf::new(), pattern),
    };
    let segments: Vec<&str> = rest.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    let mut found = Vec::new();
    walk(&root, &segments, &mut found)?;
    found.sort_by_cached_key(|path| place(path));
    found.dedup();
    Ok(found)
}

/// Where a path is in the order: the files of a directory come before those of directories in it.
fn place(path: &Path) -> Vec<(bool, OsString)> {
    let depth = path.components().count();
    let parts = path.components().enumerate();
    parts.map(|(at, part)| (at + 1 < depth, part.as_os_str().to_owned())).collect()
}

fn walk(at: &Path, segments: &[&str], found: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some((first, rest)) = segments.split_first() else {
        found.push(at.to_owned());
        return Ok(());
    };
    if *first == "**" {
        walk(at, rest, found)?;
        for (path, _) in entries(at)? {
            // Links to directories may lead in circles.
            if path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
                walk(&path, segments, found)?;
            } else if rest.is_empty() {
                found.push(path);
            }
        }
        return Ok(());
    }
    if !is_pattern(first) {
        let path = at.join(first);
        // What is the last part is there or is not: one that cannot be read is told later.
        if path.symlink_metadata().is_ok() {
            walk(&path, rest, found)?;
        }
        return Ok(());
    }
    for (path, name) in entries(at)? {
        let hidden = name.starts_with('.') && !first.starts_with('.');
        let goes_on = rest.is_empty() || path.is_dir();
        if !hidden && goes_on && segment_matches(first.as_bytes(), name.as_bytes()) {
            walk(&path, rest, found)?;
        }
    }
    Ok(())
}

/// What is in a directory; nothing where it is none.
fn entries(directory: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let of = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !of.is_dir() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(of)? {
        let name = entry?.file_name();
        entries.push((directory.join(&name), name.to_string_lossy().into_owned()));
    }
    Ok(entries)
}

/// Whether a pattern without `/` matches all of a name.
fn segment_matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|at| segment_matches(rest, &name[at..])),
        [b'?', rest @ ..] => match name {
            [first, ..] => segment_matches(rest, &name[utf8_length(*first).min(name.len())..]),
            [] => false,
        },
        [b'[', rest @ ..] => match (class(rest), name) {
            (Some((set, rest)), [first, name @ ..]) => {
                in_class(set, *first) && segment_matches(rest, name)
            }
            (None, [b'[', name @ ..]) => segment_matches(rest, name),
            _ => false,
        },
        [literal, rest @ ..] => {
            matches!(name, [first, name @ ..] if first == literal && segment_matches(rest, name))
        }
    }
}

fn utf8_length(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    }
}

/// What stands before `]`, and what comes after it.
fn class(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = pattern.iter().skip(1).position(|byte| *byte == b']')? + 1;
    Some((&pattern[..end], &pattern[end + 1..]))
}

fn in_class(set: &[u8], byte: u8) -> bool {
    let (negated, mut set) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let [first, rest @ ..] = set {
        set = match rest {
            [b'-', last, rest @ ..] => {
                found |= (*first..=*last).contains(&byte);
                rest
            }
            _ => {
                found |= *first == byte;
                rest
            }
        };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches_name(pattern: &str, name: &str) -> bool {
        segment_matches(pattern.as_bytes(), name.as_bytes())
    }

    #[test]
    fn patterns_match_names_as_a_shell_does() {
        for (pattern, name) in [
            ("*.csv", "a.csv"),
            ("a?c", "aäc"),
            ("[a-c]1", "b1"),
            ("[!x]", "y"),
            ("[]a]", "]"),
            ("*", ""),
            ("a*b*c", "axxbyyc"),
            ("[open", "[open"),
        ] {
            assert!(matches_name(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.csv", "a.csvx"), ("?", ""), ("[a-c]", "d"), ("[!x]", "x"), ("a", "A")]
        {
            assert!(!matches_name(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn two_stars_go_into_all_directories_and_follow_no_links() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let root = directory.path();
        std::fs::create_dir_all(root.join("a/b")).expect("directories can be made");
        std::os::unix::fs::symlink(root, root.join("a/loop")).expect("a link can be made");
        for file in ["1.csv", "a/2.csv", "a/b/3.csv", "a/b/4.txt"] {
            std::fs::write(root.join(file), "").expect("the file can be written");
        }
        let found = matches(&format!("{}/**/*.csv", root.display())).expect("it can be listed");
        let names: Vec<_> = found.iter().map(|it| it.strip_prefix(root).expect("below")).collect();
        assert_eq!(names, ["1.csv", "a/2.csv", "a/b/3.csv"].map(Path::new));
        assert!(matches(&format!("{}/none*/x", root.display())).expect("nothing").is_empty());
    }
}
