//! Assignments of elements of arrays, which the parser does not read.
//!
//! ```text
//! UPDATE t SET a[2] = 5           UPDATE t SET a = array_assigned(a, 2, 5)
//! UPDATE t SET a[1][2] = 5        UPDATE t SET a = array_assigned(a, 1, array_assigned(a[1], 2, 5))
//! ```

use datafusion::sql::sqlparser::tokenizer::Token;

use super::keyword;
use crate::syntax::Tokens;

impl Tokens {
    /// Rewrites the assignment of an element whose first bracket is here.
    pub(super) fn element_assignment(&mut self, at: usize) {
        if self.get(at) != Some(&Token::LBracket) || at < 2 || !self.is_assigned(at - 1) {
            return;
        }
        let name = self.copied(at - 1..at);
        let (mut subscripts, mut next) = (Vec::new(), at);
        while self.get(next) == Some(&Token::LBracket) {
            let Some(close) = self.closing_bracket(next) else { return };
            subscripts.push(self.copied(next + 1..close));
            next = close + 1;
        }
        let is_slice = subscripts.iter().flatten().any(|token| *token == Token::Colon);
        if is_slice || self.get(next) != Some(&Token::Eq) {
            return;
        }
        let end = self.end_of_value(next + 1);
        (0..subscripts.len()).for_each(|_| self.insert(end, Token::RParen));
        let (mut calls, mut array) = (vec![Token::Eq], name);
        for subscript in subscripts {
            calls.extend([keyword("array_assigned"), Token::LParen]);
            calls.extend(array.iter().cloned().chain([Token::Comma]));
            calls.extend(subscript.iter().cloned().chain([Token::Comma]));
            array.extend([Token::LBracket].into_iter().chain(subscript).chain([Token::RBracket]));
        }
        self.replace(at..next + 1, calls);
    }

    /// Whether the name here is assigned to: it follows SET, or a comma in the list of SET.
    fn is_assigned(&self, at: usize) -> bool {
        let is_change = self.is_any(0, &["UPDATE", "WITH", "INSERT", "EXPLAIN", "PREPARE"]);
        if !is_change || self.word(at).is_none() {
            return false;
        }
        let is_listed = self.get(at - 1) == Some(&Token::Comma);
        let clause = self.before_parentheses(at).find(|before| {
            self.is_any(*before, &["SET", "SELECT", "WHERE", "FROM", "RETURNING", "VALUES", "BY"])
        });
        (is_listed || self.follows(at, "SET")) && clause.is_some_and(|at| self.is(at, "SET"))
    }

    /// The matching closing bracket.
    fn closing_bracket(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        (open..self.len()).find(|at| {
            match self.get(*at) {
                Some(Token::LBracket) => depth += 1,
                Some(Token::RBracket) => depth -= 1,
                _ => {}
            }
            depth == 0
        })
    }

    /// The position behind a value that is assigned.
    fn end_of_value(&self, from: usize) -> usize {
        let mut brackets = 0_usize;
        let mut outside = self.outside_parentheses(from);
        let end = outside.find(|at| match self.get(*at) {
            Some(Token::LBracket) => {
                brackets += 1;
                false
            }
            Some(Token::RBracket) => {
                brackets = brackets.saturating_sub(1);
                false
            }
            Some(Token::Comma) => brackets == 0,
            Some(Token::SemiColon | Token::RParen) => true,
            // `IS DISTINCT FROM` is an operator.
            _ => {
                self.is_any(*at, &["WHERE", "RETURNING"])
                    || self.is(*at, "FROM") && !self.follows(*at, "DISTINCT")
            }
        });
        end.unwrap_or(self.len())
    }

    fn copied(&self, range: std::ops::Range<usize>) -> Vec<Token> {
        range.filter_map(|at| self.get(at).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use crate::dialect::words::read;
    use crate::syntax::Tokens;

    fn rewritten(sql: &str) -> String {
        let mut tokens = Tokens::of(sql, &GenericDialect {}).expect(sql);
        read(&mut tokens, true).expect(sql);
        tokens.to_string().replace(' ', "")
    }

    #[test]
    fn elements_are_assigned_by_a_function() {
        for (sql, expected) in [
            ("UPDATE t SET a[2] = 5", "UPDATE t SET a = array_assigned(a, 2, 5)"),
            (
                "UPDATE t SET b = [1, 2], a[i + 1] = b[1] WHERE c[1] = 2",
                "UPDATE t SET b = [1, 2], a = array_assigned(a, i + 1, b[1]) WHERE c[1] = 2",
            ),
            (
                "UPDATE t SET a[1][2] = f(x, 1), c = 1 RETURNING a[1] = 2",
                "UPDATE t SET a = array_assigned(a, 1, array_assigned(a[1], 2, f(x, 1))), c = 1 \
                 RETURNING a[1] = 2",
            ),
        ] {
            assert_eq!(rewritten(sql), expected.replace(' ', ""));
        }
        for same in [
            "SELECT b, a[1] = 2",
            "UPDATE t SET b = (SELECT x, a[1] = 2 FROM u)",
            "UPDATE t SET a[1:2] = b",
        ] {
            assert_eq!(rewritten(same), same.replace(' ', ""));
        }
    }
}
