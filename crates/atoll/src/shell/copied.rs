//! Rows of COPY pass through a temporary file: from it to the output, and from the lines of a script into it.

use std::fs::File;
use std::io::{BufWriter, Write, copy};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::stop::Stop;
use super::target::OutputTarget;

/// A COPY to stdout in progress.
pub(super) struct CopyThrough {
    directory: TempDir,
    /// The statement that writes the file.
    pub(super) text: String,
}

/// The file; its extension is the default format.
const FILE: &str = "rows.csv";

impl CopyThrough {
    /// Parses a COPY to stdout; None for all other statements.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, Stop> {
        if !atoll_sql::begins_with(text, &["copy"]) {
            return Ok(None);
        }
        let directory = tempfile::tempdir()?;
        let text = atoll_sql::copy_to_file(text, &directory.path().join(FILE));
        Ok(text.map(|text| Self { directory, text }))
    }

    /// Writes the copied rows.
    pub(super) fn finish(self, target: &mut OutputTarget) -> Result<(), Stop> {
        let mut file = File::open(self.directory.path().join(FILE))?;
        copy(&mut file, target.writer())?;
        Ok(())
    }
}

/// The rows that follow a `COPY … FROM STDIN`.
#[derive(Debug)]
pub(super) struct CopiedRows {
    _directory: TempDir,
    file: PathBuf,
    writer: BufWriter<File>,
}

impl CopiedRows {
    pub(super) fn new() -> std::io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("rows");
        let writer = BufWriter::new(File::create(&file)?);
        Ok(Self { _directory: directory, file, writer })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn writer(&mut self) -> &mut impl Write {
        &mut self.writer
    }
}

/// Every file has a unique name.
impl PartialEq for CopiedRows {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl Eq for CopiedRows {}
