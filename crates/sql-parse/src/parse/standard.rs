//! Rewrites forms of PostgreSQL and of standard SQL that the parser lacks as those that it has.
//!
//! ```text
//! CREATE UNLOGGED TABLE t …            CREATE TABLE t …: there is one kind of table
//! DROP INDEX CONCURRENTLY i            DROP INDEX i: it takes no time
//! WITH r AS [NOT] MATERIALIZED (…)     WITH r AS (…)
//! trim(both from x)                    trim(both ' ' from x)
//! COMMENT ON TABLE t IS $t$…$t$        COMMENT ON TABLE t IS '…'
//! ALTER VIEW v RENAME TO w             ALTER TABLE v RENAME TO w
//! SELECT, SELECT WHERE a > 1           SELECT FROM (SELECT 1) AS "row" …: without columns
//! FETCH FIRST (1 + 1) ROWS ONLY        LIMIT (1 + 1)
//! EXPLAIN (FORMAT JSON) SELECT 1       EXPLAIN (FORMAT pgjson) SELECT 1, with ANALYZE too: see `explain_analyzes`
//! UNIQUE NULLS DISTINCT                UNIQUE
//! a INT UNIQUE NULLS NOT DISTINCT      a INT UNIQUE COMMENT '$nulls_not_distinct', which the session reads
//! N'x', x::"int4", CAST(x AS "int4")   'x', x::int4, CAST(x AS int4)
//! ```

use atoll_functions::RangeForm;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::dialect::NULLS_NOT_DISTINCT;
use crate::syntax::{Tokens, parser_of, within_parentheses};

/// PostgreSQL's own names of types, which its tools write in quotes.
const TYPES: [&str; 24] = [
    "bool",
    "bytea",
    "cidr",
    "date",
    "float4",
    "float8",
    "inet",
    "int2",
    "int4",
    "int8",
    "interval",
    "json",
    "jsonb",
    "macaddr",
    "name",
    "numeric",
    "oid",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "uuid",
    "varchar",
];

/// Rewrites the tokens of a statement, the last one first, so that removals do not move those that follow.
pub(super) fn rewrite(tokens: &mut Tokens) {
    let is_comment = tokens.is(0, "COMMENT");
    for at in (0..tokens.len()).rev() {
        match tokens.get(at) {
            Some(Token::NationalStringLiteral(text)) => {
                let text = Token::SingleQuotedString(text.clone());
                tokens.set(at, text);
            }
            Some(Token::DollarQuotedString(text)) if is_comment => {
                let text = Token::SingleQuotedString(text.value.clone());
                tokens.set(at, text);
            }
            Some(Token::Word(word)) => match (word.keyword, word.quote_style) {
                (Keyword::UNLOGGED, None) => unlogged(tokens, at),
                (Keyword::FETCH, None) => fetch(tokens, at),
                (Keyword::SELECT, None) => without_columns(tokens, at),
                (Keyword::CONCURRENTLY, None) => concurrently(tokens, at),
                (Keyword::MATERIALIZED, None) => materialized(tokens, at),
                (Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING, None) => trim(tokens, at),
                (Keyword::RENAME, None) => altered_as_table(tokens, &["VIEW"]),
                (Keyword::OWNER, None) if tokens.is(at + 1, "TO") => {
                    altered_as_table(tokens, &["VIEW", "SEQUENCE", "TYPE", "DOMAIN"]);
                }
                (Keyword::ONLY, None) => only(tokens, at),
                (Keyword::NULLS, None) => nulls(tokens, at),
                (Keyword::FORMAT, None) => explained(tokens, at),
                (_, Some('"')) => type_name(tokens, at),
                _ => {}
            },
            _ => {}
        }
    }
}

/// A SELECT without a list and without FROM, which the parser knows only with FROM.
fn without_columns(tokens: &mut Tokens, at: usize) {
    const CLAUSES: [&str; 8] =
        ["WHERE", "UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "OFFSET", "FETCH"];
    let is_end = match tokens.get(at + 1) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        _ => tokens.is_any(at + 1, &CLAUSES),
    };
    if !is_end || tokens.get(at.wrapping_sub(1)) == Some(&Token::Period) {
        return;
    }
    let word = |name| Token::make_keyword(name);
    let from = [
        word("FROM"),
        Token::LParen,
        word("SELECT"),
        Token::Number("1".to_owned(), false),
        Token::RParen,
        word("AS"),
        Token::make_word("row", Some('"')),
    ];
    for (place, token) in from.into_iter().enumerate() {
        tokens.insert(at + 1 + place, token);
    }
}

