//! Descriptions of crates, in their docs and in their manifests.

use super::{Check, SourceTree, TidyFinding};

/// A description below this many letters says nothing.
const DESCRIPTION_LETTERS_MIN: usize = 20;

pub(crate) struct CrateDocs;

impl Check for CrateDocs {
    fn name(&self) -> &'static str {
        "crate_docs"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        for (name, manifest) in tree.crates() {
            let roots = ["lib.rs", "main.rs"].map(|file| format!("crates/{name}/src/{file}"));
            let roots = roots.iter().filter_map(|path| Some((path, tree.text(path)?)));
            let undocumented = roots.filter(|(_, text)| !text.starts_with("//!"));
            findings.extend(undocumented.map(|(path, _)| TidyFinding {
                path: path.clone(),
                line: Some(1),
                what: "the crate has no `//!` doc".into(),
                instead: "say what it owns and why it is a crate of its own".into(),
                because: "a crate exists only where it fences something off",
            }));
            let description = manifest.value("package", "description").unwrap_or_default();
            if description.chars().count() < DESCRIPTION_LETTERS_MIN {
                findings.push(TidyFinding {
                    path: manifest.path.clone(),
                    line: None,
                    what: format!("the description '{description}' says nothing"),
                    instead: "one line that says what the crate is for".into(),
                    because: "package lists show this line and nothing else",
                });
            }
        }
        findings
    }
}
