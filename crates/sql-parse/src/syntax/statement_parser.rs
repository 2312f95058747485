//! Parses statements that sqlparser does not know, or knows only in part: its parser, with the few operations that they
//! all need.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

use super::first_word::begins_with;

/// A parser of a statement that begins with one of these words; `None` for other statements, and for text that is not
/// made of tokens, such as an open quote, which the parser of the others reports.
///
/// Its tokens include neither blanks nor the semicolons at the end.
#[must_use]
pub fn parser_of(sql: &str, first_words: &[&str]) -> Option<Parser<'static>> {
    if !begins_with(sql, first_words) {
        return None;
    }
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().ok()?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    while tokens.pop_if(|last| last.token == Token::SemiColon).is_some() {}
    // A word such as `set_x` begins with another one.
    let first = &tokens.first()?.token;
    if !first_words.iter().any(|word| is_word(first, word)) {
        return None;
    }
    Some(Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens))
}

/// Whether a token is this word, in any case but without quotes.
#[must_use]
pub fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Whether all tokens have been read.
#[must_use]
pub fn is_at_end(parser: &Parser) -> bool {
    parser.peek_token_ref().token == Token::EOF
}

/// The tokens that have been read, without blanks, the last one first.
pub(crate) fn read_tokens<'a>(parser: &'a Parser) -> impl Iterator<Item = &'a Token> {
    // The parser's index is that of the next token, after the one that it calls the current one.
    let read = (0..=parser.get_current_index()).rev().map(|at| &parser.token_at(at).token);
    read.filter(|token| !matches!(token, Token::Whitespace(_)))
}

/// Reads a token, and returns it in lower case if it is a word without quotes, or else an empty text.
pub fn next_word(parser: &mut Parser) -> String {
    match parser.next_token().token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Reads a name, which is in lower case unless it is quoted; `None` if the token is not a name.
pub fn next_name(parser: &mut Parser) -> Option<String> {
    match parser.next_token().token {
        Token::Word(word) if word.quote_style.is_some() => Some(word.value),
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    }
}

/// Reads items with commas between them.
///
/// # Errors
/// Those of the items.
pub fn comma_separated<T, E>(
    parser: &mut Parser,
    mut item: impl FnMut(&mut Parser) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let mut items = vec![item(parser)?];
    while parser.consume_token(&Token::Comma) {
        items.push(item(parser)?);
    }
    Ok(items)
}

/// Reads parentheses and returns the text within them; `None` if none open here, or if they do not close.
pub fn within_parentheses<'a>(parser: &mut Parser, sql: &'a str) -> Option<&'a str> {
    if !parser.consume_token(&Token::LParen) {
        return None;
    }
    let start = offset(sql, parser.get_current_token().span.end)?;
    let mut depth = 1_usize;
    while depth > 0 {
        parser.advance_token();
        match parser.get_current_token().token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            _ => {}
        }
    }
    sql.get(start..offset(sql, parser.get_current_token().span.start)?)
}

/// The byte offset in a text of a line and column, counted from 1.
#[must_use]
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
    fn words_names_and_parentheses_are_read() {
        let sql = "Take É, \"É\", b\n(ä (1), ')') -- and so on\n;;";
        assert!(parser_of(sql, &["give"]).is_none() && parser_of("take_1", &["take"]).is_none());
        assert!(parser_of("take 'a", &["take"]).is_none());
        let mut parser = parser_of(sql, &["give", "take"]).expect("it begins like that");
        assert_eq!(next_word(&mut parser), "take");
        let names = comma_separated(&mut parser, |parser| next_name(parser).ok_or(()));
        assert_eq!(names, Ok(["é", "É", "b"].map(str::to_owned).to_vec()));
        assert_eq!(within_parentheses(&mut parser, sql), Some("ä (1), ')'"));
        assert!(is_at_end(&parser) && within_parentheses(&mut parser, sql).is_none());
        assert_eq!((next_word(&mut parser), next_name(&mut parser)), (String::new(), None));
        let sql = "take (a (b)";
        let mut parser = parser_of(sql, &["take"]).expect("it begins like that");
        parser.advance_token();
        assert_eq!(within_parentheses(&mut parser, sql), None);
    }
}
