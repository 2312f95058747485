//! Rewrites forms of PostgreSQL and of standard SQL that the parser lacks as those that it has.
//!
//! ```text
//! CREATE UNLOGGED TABLE t …            CREATE TABLE t …: there is one kind of table
//! FETCH FIRST (1 + 1) ROWS ONLY        LIMIT (1 + 1)
//! EXPLAIN (FORMAT JSON) SELECT 1       EXPLAIN (FORMAT pgjson) SELECT 1
//! UNIQUE NULLS DISTINCT                UNIQUE; with NOT it is refused
//! N'x', x::"int4", CAST(x AS "int4")   'x', x::int4, CAST(x AS int4)
//! ```

use datafusion::common::Result;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::postgres::{is_blank, is_keyword, next};
use atoll_sql_common::error::SqlState;

/// PostgreSQL's own names of types, which its tools write in quotes.
const TYPES: [&str; 20] = [
    "bool",
    "bytea",
    "date",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "interval",
    "json",
    "jsonb",
    "name",
    "numeric",
    "oid",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "varchar",
];

/// Rewrites the tokens of a statement.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) -> Result<()> {
    for at in 0..tokens.len() {
        match &mut tokens[at].token {
            Token::NationalStringLiteral(text) => {
                tokens[at].token = Token::SingleQuotedString(std::mem::take(text));
            }
            Token::Word(word) => match (word.keyword, word.quote_style) {
                (Keyword::UNLOGGED, None) => unlogged(tokens, at),
                (Keyword::FETCH, None) => fetch(tokens, at),
                (Keyword::NULLS, None) => nulls(tokens, at)?,
                (Keyword::FORMAT, None) => explained(tokens, at),
                (_, Some('"')) => type_name(tokens, at),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

fn unlogged(tokens: &mut [TokenWithSpan], at: usize) {
    let is_table = next(tokens, at + 1).is_some_and(|at| is_keyword(tokens, at, Keyword::TABLE));
    if is_table && follows(tokens, at, Keyword::CREATE) {
        blank(tokens, at);
    }
}

/// A count in parentheses, which expressions need.
fn fetch(tokens: &mut [TokenWithSpan], at: usize) {
    let Some((first, open)) = next(tokens, at + 1).and_then(|first| {
        let is_first =
            [Keyword::FIRST, Keyword::NEXT].iter().any(|it| is_keyword(tokens, first, *it));
        let open = next(tokens, first + 1).filter(|open| tokens[*open].token == Token::LParen)?;
        is_first.then_some((first, open))
    }) else {
        return;
    };
    let Some((rows, only)) = end_of(tokens, open).and_then(|close| {
        let rows = next(tokens, close + 1)?;
        let only = next(tokens, rows + 1)?;
        let is_rows = [Keyword::ROW, Keyword::ROWS].iter().any(|it| is_keyword(tokens, rows, *it));
        (is_rows && is_keyword(tokens, only, Keyword::ONLY)).then_some((rows, only))
    }) else {
        return;
    };
    tokens[at].token = Token::make_keyword("LIMIT");
    [first, rows, only].into_iter().for_each(|at| blank(tokens, at));
}

/// The closing parenthesis.
fn end_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut behind = tokens.iter().enumerate().skip(open);
    let close = behind.find(|(_, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    close.map(|(at, _)| at)
}

/// A format among the options of EXPLAIN.
fn explained(tokens: &mut [TokenWithSpan], at: usize) {
    let options = next(tokens, 0)
        .filter(|first| is_keyword(tokens, *first, Keyword::EXPLAIN))
        .and_then(|first| next(tokens, first + 1))
        .filter(|open| tokens[*open].token == Token::LParen);
    let end = options.and_then(|open| end_of(tokens, open));
    let format = next(tokens, at + 1).filter(|format| end.is_some_and(|end| *format < end));
    if let Some(format) = format
        && is_keyword(tokens, format, Keyword::JSON)
    {
        tokens[format].token = Token::make_word("pgjson", None);
    }
}

fn nulls(tokens: &mut [TokenWithSpan], at: usize) -> Result<()> {
    if !follows(tokens, at, Keyword::UNIQUE) {
        return Ok(());
    }
    let Some(then) = next(tokens, at + 1) else { return Ok(()) };
    if is_keyword(tokens, then, Keyword::NOT) {
        return Err(SqlState::FEATURE_NOT_SUPPORTED.error(
            "UNIQUE NULLS NOT DISTINCT is not supported; declare the columns NOT NULL, with a value for absence",
        ));
    }
    if is_keyword(tokens, then, Keyword::DISTINCT) {
        blank(tokens, at);
        blank(tokens, then);
    }
    Ok(())
}

fn type_name(tokens: &mut [TokenWithSpan], at: usize) {
    let before = tokens[..at].iter().rposition(|token| !is_blank(&token.token));
    let is_type = before.is_some_and(|before| {
        tokens[before].token == Token::DoubleColon || is_keyword(tokens, before, Keyword::AS)
    });
    let Token::Word(word) = &tokens[at].token else { return };
    // For an alias like that the quotes change nothing.
    if is_type && TYPES.contains(&word.value.as_str()) {
        tokens[at].token = Token::make_word(&word.value, None);
    }
}

fn follows(tokens: &[TokenWithSpan], at: usize, keyword: Keyword) -> bool {
    let before = tokens[..at].iter().rposition(|token| !is_blank(&token.token));
    before.is_some_and(|before| is_keyword(tokens, before, keyword))
}

fn blank(tokens: &mut [TokenWithSpan], at: usize) {
    tokens[at].token = Token::Whitespace(Whitespace::Space);
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn rewritten(sql: &str) -> Result<String> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        let mut tokens = tokens.expect("tokens");
        rewrite(&mut tokens)?;
        let text: String = tokens.iter().map(|token| token.token.to_string()).collect();
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn forms_that_the_parser_lacks_are_rewritten() {
        for (sql, wanted) in [
            ("CREATE UNLOGGED TABLE t (a INT)", "CREATE TABLE t (a INT)"),
            ("SELECT unlogged FROM t", "SELECT unlogged FROM t"),
            ("FETCH FIRST (f(1) + 1) ROWS ONLY", "LIMIT (f(1) + 1)"),
            ("OFFSET 1 FETCH NEXT (2) ROW ONLY", "OFFSET 1 LIMIT (2)"),
            ("FETCH FIRST 2 ROWS ONLY", "FETCH FIRST 2 ROWS ONLY"),
            ("FETCH FIRST (2) ROWS WITH TIES", "FETCH FIRST (2) ROWS WITH TIES"),
            ("FETCH FIRST (", "FETCH FIRST ("),
            ("EXPLAIN (COSTS off, FORMAT json) x", "EXPLAIN (COSTS off, FORMAT pgjson) x"),
            ("EXPLAIN (VERBOSE) SELECT format json", "EXPLAIN (VERBOSE) SELECT format json"),
            ("a INT UNIQUE NULLS DISTINCT", "a INT UNIQUE"),
            ("ORDER BY a NULLS FIRST", "ORDER BY a NULLS FIRST"),
            ("N'x' || 'y'", "'x' || 'y'"),
            ("a::\"int4\", CAST(a AS \"text\")", "a::int4, CAST(a AS text)"),
            ("SELECT \"text\" AS \"Text\"", "SELECT \"text\" AS \"Text\""),
        ] {
            assert_eq!(rewritten(sql).expect("rewritten"), wanted, "{sql}");
        }
        assert!(rewritten("a INT UNIQUE NULLS NOT DISTINCT").is_err());
    }
}
