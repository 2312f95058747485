//! A lint is silenced with a reason or not at all.

use super::{Check, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::RustCode;

pub(crate) struct LintReasons;

impl Check for LintReasons {
    fn name(&self) -> &'static str {
        "lint_reasons"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        for (file, code) in tree.rust_code() {
            let places = silenced(&code, "allow(").into_iter().chain(expected(&code));
            findings.extend(places.map(|(at, what)| TidyFinding {
                path: file.path.clone(),
                line: Some(code.line(at)),
                what: what.into(),
                instead:
                    "`#[expect(lint, reason = \"…\")]`, or an opt-out for all in Cargo.toml".into(),
                because: "expect shows when the lint no longer fires, and the reason shows the \
                          reader whether it still holds",
            }));
        }
        findings
    }
}

/// Attributes that start with `attribute`, inner and outer.
fn silenced(code: &RustCode, attribute: &str) -> Vec<(usize, &'static str)> {
    ["#[", "#!["]
        .iter()
        .flat_map(|open| code.find(&format!("{open}{attribute}")))
        .map(|at| (at, "a lint is allowed"))
        .collect()
}

/// `#[expect(…)]` without `reason =`.
fn expected(code: &RustCode) -> Vec<(usize, &'static str)> {
    let without_reason = |at: &usize| {
        let attribute = code.bare[*at..].split(']').next().unwrap_or_default();
        !attribute.contains("reason =")
    };
    let places = silenced(code, "expect(").into_iter().map(|(at, _)| at);
    places.filter(without_reason).map(|at| (at, "a lint is expected without a reason")).collect()
}
