//! Names of files with `*`, `?`, `[…]` and `**`, in the order of their bytes, those of a directory before
//! those of directories in it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use glob::Pattern;

/// Whether a text may match several files.
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

/// The sort key of a path: the files of a directory come before those of directories in it.
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
        // Only the existence of the last part matters here; an unreadable file is reported later.
        if path.symlink_metadata().is_ok() {
            walk(&path, rest, found)?;
        }
        return Ok(());
    }
    let pattern = segment_pattern(first)?;
    for (path, name) in entries(at)? {
        let hidden = name.starts_with('.') && !first.starts_with('.');
        let goes_on = rest.is_empty() || path.is_dir();
        if !hidden && goes_on && pattern.matches(&name) {
            walk(&path, rest, found)?;
        }
    }
    Ok(())
}

/// The entries of a directory; empty if it is not one.
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

/// A pattern without `/`. One whose bracket is never closed is a name; `[^` is `[!`, as in shells.
fn segment_pattern(segment: &str) -> io::Result<Pattern> {
    let pattern = Pattern::new(&segment.replace("[^", "[!"));
    pattern.or_else(|_| Pattern::new(&Pattern::escape(segment))).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches_name(pattern: &str, name: &str) -> bool {
        segment_pattern(pattern).expect("a pattern").matches(name)
    }

    #[test]
    fn patterns_match_names_as_in_a_shell() {
        for (pattern, name) in [
            ("*.csv", "a.csv"),
            ("a?c", "aäc"),
            ("[a-c]1", "b1"),
            ("[!x]", "y"),
            ("[^x]", "y"),
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
        let directory = tempfile::tempdir().expect("a directory can be created");
        let root = directory.path();
        std::fs::create_dir_all(root.join("a/b")).expect("directories can be created");
        std::os::unix::fs::symlink(root, root.join("a/loop")).expect("a link can be created");
        for file in ["1.csv", "a/2.csv", "a/b/3.csv", "a/b/4.txt"] {
            std::fs::write(root.join(file), "").expect("a writable file");
        }
        let found = matches(&format!("{}/**/*.csv", root.display())).expect("a readable directory");
        let names: Vec<_> = found.iter().map(|it| it.strip_prefix(root).expect("below")).collect();
        assert_eq!(names, ["1.csv", "a/2.csv", "a/b/3.csv"].map(Path::new));
        assert!(matches(&format!("{}/none*/x", root.display())).expect("nothing").is_empty());
    }
}
