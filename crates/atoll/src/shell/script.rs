//! Scripts: the first failure ends them, unless `.bail off` is set, and is reported with its line.

use std::fs::File;
use std::io::{Cursor, stdin};
use std::path::Path;

use super::Shell;
use super::inputs::{CopyRows, Inputs, ShellInput};
use super::lines::ScriptLines;
use super::stop::Stop;
use crate::cli::Script;
use atoll_tools::terminal;

/// Maximum nesting of scripts, which stops a script that reads itself.
const DEPTH_MAX: usize = 16;

impl Shell {
    /// Runs the arguments of `-c` and `-f`.
    pub(super) async fn run_scripts(&mut self, scripts: Vec<Script>) -> Result<(), Stop> {
        for script in scripts {
            match script {
                Script::Text(text) => {
                    let lines = ScriptLines::from_reader(Cursor::new(text));
                    self.run_lines("-c", lines, CopyRows::Stdin).await?;
                }
                Script::File(path) if path.as_os_str() == "-" => {
                    self.run_lines("stdin", ScriptLines::from_reader(stdin()), CopyRows::Behind)
                        .await?;
                }
                Script::File(path) => {
                    if let Err(stop) = self.run_file(&path).await {
                        self.fail(stop)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs a script file, as `-f` and `.read` do.
    pub(super) async fn run_file(&mut self, path: &Path) -> Result<(), Stop> {
        let name = path.display().to_string();
        if self.depth == DEPTH_MAX {
            return Err(Stop::failed(format!(
                "cannot read {name}: scripts are nested deeper than {DEPTH_MAX}; does it read \
                 itself?"
            )));
        }
        let file = File::open(path)
            .map_err(|error| Stop::failed(format!("cannot read {name}: {error}")))?;
        self.depth += 1;
        let lines = ScriptLines::from_reader(file);
        let done = Box::pin(self.run_lines(&name, lines, CopyRows::Behind)).await;
        self.depth -= 1;
        done
    }

    /// Runs the lines of a source; failures name the source.
    pub(super) async fn run_lines(
        &mut self,
        source: &str,
        mut lines: ScriptLines,
        copy_rows: CopyRows,
    ) -> Result<(), Stop> {
        let mut inputs = Inputs::for_session(&self.session, copy_rows);
        let mut number = 0;
        while let Some(line) = self.next_line(&mut lines).await? {
            number += 1;
            let line = line.map_err(|error| unreadable(&error).at(source, number))?;
            match inputs.line(&line) {
                Ok(found) => self.run_inputs(source, found).await?,
                Err(stop) => self.fail(stop.at(source, 1))?,
            }
        }
        match inputs.finish() {
            Ok(rest) => self.run_inputs(source, rest).await,
            Err(stop) => self.fail(stop.at(source, 1)),
        }
    }

    /// Ends the script with a failure, or reports it and continues after `.bail off`.
    fn fail(&mut self, stop: Stop) -> Result<(), Stop> {
        match stop {
            Stop::Failed(failure) if !self.settings.bail => {
                terminal::say_error(failure.message());
                self.has_failed = true;
                Ok(())
            }
            stop => Err(stop),
        }
    }

    async fn next_line(
        &mut self,
        lines: &mut ScriptLines,
    ) -> Result<Option<std::io::Result<String>>, Stop> {
        tokio::select! {
            biased;
            () = self.interrupts.next() => Err(Stop::Interrupted),
            line = lines.next() => Ok(line),
        }
    }

    async fn run_inputs(&mut self, source: &str, inputs: Vec<ShellInput>) -> Result<(), Stop> {
        for input in inputs {
            if let Err(stop) = self.run_input(&input).await {
                self.fail(stop.at(source, input.line()))?;
            }
        }
        Ok(())
    }

    /// Runs one statement or command.
    pub(super) async fn run_input(&mut self, input: &ShellInput) -> Result<(), Stop> {
        match input {
            ShellInput::Statement { text, line } => self.run_statement(text, *line).await,
            ShellInput::Command { text, .. } => self.run_command(text).await,
            ShellInput::CopyIn { text, line, rows } => self.copy_in(text, *line, rows).await,
        }
    }
}

fn unreadable(error: &std::io::Error) -> Stop {
    Stop::failed(format!("cannot read the rest of the script: {error}"))
}
