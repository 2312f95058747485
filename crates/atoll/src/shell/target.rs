//! The output of results.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write, stdout};
use std::path::Path;

use super::settings::ShellSettings;
use crate::output::DrawLayout;
use atoll_sql::temporal::TemporalStyle;
use atoll_tools::terminal;

/// Stdout, or the file that `.output` names.
pub(super) struct OutputTarget {
    out: Box<dyn Write>,
    is_terminal: bool,
}

impl OutputTarget {
    pub(super) fn stdout() -> Self {
        // BufWriter replaces stdout's line buffer.
        let out = Box::new(BufWriter::with_capacity(1 << 16, stdout()));
        Self { out, is_terminal: stdout().is_terminal() }
    }

    /// Creates a file, replacing one of the same name.
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        Ok(Self { out: Box::new(BufWriter::new(File::create(path)?)), is_terminal: false })
    }

    /// Whether the output is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Limits for drawn results; files have none.
    pub(super) fn layout(&self, settings: &ShellSettings, style: TemporalStyle) -> DrawLayout {
        DrawLayout {
            width: if self.is_terminal { terminal::width() } else { None },
            rows_max: settings.rows_max,
            color: self.is_terminal && terminal::colors(true),
            headless: !settings.headers,
            null: settings.null.clone(),
            widths: settings.widths.clone(),
            separator: settings.separator.clone(),
            style,
        }
    }

    pub(super) fn writer(&mut self) -> &mut dyn Write {
        &mut self.out
    }
}
