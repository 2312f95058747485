//! `COPY … TO STDOUT`, for who has a stdout to write to: the shell.

use std::path::Path;

use super::begins_with;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// The statement with a file in the place of STDOUT; none for all other statements.
pub fn copy_to_file(sql: &str, file: &Path) -> Option<String> {
    if !begins_with(sql, &["copy"]) {
        return None;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().ok()?;
    let mut tokens = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut depth = 0_usize;
    while let Some(token) = tokens.next() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_word(token, "TO") => {
                let target = tokens.next().filter(|target| is_word(target, "STDOUT"))?;
                let start = offset(sql, target.span.start)?;
                let rest = sql.get(start + "STDOUT".len()..)?;
                let file = file.display().to_string().replace('\'', "''");
                return Some(format!("{}'{file}'{rest}", &sql[..start]));
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

/// Where a place of lines and columns, from 1, is in a text.
fn offset(text: &str, place: Location) -> Option<usize> {
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
    fn stdout_is_replaced_where_it_is_the_target() {
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
}
