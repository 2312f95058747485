//! How a run of many cases ends: its report is written, problems are said, and the exit code follows.

use atoll_tools::bench::{Document, Form, Manifest, Measurement, Outputs, json};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use serde::Serialize;

/// The report of a run, which is also what JSON has apart from the measurements.
pub(crate) trait TrialReport: Serialize + Sized {
    /// The benchmark's name.
    const NAME: &'static str;

    /// For `bench compare`.
    fn measurements(&self) -> Vec<Measurement>;

    /// As tables.
    fn to_markdown(&self, manifest: &Manifest) -> String;

    /// As a picture; benchmarks that draw none refuse such a file before they run.
    fn plot(&self) -> String {
        String::new()
    }

    /// What went wrong.
    fn problems(&self) -> &[String];

    /// Writes it everywhere, and ends the command; `stopped` if a signal ended the run.
    ///
    /// # Errors
    /// `stopped`, or quietly where there are problems; and when the report cannot be written.
    fn end(
        &self,
        manifest: &Manifest,
        outputs: &Outputs,
        stopped: Option<CommandError>,
    ) -> Result<(), CommandError> {
        outputs.write(|form| match form {
            Form::Json => json(&Document {
                benchmark: Self::NAME,
                manifest,
                measurements: self.measurements(),
                details: self,
            }),
            Form::Svg => Ok(self.plot()),
            Form::Text => Ok(self.to_markdown(manifest)),
        })?;
        self.problems().iter().for_each(terminal::say_error);
        match (stopped, self.problems().is_empty()) {
            (Some(stopped), _) => Err(stopped),
            (None, true) => Ok(()),
            (None, false) => Err(CommandError::quietly(Exit::Statement)),
        }
    }
}
