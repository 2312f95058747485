//! The clauses of MERGE that the parser does not read.
//!
//! ```text
//! WHEN MATCHED THEN DO NOTHING                  UPDATE SET "$do_nothing" = 0
//! WHEN NOT MATCHED THEN DO NOTHING              INSERT ("$do_nothing") VALUES (0)
//! INSERT DEFAULT VALUES                         INSERT ("$default_values") VALUES (0)
//! INSERT (a) OVERRIDING USER VALUE VALUES (1)   INSERT (a) VALUES (1) WHERE "$overriding_user"
//! ```
//!
//! The session takes the names out of the syntax tree.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{keyword, quoted};
use crate::dialect::{DEFAULT_VALUES, DO_NOTHING};
use crate::syntax::Tokens;

impl Tokens {
    /// Rewrites the action of a WHEN clause.
    pub(super) fn merge_action(&mut self, at: usize) {
        if at == 0 || !self.is(at - 1, "THEN") {
            return;
        }
        if self.is(at, "DO") && self.is(at + 1, "NOTHING") {
            match self.is_matched(at) {
                Some(true) => {
                    let zero = Token::Number("0".to_owned(), false);
                    let update = [keyword("UPDATE"), keyword("SET"), quoted(DO_NOTHING), Token::Eq];
                    self.replace(at..at + 2, update.into_iter().chain([zero]));
                }
                Some(false) => self.replace(at..at + 2, insert_of(DO_NOTHING)),
                None => {}
            }
        } else if self.is(at, "INSERT") && self.is(at + 1, "DEFAULT") && self.is(at + 2, "VALUES") {
            self.replace(at..at + 3, insert_of(DEFAULT_VALUES));
        } else if self.is(at, "INSERT") {
            self.merge_overriding(at + 1);
        }
    }

    /// Whether the WHEN clause around an action is WHEN MATCHED; `None` outside of MERGE.
    fn is_matched(&self, at: usize) -> Option<bool> {
        let mut depth = 0_i32;
        let outside_case = (1..at).rev().filter(|before| {
            depth += i32::from(self.is(*before, "END")) - i32::from(self.is(*before, "CASE"));
            depth <= 0
        });
        outside_case.filter(|before| self.is(*before, "MATCHED")).find_map(|before| {
            if self.is(before - 1, "WHEN") {
                return Some(true);
            }
            (before > 1 && self.is(before - 1, "NOT") && self.is(before - 2, "WHEN"))
                .then_some(false)
        })
    }

    /// Moves OVERRIDING after the values; `at` is the place after INSERT.
    fn merge_overriding(&mut self, at: usize) {
        let list = (self.get(at) == Some(&Token::LParen)).then(|| self.closing(at)).flatten();
        let clause = list.map_or(at, |end| end + 1);
        let Some(name) = self.overriding_kind(clause) else { return };
        if !self.is(clause + 3, "VALUES") {
            return;
        }
        let Some(end) = self.closing(clause + 4) else { return };
        self.replace(end..end + 1, vec![Token::RParen, keyword("WHERE"), quoted(name)]);
        self.remove(clause..clause + 3);
    }
}

fn insert_of(column: &str) -> Vec<Token> {
    let value = [Token::LParen, Token::Number("0".to_owned(), false), Token::RParen];
    let columns = [keyword("INSERT"), Token::LParen, quoted(column), Token::RParen];
    columns.into_iter().chain([keyword("VALUES")]).chain(value).collect()
}
