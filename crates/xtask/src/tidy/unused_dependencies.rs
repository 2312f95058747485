//! A dependency that no source names. A comment on its line in the crate's manifest says why it is
//! there all the same: to turn on features that another package asks for.

use std::collections::BTreeSet;

use super::{Check, SourceTree, TidyFinding};
use crate::tidy::source::manifest::CrateManifest;

const BECAUSE: &str = "it costs build time, and the next reader looks for what it does";

pub(crate) struct UnusedDependencies;

impl Check for UnusedDependencies {
    fn name(&self) -> &'static str {
        "unused_dependencies"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let crates = tree.crates();
        let mut findings: Vec<TidyFinding> =
            crates.iter().flat_map(|(folder, manifest)| of_crate(tree, folder, manifest)).collect();
        if let Some(text) = tree.text("Cargo.toml") {
            let root = CrateManifest::parse("Cargo.toml", text);
            findings.extend(of_workspace(&root, crates.values()));
        }
        findings
    }
}

fn of_crate(tree: &SourceTree, folder: &str, manifest: &CrateManifest) -> Vec<TidyFinding> {
    let prefix = format!("crates/{folder}/");
    let sources: Vec<_> =
        tree.rust_code().filter(|(file, _)| file.path.starts_with(&prefix)).collect();
    let is_named = |dependency: &str| {
        let name = dependency.replace('-', "_");
        sources.iter().any(|(_, code)| !code.find(&name).is_empty())
    };
    let unused = manifest.dependencies().filter(|e| !e.has_comment && !is_named(e.name()));
    unused
        .map(|entry| TidyFinding {
            path: manifest.path.clone(),
            line: Some(entry.line),
            what: format!("no source of '{folder}' names '{}'", entry.name()),
            instead: "remove the line, or say after it which features it is for".into(),
            because: BECAUSE,
        })
        .collect()
}

fn of_workspace<'a>(
    root: &CrateManifest,
    crates: impl Iterator<Item = &'a CrateManifest>,
) -> Vec<TidyFinding> {
    let used: BTreeSet<String> = crates
        .flat_map(|manifest| manifest.dependencies().map(|entry| entry.name().to_owned()))
        .collect();
    let table = root.entries.iter().filter(|entry| entry.section == "workspace.dependencies");
    table
        .filter(|entry| !used.contains(entry.name()))
        .map(|entry| TidyFinding {
            path: root.path.clone(),
            line: Some(entry.line),
            what: format!("no crate uses '{}'", entry.name()),
            instead: "remove it from the table".into(),
            because: BECAUSE,
        })
        .collect()
}
