//! Columns named `key` or `index`, with which the parser begins constraints of MySQL, and types in quotes and
//! of arrays.
//!
//! ```text
//! CREATE TABLE t (key INT, …)      CREATE TABLE t ("key" INT, …)
//! ALTER TABLE t ADD key INT        ALTER TABLE t ADD "key" INT
//! x::"regtype"                     x::regtype
//! x::_int4                         x::int4[]
//! a INTEGER ARRAY                  a INTEGER[]
//! INTERVAL(3) '1.5 s'              '1.5 s'::INTERVAL(3)
//! ```

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{keyword, quoted};
use crate::syntax::Tokens;
use atoll_sql_common::pg_type::type_named;

impl Tokens {
    /// Quotes the name of a declared column that is one of these words.
    pub(super) fn declared_column(&mut self, at: usize) {
        if !self.is_any(at, &["KEY", "INDEX", "FULLTEXT", "SPATIAL"]) {
            return;
        }
        let is_name = self.word(at + 1).is_some()
            || matches!(self.get(at + 1), Some(Token::Comma | Token::RParen));
        let before = at.checked_sub(1).and_then(|before| self.get(before));
        let is_declared = match before {
            Some(Token::LParen | Token::Comma) => self.is_in_created_table(at),
            _ => {
                self.are(0, &["ALTER", "TABLE"])
                    && ["ADD", "COLUMN", "EXISTS"].iter().any(|word| self.follows(at, word))
            }
        };
        if is_name && is_declared {
            let name = self.word(at).map(|word| word.value.to_lowercase()).unwrap_or_default();
            self.set(at, quoted(&name));
        }
    }

    /// Takes the quotes off the name of a built-in type; `"char"` is another type than `char`. An array by its name in
    /// `pg_type` becomes one of its items.
    pub(super) fn quoted_type(&mut self, at: usize) {
        if self.get(at) != Some(&Token::DoubleColon) {
            return;
        }
        let item = self.word(at + 1).and_then(|word| word.value.strip_prefix('_'));
        if let Some(item) = item.filter(|item| type_named(item).is_some()) {
            let item = keyword(item);
            self.replace(at + 1..at + 2, [item, Token::LBracket, Token::RBracket]);
            return;
        }
        let Some(word) = self.word(at + 1).filter(|word| word.quote_style == Some('"')) else {
            return;
        };
        if word.value != "char" && type_named(&word.value).is_some() {
            let name = keyword(&word.value);
            self.set(at + 1, name);
        }
    }

    /// Writes a literal with digits of seconds as a cast, since the parser drops the digits.
    pub(super) fn interval_digits(&mut self, at: usize) {
        let is_literal = self.is(at, "INTERVAL")
            && self.get(at + 1) == Some(&Token::LParen)
            && matches!(self.get(at + 2), Some(Token::Number(..)))
            && self.get(at + 3) == Some(&Token::RParen)
            && matches!(self.get(at + 4), Some(Token::SingleQuotedString(_)));
        if is_literal {
            self.swap(at, at + 4, at + 5);
            self.insert(at + 1, Token::DoubleColon);
        }
    }

    /// Writes the standard's arrays with brackets.
    pub(super) fn array_type(&mut self, at: usize) {
        if !self.is(at, "ARRAY") || !at.checked_sub(1).is_some_and(|last| self.ends_type(last)) {
            return;
        }
        match self.get(at + 1) {
            Some(Token::LBracket) => self.remove(at..at + 1),
            _ => self.replace(at..at + 1, [Token::LBracket, Token::RBracket]),
        }
    }

    /// Whether a type ends here, with or without digits: `varchar(10)`.
    fn ends_type(&self, last: usize) -> bool {
        let last = match self.get(last) {
            Some(Token::RParen) => match self.opening(last).and_then(|open| open.checked_sub(1)) {
                Some(name) => name,
                None => return false,
            },
            _ => last,
        };
        let is_type = |name: &str| type_named(name).is_some();
        self.word(last).is_some_and(|word| is_type(&word.value))
            || self.is_any(last, &["VARYING", "PRECISION", "ZONE"])
    }

    /// Whether a position is in the outermost parentheses of CREATE TABLE.
    fn is_in_created_table(&self, at: usize) -> bool {
        self.is(0, "CREATE")
            && (1..5).any(|word| self.is(word, "TABLE"))
            && self.opening(at).is_some_and(|open| self.opening(open).is_none())
    }
}
