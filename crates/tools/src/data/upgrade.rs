//! What `upgrade-check` prints, as text and as JSON.

use std::fmt;

use atoll_store::open::FileFormat;
use serde::Serialize;

/// Whether this version opens a directory, and what it would write there.
#[derive(Debug, Serialize)]
pub(super) struct UpgradeView {
    version: &'static str,
    pub(super) can_open: bool,
    formats: Vec<FormatView>,
    /// Kinds of files that would be written anew in another format.
    written_anew: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct FormatView {
    what: &'static str,
    format: u32,
    files: u64,
    this_version_writes: u32,
}

impl UpgradeView {
    pub(super) fn of(formats: &[FileFormat]) -> Self {
        let can_open = formats.iter().all(FileFormat::is_read);
        let format = |it: &FileFormat| FormatView {
            what: it.what,
            format: it.version,
            files: it.files,
            this_version_writes: it.written,
        };
        let is_other = |it: &&FileFormat| can_open && it.version != it.written;
        Self {
            version: env!("CARGO_PKG_VERSION"),
            can_open,
            formats: formats.iter().map(format).collect(),
            written_anew: formats.iter().filter(is_other).map(|it| it.what).collect(),
        }
    }
}

impl fmt::Display for UpgradeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FormatView { what, format, files, this_version_writes: ours } in &self.formats {
            writeln!(f, "{what:8}  format {format}, this version writes {ours}; files: {files}")?;
        }
        let version = self.version;
        if !self.can_open {
            return writeln!(
                f,
                "atoll {version} cannot open it: open it with the version that wrote it, or a later one"
            );
        }
        writeln!(f, "atoll {version} can open it")?;
        match self.written_anew.is_empty() {
            true => writeln!(
                f,
                "an upgrade writes nothing: all files are in the formats of this version"
            ),
            false => writeln!(f, "an upgrade writes anew: {}", self.written_anew.join(", ")),
        }
    }
}
