//! What `upgrade-check` prints, as text and as JSON.

use std::fmt;

use atoll_store::open::FileFormat;
use serde::Serialize;

/// Whether this version opens a directory, and the files it would write.
#[derive(Debug, Serialize)]
pub(super) struct UpgradeView {
    version: &'static str,
    pub(super) can_open: bool,
    formats: Vec<FormatView>,
}

#[derive(Debug, Serialize)]
struct FormatView {
    what: &'static str,
    format: u32,
    files: u64,
    this_version_writes: u32,
}

impl UpgradeView {
    pub(super) fn from_formats(formats: &[FileFormat]) -> Self {
        let format = |it: &FileFormat| FormatView {
            what: it.what,
            format: it.version,
            files: it.files,
            this_version_writes: it.written,
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            can_open: formats.iter().all(FileFormat::is_read),
            formats: formats.iter().map(format).collect(),
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
        writeln!(
            f,
            "atoll {version} can open it, and an upgrade writes nothing: all formats are its own"
        )
    }
}
