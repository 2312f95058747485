//! `CREATE TABLE t (LIKE u INCLUDING ALL)`, which the parser takes for a column.
//!
//! ```text
//! LIKE u                                      "$like" u
//! LIKE u INCLUDING ALL EXCLUDING DEFAULTS     "$like" u(including_all, excluding_defaults)
//! ```
//!
//! The session replaces this column by those of the table.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::unquoted;
use crate::dialect::LIKE;
use crate::syntax::Tokens;

impl Tokens {
    /// LIKE among the columns of a table.
    pub(super) fn like(&mut self, at: usize) {
        let begins = at > 0
            && self.is(at, "LIKE")
            && matches!(self.get(at - 1), Some(Token::LParen | Token::Comma))
            && matches!(self.get(at + 1), Some(Token::Word(_)));
        if !begins || !self.creates_table() {
            return;
        }
        let mut end = at + 2;
        while self.get(end) == Some(&Token::Period) {
            end += 2;
        }
        // A name that is also one of a type is read as a name.
        for part in at + 1..end {
            if let Some(Token::Word(word)) = self.get(part)
                && word.keyword != Keyword::NoKeyword
            {
                let quoted = Token::make_word(&word.value.to_lowercase(), Some('"'));
                self.set(part, quoted);
            }
        }
        self.set(at, Token::make_word(LIKE, Some('"')));
        let (first, mut said) = (end, Vec::new());
        while let (true, Some(what)) =
            (self.is_any(end, &["INCLUDING", "EXCLUDING"]), self.word(end + 1))
        {
            let kind = if self.is(end, "INCLUDING") { "including" } else { "excluding" };
            let comma = if said.is_empty() { Token::LParen } else { Token::Comma };
            said.extend([comma, unquoted(&format!("{kind}_{}", what.value.to_lowercase()))]);
            end += 2;
        }
        if !said.is_empty() {
            said.push(Token::RParen);
            self.replace(first..end, said);
        }
    }

    fn creates_table(&self) -> bool {
        self.is(0, "CREATE") && (1..5).any(|at| self.is(at, "TABLE"))
    }
}
