//! Colours for the input line: keywords, texts, numbers, comments.

use std::borrow::Cow;

const KEYWORD: &str = "\x1b[1;34m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[2m";
const OFF: &str = "\x1b[0m";

/// SQL words to colour and complete, sorted.
pub(super) const KEYWORDS: [&str; 118] = [
    "ALL",
    "ANALYZE",
    "AND",
    "ANTI",
    "ARRAY",
    "AS",
    "ASC",
    "AVG",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "COALESCE",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "DATE",
    "DECIMAL",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FETCH",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FROM",
    "FULL",
    "FUNCTION",
    "GROUP",
    "HAVING",
    "IF",
    "ILIKE",
    "IN",
    "INNER",
    "INSERT",
    "INT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "MAX",
    "MIN",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRECEDING",
    "RANGE",
    "RECURSIVE",
    "REPLACE",
    "RESET",
    "RIGHT",
    "ROLLUP",
    "ROW",
    "ROWS",
    "SCHEMA",
    "SELECT",
    "SEMI",
    "SET",
    "SHOW",
    "SMALLINT",
    "STORED",
    "SUM",
    "TABLE",
    "TABLES",
    "TEXT",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "UNIQUE",
    "UNNEST",
    "UPDATE",
    "USING",
    "VALUES",
    "VARCHAR",
    "VERBOSE",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "WITHIN",
    "YEAR",
];

/// The text with colours; the same text if nothing is coloured.
pub(super) fn highlighted(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (len, color) = token(rest, first);
        let (token, after) = rest.split_at(len);
        match color {
            Some(color) => out.extend([color, token, OFF]),
            None => out.push_str(token),
        }
        rest = after;
    }
    if out.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Length in bytes and colour of the first token.
fn token(text: &str, first: char) -> (usize, Option<&'static str>) {
    let while_ = |accept: fn(char) -> bool| text.find(|c| !accept(c)).unwrap_or(text.len());
    match first {
        '\'' => (quoted(text, '\''), Some(TEXT)),
        '"' => (quoted(text, '"'), None),
        '-' if text.starts_with("--") => (text.find('\n').unwrap_or(text.len()), Some(COMMENT)),
        '0'..='9' => (while_(|c| c.is_ascii_alphanumeric() || c == '.'), Some(NUMBER)),
        c if c.is_alphabetic() || c == '_' => {
            let len = while_(|c| c.is_alphanumeric() || c == '_');
            (len, is_keyword(&text[..len]).then_some(KEYWORD))
        }
        c => (c.len_utf8(), None),
    }
}

/// Length up to the closing quote, or to the end if there is none yet.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_texts_numbers_and_comments_are_coloured() {
        assert_eq!(
            highlighted("select a1, 'x' from \"select\" where b = 1.5 -- 2"),
            "\x1b[1;34mselect\x1b[0m a1, \x1b[32m'x'\x1b[0m \x1b[1;34mfrom\x1b[0m \"select\" \
             \x1b[1;34mwhere\x1b[0m b = \x1b[36m1.5\x1b[0m \x1b[2m-- 2\x1b[0m"
        );
    }

    #[test]
    fn unfinished_and_non_ascii_text_is_kept() {
        assert_eq!(highlighted("naïve 東京 +"), "naïve 東京 +");
        assert_eq!(highlighted("'öpen"), "\x1b[32m'öpen\x1b[0m");
    }

    #[test]
    fn keywords_are_ordered() {
        assert!(KEYWORDS.is_sorted());
    }
}
