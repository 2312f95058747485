//! Shortens the qualified names of PostgreSQL's catalog and operators that its clients write.
//!
//! ```text
//! pg_catalog.version(), x::pg_catalog.text      version(), x::text
//! PREPARE q(pg_catalog.oid) AS …                PREPARE q(oid) AS …
//! a OPERATOR(pg_catalog.~) b                    a ~ b
//! a COLLATE pg_catalog.default, a COLLATE "C"   a: texts are compared by their bytes
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::syntax::Tokens;

/// Shortens all of them.
pub(super) fn shorten(tokens: &mut Tokens) {
    let is_wanted =
        |at: &usize| is_catalog(tokens, *at) || tokens.is_any(*at, &["OPERATOR", "COLLATE"]);
    let Some(first) = (0..tokens.len()).find(is_wanted) else { return };
    let mut at = first;
    while at < tokens.len() {
        let shortened = names(tokens, at) || operator(tokens, at) || collation(tokens, at);
        if !shortened {
            at += 1;
        }
    }
}

/// Whether one of the schemas of the catalog and a period are here.
fn is_catalog(tokens: &Tokens, at: usize) -> bool {
    let is_name = |word: &Word| {
        ["pg_catalog", "information_schema"].iter().any(|it| word.value.eq_ignore_ascii_case(it))
    };
    tokens.word(at).is_some_and(is_name) && tokens.get(at + 1) == Some(&Token::Period)
}

/// The name of a function that is called, or of a type.
fn names(tokens: &mut Tokens, at: usize) -> bool {
    // A blank comes before the columns of a new table.
    let is_call = || tokens.get(at + 3) == Some(&Token::LParen) && tokens.touches(at + 3);
    let is_type = || {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        match before {
            Some(Token::DoubleColon) => true,
            Some(Token::LParen | Token::Comma) => is_parameter(tokens, at),
            _ => tokens.follows(at, "AS"),
        }
    };
    let is_shortened =
        is_catalog(tokens, at) && tokens.word(at + 2).is_some() && (is_call() || is_type());
    if is_shortened {
        tokens.remove(at..at + 2);
    }
    is_shortened
}

/// Whether the type of a prepared statement's parameter follows.
fn is_parameter(tokens: &Tokens, at: usize) -> bool {
    tokens.is(0, "PREPARE") && !(0..at).any(|before| tokens.is(before, "AS"))
}

/// `OPERATOR(pg_catalog.~)`
fn operator(tokens: &mut Tokens, at: usize) -> bool {
    if !tokens.is(at, "OPERATOR") || tokens.get(at + 1) != Some(&Token::LParen) {
        return false;
    }
    let Some(close) = tokens.closing(at + 1) else { return false };
    let is_qualified = close > at + 3 && tokens.get(at + 3) == Some(&Token::Period);
    tokens.remove(close..close + 1);
    tokens.remove(at..at + if is_qualified { 4 } else { 2 });
    true
}

/// The existing collations.
fn collation(tokens: &mut Tokens, at: usize) -> bool {
    if !tokens.is(at, "COLLATE") {
        return false;
    }
    let name = at + if is_catalog(tokens, at + 1) { 3 } else { 1 };
    let is_ours = |word: &Word| {
        let ours = ["default", "C", "POSIX", "ucs_basic"];
        ours.iter().any(|it| word.value.eq_ignore_ascii_case(it))
    };
    let is_ours = tokens.word(name).is_some_and(is_ours);
    if is_ours {
        tokens.remove(at..name + 1);
    }
    is_ours
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    #[test]
    fn names_and_operators_are_shortened() {
        for (sql, short) in [
            ("SELECT pg_catalog.version()", "SELECT version()"),
            (
                "PREPARE q(pg_catalog.oid, pg_catalog.text) AS SELECT $1",
                "PREPARE q( oid, text) AS SELECT $1",
            ),
            (
                "SELECT a::pg_catalog.text, CAST(a AS pg_catalog.int4)",
                "SELECT a:: text, CAST(a AS int4)",
            ),
            ("a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default", "a ~ '^(t)$'"),
            ("a operator ( pg_catalog.= ) b", "a = b"),
            ("OPERATOR().", "."),
            ("a COLLATE \"C\" < b", "a < b"),
            ("a COLLATE \"de_DE\" < b", "a COLLATE \"de_DE\" < b"),
            ("x :: pg_catalog . text", "x :: text"),
            ("INSERT INTO pg_catalog.t (a)", "INSERT INTO pg_catalog.t (a)"),
            ("SELECT * FROM pg_catalog.pg_class", "SELECT * FROM pg_catalog.pg_class"),
            ("SELECT operator, \"collate\" FROM t", "SELECT operator, \"collate\" FROM t"),
        ] {
            let mut tokens = Tokens::of(sql, &GenericDialect {}).expect("tokens");
            shorten(&mut tokens);
            assert_eq!(tokens.to_string(), short, "{sql}");
        }
    }
}
