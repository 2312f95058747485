//! Long sources and large blobs.

use super::{Check, File, SourceTree, TidyFinding};

const LINES_MAX: usize = 600;
const BLOB_BYTES_MAX: u64 = 1 << 20;

pub(crate) struct FileSize;

impl Check for FileSize {
    fn name(&self) -> &'static str {
        "file_size"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let long = tree.rust_files().filter_map(|(file, text)| long_source(file, text));
        long.chain(tree.files().filter_map(large_blob)).collect()
    }
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
