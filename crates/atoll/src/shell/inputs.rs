//! From lines to statements and commands.

use atoll_sql::{SqlError, split_statements};

/// Something to carry out, with the line of its source on which it starts, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
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

impl Input {
    pub(super) fn line(&self) -> u64 {
        match self {
            Self::Statement { line, .. } | Self::Command { line, .. } => *line,
        }
    }
}

/// Joins lines to inputs. A statement ends at its semicolon or with the source; a command is a line
/// that starts with a dot or a backslash where no statement is open.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Lines that wait for their end.
    open: String,
    /// Line on which `open` starts.
    first: u64,
    /// Lines seen.
    lines: u64,
}

impl Inputs {
    /// The inputs that end on this line.
    ///
    /// # Errors
    /// For text that cannot be cut into statements; it is dropped.
    pub(super) fn line(&mut self, line: &str) -> Result<Vec<Input>, SqlError> {
        self.lines += 1;
        if is_command(line) && self.is_idle() {
            self.open.clear();
            let text = line.trim().to_owned();
            return Ok(vec![Input::Command { text, line: self.lines }]);
        }
        if self.open.is_empty() {
            self.first = self.lines;
        }
        self.open.push_str(line);
        self.open.push('\n');
        // Only a semicolon ends a statement: other lines need not be looked at yet.
        if line.contains(';') { self.cut() } else { Ok(Vec::new()) }
    }

    /// The statement that the source's end ends.
    ///
    /// # Errors
    /// As [`Inputs::line`].
    pub(super) fn finish(mut self) -> Result<Vec<Input>, SqlError> {
        let statements = split_statements(&self.open).map_err(|error| self.shifted(error))?;
        Ok(self.inputs(statements))
    }

    /// The line on which what is open starts.
    fn first_line(&self) -> u64 {
        self.first.max(1)
    }

    fn cut(&mut self) -> Result<Vec<Input>, SqlError> {
        match split_statements(&self.open) {
            Ok(mut statements) => {
                let rest = statements.pop_if(|last| !last.complete);
                let inputs = self.inputs(statements);
                self.open = rest.as_ref().map(|rest| rest.text.clone() + "\n").unwrap_or_default();
                self.first += rest.map_or(0, |rest| rest.line - 1);
                Ok(inputs)
            }
            Err(error) if is_unfinished(&error) => Ok(Vec::new()),
            Err(error) => {
                let error = self.shifted(error);
                self.open.clear();
                Err(error)
            }
        }
    }

    fn inputs(&mut self, statements: Vec<atoll_sql::Statement>) -> Vec<Input> {
        let first = self.first_line();
        let input = |statement: atoll_sql::Statement| Input::Statement {
            line: first + statement.line - 1,
            text: statement.text,
        };
        statements.into_iter().map(input).collect()
    }

    /// An error in the open text, its place counted from the start of the source.
    fn shifted(&self, mut error: SqlError) -> SqlError {
        if let Some(place) = &mut error.place {
            place.line += self.first_line() - 1;
        }
        error
    }

    /// Whether nothing but blanks and comments is open.
    fn is_idle(&self) -> bool {
        split_statements(&self.open).is_ok_and(|statements| statements.is_empty())
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
        Err(error) => !is_unfinished(&error),
    }
}

/// A quote or a comment that a later line may close.
fn is_unfinished(error: &SqlError) -> bool {
    let message = error.message.to_ascii_lowercase();
    ["unterminated", "unexpected eof"].iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(script: &str) -> Vec<Input> {
        let mut inputs = Inputs::default();
        let mut found: Vec<Input> =
            script.lines().flat_map(|line| inputs.line(line).unwrap()).collect();
        found.extend(inputs.finish().unwrap());
        found
    }

    fn statement(text: &str, line: u64) -> Input {
        Input::Statement { text: text.to_owned(), line }
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
        let command = |text: &str, line| Input::Command { text: text.to_owned(), line };
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