fn unlogged(tokens: &mut Tokens, at: usize) {
    if tokens.is(at + 1, "TABLE") && tokens.follows(at, "CREATE") {
        tokens.remove(at..at + 1);
    }
}

fn concurrently(tokens: &mut Tokens, at: usize) {
    if tokens.is(0, "DROP") && tokens.follows(at, "INDEX") {
        tokens.remove(at..at + 1);
    }
}

/// Queries in WITH are planned where they are read, and volatile ones are computed once, in either case.
fn materialized(tokens: &mut Tokens, at: usize) {
    let start = if tokens.follows(at, "NOT") { at - 1 } else { at };
    if tokens.get(at + 1) == Some(&Token::LParen) && tokens.follows(start, "AS") {
        tokens.remove(start..at + 1);
    }
}

/// The characters that are trimmed by default.
fn trim(tokens: &mut Tokens, at: usize) {
    let opens = at > 1 && tokens.get(at - 1) == Some(&Token::LParen);
    if opens && tokens.is(at - 2, "TRIM") && tokens.is(at + 1, "FROM") {
        tokens.insert(at + 1, Token::SingleQuotedString(" ".to_owned()));
    }
}

/// `FROM ONLY t`: no table inherits from another.
fn only(tokens: &mut Tokens, at: usize) {
    let is_name = |word: &Word| word.quote_style.is_some() || word.keyword == Keyword::NoKeyword;
    let is_qualified = tokens.get(at + 2) == Some(&Token::Period);
    let is_table = tokens.word(at + 1).is_some_and(|word| is_qualified || is_name(word));
    if is_table && tokens.follows(at, "FROM") {
        tokens.remove(at..at + 1);
    }
}

/// Makes ALTER of these kinds of objects an ALTER TABLE.
fn altered_as_table(tokens: &mut Tokens, kinds: &[&str]) {
    if tokens.is(0, "ALTER") && tokens.is_any(1, kinds) {
        tokens.set(1, Token::make_keyword("TABLE"));
    }
}

/// A count in parentheses, which expressions need.
fn fetch(tokens: &mut Tokens, at: usize) {
    let begins =
        tokens.is_any(at + 1, &["FIRST", "NEXT"]) && tokens.get(at + 2) == Some(&Token::LParen);
    let Some(close) = tokens.closing(at + 2).filter(|_| begins) else { return };
    if tokens.is_any(close + 1, &["ROW", "ROWS"]) && tokens.is(close + 2, "ONLY") {
        tokens.remove(close + 1..close + 3);
        tokens.replace(at..at + 2, [Token::make_keyword("LIMIT")]);
        return;
    }
    // With ties the count is a number or a parameter, which may be cast to an integer.
    let is_integer = tokens.is_any(at + 5, &["INT", "INTEGER", "BIGINT", "INT4", "INT8"]);
    let is_cast = close == at + 6 && tokens.get(at + 4) == Some(&Token::DoubleColon) && is_integer;
    let is_value = match tokens.get(at + 3) {
        Some(Token::Number(digits, _)) => digits.bytes().all(|digit| digit.is_ascii_digit()),
        other => matches!(other, Some(Token::Placeholder(_))),
    };
    if is_value && (is_cast || close == at + 4) {
        tokens.remove(at + 4..close + 1);
        tokens.remove(at + 2..at + 3);
    }
}

/// A format among the options of EXPLAIN, which shows the same with the others; JSON, which ANALYZE adds to, is read
/// without it.
fn explained(tokens: &mut Tokens, at: usize) {
    let has_options = tokens.is(0, "EXPLAIN") && tokens.get(1) == Some(&Token::LParen);
    if !tokens.closing(1).is_some_and(|end| has_options && at + 1 < end) {
        return;
    }
    let is_json = tokens.is(at + 1, "JSON");
    if is_json {
        tokens.set(at + 1, Token::make_word("pgjson", None));
    }
    remove_option(tokens, "VERBOSE");
    if is_json {
        OPTIONS_OF_RUNS.iter().for_each(|name| remove_option(tokens, name));
    }
}

