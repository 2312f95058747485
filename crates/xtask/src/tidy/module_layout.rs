//! One way to lay out a module with files of its own.

use super::{Check, SourceTree, TidyFinding};

pub(crate) struct ModuleLayout;

impl Check for ModuleLayout {
    fn name(&self) -> &'static str {
        "module_layout"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let paths = || tree.rust_files().map(|(file, _)| file.path.as_str());
        let folder = |path: &str| path.strip_suffix(".rs").map(|module| format!("{module}/"));
        let is_next_to = |path: &&str| {
            folder(path).is_some_and(|folder| paths().any(|other| other.starts_with(&folder)))
        };
        let found = paths().filter(is_next_to).map(|path| TidyFinding {
            path: path.to_owned(),
            line: None,
            what: "a module next to the folder of its files".into(),
            instead: format!("{}mod.rs", folder(path).unwrap_or_default()),
            because: "with one way everywhere a reader opens the right file at once",
        });
        found.collect()
    }
}
