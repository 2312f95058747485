//! How a benchmark's results are written.

use std::ffi::OsStr;
use std::path::Path;

use clap::ValueEnum;

use crate::exit::{Ends, Exit};

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
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
