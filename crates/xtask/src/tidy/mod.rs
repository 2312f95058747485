//! House rules that no compiler checks.
//!
//! Each rule is a [`Check`] in its own file; every finding says where, what, what to do
//! instead and why:
//!
//! - `layers`: crates import downward only, by the table in ARCHITECTURE.md
//! - `circles`: modules of one crate that import one another
//! - `engine_fence`: who may name DataFusion and Arrow
//! - `dependencies`: versions, features and reasons stand in the root manifest
//! - `unused_dependencies`: a dependency that no source names
//! - `banned_calls`: calls with a better replacement
//! - `unsafe_fence`: where `unsafe` may stand
//! - `lint_reasons`: a lint is silenced with a reason or not at all
//! - `dead_files`: sources that no `mod` reaches, and stray test binaries
//! - `module_layout`: a module with files of its own is a folder with a `mod.rs`
//! - `file_size`: long sources, large folders, large blobs
//! - `words`: unfinished work, and words that belong to one machine only
//! - `plain_english`: phrases to be rewritten
//! - `links`: relative links in documents
//! - `crate_docs`: descriptions of crates
//!
//! A new rule is a new file and a line in [`checks`].

use std::fmt;
use std::path::Path;

use anyhow::Result;

mod banned_calls;
mod circles;
mod crate_docs;
mod dead_files;
mod dependencies;
mod engine_fence;
mod file_size;
mod layers;
mod links;
mod lint_reasons;
mod module_layout;
mod plain_english;
mod source;
#[cfg(test)]
mod tests;
mod unsafe_fence;
mod unused_dependencies;
mod words;

pub use source::tree::{File, SourceTree};

/// One rule.
pub trait Check {
    /// Its name, as findings show it.
    fn name(&self) -> &'static str;

    /// Every place in the tree that breaks the rule.
    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding>;
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidyFinding {
    /// Path from the root.
    pub path: String,
    /// Line, from 1; None if the file as a whole is meant.
    pub line: Option<usize>,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub instead: String,
    /// Why the rule exists.
    pub because: &'static str,
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what)?,
            None => write!(f, "{}: {}", self.path, self.what)?,
        }
        write!(f, "\n    instead: {}\n    because: {}", self.instead, self.because)
    }
}

/// The findings of [`run`].
#[derive(Debug)]
pub struct TidyReport {
    /// Findings with the name of their check, in the order of the checks.
    pub findings: Vec<(&'static str, TidyFinding)>,
    /// Number of files looked at.
    pub files: usize,
    /// Number of checks run.
    pub checks: usize,
}

impl TidyReport {
    /// Whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for TidyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (check, finding) in &self.findings {
            writeln!(f, "[{check}] {finding}")?;
        }
        let (checks, files) = (self.checks, self.files);
        match self.findings.len() {
            0 => write!(f, "tidy: {checks} checks over {files} files, nothing found"),
            n => write!(f, "tidy: {checks} checks over {files} files, {n} found"),
        }
    }
}

/// All checks, in the order in which they report.
pub fn checks() -> Vec<Box<dyn Check>> {
    vec![
        Box::new(layers::Layers),
        Box::new(circles::Circles),
        Box::new(engine_fence::EngineFence),
        Box::new(dependencies::Dependencies),
        Box::new(unused_dependencies::UnusedDependencies),
        Box::new(banned_calls::BannedCalls),
        Box::new(unsafe_fence::UnsafeFence),
        Box::new(lint_reasons::LintReasons),
        Box::new(dead_files::DeadFiles),
        Box::new(module_layout::ModuleLayout),
        Box::new(file_size::FileSize),
        Box::new(words::Words),
        Box::new(plain_english::PlainEnglish),
        Box::new(links::Links),
        Box::new(crate_docs::CrateDocs),
    ]
}

/// Runs all checks on the repository at `root`. An error means that the tree could not be read; what
/// breaks a rule is in the report.
pub fn run(root: &Path) -> Result<TidyReport> {
    let tree = SourceTree::read(root)?;
    let checks = checks();
    let findings = checks
        .iter()
        .flat_map(|check| check.run(&tree).into_iter().map(|finding| (check.name(), finding)))
        .collect();
    Ok(TidyReport { findings, files: tree.files().len(), checks: checks.len() })
}
