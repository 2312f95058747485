//! Where the results of a benchmark go, and in which form: the flags that all of them have.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_sys::write_whole;
use clap::{ValueEnum, ValueHint};

use crate::exit::{CommandError, Exit};

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables for people, in Markdown
    Text,
    /// One JSON document
    Json,
    /// A picture
    Svg,
}

/// The flags.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// How the results are written to stdout, and to a file whose suffix names no form [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    of: Option<Form>,
    /// The same as --of json
    #[arg(long, conflicts_with = "of")]
    json: bool,
    /// File to write to instead of stdout, in the form of its suffix: .txt, .md, .json or .svg; may be repeated
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Vec<PathBuf>,
}

/// Where the results go.
#[derive(Debug)]
pub struct Outputs(Vec<(Form, Option<PathBuf>)>);

impl OutputArgs {
    /// Where the results go, checked before the run: a run takes minutes. A form that is asked for and that no file
    /// has goes to stdout.
    ///
    /// # Errors
    /// For a file whose suffix names no form, and for a picture unless `has_picture`.
    pub fn outputs(&self, has_picture: bool) -> Result<Outputs, CommandError> {
        let form = if self.json { Some(Form::Json) } else { self.of };
        let of_file = |file: &PathBuf| {
            let found = Form::of_file(file).or_else(|error| form.ok_or(error))?;
            Ok::<_, CommandError>((found, Some(file.clone())))
        };
        let mut outputs = self.output.iter().map(of_file).collect::<Result<Vec<_>, _>>()?;
        let is_written = |form| outputs.iter().any(|(of_file, _)| *of_file == form);
        if outputs.is_empty() || form.is_some_and(|form| !is_written(form)) {
            outputs.push((form.unwrap_or(Form::Text), None));
        }
        match has_picture || outputs.iter().all(|(form, _)| *form != Form::Svg) {
            true => Ok(Outputs(outputs)),
            false => {
                let message = "this benchmark draws no picture; use .txt, .md or .json";
                Err(CommandError::with(Exit::Usage, message))
            }
        }
    }
}

impl Outputs {
    /// Writes the results everywhere; `make` is given the form.
    ///
    /// # Errors
    /// Those of `make`, and of writing.
    pub fn write(
        &self,
        make: impl Fn(Form) -> Result<String, CommandError>,
    ) -> Result<(), CommandError> {
        let write = |(form, file): &(Form, Option<PathBuf>)| put(file.as_deref(), &make(*form)?);
        self.0.iter().try_for_each(write)
    }
}

impl Form {
    fn of_file(file: &Path) -> Result<Self, CommandError> {
        match file.extension().and_then(OsStr::to_str) {
            Some("txt" | "md") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some("svg") => Ok(Self::Svg),
            _ => {
                let message = format_args!(
                    "cannot infer the output format of {}; use .txt, .md, .json or .svg, or --of",
                    file.display()
                );
                Err(CommandError::with(Exit::Usage, message))
            }
        }
    }
}

/// A value as a JSON document.
///
/// # Errors
/// When it has no JSON.
pub fn json(value: &impl serde::Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    Ok(format!("{text}\n"))
}

/// Writes to the file, or to stdout.
///
/// # Errors
/// When it cannot be written.
pub fn put(file: Option<&Path>, text: &str) -> Result<(), CommandError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(
        of: Option<Form>,
        json: bool,
        files: &[&str],
    ) -> Result<Vec<(Form, String)>, String> {
        let output = files.iter().map(PathBuf::from).collect();
        let outputs = OutputArgs { of, json, output }.outputs(true);
        let outputs = outputs.map_err(|error| error.message.unwrap_or_default())?.0;
        let named =
            |file: Option<PathBuf>| file.map_or_else(String::new, |it| it.display().to_string());
        Ok(outputs.into_iter().map(|(form, file)| (form, named(file))).collect())
    }

    #[test]
    fn the_suffix_of_a_file_decides_and_what_was_asked_for_is_written() {
        use Form::{Json, Svg, Text};
        let named = |all: &[(Form, &str)]| {
            Ok(all.iter().map(|(form, file)| (*form, (*file).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(outputs(None, false, &[]), named(&[(Text, "")]));
        assert_eq!(outputs(None, true, &[]), named(&[(Json, "")]));
        assert_eq!(outputs(None, true, &["a.md"]), named(&[(Text, "a.md"), (Json, "")]));
        assert_eq!(
            outputs(None, true, &["a.md", "a.json"]),
            named(&[(Text, "a.md"), (Json, "a.json")])
        );
        assert_eq!(outputs(Some(Svg), false, &["a.svg"]), named(&[(Svg, "a.svg")]));
        assert_eq!(outputs(None, true, &["/dev/fd/3"]), named(&[(Json, "/dev/fd/3")]));
        assert!(outputs(None, false, &["a.out"]).unwrap_err().contains("or --of"));
    }
}
