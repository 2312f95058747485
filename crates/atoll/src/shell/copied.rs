//! `COPY … TO STDOUT`: into a file that vanishes, and from there to where results go.

use std::fs::File;
use std::io::copy;

use tempfile::TempDir;

use super::stop::Stop;
use super::target::OutputTarget;

/// A COPY to stdout under way.
pub(super) struct CopyThrough {
    directory: TempDir,
    /// The statement that writes the file.
    pub(super) text: String,
}

/// The file; its ending is the format that is not named.
const FILE: &str = "rows.csv";

impl CopyThrough {
    /// The COPY that a statement is; none for all others.
    pub(super) fn of(text: &str) -> Result<Option<Self>, Stop> {
        if !atoll_sql::begins_with(text, &["copy"]) {
            return Ok(None);
        }
        let directory = tempfile::tempdir()?;
        let text = atoll_sql::copy_to_file(text, &directory.path().join(FILE));
        Ok(text.map(|text| Self { directory, text }))
    }

    /// Writes what was copied.
    pub(super) fn finish(self, target: &mut OutputTarget) -> Result<(), Stop> {
        let mut file = File::open(self.directory.path().join(FILE))?;
        copy(&mut file, target.writer())?;
        Ok(())
    }
}
