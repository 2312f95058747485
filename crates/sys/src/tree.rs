//! Files of another machine in memory, for [`Root::of_tree`].
//!
//! [`Root::of_tree`]: crate::Root::of_tree

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Most files and directories a [`MemoryTree`] holds: a machine of 8192 cpus has some 50 for each.
pub const TREE_ENTRIES_MAX: usize = 1 << 20;

/// Most bytes of all names in a [`MemoryTree`] together.
pub const TREE_NAME_BYTES_MAX: usize = 64 << 20;

/// Why a name was not added to a [`MemoryTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// It is not a path from `/` downward.
    #[error("the name is not an absolute path without '.', '..' and empty parts")]
    Name,
    /// It is in the tree already.
    #[error("the name occurs twice")]
    Twice,
    /// There are [`TREE_ENTRIES_MAX`] names already.
    #[error("more than {TREE_ENTRIES_MAX} files")]
    TooMany,
    /// The names have more than [`TREE_NAME_BYTES_MAX`] bytes together.
    #[error("names of more than {TREE_NAME_BYTES_MAX} bytes together")]
    NamesTooLong,
}

/// Files and directories by their absolute names. Equal contents can be shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTree {
    /// By name without the leading slash; none for a directory. Directories above a file are implied.
    entries: BTreeMap<String, Option<Arc<[u8]>>>,
    name_bytes: usize,
}

impl MemoryTree {
    /// Adds a file; directories above it need not be added.
    pub fn add_file(&mut self, name: &str, contents: Arc<[u8]>) -> Result<(), TreeError> {
        self.add(name, Some(contents))
    }

    /// Adds a directory that may be empty.
    pub fn add_directory(&mut self, name: &str) -> Result<(), TreeError> {
        self.add(name, None)
    }

    fn add(&mut self, name: &str, contents: Option<Arc<[u8]>>) -> Result<(), TreeError> {
        let key = name.strip_prefix('/').ok_or(TreeError::Name)?;
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) || key.contains('\0') {
            return Err(TreeError::Name);
        }
        if self.entries.contains_key(key) {
            return Err(TreeError::Twice);
        }
        if self.entries.len() == TREE_ENTRIES_MAX {
            return Err(TreeError::TooMany);
        }
        self.name_bytes += key.len();
        if self.name_bytes > TREE_NAME_BYTES_MAX {
            return Err(TreeError::NamesTooLong);
        }
        self.entries.insert(key.to_owned(), contents);
        Ok(())
    }

    /// Whether a file or directory of that name exists.
    pub(crate) fn exists(&self, name: &str) -> bool {
        let key = key(name);
        self.entries.contains_key(key) || self.has_below(key)
    }

    /// Contents of a file.
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        self.entries.get(key(name))?.as_deref()
    }

    /// Names of a directory's entries in alphabetical order; none where it is not a directory.
    pub(crate) fn list(&self, name: &str) -> Option<BTreeSet<String>> {
        let directory = key(name);
        let mut children = BTreeSet::new();
        let mut from = Bound::Excluded(inside(directory, ""));
        while let Some((entry, child)) = self.first(directory, from.as_ref()) {
            let path = inside(directory, child);
            // '0' follows '/', so this steps over all that lies below the child.
            from = if entry == path {
                Bound::Excluded(path)
            } else {
                Bound::Included(format!("{path}0"))
            };
            children.insert(child.to_owned());
        }
        let is_directory =
            !children.is_empty() || matches!(self.entries.get(directory), Some(None));
        is_directory.then_some(children)
    }

    fn has_below(&self, directory: &str) -> bool {
        self.first(directory, Bound::Excluded(&inside(directory, ""))).is_some()
    }

    /// The first entry below `directory` from a bound on, and which part below `directory` it is in.
    fn first(&self, directory: &str, from: Bound<&String>) -> Option<(&str, &str)> {
        let (entry, _) = self.entries.range::<String, _>((from, Bound::Unbounded)).next()?;
        let rest = entry.strip_prefix(&inside(directory, ""))?;
        Some((entry, rest.split_once('/').map_or(rest, |(child, _)| child)))
    }
}

fn key(name: &str) -> &str {
    name.trim_matches('/')
}

fn inside(directory: &str, child: &str) -> String {
    if directory.is_empty() { child.to_owned() } else { format!("{directory}/{child}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> MemoryTree {
        let mut tree = MemoryTree::default();
        for name in files {
            tree.add_file(name, Arc::from(name.as_bytes())).unwrap();
        }
        tree
    }

    fn list(tree: &MemoryTree, name: &str) -> Option<Vec<String>> {
        tree.list(name).map(|names| names.into_iter().collect())
    }

    #[test]
    fn a_directory_lists_each_child_once_even_where_one_begins_as_another() {
        let tree =
            tree(&["/c/cpu1/a", "/c/cpu1/b/x", "/c/cpu1-x", "/c/cpu10/a", "/c/cpu1", "/d/y"]);
        assert_eq!(list(&tree, "/c").unwrap(), ["cpu1", "cpu1-x", "cpu10"]);
        assert_eq!(list(&tree, "c/cpu1/").unwrap(), ["a", "b"]);
        assert_eq!(list(&tree, "/").unwrap(), ["c", "d"]);
        assert_eq!(list(&tree, "/c/cpu2"), None);
        assert_eq!(list(&tree, "/d/y"), None);
    }

    #[test]
    fn an_empty_directory_is_there_and_is_no_file() {
        let mut tree = tree(&["/a/b"]);
        tree.add_directory("/a/c").unwrap();
        assert_eq!(list(&tree, "/a").unwrap(), ["b", "c"]);
        assert_eq!(list(&tree, "/a/c").unwrap(), [""; 0]);
        assert!(tree.exists("/a") && tree.exists("/a/c") && !tree.exists("/a/d"));
        assert_eq!((tree.file("/a/c"), tree.file("/a")), (None, None));
        assert_eq!(tree.file("a/b"), Some(b"/a/b".as_slice()));
    }

    #[test]
    fn a_name_that_is_no_path_from_the_root_downward_is_refused() {
        let mut tree = MemoryTree::default();
        for name in ["", "/", "a", "/a//b", "/a/", "/../a", "/a/./b", "/a\0"] {
            assert_eq!(tree.add_directory(name), Err(TreeError::Name), "{name:?}");
        }
        tree.add_directory("/a").unwrap();
        assert_eq!(tree.add_file("/a", Arc::from([])), Err(TreeError::Twice));
    }

    #[test]
    fn names_are_bounded_in_all() {
        let mut tree = MemoryTree::default();
        let long = "x".repeat(1 << 20);
        let added = (0..).map(|n| tree.add_directory(&format!("/{n}{long}"))).find(Result::is_err);
        assert_eq!(added, Some(Err(TreeError::NamesTooLong)));
    }
}
