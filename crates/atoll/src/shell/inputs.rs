//! Joins lines to statements, commands and rows of COPY.

use std::collections::VecDeque;
use std::io::Write;

use atoll_sql::{Session, Splitter, copies_from_stdin};

use super::command::copy;
use super::copied::CopiedRows;
use super::stop::Stop;

/// Something to run, with the line of its source on which it starts, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShellInput {
    Statement {
        text: String,
        line: u64,
    },
    /// `.command` or `\command`.
    Command {
        text: String,
        line: u64,
    },
    /// `COPY … FROM STDIN` with the rows that follow it.
    CopyIn {
        text: String,
        line: u64,
        rows: CopiedRows,
    },
}

impl ShellInput {
    pub(super) fn line(&self) -> u64 {
        match self {
            Self::Statement { line, .. }
            | Self::Command { line, .. }
            | Self::CopyIn { line, .. } => *line,
        }
    }

    fn takes_rows(&self) -> bool {
        matches!(self, Self::Statement { text, .. } if copies_from_stdin(text))
    }
}

impl From<atoll_sql::Statement> for ShellInput {
    fn from(statement: atoll_sql::Statement) -> Self {
        Self::Statement { text: statement.text, line: statement.line }
    }
}

/// Location of the rows of a `COPY … FROM STDIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyRows {
    /// In the lines after the statement, up to `\.` or the end of the source.
    Behind,
    /// In the process's standard input.
    Stdin,
}

/// The line that ends the rows of a COPY.
const ROWS_END: &str = "\\.";

/// psql's command, which takes rows like the statement.
const COPY: &str = "\\copy ";

/// Joins lines to inputs. A statement ends at its semicolon or at the end of the source; a command is a line that
/// starts with a dot or a backslash outside of a statement.
pub(super) struct Inputs {
    splitter: Splitter,
    copy_rows: CopyRows,
    /// Lines seen.
    lines: u64,
    /// The rows so far of the COPY at the front of `waiting`.
    rows: Option<CopiedRows>,
    /// Inputs that wait for the end of these rows.
    waiting: VecDeque<ShellInput>,
}

impl Inputs {
    /// Splits inputs in the dialect of a session.
    pub(super) fn for_session(session: &Session, copy_rows: CopyRows) -> Self {
        Self::new(Splitter::for_session(session), copy_rows)
    }

    fn new(splitter: Splitter, copy_rows: CopyRows) -> Self {
        Self { splitter, copy_rows, lines: 0, rows: None, waiting: VecDeque::new() }
    }

    /// Adds a line; returns the inputs that end on it.
    ///
    /// # Errors
    /// For text that cannot be split into statements, which is dropped, and for rows that cannot be stored.
    pub(super) fn line(&mut self, line: &str) -> Result<Vec<ShellInput>, Stop> {
        self.lines += 1;
        if let Some(rows) = &mut self.rows {
            self.splitter.pass_line();
            if line != ROWS_END {
                writeln!(rows.writer(), "{line}")?;
                return Ok(Vec::new());
            }
            return self.end_rows();
        }
        if is_command(line) && self.splitter.is_idle() {
            self.splitter.skip_line();
            let text = line.trim().to_owned();
            let input = match text.get(..COPY.len()) {
                Some(COPY) => {
                    let text = copy::statement(&text[COPY.len()..]);
                    ShellInput::Statement { text, line: self.lines }
                }
                _ => ShellInput::Command { text, line: self.lines },
            };
            self.waiting.push_back(input);
            return self.ready();
        }
        let statements = self.splitter.push(&format!("{line}\n"));
        let statements = statements.map_err(|error| Stop::sql(error, 1, 0))?;
        self.waiting.extend(statements.into_iter().map(ShellInput::from));
        self.ready()
    }

    /// Whether the next line starts a new input.
    pub(super) fn is_idle(&self) -> bool {
        self.rows.is_none() && self.splitter.is_idle()
    }

    /// Ends the source; returns the remaining inputs.
    ///
    /// # Errors
    /// As [`Inputs::line`].
    pub(super) fn finish(mut self) -> Result<Vec<ShellInput>, Stop> {
        let mut inputs = Vec::new();
        let last = std::mem::take(&mut self.splitter).finish();
        let last = last.map_err(|error| Stop::sql(error, 1, 0))?;
        self.waiting.extend(last.map(ShellInput::from));
        if self.rows.is_none() {
            inputs.extend(self.ready()?);
        }
        while self.rows.is_some() {
            inputs.extend(self.end_rows()?);
        }
        Ok(inputs)
    }

    /// The waiting inputs, up to a COPY whose rows come next.
    fn ready(&mut self) -> Result<Vec<ShellInput>, Stop> {
        let mut ready = Vec::new();
        while let Some(input) = self.waiting.pop_front() {
            if self.copy_rows == CopyRows::Behind && input.takes_rows() {
                self.waiting.push_front(input);
                self.rows = Some(CopiedRows::new()?);
                break;
            }
            ready.push(input);
        }
        Ok(ready)
    }