/// The options of EXPLAIN about a run of the statement, and the costs, which are not in JSON.
const OPTIONS_OF_RUNS: [&str; 7] =
    ["ANALYZE", "BUFFERS", "COSTS", "SETTINGS", "SUMMARY", "TIMING", "WAL"];

/// Removes an option of EXPLAIN with its value, if there is another.
fn remove_option(tokens: &mut Tokens, name: &str) {
    let Some(end) = tokens.closing(1) else { return };
    let is_comma = |at: usize| tokens.get(at) == Some(&Token::Comma);
    let Some(at) = (2..end).find(|at| tokens.is(*at, name)) else { return };
    let next = (at..end).find(|at| is_comma(*at));
    match (next, is_comma(at - 1)) {
        (Some(next), _) => tokens.remove(at..next + 1),
        (None, true) => tokens.remove(at - 1..end),
        (None, false) => {}
    }
}

/// Whether a statement is EXPLAIN with the option ANALYZE in parentheses.
pub fn explain_analyzes(sql: &str) -> bool {
    let Some(mut parser) = parser_of(sql, &["explain"]) else { return false };
    parser.advance_token();
    let options = within_parentheses(&mut parser, sql).unwrap_or_default();
    options.split(',').any(|option| {
        let mut words = option.split_ascii_whitespace();
        words.next().is_some_and(|name| name.eq_ignore_ascii_case("analyze"))
            && words.next().is_none_or(|value| {
                !["false", "off", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
            })
    })
}

fn nulls(tokens: &mut Tokens, at: usize) {
    if !tokens.follows(at, "UNIQUE") {
        return;
    }
    if tokens.is(at + 1, "DISTINCT") {
        tokens.remove(at..at + 2);
    }
    // The parser reads it in constraints of tables.
    let is_of_column = tokens.get(at + 3) != Some(&Token::LParen);
    if tokens.is(at + 1, "NOT") && tokens.is(at + 2, "DISTINCT") && is_of_column {
        let mark = Token::SingleQuotedString(NULLS_NOT_DISTINCT.to_owned());
        tokens.replace(at..at + 3, [Token::make_keyword("COMMENT"), mark]);
    }
}

fn type_name(tokens: &mut Tokens, at: usize) {
    let is_type =
        tokens.follows(at, "AS") || (at > 0 && tokens.get(at - 1) == Some(&Token::DoubleColon));
    // For an alias like that the quotes change nothing.
    if let Some(word) = tokens.word(at).filter(|_| is_type)
        && (TYPES.contains(&word.value.as_str()) || RangeForm::named(&word.value).is_some())
    {
        let name = Token::make_word(&word.value, None);
        tokens.set(at, name);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    fn rewritten(sql: &str) -> String {
        let mut tokens = Tokens::of(sql, &GenericDialect {}).expect("tokens");
        rewrite(&mut tokens);
        tokens.to_string()
    }

    #[test]
    fn forms_that_the_parser_lacks_are_rewritten() {
        for (sql, wanted) in [
            ("CREATE UNLOGGED TABLE t (a INT)", "CREATE TABLE t (a INT)"),
            ("SELECT unlogged FROM t", "SELECT unlogged FROM t"),
            ("FETCH FIRST (f(1) + 1) ROWS ONLY", "LIMIT (f(1) + 1)"),
            ("OFFSET 1 FETCH NEXT (2) ROW ONLY", "OFFSET 1 LIMIT (2)"),
            ("FETCH FIRST 2 ROWS ONLY", "FETCH FIRST 2 ROWS ONLY"),
            ("FETCH FIRST (2) ROWS WITH TIES", "FETCH FIRST 2 ROWS WITH TIES"),
            ("FETCH FIRST ($1::INT) ROWS WITH TIES", "FETCH FIRST $1 ROWS WITH TIES"),
            ("FETCH FIRST (2::TEXT) ROWS WITH TIES", "FETCH FIRST (2::TEXT) ROWS WITH TIES"),
            ("FETCH FIRST (2.7::INT) ROWS WITH TIES", "FETCH FIRST (2.7::INT) ROWS WITH TIES"),
            ("FETCH FIRST (", "FETCH FIRST ("),
            ("EXPLAIN (COSTS off, FORMAT json) x", "EXPLAIN ( FORMAT pgjson) x"),
            ("EXPLAIN (VERBOSE) SELECT format json", "EXPLAIN (VERBOSE) SELECT format json"),
            ("EXPLAIN (VERBOSE, FORMAT JSON) x", "EXPLAIN ( FORMAT pgjson) x"),
            ("EXPLAIN (FORMAT TREE, VERBOSE) x", "EXPLAIN (FORMAT TREE ) x"),
            ("EXPLAIN (ANALYZE, FORMAT JSON) x", "EXPLAIN ( FORMAT pgjson) x"),
            ("EXPLAIN (FORMAT JSON, ANALYZE on, TIMING off) x", "EXPLAIN (FORMAT pgjson ) x"),
            ("SELECT", "SELECTFROM(SELECT1)AS\"row\""),
            ("EXPLAIN (ANALYZE, FORMAT TREE) x", "EXPLAIN (ANALYZE, FORMAT TREE) x"),
            ("a INT UNIQUE NULLS DISTINCT", "a INT UNIQUE"),
            (
                "a INT UNIQUE NULLS NOT DISTINCT, UNIQUE NULLS NOT DISTINCT (a, b)",
                "a INT UNIQUE COMMENT '$nulls_not_distinct' , UNIQUE NULLS NOT DISTINCT (a, b)",
            ),
            ("ORDER BY a NULLS FIRST", "ORDER BY a NULLS FIRST"),
            ("N'x' || 'y'", "'x' || 'y'"),
            ("DROP INDEX CONCURRENTLY i", "DROP INDEX i"),
            ("CREATE INDEX CONCURRENTLY i", "CREATE INDEX CONCURRENTLY i"),
            ("WITH a AS MATERIALIZED (x), b AS NOT MATERIALIZED (y)", "WITH a AS (x), b AS (y)"),
            ("SELECT a AS materialized FROM t", "SELECT a AS materialized FROM t"),
            (
                "trim(both from x) || trim(leading 'a' from y)",
                "trim(both ' 'from x) || trim(leading 'a' from y)",
            ),
            ("COMMENT ON TABLE t IS $t$it's$t$", "COMMENT ON TABLE t IS 'it's'"),
            ("SELECT $t$it's$t$", "SELECT $t$it's$t$"),
            ("ALTER VIEW v RENAME TO w", "ALTER TABLE v RENAME TO w"),
            ("SELECT a FROM ONLY s.\"T\"", "SELECT a FROM s.\"T\""),
            ("SELECT a FROM only WHERE true", "SELECT a FROM only WHERE true"),
            ("ALTER VIEW v OWNER TO ann", "ALTER TABLE v OWNER TO ann"),
            ("ALTER SEQUENCE s OWNER TO ann", "ALTER TABLE s OWNER TO ann"),
            ("ALTER DOMAIN d OWNER TO ann", "ALTER TABLE d OWNER TO ann"),
            ("ALTER SEQUENCE s RENAME TO t", "ALTER SEQUENCE s RENAME TO t"),
            ("a::\"int4\", CAST(a AS \"text\")", "a::int4, CAST(a AS text)"),
            ("a::\"int4range\"", "a::int4range"),
            ("SELECT \"text\" AS \"Text\"", "SELECT \"text\" AS \"Text\""),
        ] {
            assert_eq!(rewritten(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn analyze_is_an_option_of_explain() {
        for (sql, wanted) in [
            ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1", true),
            ("explain (format json, analyze on) SELECT 1", true),
            ("EXPLAIN (ANALYZE false, FORMAT JSON) SELECT 1", false),
            ("EXPLAIN (FORMAT JSON) SELECT 'analyze'", false),
            ("EXPLAIN SELECT (analyze) FROM t", false),
        ] {
            assert_eq!(explain_analyzes(sql), wanted, "{sql}");
        }
    }
}
