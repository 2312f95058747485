//! From lines to statements and commands.

use atoll_sql::{Session, Splitter, SqlError, split_statements};

/// Something to carry out, with the line of its source on which it starts, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl ShellInput {
    pub(super) fn line(&self) -> u64 {
        match self {
            Self::Statement { line, .. } | Self::Command { line, .. } => *line,
        }
    }
}

impl From<atoll_sql::Statement> for ShellInput {
    fn from(statement: atoll_sql::Statement) -> Self {
        Self::Statement { text: statement.text, line: statement.line }
    }
}

/// Joins lines to inputs. A statement ends at its semicolon or with the source; a command is a line
/// that starts with a dot or a backslash where no statement is open.
#[derive(Default)]
pub(super) struct Inputs {
    splitter: Splitter,
    /// Lines seen.
    lines: u64,
}

impl Inputs {
    /// Inputs in the dialect of a session.
    pub(super) fn of(session: &Session) -> Self {
        Self { splitter: Splitter::of(session), lines: 0 }
    }

    /// The inputs that end on this line.
    ///
    /// # Errors
    /// For text that cannot be cut into statements; it is dropped.
    pub(super) fn line(&mut self, line: &str) -> Result<Vec<ShellInput>, SqlError> {
        self.lines += 1;
        if is_command(line) && self.splitter.is_idle() {
            self.splitter.skip_line();
            let text = line.trim().to_owned();
            return Ok(vec![ShellInput::Command { text, line: self.lines }]);
        }
        let statements = self.splitter.push(&format!("{line}\n"))?;
        Ok(statements.into_iter().map(ShellInput::from).collect())
    }

    /// The statement that the source's end ends.
    ///
    /// # Errors
    /// As [`Inputs::line`].
    pub(super) fn finish(self) -> Result<Option<ShellInput>, SqlError> {
        Ok(self.splitter.finish()?.map(ShellInput::from))
    }
}

/// Whether a line has the form of a command.
pub(super) fn is_command(line: &str) -> bool {
    line.trim_start().starts_with(['.', '\\'])
}

/// Whether a person who typed this means it to be run.
pub(super) fn is_whole(text: &str) -> bool {
    if is_command(text) {
        return true;
    }
    match split_statements(text) {
        Ok(statements) => statements.last().is_none_or(|last| last.complete),
        Err(error) => !error.is_unfinished(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(script: &str) -> Vec<ShellInput> {
        let mut inputs = Inputs::default();
        let mut found: Vec<ShellInput> =
            script.lines().flat_map(|line| inputs.line(line).unwrap()).collect();
        found.extend(inputs.finish().unwrap());
        found
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
    fn commands_stand_between_statements_only() {
        let command = |text: &str, line| ShellInput::Command { text: text.to_owned(), line };
        assert_eq!(
            inputs("-- first\n .mode csv \nSELECT '\n.mode box\n';\n\\q\n"),
            [command(".mode csv", 2), statement("SELECT '\n.mode box\n'", 3), command("\\q", 6)]
        );
    }

    #[test]
    fn a_quote_left_open_waits_for_its_end_and_is_an_error_without() {
        assert_eq!(inputs("SELECT 'a;\nb';"), [statement("SELECT 'a;\nb'", 1)]);
        let mut open = Inputs::default();
        assert_eq!(open.line("").unwrap(), []);
        assert_eq!(open.line("SELECT 'a;").unwrap(), []);
        assert!(open.finish().unwrap_err().place.unwrap().line >= 2);
    }

    #[test]
    fn a_person_ends_a_statement_with_a_semicolon() {
        assert!(is_whole("") && is_whole(".tables") && is_whole("SELECT 1;") && is_whole("\\d t"));
        assert!(!is_whole("SELECT 1") && !is_whole("SELECT 'a;") && !is_whole("SELECT 1; SELECT"));
    }
}
