//! Modules at the top of a crate do not import one another in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, File, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::RustCode;

const BECAUSE: &str = "modules in a circle can only be read, changed and compiled together";

pub(crate) struct Circles;

/// The modules of a crate that import one another, and where each imports another for the first time.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a File, usize)>>;

impl Check for Circles {
    fn name(&self) -> &'static str {
        "circles"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut crates: BTreeMap<&str, Imports<'_>> = BTreeMap::new();
        let codes: Vec<(&File, RustCode)> = tree.rust_code().collect();
        for (file, code) in &codes {
            if let Some((name, module)) = place(&file.path)
                && !file.is_test()
                && !file.path.ends_with("_tests.rs")
            {
                let imports = crates.entry(name).or_default().entry(module).or_default();
                for (imported, at) in imported(code) {
                    imports.entry(imported).or_insert((file, code.line(at)));
                }
            }
        }
        crates.values().flat_map(circles).collect()
    }
}

/// The crate and the module at its top that a source belongs to; None for those of the crate's root.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = inside.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (!matches!(module, "lib" | "main" | "bin")).then_some((name, module))
}

/// The names after `crate::` outside of tests, those in braces included, and where they are.
fn imported(code: &RustCode) -> impl Iterator<Item = (&str, usize)> {
    let places = code.find("crate::").into_iter().filter(|at| !code.is_test(*at));
    places.flat_map(|at| {
        let rest = &code.bare[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => items(list).map(first_name).collect(),
            None => vec![first_name(rest)],
        };
        names.into_iter().filter(|name| !name.is_empty()).map(move |name| (name, at))
    })
}

/// The items of a list after its opening brace.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let end = list.find(|letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth < 0
    });
    let mut depth = 0_i32;
    list[..end.unwrap_or(list.len())].split(move |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    })
}

/// The name with which a path begins.
fn first_name(path: &str) -> &str {
    let path = path.trim_start();
    let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &path[..end.unwrap_or(path.len())]
}

/// The modules that a module imports, directly and through others.
fn reached<'a>(imports: &Imports<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(module) = rest.pop() {
        for name in imports.get(module).into_iter().flat_map(BTreeMap::keys) {
            if imports.contains_key(name) && found.insert(*name) {
                rest.push(name);
            }
        }
    }
    found
}

/// Imports that close a circle.
fn circles(imports: &Imports<'_>) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (module, named) in imports {
        for (other, (file, line)) in named {
            if module != other && reached(imports, other).contains(module) {
                findings.push(TidyFinding {
                    path: file.path.clone(),
                    line: Some(*line),
                    what: format!("'{module}' imports '{other}', which imports it in its turn"),
                    instead: "move what both need into a module below them".into(),
                    because: BECAUSE,
                });
            }
        }
    }
    findings
}
