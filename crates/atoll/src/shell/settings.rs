//! What `.commands` set.

use crate::output::Mode;

/// Rows of a drawn result that a person is shown at once.
const ROWS_MAX: usize = 40;

/// How queries are explained instead of answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Explain {
    #[default]
    Off,
    /// The plan.
    On,
    /// The plan with what happened when it ran.
    Analyze,
}

/// How statements are run and shown.
#[derive(Clone, Debug)]
pub(super) struct ShellSettings {
    pub(super) mode: Mode,
    /// Whether the time of each statement is told.
    pub(super) timer: bool,
    pub(super) explain: Explain,
    /// Rows shown of a drawn result; none for all.
    pub(super) rows_max: Option<usize>,
    /// Whether statements are told before they run.
    pub(super) echo: bool,
    /// Whether long queries show a bar.
    pub(super) progress: bool,
    /// Whether the first failure ends a script.
    pub(super) bail: bool,
    /// Whether results begin with the names of their columns.
    pub(super) headers: bool,
    /// The text for NULL, where it is not that of the mode.
    pub(super) null: Option<String>,
    /// Widths of drawn columns, 0 for as wide as their values.
    pub(super) widths: Vec<usize>,
}

impl ShellSettings {
    /// People are told times, and are spared long results; scripts get what they asked for.
    pub(super) fn new(mode: Mode, is_interactive: bool, progress: bool) -> Self {
        Self {
            mode,
            timer: is_interactive,
            explain: Explain::Off,
            rows_max: is_interactive.then_some(ROWS_MAX),
            echo: false,
            progress,
            bail: true,
            headers: true,
            null: None,
            widths: Vec::new(),
        }
    }

    /// The statement as it is run, and the number of lines put in front of it.
    pub(super) fn explained(&self, statement: &str) -> (String, u64) {
        let before = match self.explain {
            Explain::On if is_query(statement) => "EXPLAIN\n",
            Explain::Analyze if is_query(statement) => "EXPLAIN ANALYZE\n",
            _ => return (statement.to_owned(), 0),
        };
        (format!("{before}{statement}"), 1)
    }
}

fn is_query(statement: &str) -> bool {
    let statement = statement.trim_start_matches(['(', ' ', '\n', '\t']);
    let word = statement.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["select", "with", "values", "table"].iter().any(|query| word.eq_ignore_ascii_case(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_explained_and_other_statements_are_not() {
        let mut settings = ShellSettings::new(Mode::Box, false, false);
        assert_eq!(settings.explained("SELECT 1"), ("SELECT 1".to_owned(), 0));
        settings.explain = Explain::Analyze;
        assert_eq!(settings.explained("SELECT 1"), ("EXPLAIN ANALYZE\nSELECT 1".to_owned(), 1));
        settings.explain = Explain::On;
        assert_eq!(settings.explained("(select 1)").1, 1);
        assert_eq!(settings.explained("DROP TABLE t").1, 0);
        assert_eq!(settings.explained("").1, 0);
    }
}
