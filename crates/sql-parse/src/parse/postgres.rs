//! Shortens the qualified names of PostgreSQL's catalog and operators that its clients write.
//!
//! ```text
//! pg_catalog.version(), x::pg_catalog.text      version(), x::text
//! a OPERATOR(pg_catalog.~) b                    a ~ b
//! a COLLATE pg_catalog.default, a COLLATE "C"   a: texts are compared by their bytes
//! ```

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Shortens all of them.
pub(super) fn shorten(tokens: &mut Vec<TokenWithSpan>) {
    let is_wanted = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => {
            word.keyword == Keyword::OPERATOR
                || word.keyword == Keyword::COLLATE
                || is_catalog(&token.token)
        }
        _ => false,
    };
    let Some(first) = tokens.iter().position(is_wanted) else { return };
    let mut at = first;
    while at < tokens.len() {
        let shortened = names(tokens, at) || operator(tokens, at) || collation(tokens, at);
        if !shortened {
            at += 1;
        }
    }
}

fn is_catalog(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            word.value.eq_ignore_ascii_case("pg_catalog")
                || word.value.eq_ignore_ascii_case("information_schema")
        }
        _ => false,
    }
}

/// The name of a function that is called, or of a type.
fn names(tokens: &mut Vec<TokenWithSpan>, at: usize) -> bool {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let is_name = token(at).is_some_and(is_catalog)
        && token(at + 1) == Some(&Token::Period)
        && matches!(token(at + 2), Some(Token::Word(_)));
    let is_call = || token(at + 3) == Some(&Token::LParen);
    let is_type = || match tokens[..at].iter().rev().map(|it| &it.token).find(|it| !is_blank(it)) {
        Some(Token::DoubleColon) => true,
        Some(Token::Word(word)) => word.keyword == Keyword::AS,
        _ => false,
    };
    let is_shortened = is_name && (is_call() || is_type());
    if is_shortened {
        tokens.drain(at..at + 2);
    }
    is_shortened
}

/// `OPERATOR(pg_catalog.~)`
fn operator(tokens: &mut Vec<TokenWithSpan>, at: usize) -> bool {
    if !is_keyword(tokens, at, Keyword::OPERATOR) {
        return false;
    }
    let Some(open) = next(tokens, at + 1).filter(|open| tokens[*open].token == Token::LParen)
    else {
        return false;
    };
    let Some(first) = next(tokens, open + 1) else { return false };
    let close = tokens[first..].iter().position(|token| token.token == Token::RParen);
    let Some(close) = close.map(|close| first + close) else { return false };
    let start = match tokens.get(first + 1).map(|token| &token.token) {
        Some(Token::Period) => first + 2,
        _ => first,
    };
    tokens.drain(close..=close);
    tokens.drain(at..start);
    true
}

/// The existing collations.
fn collation(tokens: &mut Vec<TokenWithSpan>, at: usize) -> bool {
    if !is_keyword(tokens, at, Keyword::COLLATE) {
        return false;
    }
    let Some(mut name) = next(tokens, at + 1) else { return false };
    if is_catalog(&tokens[name].token)
        && tokens.get(name + 1).map(|it| &it.token) == Some(&Token::Period)
    {
        name += 2;
    }
    let is_ours = match tokens.get(name).map(|it| &it.token) {
        Some(Token::Word(word)) => ["default", "C", "POSIX", "ucs_basic"]
            .iter()
            .any(|it| word.value.eq_ignore_ascii_case(it)),
        _ => false,
    };
    if is_ours {
        tokens.drain(at..=name);
    }
    is_ours
}

pub(super) fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

pub(super) fn is_keyword(tokens: &[TokenWithSpan], at: usize, keyword: Keyword) -> bool {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword == keyword && word.quote_style.is_none(),
        _ => false,
    }
}

/// The next token that is not a blank.
pub(super) fn next(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let found = tokens.get(from..)?.iter().position(|token| !is_blank(&token.token));
    found.map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn names_and_operators_are_shortened() {
        for (sql, short) in [
            ("SELECT pg_catalog.version()", "SELECT version()"),
            (
                "SELECT a::pg_catalog.text, CAST(a AS pg_catalog.int4)",
                "SELECT a::text, CAST(a AS int4)",
            ),
            ("a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default", "a ~ '^(t)$' "),
            ("a operator ( pg_catalog.= ) b", "a = b"),
            ("a COLLATE \"C\" < b", "a  < b"),
            ("a COLLATE \"de_DE\" < b", "a COLLATE \"de_DE\" < b"),
            ("SELECT * FROM pg_catalog.pg_class", "SELECT * FROM pg_catalog.pg_class"),
            ("SELECT operator, \"collate\" FROM t", "SELECT operator, \"collate\" FROM t"),
        ] {
            let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
            let mut tokens = tokens.expect("tokens");
            shorten(&mut tokens);
            let text: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(text.replace("  ", " ").trim(), short.replace("  ", " ").trim(), "{sql}");
        }
    }
}
