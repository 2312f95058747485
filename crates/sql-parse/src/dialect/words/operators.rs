//! Operators and numbers in DuckDB's syntax.
//!
//! ```text
//! a GLOB 'b*', a NOT GLOB 'b*'     a ~~~ 'b*', a !~~~ 'b*'     read by `operators`
//! 1_000.5                          1000.5
//! OVER (… EXCLUDE TIES)            OVER (PARTITION BY ('$exclude TIES'), …)   read by the functions
//! ```

use atoll_functions::EXCLUDE;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::keyword;
use crate::syntax::Tokens;

impl Tokens {
    /// GLOB between two operands.
    pub(super) fn glob(&mut self, at: usize) {
        if at == 0 || !self.is(at, "GLOB") || !self.begins_pattern(at + 1) {
            return;
        }
        let negated = self.is(at - 1, "NOT");
        let Some(operand) = (at - 1).checked_sub(usize::from(negated)) else { return };
        if !self.ends_operand(operand) {
            return;
        }
        let operator = |name: &str| Token::CustomBinaryOperator(name.to_owned());
        match negated {
            true => {
                self.set(at - 1, operator("!~~~"));
                self.remove(at..at + 1);
            }
            false => self.set(at, operator("~~~")),
        }
    }

    /// EXCLUDE at the end of a frame.
    pub(super) fn exclude(&mut self, at: usize) {
        let is_frame = at > 0 && self.is_any(at - 1, &["PRECEDING", "FOLLOWING", "ROW"]);
        if !is_frame || !self.is(at, "EXCLUDE") {
            return;
        }
        let (words, end) = match () {
            () if self.are(at + 1, &["CURRENT", "ROW"]) => ("CURRENT ROW", at + 3),
            () if self.are(at + 1, &["NO", "OTHERS"]) => ("", at + 3),
            () if self.is(at + 1, "GROUP") => ("GROUP", at + 2),
            () if self.is(at + 1, "TIES") => ("TIES", at + 2),
            () => return,
        };
        let Some(open) = self.opening(at).filter(|_| self.get(end) == Some(&Token::RParen)) else {
            return;
        };
        let is_partitioned = self.is(open + 1, "PARTITION");
        if !self.is_any(open + 1, &["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"]) {
            return;
        }
        self.remove(at..end);
        if words.is_empty() {
            return;
        }
        // DataFusion ignores lone constants.
        let mark = Token::SingleQuotedString(format!("{EXCLUDE}{words}"));
        let mark = [Token::LParen, mark, Token::RParen];
        match is_partitioned {
            true => {
                self.replace(open + 3..open + 3, mark.into_iter().chain([Token::Comma]));
            }
            false => {
                let by = [keyword("PARTITION"), keyword("BY")];
                self.replace(open + 1..open + 1, by.into_iter().chain(mark));
            }
        }
    }

    fn begins_pattern(&self, at: usize) -> bool {
        match self.get(at) {
            Some(Token::SingleQuotedString(_) | Token::Placeholder(_)) => true,
            Some(Token::Word(word)) => word.keyword == Keyword::NoKeyword,
            _ => false,
        }
    }

    fn ends_operand(&self, at: usize) -> bool {
        match self.get(at) {
            Some(Token::Word(word)) => !matches!(
                word.keyword,
                Keyword::SELECT
                    | Keyword::DISTINCT
                    | Keyword::FROM
                    | Keyword::JOIN
                    | Keyword::WHERE
                    | Keyword::AND
                    | Keyword::OR
                    | Keyword::NOT
                    | Keyword::ON
                    | Keyword::HAVING
                    | Keyword::WHEN
                    | Keyword::THEN
                    | Keyword::ELSE
                    | Keyword::BY
                    | Keyword::AS
                    | Keyword::TABLE
            ),
            Some(Token::SingleQuotedString(_) | Token::RParen | Token::RBracket) => true,
            _ => false,
        }
    }

    /// Underscores between the digits of a number.
    pub(super) fn number(&mut self, at: usize) {
        if let Some(Token::Number(digits, long)) = self.get(at)
            && digits.contains('_')
        {
            let number = Token::Number(digits.replace('_', ""), *long);
            self.set(at, number);
        }
    }
}
