//! Rewrites forms of PostgreSQL and of standard SQL that the parser lacks as those that it has.
//!
//! ```text
//! CREATE UNLOGGED TABLE t …            CREATE TABLE t …: there is one kind of table
//! DROP INDEX CONCURRENTLY i            DROP INDEX i: it takes no time
//! WITH r AS [NOT] MATERIALIZED (…)     WITH r AS (…)
//! trim(both from x)                    trim(both ' ' from x)
//! COMMENT ON TABLE t IS $t$…$t$        COMMENT ON TABLE t IS '…'
//! ALTER VIEW v RENAME TO w             ALTER TABLE v RENAME TO w
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
    let first = next(tokens, 0);
    let is_comment = first.is_some_and(|first| is_keyword(tokens, first, Keyword::COMMENT));
    for at in 0..tokens.len() {
        match &mut tokens[at].token {
            Token::NationalStringLiteral(text) => {
                tokens[at].token = Token::SingleQuotedString(std::mem::take(text));
            }
            Token::DollarQuotedString(text) if is_comment => {
                tokens[at].token = Token::SingleQuotedString(std::mem::take(&mut text.value));
            }
            Token::Word(word) => match (word.keyword, word.quote_style) {
                (Keyword::UNLOGGED, None) => unlogged(tokens, at),
                (Keyword::FETCH, None) => fetch(tokens, at),
                (Keyword::CONCURRENTLY, None) => concurrently(tokens, at),
                (Keyword::MATERIALIZED, None) => materialized(tokens, at),
                (Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING, None) => trim(tokens, at),
                (Keyword::RENAME, None) => renamed_view(tokens),
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

fn concurrently(tokens: &mut [TokenWithSpan], at: usize) {
    let first = next(tokens, 0);
    let drops = first.is_some_and(|first| is_keyword(tokens, first, Keyword::DROP));
    if drops && follows(tokens, at, Keyword::INDEX) {
        blank(tokens, at);
    }
}

/// Queries in WITH are planned where they are read, and volatile ones are computed once, in either case.
fn materialized(tokens: &mut [TokenWithSpan], at: usize) {
    let opens = next(tokens, at + 1).is_some_and(|at| tokens[at].token == Token::LParen);
    let not = tokens[..at].iter().rposition(|token| !is_blank(&token.token));
    let not = not.filter(|not| is_keyword(tokens, *not, Keyword::NOT));
    if opens && follows(tokens, not.unwrap_or(at), Keyword::AS) {
        blank(tokens, at);
        not.into_iter().for_each(|not| blank(tokens, not));
    }
}

/// The characters that are trimmed by default.
fn trim(tokens: &mut [TokenWithSpan], at: usize) {
    let is_from = next(tokens, at + 1).is_some_and(|from| is_keyword(tokens, from, Keyword::FROM));
    let open = tokens[..at].iter().rposition(|token| !is_blank(&token.token));
    let open = open.filter(|open| tokens[*open].token == Token::LParen);
    if is_from && open.is_some_and(|open| follows(tokens, open, Keyword::TRIM)) {
        // A blank comes after a word.
        tokens[at + 1].token = Token::SingleQuotedString(" ".to_owned());
    }
}

fn renamed_view(tokens: &mut [TokenWithSpan]) {
    let alter = next(tokens, 0).filter(|at| is_keyword(tokens, *at, Keyword::ALTER));
    let view = alter.and_then(|alter| next(tokens, alter + 1));
    if let Some(view) = view.filter(|at| is_keyword(tokens, *at, Keyword::VIEW)) {
        tokens[view].token = Token::make_keyword("TABLE");
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
            ("DROP INDEX CONCURRENTLY i", "DROP INDEX i"),
            ("CREATE INDEX CONCURRENTLY i", "CREATE INDEX CONCURRENTLY i"),
            ("WITH a AS MATERIALIZED (x), b AS NOT MATERIALIZED (y)", "WITH a AS (x), b AS (y)"),
            ("SELECT a AS materialized FROM t", "SELECT a AS materialized FROM t"),
            (
                "trim(both from x) || trim(leading 'a' from y)",
                "trim(both' 'from x) || trim(leading 'a' from y)",
            ),
            ("COMMENT ON TABLE t IS $t$it's$t$", "COMMENT ON TABLE t IS 'it's'"),
            ("SELECT $t$it's$t$", "SELECT $t$it's$t$"),
            ("ALTER VIEW v RENAME TO w", "ALTER TABLE v RENAME TO w"),
            ("a::\"int4\", CAST(a AS \"text\")", "a::int4, CAST(a AS text)"),
            ("SELECT \"text\" AS \"Text\"", "SELECT \"text\" AS \"Text\""),
        ] {
            assert_eq!(rewritten(sql).expect("rewritten"), wanted, "{sql}");
        }
        assert!(rewritten("a INT UNIQUE NULLS NOT DISTINCT").is_err());
    }
}
