//! Relative links in documents lead to something that is in the repository.

use super::source::markdown;
use super::{Check, SourceTree, TidyFinding};

pub(crate) struct Links;

impl Check for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let documents = tree.files().filter(|file| file.path.ends_with(".md"));
        let mut findings = Vec::new();
        for (file, text) in documents.filter_map(|file| Some((file, file.text.as_deref()?))) {
            let broken = markdown::links(text).into_iter().filter(|(_, target)| {
                is_relative(target)
                    && !resolve(&file.path, target).is_some_and(|path| tree.contains(&path))
            });
            findings.extend(broken.map(|(line, target)| TidyFinding {
                path: file.path.clone(),
                line: Some(line),
                what: format!("the link to '{target}' leads nowhere in the repository"),
                instead: "the path of a file or folder, from the document's own folder".into(),
                because: "a reader who follows a dead link stops trusting the document",
            }));
        }
        findings
    }
}

fn is_relative(target: &str) -> bool {
    !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
}

/// Path from the root of what a link in `document` means; None if it leaves the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or(target);
    let mut folders: Vec<&str> = document.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()?),
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}
