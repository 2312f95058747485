//! Modules at the top of a crate do not import one another in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, File, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::RustCode;

const BECAUSE: &str = "modules in a circle can only be read, changed and compiled together";

/// The circles that are there today. What leaves its circle leaves the list, and nothing joins it.
pub(crate) const KNOWN: [(&str, &[&str]); 5] = [
    ("bench", &["answers", "flags", "primitives", "rivals", "tpch", "worker"]),
    ("differential", &["engines", "postgres"]),
    ("functions", &["scalar", "temporal"]),
    ("server", &["connection", "console", "flight", "insertion", "log_ins", "shared"]),
    ("store", &["backup", "database", "open", "record"]),
];

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
        let mut findings = Vec::new();
        for (name, imports) in &crates {
            let known = KNOWN.iter().filter(|(of, _)| of == name).map(|(_, known)| *known);
            let known: Vec<&[&str]> = known.collect();
            findings.extend(new_circles(imports, &known));
            findings.extend(left_circles(name, imports, &known.concat()));
        }
        findings
    }
}

/// The crate and the module at its top that a source belongs to; none for those of the crate's root.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = inside.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (!matches!(module, "lib" | "main" | "bin")).then_some((name, module))
}

/// The names behind `crate::` outside of tests, and where they are.
fn imported(code: &RustCode) -> impl Iterator<Item = (&str, usize)> {
    let places = code.find("crate::").into_iter().filter(|at| !code.is_test(*at));
    places.filter_map(|at| {
        let rest = &code.bare[at + "crate::".len()..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        (!name.is_empty()).then_some((name, at))
    })
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

/// Imports that close a circle which is not known.
fn new_circles(imports: &Imports<'_>, known: &[&[&str]]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (module, named) in imports {
        for (other, (file, line)) in named {
            let is_known =
                known.iter().any(|circle| circle.contains(module) && circle.contains(other));
            if module != other && !is_known && reached(imports, other).contains(module) {
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

/// Known modules that are in no circle any more.
fn left_circles(name: &str, imports: &Imports<'_>, known: &[&str]) -> Vec<TidyFinding> {
    let has_left = |module: &&&str| {
        let module = imports.get_key_value(**module).map(|(module, _)| *module);
        module.is_none_or(|module| !reached(imports, module).contains(module))
    };
    let left = known.iter().filter(has_left).map(|module| TidyFinding {
        path: "crates/xtask/src/tidy/circles.rs".into(),
        line: None,
        what: format!("'{module}' of {name} is in no circle"),
        instead: "take it out of KNOWN".into(),
        because: BECAUSE,
    });
    left.collect()
}
