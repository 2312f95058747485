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

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Words, keyword};

impl Words<'_> {
    /// The lock clause that begins here.
    pub(super) fn locks(&mut self, at: usize) {
        if !self.is(at, "FOR") {
            return;
        }
        if self.is(at + 1, "NO") && self.is(at + 2, "KEY") && self.is(at + 3, "UPDATE") {
            self.replace(at + 1, at + 4, vec![keyword("UPDATE")]);
        } else if self.is(at + 1, "KEY") && self.is(at + 2, "SHARE") {
            self.replace(at + 1, at + 3, vec![keyword("SHARE")]);
        }
        if let Some(end) = self.locks_end(at)
            && let Some(limit_end) = self.limit_end(end)
        {
            self.swap(at, end, limit_end);
        }
    }

    /// The end of a lock clause.
    fn locks_end(&self, at: usize) -> Option<usize> {
        if !(self.is(at + 1, "UPDATE") || self.is(at + 1, "SHARE")) {
            return None;
        }
        let mut end = at + 2;
        if self.is(end, "OF") {
            end += 1;
            while matches!(self.get(end), Some(Token::Word(_) | Token::Period | Token::Comma))
                && !self.begins_limit(end)
                && !["NOWAIT", "SKIP", "FOR"].iter().any(|word| self.is(end, word))
            {
                end += 1;
            }
        }
        if self.is(end, "NOWAIT") {
            end += 1;
        } else if self.is(end, "SKIP") && self.is(end + 1, "LOCKED") {
            end += 2;
        }
        Some(end)
    }

    fn begins_limit(&self, at: usize) -> bool {
        ["LIMIT", "OFFSET", "FETCH"].iter().any(|word| self.is(at, word))
    }

    /// The end of LIMIT, OFFSET and FETCH that begin here.
    fn limit_end(&self, from: usize) -> Option<usize> {
        if !self.begins_limit(from) {
            return None;
        }
        let mut depth = 0_usize;
        for at in from..self.places.len() {
            match self.get(at)? {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return Some(at),
                Token::RParen => depth -= 1,
                Token::SemiColon | Token::EOF if depth == 0 => return Some(at),
                _ if depth == 0 && self.is(at, "FOR") => return Some(at),
                _ => {}
            }
        }
        Some(self.places.len())
    }

    /// Swaps the tokens `from..middle` and `middle..end`.
    fn swap(&mut self, from: usize, middle: usize, end: usize) {
        let of = |at: usize| self.tokens[self.places[at]].clone();
        let moved: Vec<TokenWithSpan> = (middle..end).chain(from..middle).map(of).collect();
        for (at, token) in (from..end).zip(moved) {
            let place = self.places[at];
            self.tokens[place] = token;
        }
    }
}
