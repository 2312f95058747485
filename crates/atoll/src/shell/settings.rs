//! Settings of the shell.

use atoll_sql::split_first_word;

use crate::output::Mode;

/// Default for the rows of a result shown at a terminal.
const ROWS_MAX: usize = 40;

/// How queries are explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Explain {
    #[default]
    Off,
    /// The plan.
    On,
    /// The plan with run-time metrics.
    Analyze,
}

/// How statements are run and shown.
#[derive(Clone, Debug)]
pub(super) struct ShellSettings {
    pub(super) mode: Mode,
    /// Whether the time of each statement is shown.
    pub(super) timer: bool,
    pub(super) explain: Explain,
    /// Maximum number of rows shown; None for all.
    pub(super) rows_max: Option<usize>,
    /// Whether statements are echoed before they run.
    pub(super) echo: bool,
    /// Whether long queries show a bar.
    pub(super) progress: bool,
    /// Whether the first failure ends a script.
    pub(super) bail: bool,
    /// Whether results begin with column names.
    pub(super) headers: bool,
    /// The text for NULL, if it is not the mode's default.
    pub(super) null: Option<String>,
    /// Widths of drawn columns, 0 to fit the values.
    pub(super) widths: Vec<usize>,
    /// The separator of `csv`, `tabs` and `list`, if it is not the mode's default.
    pub(super) separator: Option<String>,
}

impl ShellSettings {
    /// Terminals show times and shortened results; scripts get all rows and nothing else.
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
            separator: None,
        }
    }

    /// The statement to run, and the number of lines put in front of it.
    pub(super) fn explained(&self, statement: &str) -> (String, u64) {
        let before = match self.explain {
            Explain::On if is_query(statement) => "EXPLAIN\n",
            Explain::Analyze if is_query(statement) => "EXPLAIN ANALYZE\n",
            _ => return (statement.to_owned(), 0),
        };
        (format!("{before}{statement}"), 1)
    }
}

/// The words that begin a query.
const QUERIES: [&str; 8] =
    ["select", "with", "values", "table", "from", "pivot", "unpivot", "summarize"];

fn is_query(statement: &str) -> bool {
    let (mut word, mut behind) = split_first_word(statement);
    while let ("", Some(inner)) = (word, behind.strip_prefix('(')) {
        (word, behind) = split_first_word(inner);
    }
    QUERIES.iter().any(|query| word.eq_ignore_ascii_case(query))
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
        let queries = [
            "(select 1)",
            "( -- a\n (FROM t))",
            "/* a */ SUMMARIZE t",
            "PIVOT t ON a",
            "pivot_wider t ON a",
        ];
        for query in queries {
            assert_eq!(settings.explained(query).1, 1, "{query}");
        }
        assert_eq!(settings.explained("DROP TABLE t").1, 0);
        assert_eq!(settings.explained("").1, 0);
    }
}
