//! Samples and limits in DuckDB's syntax.
//!
//! ```text
//! t TABLESAMPLE 10%                    t TABLESAMPLE (10 PERCENT)
//! t TABLESAMPLE reservoir(20%)         t TABLESAMPLE ROW (20 PERCENT)
//! FROM t USING SAMPLE 5 ROWS           FROM t QUALIFY $sample $rows TABLESAMPLE (5 ROWS)      read by `forms`
//! LIMIT 40%                            LIMIT $percent(40)                                     read by `percent`
//! ```

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{keyword, unquoted};
use crate::dialect::{forms, percent};
use crate::syntax::Tokens;

impl Tokens {
    /// `TABLESAMPLE` and `USING SAMPLE`.
    pub(super) fn sample(&mut self, at: usize) {
        if self.is(at, "TABLESAMPLE") {
            if let Some((sample, end)) = self.sample_of(at + 1) {
                self.replace(at + 1..end, sample);
            }
            return;
        }
        if !self.are(at, &["USING", "SAMPLE"]) {
            return;
        }
        let Some((sample, end)) = self.sample_of(at + 2) else { return };
        let qualify = self.qualify_before(at);
        let mut tokens = match qualify {
            Some(_) => vec![Token::RParen, keyword("AND")],
            None => vec![keyword("QUALIFY")],
        };
        tokens.extend([unquoted(forms::SAMPLE), unquoted("$rows"), keyword("TABLESAMPLE")]);
        tokens.extend(sample);
        self.replace(at..end, tokens);
        if let Some(qualify) = qualify {
            self.insert(qualify + 1, Token::LParen);
        }
    }

    /// The sample that begins at a position, in the parser's syntax, and its end.
    fn sample_of(&self, from: usize) -> Option<(Vec<Token>, usize)> {
        let named = self.method(from);
        let opened = from + usize::from(named.is_some());
        let is_open = self.get(opened) == Some(&Token::LParen);
        if named.is_some() && !is_open {
            return None;
        }
        let (number, mut unit, mut end) = self.size(opened + usize::from(is_open))?;
        let mut method = named;
        let mut seed = None;
        if is_open {
            if self.get(end) != Some(&Token::RParen) {
                return None;
            }
            end += 1;
        } else if self.get(end) == Some(&Token::LParen)
            && let Some(found) = self.method(end + 1)
        {
            method = Some(found);
            end += 2;
            if self.get(end) == Some(&Token::Comma) {
                seed = self.get(end + 1).cloned();
                end += 2;
            }
            if self.get(end) != Some(&Token::RParen) {
                return None;
            }
            end += 1;
        }
        // A lone number counts rows, except in the forms of the SQL standard.
        if unit.is_none() && (!is_open || method == Some("RESERVOIR")) {
            unit = Some("ROWS");
        }
        let method = match (method, unit) {
            (Some("RESERVOIR"), Some("ROWS")) => None,
            (Some("RESERVOIR"), _) => Some("ROW"),
            (method, _) => method,
        };
        let mut tokens: Vec<Token> = method.map(keyword).into_iter().collect();
        tokens.extend([Token::LParen, number]);
        tokens.extend(unit.map(keyword));
        tokens.push(Token::RParen);
        if let Some(seed) = seed {
            tokens.extend([keyword("REPEATABLE"), Token::LParen, seed, Token::RParen]);
        }
        Some((tokens, end))
    }

    fn method(&self, at: usize) -> Option<&'static str> {
        ["BERNOULLI", "SYSTEM", "RESERVOIR"].into_iter().find(|method| self.is(at, method))
    }

    /// A number and its unit.
    fn size(&self, at: usize) -> Option<(Token, Option<&'static str>, usize)> {
        let number @ Token::Number(..) = self.get(at)?.clone() else { return None };
        let (unit, end) = match self.get(at + 1) {
            Some(Token::Mod) => (Some("PERCENT"), at + 2),
            _ if self.is(at + 1, "PERCENT") => (Some("PERCENT"), at + 2),
            _ if self.is_any(at + 1, &["ROWS", "ROW"]) => (Some("ROWS"), at + 2),
            _ => (None, at + 1),
        };
        Some((number, unit, end))
    }

    /// The QUALIFY of the SELECT that ends here.
    fn qualify_before(&self, end: usize) -> Option<usize> {
        let begins = |at: &usize| {
            self.get(*at) == Some(&Token::LParen)
                || self.is_any(*at, &["QUALIFY", "SELECT", "FROM"])
        };
        self.before_parentheses(end).find(begins).filter(|at| self.is(*at, "QUALIFY"))
    }

    /// `LIMIT 40%` and `LIMIT 40 PERCENT`.
    pub(super) fn limit(&mut self, at: usize) {
        if !self.is(at, "LIMIT") {
            return;
        }
        let Some(number @ Token::Number(..)) = self.get(at + 1).cloned() else { return };
        let is_percent = self.is(at + 2, "PERCENT")
            || (self.get(at + 2) == Some(&Token::Mod)
                && matches!(
                    self.get(at + 3),
                    None | Some(Token::EOF | Token::SemiColon | Token::RParen | Token::Word(_))
                ));
        if is_percent {
            let call = [unquoted(percent::CALL), Token::LParen, number, Token::RParen];
            self.replace(at + 1..at + 3, call);
        }
    }
}
