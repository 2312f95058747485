//! The first word of a statement, which distinguishes statements that the parser does not support.

/// The first word of a statement, after blanks and comments, and the rest; the word is empty if the
/// statement begins with another character.
///
/// Comments in `/* */` nest, as PostgreSQL's do.
#[must_use]
pub fn split_first_word(sql: &str) -> (&str, &str) {
    let mut rest = sql.trim_start();
    loop {
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if rest.starts_with("/*") {
            behind_comment(rest)
        } else {
            break;
        };
        rest = rest.trim_start();
    }
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest.split_at(end)
}

/// Whether a statement begins with one of some words, in any case.
#[must_use]
pub fn begins_with(sql: &str, words: &[&str]) -> bool {
    let (first, _) = split_first_word(sql);
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// The text after the comment at its beginning; `None` if the comment does not end.
fn behind_comment(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.as_bytes().get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return &text[at..];
            }
        } else {
            at += 1;
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_are_skipped() {
        for (sql, word) in [
            ("SELECT 1", "SELECT"),
            (" \n\tcopy(SELECT 1) TO STDOUT", "copy"),
            ("-- a ; b\n/* c */ alter ROLE x", "alter"),
            ("/* a /* b */ c */ COPY t", "COPY"),
            ("/*/ */x", "x"),
            ("/* ä */ß", ""),
            ("/* no end", ""),
            ("-- no end", ""),
            ("(SELECT 1)", ""),
            ("", ""),
        ] {
            assert_eq!(split_first_word(sql).0, word, "{sql}");
        }
        let (_, rest) = split_first_word("/* */ alter role ann");
        assert!(begins_with(rest, &["role"]));
        assert!(begins_with("/* */ Begin;", &["start", "begin"]));
        assert!(!begins_with("beginning", &["begin"]));
    }
}
