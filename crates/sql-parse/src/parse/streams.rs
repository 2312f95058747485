//! `COPY … TO STDOUT` and `COPY … FROM STDIN` for the shell, which can read and write the streams.

use std::ops::Range;
use std::path::Path;

use crate::syntax::begins_with;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// The statement with a file in place of STDOUT; `None` for all other statements.
pub fn copy_to_file(sql: &str, file: &Path) -> Option<String> {
    let (place, _) = stream(sql, "TO", "STDOUT")?;
    Some(format!("{}{}{}", &sql[..place.start], quoted(file), &sql[place.end..]))
}

/// The statement with a file in place of STDIN, in PostgreSQL's text format by default; `None` for
/// all other statements.
pub fn copy_from_file(sql: &str, file: &Path) -> Option<String> {
    let (place, behind) = stream(sql, "FROM", "STDIN")?;
    let names_format = |token: &TokenWithSpan| {
        let formats = ["FORMAT", "STORED", "CSV", "PARQUET", "JSON", "ARROW", "BINARY"];
        formats.iter().any(|format| is_word(token, format))
    };
    let format = if behind.iter().any(names_format) { "" } else { " (FORMAT text)" };
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

/// The position of the stream after a word in a COPY, and the tokens that follow.
fn stream(sql: &str, word: &str, name: &str) -> Option<(Range<usize>, Vec<TokenWithSpan>)> {
    if !begins_with(sql, &["copy"]) {
        return None;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().ok()?;
    let mut tokens =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut depth = 0_usize;
    while let Some(token) = tokens.next() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_word(&token, word) => {
                let target = tokens.next().filter(|target| is_word(target, name))?;
                let start = offset(sql, target.span.start)?;
                return Some((start..start + name.len(), tokens.collect()));
            }
            _ => {}
        }
    }
    None
}

fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    }
}

/// The byte offset in a text of a line and column, counted from 1.
pub fn offset(text: &str, place: Location) -> Option<usize> {
    let lines_before = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let line = match lines_before {
        0 => 0,
        _ => text.match_indices('\n').nth(lines_before - 1)?.0 + 1,
    };
    let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
    let within = text[line..].char_indices().nth(column)?.0;
    Some(line + within)
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
