//! The crates that may name the query engine and its columns.

use super::{Check, SourceTree, TidyFinding};

/// Crates (and families `name-*`) behind the fence.
const FENCED: [&str; 3] = ["datafusion", "arrow", "parquet"];
/// Crates that may name all of them, and why.
const INSIDE: [(&str, &str); 8] = [
    ("functions", "SQL functions on DataFusion, apart so that sql compiles in less"),
    ("sql-common", "what all of sql share"),
    ("sql-parse", "syntax trees for DataFusion's planner"),
    ("sql-semantics", "rules on DataFusion's plans"),
    ("sql-exec", "operators for DataFusion"),
    ("sql-files", "files by DataFusion's readers"),
    ("sql", "the session over DataFusion"),
    ("bench", "measures plain DataFusion as a rival"),
];
/// Crates that may name Arrow alone, and why.
const ARROW_ALONE: [(&str, &str); 5] = [
    ("primitives", "works on the columns of any engine where they lie"),
    ("store", "keeps tables as Arrow arrays over placed memory"),
    ("capi", "puts Arrow arrays over the columns of programs in C"),
    ("server", "sends and takes batches over Arrow Flight"),
    ("tools", "runs the primitives on columns of its own"),
];

pub(crate) struct EngineFence;

impl Check for EngineFence {
    fn name(&self) -> &'static str {
        "engine_fence"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        tree.crates()
            .into_iter()
            .flat_map(|(name, manifest)| {
                let entries = manifest.dependencies().filter(|entry| !may_name(name, entry.name()));
                entries
                    .map(|entry| TidyFinding {
                        path: manifest.path.clone(),
                        line: Some(entry.line),
                        what: format!("{name} depends on {}", entry.name()),
                        instead: "keep plain columns here and convert in sql".into(),
                        because: "a crate that links the engine takes minutes to build and \
                                  changes with every release of it",
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

fn may_name(name: &str, dependency: &str) -> bool {
    let is_among = |crates: &[(&str, &str)]| crates.iter().any(|(inside, _)| *inside == name);
    let is_arrow = is_of("arrow", dependency);
    !FENCED.iter().any(|fenced| is_of(fenced, dependency))
        || is_among(&INSIDE)
        || is_arrow && is_among(&ARROW_ALONE)
}

/// Whether a crate is one of a family: itself, or `name-*`.
fn is_of(family: &str, dependency: &str) -> bool {
    dependency.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
