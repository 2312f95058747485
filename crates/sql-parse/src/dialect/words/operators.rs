//! Operators and numbers in DuckDB's syntax.
//!
//! ```text
//! a GLOB 'b*', a NOT GLOB 'b*'     a ~~~ 'b*', a !~~~ 'b*'     read by `operators`
//! 1_000.5                          1000.5
//! OVER (… EXCLUDE TIES)            OVER (PARTITION BY ('$exclude TIES'), …)   read by the functions
//! ```

use atoll_functions::EXCLUDE;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};

use super::{Words, keyword};

impl Words<'_> {
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
                self.set(at, Token::Whitespace(Whitespace::Space));
            }
            false => self.set(at, operator("~~~")),
        }
    }

    /// EXCLUDE at the end of a frame.
    pub(super) fn exclude(&mut self, at: usize) {
        let is_frame =
            ["PRECEDING", "FOLLOWING", "ROW"].iter().any(|end| at > 0 && self.is(at - 1, end));
        if !is_frame || !self.is(at, "EXCLUDE") {
            return;
        }
        let (words, end) = match () {
            () if self.is(at + 1, "CURRENT") && self.is(at + 2, "ROW") => ("CURRENT ROW", at + 3),
            () if self.is(at + 1, "NO") && self.is(at + 2, "OTHERS") => ("", at + 3),
            () if self.is(at + 1, "GROUP") => ("GROUP", at + 2),
            () if self.is(at + 1, "TIES") => ("TIES", at + 2),
            () => return,
        };
        let Some(open) = self.opening(at).filter(|_| self.get(end) == Some(&Token::RParen)) else {
            return;
        };
        let is_partitioned = self.is(open + 1, "PARTITION");
        let begins = ["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"];
        if !begins.iter().any(|begin| self.is(open + 1, begin)) {
            return;
        }
        self.replace(at, end, vec![]);
        if words.is_empty() {
            return;
        }
        // DataFusion ignores lone constants.
        let mark = Token::SingleQuotedString(format!("{EXCLUDE}{words}"));
        let mark = [Token::LParen, mark, Token::RParen];
        match is_partitioned {
            true => {
                let first = mark.into_iter().chain([Token::Comma]).collect();
                self.replace(open + 3, open + 3, first);
            }
            false => {
                let by = [keyword("PARTITION"), keyword("BY")];
                self.replace(open + 1, open + 1, by.into_iter().chain(mark).collect());
            }
        }
    }

    /// The position of the parenthesis that encloses a position.
    fn opening(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for place in (0..at).rev() {
            match self.get(place)? {
                Token::RParen => depth += 1,
                Token::LParen if depth == 0 => return Some(place),
                Token::LParen => depth -= 1,
                _ => {}
            }
        }
        None
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
