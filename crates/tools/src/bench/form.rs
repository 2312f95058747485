//! How a benchmark's results are written.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_sys::write_whole;
use clap::ValueEnum;

use crate::exit::{Ends, Exit};

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Tables for people
    Text,
    /// One JSON document
    Json,
    /// A picture
    Svg,
}

impl Form {
    /// What was asked for: a form, or a file of that suffix; text where nothing was.
    pub(super) fn asked_for(form: Option<Self>, file: Option<&Path>) -> Result<Self, Ends> {
        match (form, file) {
            (Some(form), _) => Ok(form),
            (None, Some(file)) => Self::of_file(file),
            (None, None) => Ok(Self::Text),
        }
    }

    fn of_file(file: &Path) -> Result<Self, Ends> {
        match file.extension().and_then(OsStr::to_str) {
            Some("txt") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some("svg") => Ok(Self::Svg),
            _ => {
                let file = file.display();
                let message = format_args!(
                    "what is {file} to be? End it in .txt, .json or .svg, or say --of"
                );
                Err(Ends::with(Exit::Usage, message))
            }
        }
    }
}

/// A value as a JSON document.
pub(crate) fn document(value: &impl serde::Serialize) -> Result<String, Ends> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    Ok(format!("{text}\n"))
}

/// Writes to the file, or to stdout.
pub(crate) fn put(file: Option<&PathBuf>, text: &str) -> Result<(), Ends> {
    match file {
        Some(file) => {
            write_whole(file, text).with_context(|| file.display().to_string())?;
        }
        None => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}
