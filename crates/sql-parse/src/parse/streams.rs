//! `COPY … TO STDOUT` and `COPY … FROM STDIN` for the shell, which can read and write the streams.

use std::ops::Range;
use std::path::Path;

use crate::syntax::{Tokens, begins_with, offset};
use datafusion::sql::sqlparser::dialect::GenericDialect;

/// Words that name the format of a COPY.
const FORMATS: [&str; 7] = ["FORMAT", "STORED", "CSV", "PARQUET", "JSON", "ARROW", "BINARY"];

/// The statement with a file in place of STDOUT; `None` for all other statements.
pub fn copy_to_file(sql: &str, file: &Path) -> Option<String> {
    let (place, ..) = stream(sql, "TO", "STDOUT")?;
    Some(format!("{}{}{}", &sql[..place.start], quoted(file), &sql[place.end..]))
}

/// The statement with a file in place of STDIN, in PostgreSQL's text format by default; `None` for
/// all other statements.
pub fn copy_from_file(sql: &str, file: &Path) -> Option<String> {
    let (place, tokens, behind) = stream(sql, "FROM", "STDIN")?;
    let names_format = (behind..tokens.len()).any(|at| tokens.is_any(at, &FORMATS));
    let format = if names_format { "" } else { " (FORMAT text)" };
    Some(format!("{}{}{format}{}", &sql[..place.start], quoted(file), &sql[place.end..]))
}

/// Whether a statement is a `COPY … FROM STDIN`.
#[must_use]
pub fn copies_from_stdin(sql: &str) -> bool {
    stream(sql, "FROM", "STDIN").is_some()
}

fn quoted(file: &Path) -> String {
    format!("'{}'", file.display().to_string().replace('\'', "''"))
}

/// The place of the stream after a word in a COPY, the statement's tokens, and the position after the stream.
fn stream(sql: &str, word: &str, name: &str) -> Option<(Range<usize>, Tokens, usize)> {
    if !begins_with(sql, &["copy"]) {
        return None;
    }
    let tokens = Tokens::of(sql, &GenericDialect {}).ok()?;
    let at = tokens.outside_parentheses(0).find(|at| tokens.is(*at, word))? + 1;
    let start = offset(sql, tokens.location(at))?;
    tokens.is(at, name).then_some((start..start + name.len(), tokens, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdout_as_target_is_replaced() {
        let copied = |sql| copy_to_file(sql, Path::new("/x/it's.csv"));
        assert_eq!(
            copied("COPY (SELECT 'ä' AS to,\n 1 AS stdout) TO stdout (HEADER false)").as_deref(),
            Some("COPY (SELECT 'ä' AS to,\n 1 AS stdout) TO '/x/it''s.csv' (HEADER false)")
        );
        assert_eq!(copied("copy t to STDOUT").as_deref(), Some("copy t to '/x/it''s.csv'"));
        assert_eq!(copied("COPY t TO 'stdout'"), None);
        assert_eq!(copied("COPY t FROM STDIN"), None);
        assert_eq!(copied("SELECT 1"), None);
    }

    #[test]
    fn stdin_as_source_is_replaced_and_the_default_format_is_text() {
        let copied = |sql| copy_from_file(sql, Path::new("/x/it's"));
        for (sql, expected) in [
            ("COPY t FROM STDIN", "COPY t FROM '/x/it''s' (FORMAT text)"),
            ("copy \"from\" (a)\nfrom stdin", "copy \"from\" (a)\nfrom '/x/it''s' (FORMAT text)"),
            ("COPY t FROM STDIN (NULL '')", "COPY t FROM '/x/it''s' (FORMAT text) (NULL '')"),
            ("COPY t FROM STDIN WITH CSV HEADER", "COPY t FROM '/x/it''s' WITH CSV HEADER"),
            ("COPY t FROM STDIN (FORMAT json)", "COPY t FROM '/x/it''s' (FORMAT json)"),
        ] {
            assert_eq!(copied(sql).as_deref(), Some(expected));
            assert!(copies_from_stdin(sql), "{sql}");
        }
        for sql in ["COPY t FROM 'stdin'", "COPY (SELECT 1 FROM stdin) TO 'x'", "SELECT 1", "COPY"]
        {
            assert_eq!(copied(sql), None, "{sql}");
        }
    }
}
