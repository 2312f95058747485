//! Long sources, large folders and large blobs.

use std::collections::BTreeMap;

use super::{Check, File, SourceTree, TidyFinding};

const LINES_MAX: usize = 600;
const FOLDER_SOURCES_MAX: usize = 20;
const BLOB_BYTES_MAX: u64 = 1 << 20;

pub(crate) struct FileSize;

impl Check for FileSize {
    fn name(&self) -> &'static str {
        "file_size"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let long = tree.rust_files().filter_map(|(file, text)| long_source(file, text));
        let large = tree.files().filter_map(large_blob);
        long.chain(large_folders(tree)).chain(large).collect()
    }
}

/// Folders with many sources. Folders of tests hold what they test.
fn large_folders(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _) in tree.rust_files().filter(|(file, _)| file.path.contains("/src/")) {
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let large = folders.into_iter().filter(|(_, count)| *count > FOLDER_SOURCES_MAX);
    let finding = |(folder, count): (&str, usize)| TidyFinding {
        path: folder.to_owned(),
        line: None,
        what: format!("{count} sources; the limit is {FOLDER_SOURCES_MAX}"),
        instead: "put those of one theme into a folder".into(),
        because: "names that fit on a screen are found without searching",
    };
    large.map(finding).collect()
}

fn long_source(file: &File, text: &str) -> Option<TidyFinding> {
    let lines = text.lines().count();
    (lines > LINES_MAX).then(|| TidyFinding {
        path: file.path.clone(),
        line: None,
        what: format!("{lines} lines; the limit is {LINES_MAX}"),
        instead: "split it where it changes its subject; variants are siblings".into(),
        because: "a file that fits in the head is read to its end",
    })
}

fn large_blob(file: &File) -> Option<TidyFinding> {
    (file.size > BLOB_BYTES_MAX).then(|| TidyFinding {
        path: file.path.clone(),
        line: None,
        what: format!("{} KiB; the limit is {} KiB", file.size >> 10, BLOB_BYTES_MAX >> 10),
        instead: "generate it from a seed, or keep the script that fetches it".into(),
        because: "every clone carries every version of it for ever",
    })
}
