//! Words of unfinished work, and words that belong to one machine only. The lists are written in
//! halves, so that this file obeys its own rule.

use super::{Check, File, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::{find_words, line_of};

/// Marks of unfinished work, in sources, scripts and documents.
pub(crate) const UNFINISHED: [&str; 7] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("for ", "now"),
];

/// Folders of a developer's machine, in any text.
pub(crate) const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

/// Hosts that serve packages, in any text.
pub(crate) const HOSTS: [&str; 5] = [
    concat!("index.cr", "ates.io"),
    concat!("static.cr", "ates.io"),
    concat!("py", "pi.org"),
    concat!("pythonh", "osted.org"),
    concat!("deb.deb", "ian.org"),
];

pub(crate) struct Words;

impl Check for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        for file in tree.files().filter(|file| file.path != "Cargo.lock") {
            let Some(text) = &file.text else { continue };
            if is_prose_or_code(file) {
                findings.extend(UNFINISHED.iter().flat_map(|word| unfinished(file, text, word)));
            }
            findings.extend(FOLDERS.iter().flat_map(|folder| machine_path(file, text, folder)));
            findings.extend(HOSTS.iter().flat_map(|host| registry_host(file, text, host)));
        }
        findings
    }
}

/// Data may hold any word; sources, scripts and documents are ours.
fn is_prose_or_code(file: &File) -> bool {
    let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("rs" | "md" | "toml" | "sh" | "py" | "slt"))
        || file.name() == "Makefile"
}

fn unfinished(file: &File, text: &str, word: &str) -> Vec<TidyFinding> {
    findings(
        file,
        text,
        find_words(text, word),
        format!("'{word}'"),
        "finish it, or write an issue and say in the document what does not work",
        "a mark in the code reaches no one who could act on it",
    )
}

fn machine_path(file: &File, text: &str, folder: &str) -> Vec<TidyFinding> {
    let places = text.match_indices(folder).map(|(at, _)| at);
    let starts_path = |at: &usize| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-}~*".contains(letter))
    };
    findings(
        file,
        text,
        places.filter(starts_path).collect(),
        format!("'{folder}…', a path of one machine"),
        "a path from the root of the repository, $HOME, or a temporary directory",
        "it exists on no other machine",
    )
}

fn registry_host(file: &File, text: &str, host: &str) -> Vec<TidyFinding> {
    findings(
        file,
        text,
        text.match_indices(host).map(|(at, _)| at).collect(),
        format!("'{host}', a host that serves packages"),
        "the registry's ordinary client (cargo, pip, apt), which knows its host",
        "machines behind a mirror choose it in the client's settings",
    )
}

fn findings(
    file: &File,
    text: &str,
    places: Vec<usize>,
    what: String,
    instead: &str,
    because: &'static str,
) -> Vec<TidyFinding> {
    let finding = |at: usize| TidyFinding {
        path: file.path.clone(),
        line: Some(line_of(text, at)),
        what: what.clone(),
        instead: instead.to_owned(),
        because,
    };
    places.into_iter().map(finding).collect()
}
