//! Row locks in PostgreSQL's syntax.
//!
//! ```text
//! FOR NO KEY UPDATE                FOR UPDATE
//! FOR KEY SHARE                    FOR SHARE
//! FOR UPDATE SKIP LOCKED LIMIT 1   LIMIT 1 FOR UPDATE SKIP LOCKED
//! ```
//!
//! The two weaker kinds lock as the next stronger ones: others may wait unnecessarily, but see nothing that
//! they should not.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::keyword;
use crate::syntax::Tokens;

/// The clauses that may come after locks.
const LIMITS: [&str; 3] = ["LIMIT", "OFFSET", "FETCH"];

impl Tokens {
    /// The lock clause that begins here.
    pub(super) fn locks(&mut self, at: usize) {
        if !self.is(at, "FOR") {
            return;
        }
        if self.are(at + 1, &["NO", "KEY", "UPDATE"]) {
            self.replace(at + 1..at + 4, [keyword("UPDATE")]);
        } else if self.are(at + 1, &["KEY", "SHARE"]) {
            self.replace(at + 1..at + 3, [keyword("SHARE")]);
        }
        if let Some(end) = self.locks_end(at)
            && let Some(limit_end) = self.limit_end(end)
        {
            self.swap(at, end, limit_end);
        }
    }

    /// The end of a lock clause.
    fn locks_end(&self, at: usize) -> Option<usize> {
        if !self.is_any(at + 1, &["UPDATE", "SHARE"]) {
            return None;
        }
        let mut end = at + 2;
        if self.is(end, "OF") {
            end += 1;
            while matches!(self.get(end), Some(Token::Word(_) | Token::Period | Token::Comma))
                && !self.is_any(end, &LIMITS)
                && !self.is_any(end, &["NOWAIT", "SKIP", "FOR"])
            {
                end += 1;
            }
        }
        if self.is(end, "NOWAIT") {
            end += 1;
        } else if self.are(end, &["SKIP", "LOCKED"]) {
            end += 2;
        }
        Some(end)
    }

    /// The end of LIMIT, OFFSET and FETCH that begin here.
    fn limit_end(&self, from: usize) -> Option<usize> {
        let ends = |at: &usize| {
            matches!(self.get(*at), Some(Token::RParen | Token::SemiColon | Token::EOF))
                || self.is(*at, "FOR")
        };
        let end = || self.outside_parentheses(from).find(ends).unwrap_or(self.len());
        self.is_any(from, &LIMITS).then(end)
    }
}
