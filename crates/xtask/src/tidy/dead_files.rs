//! Sources that no `mod` reaches, and test binaries outside the one tree of each crate.

use std::collections::BTreeSet;

use super::{Check, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::RustCode;

pub(crate) struct DeadFiles;

impl Check for DeadFiles {
    fn name(&self) -> &'static str {
        "dead_files"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        tree.crates().keys().flat_map(|name| of_crate(tree, &format!("crates/{name}"))).collect()
    }
}

fn of_crate(tree: &SourceTree, folder: &str) -> Vec<TidyFinding> {
    let sources: Vec<&str> = tree
        .rust_files()
        .map(|(file, _)| file.path.as_str())
        .filter(|path| path.starts_with(&format!("{folder}/")))
        .collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = sources
        .iter()
        .filter(|path| is_root(path, folder))
        .map(|path| (*path).to_owned())
        .collect();
    while let Some(path) = open.pop() {
        if let Some(text) = tree.text(&path) {
            open.extend(modules(&path, text, is_root(&path, folder), tree));
        }
        reached.insert(path);
    }
    let stray = sources.iter().filter(|path| is_stray_test(path, folder)).map(|path| TidyFinding {
        path: (*path).to_owned(),
        line: None,
        what: "a test binary of its own".into(),
        instead: format!("a module of {folder}/tests/it/main.rs"),
        because: "each test binary links the engine again: 100 MB and half a minute",
    });
    let dead = sources.iter().filter(|path| !reached.contains(**path)).map(|path| TidyFinding {
        path: (*path).to_owned(),
        line: None,
        what: "no `mod` reaches this file".into(),
        instead: "declare it, or remove it".into(),
        because: "it is never compiled, so it only looks like code",
    });
    stray.chain(dead).collect()
}

/// Files that cargo compiles without a `mod`.
fn is_root(path: &str, folder: &str) -> bool {
    let Some(inside) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split('/').collect();
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] => true,
        ["tests" | "benches" | "examples", rest @ ..] => matches!(rest, [_] | [_, "main.rs"]),
        _ => false,
    }
}

fn is_stray_test(path: &str, folder: &str) -> bool {
    path.starts_with(&format!("{folder}/tests/"))
        && is_root(path, folder)
        && !path.ends_with("/tests/it/main.rs")
}

/// Paths of the modules that a file declares (`mod x;`), as far as they exist.
fn modules(path: &str, text: &str, is_root: bool, tree: &SourceTree) -> Vec<String> {
    let code = RustCode::parse(text);
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let inside = match file.strip_suffix(".rs") {
        Some(stem) if !is_root && stem != "mod" => format!("{folder}/{stem}"),
        _ => folder.to_owned(),
    };
    let mut found = Vec::new();
    for at in code.find("mod ") {
        let Some((name, _)) = code.bare[at + 4..].split_once([';', '{']) else { continue };
        let name = name.trim();
        found.push(format!("{inside}/{name}.rs"));
        found.push(format!("{inside}/{name}/mod.rs"));
    }
    for at in code.find("#[path") {
        let literal = code.literal[at..].split('"').nth(1).unwrap_or_default();
        found.push(format!("{folder}/{literal}"));
    }
    found.retain(|path| tree.file(path).is_some());
    found
}