    /// The COPY whose rows have ended, and the inputs that waited for it.
    fn end_rows(&mut self) -> Result<Vec<ShellInput>, Stop> {
        let (Some(mut rows), Some(ShellInput::Statement { text, line })) =
            (self.rows.take(), self.waiting.pop_front())
        else {
            return Ok(Vec::new());
        };
        rows.writer().flush()?;
        let mut inputs = vec![ShellInput::CopyIn { text, line, rows }];
        inputs.extend(self.ready()?);
        Ok(inputs)
    }
}

/// Whether a line looks like a command.
pub(super) fn is_command(line: &str) -> bool {
    line.trim_start().starts_with(['.', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(script: &str) -> Vec<ShellInput> {
        inputs_with(script, CopyRows::Behind)
    }

    fn inputs_with(script: &str, copy_rows: CopyRows) -> Vec<ShellInput> {
        let mut inputs = Inputs::new(Splitter::default(), copy_rows);
        let mut found: Vec<ShellInput> =
            script.lines().flat_map(|line| inputs.line(line).unwrap()).collect();
        found.extend(inputs.finish().unwrap());
        found
    }

    /// The statements of a script, with the rows of each COPY.
    fn copied(script: &str) -> Vec<(String, u64, Option<String>)> {
        let shown = |input| match input {
            ShellInput::Statement { text, line } | ShellInput::Command { text, line } => {
                (text, line, None)
            }
            ShellInput::CopyIn { text, line, rows } => {
                (text, line, Some(std::fs::read_to_string(rows.file()).unwrap()))
            }
        };
        inputs(script).into_iter().map(shown).collect()
    }

    fn statement(text: &str, line: u64) -> ShellInput {
        ShellInput::Statement { text: text.to_owned(), line }
    }

    #[test]
    fn statements_may_span_lines_share_lines_and_lack_the_last_semicolon() {
        assert_eq!(
            inputs("SELECT\n 1; SELECT 2; SELECT\n3;\n\nSELECT ';'\n"),
            [
                statement("SELECT\n 1", 1),
                statement("SELECT 2", 2),
                statement("SELECT\n3", 2),
                statement("SELECT ';'", 5),
            ]
        );
        assert_eq!(inputs(" \n;;\n"), []);
    }

    #[test]
    fn commands_occur_between_statements_only() {
        let command = |text: &str, line| ShellInput::Command { text: text.to_owned(), line };
        assert_eq!(
            inputs("-- first\n .mode csv \nSELECT '\n.mode box\n';\n\\q\n"),
            [command(".mode csv", 2), statement("SELECT '\n.mode box\n'", 3), command("\\q", 6)]
        );
    }

    #[test]
    fn an_open_quote_waits_for_its_end_and_is_an_error_at_the_end() {
        assert_eq!(inputs("SELECT 'a;\nb';"), [statement("SELECT 'a;\nb'", 1)]);
        let mut open = Inputs::new(Splitter::default(), CopyRows::Behind);
        assert_eq!(open.line("").unwrap(), []);
        assert_eq!(open.line("SELECT 'a;").unwrap(), []);
        assert!(matches!(open.finish(), Err(Stop::Failed(_))));
    }

    #[test]
    fn rows_of_a_copy_follow_it() {
        let row =
            |text: &str, line, rows: Option<&str>| (text.to_owned(), line, rows.map(str::to_owned));
        assert_eq!(
            copied("SELECT 1; COPY t\nFROM STDIN; SELECT 2;\na;b\n.x\n\n\\.\nSELECT\n3;"),
            [
                row("SELECT 1", 1, None),
                row("COPY t\nFROM STDIN", 1, Some("a;b\n.x\n\n")),
                row("SELECT 2", 2, None),
                row("SELECT\n3", 7, None),
            ]
        );
        assert_eq!(
            copied("COPY t FROM STDIN; COPY u FROM STDIN;\n1\n\\.\n2\n"),
            [row("COPY t FROM STDIN", 1, Some("1\n")), row("COPY u FROM STDIN", 1, Some("2\n")),]
        );
        assert_eq!(copied("COPY t FROM STDIN"), [row("COPY t FROM STDIN", 1, Some(""))]);
        assert_eq!(
            copied("\\copy t from stdin\n1\n\\."),
            [row("COPY t from stdin", 1, Some("1\n"))]
        );
        let script = "COPY t FROM STDIN;\n1;";
        assert_eq!(
            inputs_with(script, CopyRows::Stdin),
            [statement("COPY t FROM STDIN", 1), statement("1", 2)]
        );
    }

    /// Whether a whole text can run.
    fn is_whole(text: &str) -> bool {
        let mut inputs = Inputs::new(Splitter::default(), CopyRows::Behind);
        text.split('\n').any(|line| inputs.line(line).is_err()) || inputs.is_idle()
    }

    #[test]
    fn a_person_ends_a_statement_with_a_semicolon_and_rows_with_their_mark() {
        for whole in
            ["", ".tables", "SELECT 1;", "\\d t", "-- a note", "COPY t FROM STDIN;\n1\n\\."]
        {
            assert!(is_whole(whole), "{whole}");
        }
        for open in [
            "SELECT 1",
            "SELECT 'a;",
            "SELECT 1; SELECT",
            "/* a",
            "COPY t FROM STDIN;",
            "COPY t FROM STDIN;\nSELECT 1;",
        ] {
            assert!(!is_whole(open), "{open}");
        }
    }
}
