//! Who may name the query engine and its columns.

use super::{Check, SourceTree, TidyFinding};

/// Crates (and families `name-*`) behind the fence.
const FENCED: [&str; 3] = ["datafusion", "arrow", "parquet"];
/// Crates that may name them, and why.
const INSIDE: [(&str, &str); 6] = [
    ("sql", "the one library that is built on DataFusion"),
    ("bench", "measures plain DataFusion as a rival"),
    (
        "primitives",
        "works on the columns of any engine where they lie; Arrow alone, without an engine",
    ),
    ("store", "keeps tables as Arrow arrays over placed memory; Arrow alone, without an engine"),
    ("capi", "puts Arrow arrays over the columns of programs in C"),
    ("tools", "runs the primitives on columns of its own"),
];

pub(crate) struct EngineFence;

impl Check for EngineFence {
    fn name(&self) -> &'static str {
        "engine_fence"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let outside = tree.crates().into_iter().filter(|(name, _)| !is_inside(name));
        outside
            .flat_map(|(name, manifest)| {
                let entries = manifest.dependencies().filter(|entry| is_fenced(entry.name()));
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

fn is_inside(name: &str) -> bool {
    INSIDE.iter().any(|(inside, _)| *inside == name)
}

fn is_fenced(dependency: &str) -> bool {
    FENCED.iter().any(|fenced| {
        dependency.strip_prefix(fenced).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}
