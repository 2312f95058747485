//! Versions, features and reasons stand in the root manifest and nowhere else.

use super::{Check, SourceTree, TidyFinding};
use crate::tidy::source::manifest::{CrateManifest, ManifestEntry};

const ROOT: &str = "Cargo.toml";
const LOCK: &str = "Cargo.lock";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) struct Dependencies;

impl Check for Dependencies {
    fn name(&self) -> &'static str {
        "dependencies"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        if let Some(text) = tree.text(ROOT) {
            findings.extend(root_findings(&CrateManifest::parse(ROOT, text)));
        }
        for manifest in tree.crates().values() {
            findings.extend(crate_findings(manifest));
        }
        findings.extend(tree.text(LOCK).into_iter().flat_map(lock_findings));
        findings
    }
}

fn root_findings(manifest: &CrateManifest) -> Vec<TidyFinding> {
    let table = manifest.entries.iter().filter(|entry| entry.section == "workspace.dependencies");
    let third_party = table.filter(|entry| !entry.value.contains("path ="));
    third_party.filter_map(|entry| root_finding(manifest, entry)).collect()
}

fn root_finding(manifest: &CrateManifest, entry: &ManifestEntry) -> Option<TidyFinding> {
    let (what, instead, because) = if entry.value.contains("git =") {
        (
            "comes from a git repository",
            "a released version",
            "a repository can vanish or change; a released version cannot",
        )
    } else if entry.value.contains("\"*\"") {
        ("takes any version", "the version that was tried", "the next release may break the build")
    } else if !entry.has_comment {
        (
            "has no reason",
            "a comment after it or on the line above that says what it is for",
            "a dependency is bought with build time and trust; its reason shows when it can go",
        )
    } else {
        return None;
    };
    Some(finding(
        &manifest.path,
        entry.line,
        format!("'{}' {what}", entry.name()),
        instead,
        because,
    ))
}

fn crate_findings(manifest: &CrateManifest) -> Vec<TidyFinding> {
    const INSTEAD: &str = "`x.workspace = true`, with version and features in the root Cargo.toml";
    const BECAUSE: &str =
        "a feature added in one crate builds tokio, arrow or DataFusion a second time";
    let sections = manifest.dependency_sections.iter().map(|(line, section)| {
        let what = format!("a section of its own: [{section}]");
        finding(&manifest.path, *line, what, INSTEAD, BECAUSE)
    });
    let entries = manifest.dependencies().filter(|entry| !is_from_workspace(entry)).map(|entry| {
        let what = format!("'{}' does not inherit from the workspace", entry.name());
        finding(&manifest.path, entry.line, what, INSTEAD, BECAUSE)
    });
    sections.chain(entries).collect()
}

/// `x.workspace = true`, `x = { workspace = true }`, with `optional` at most.
fn is_from_workspace(entry: &ManifestEntry) -> bool {
    if entry.key.ends_with(".workspace") {
        return entry.value == "true";
    }
    let parts = entry.value.trim_matches(['{', '}']).split(',');
    let mut keys = parts.filter_map(|part| part.split('=').next()).map(str::trim).peekable();
    keys.peek() == Some(&"workspace") && keys.all(|key| matches!(key, "workspace" | "optional"))
}

fn lock_findings(text: &str) -> Vec<TidyFinding> {
    let sources = text.lines().enumerate().filter_map(|(number, line)| {
        let source = line.strip_prefix("source = ")?.trim_matches('"');
        (source != REGISTRY).then_some((number + 1, source))
    });
    sources
        .map(|(line, source)| {
            let what = format!("a package comes from {source}");
            let because = "everyone can fetch what the public registry holds, and it never changes";
            finding(LOCK, line, what, "take it from crates.io", because)
        })
        .collect()
}

fn finding(
    path: &str,
    line: usize,
    what: String,
    instead: &str,
    because: &'static str,
) -> TidyFinding {
    TidyFinding {
        path: path.to_owned(),
        line: Some(line),
        what,
        instead: instead.to_owned(),
        because,
    }
}
