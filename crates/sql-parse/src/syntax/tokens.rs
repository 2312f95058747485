//! The tokens of a statement, which are rewritten before the parser reads them.

use std::ops::Range;

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{
    Location, Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word,
};

use super::statement_parser::is_word;

/// The tokens of a statement, at positions that do not count blanks.
///
/// They keep their places in the text, so that errors point into it.
pub(crate) struct Tokens {
    tokens: Vec<TokenWithSpan>,
    /// The indices of those that are not blanks.
    places: Vec<usize>,
}

impl Tokens {
    pub(crate) fn of(sql: &str, dialect: &dyn Dialect) -> Result<Self, ParserError> {
        let tokens = Tokenizer::new(dialect, sql).tokenize_with_location()?;
        let all = tokens.iter().enumerate();
        let others = all.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
        let places = others.map(|(at, _)| at).collect();
        Ok(Self { tokens, places })
    }

    /// The tokens with their blanks.
    pub(crate) fn into_tokens(self) -> Vec<TokenWithSpan> {
        self.tokens
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Token> {
        self.places.get(at).map(|place| &self.tokens[*place].token)
    }

    pub(crate) fn word(&self, at: usize) -> Option<&Word> {
        match self.get(at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether the token here is this word.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.get(at).is_some_and(|token| is_word(token, word))
    }

    pub(crate) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Whether the tokens from here on are these words.
    pub(crate) fn are(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(nth, word)| self.is(at + nth, word))
    }

    /// Whether the token before this one is this word.
    pub(crate) fn follows(&self, at: usize, word: &str) -> bool {
        at > 0 && self.is(at - 1, word)
    }

    /// Whether no blank is before the token.
    pub(crate) fn touches(&self, at: usize) -> bool {
        at > 0 && at < self.len() && self.places[at - 1] + 1 == self.places[at]
    }

    /// The position in the text.
    pub(crate) fn location(&self, at: usize) -> Location {
        self.places.get(at).map_or_else(Location::empty, |place| self.tokens[*place].span.start)
    }

    /// The matching closing parenthesis.
    pub(crate) fn closing(&self, open: usize) -> Option<usize> {
        self.outside_parentheses(open + 1).find(|at| self.get(*at) == Some(&Token::RParen))
    }

    /// The opening parenthesis of those around a position.
    pub(crate) fn opening(&self, at: usize) -> Option<usize> {
        self.before_parentheses(at).find(|at| self.get(*at) == Some(&Token::LParen))
    }

    /// The positions from one on that no parentheses enclose which open after it. The closing parenthesis of those
    /// around it is among them.
    pub(crate) fn outside_parentheses(&self, from: usize) -> impl Iterator<Item = usize> {
        self.outside(from..self.len(), [Token::LParen, Token::RParen])
    }

    /// The same positions before one, the last one first.
    pub(crate) fn before_parentheses(&self, end: usize) -> impl Iterator<Item = usize> {
        self.outside((0..end).rev(), [Token::RParen, Token::LParen])
    }

    fn outside(
        &self,
        positions: impl Iterator<Item = usize>,
        [enters, leaves]: [Token; 2],
    ) -> impl Iterator<Item = usize> {
        let mut depth = 0_i64;
        positions.filter(move |at| {
            let (token, before) = (self.get(*at), depth);
            depth += i64::from(token == Some(&enters)) - i64::from(token == Some(&leaves));
            before <= 0 && depth <= 0
        })
    }

    pub(crate) fn set(&mut self, at: usize, token: Token) {
        let place = self.places[at];
        self.tokens[place].token = token;
    }

    /// Makes tokens blanks.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        for place in self.places.drain(range) {
            self.tokens[place].token = Token::Whitespace(Whitespace::Space);
        }
    }

    /// Inserts a token before another one, whose place in the text it shares.
    pub(crate) fn insert(&mut self, at: usize, token: Token) {
        let place = self.places.get(at).copied().unwrap_or(self.tokens.len());
        let next = self.tokens.get(place).or(self.tokens.last());
        let span = next.map_or_else(Span::empty, |next| next.span);
        self.tokens.insert(place, TokenWithSpan { token, span });
        self.places.insert(at, place);
        for later in &mut self.places[at + 1..] {
            *later += 1;
        }
    }

    /// Replaces tokens by others.
    pub(crate) fn replace(&mut self, range: Range<usize>, tokens: impl IntoIterator<Item = Token>) {
        let mut at = range.start;
        for token in tokens {
            match at < range.end {
                true => self.set(at, token),
                false => self.insert(at, token),
            }
            at += 1;
        }
        self.remove(at..range.end.max(at));
    }

    /// Swaps the tokens `from..middle` and `middle..end`.
    pub(crate) fn swap(&mut self, from: usize, middle: usize, end: usize) {
        let of = |at: usize| self.tokens[self.places[at]].clone();
        let moved: Vec<TokenWithSpan> = (middle..end).chain(from..middle).map(of).collect();
        for (place, token) in self.places[from..end].iter().zip(moved) {
            self.tokens[*place] = token;
        }
    }
}

#[cfg(test)]
impl std::fmt::Display for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.tokens.iter().map(|token| token.token.to_string()).collect();
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn positions_do_not_count_blanks_and_parentheses() {
        let mut tokens = Tokens::of("a ( b (c) ) d , /* x */ e )", &GenericDialect {}).unwrap();
        assert!(tokens.is(7, "D") && tokens.are(7, &["d"]) && tokens.follows(3, "b"));
        assert!(tokens.touches(4) && !tokens.touches(0) && !tokens.touches(3));
        assert_eq!((tokens.closing(1), tokens.closing(3)), (Some(6), Some(5)));
        assert_eq!((tokens.opening(4), tokens.opening(8)), (Some(3), None));
        let outside: Vec<usize> = tokens.outside_parentheses(0).collect();
        assert_eq!(outside, [0, 7, 8, 9, 10]);
        tokens.swap(7, 8, 10);
        tokens.replace(0..1, [Token::Mul, Token::Plus]);
        tokens.replace(3..8, []);
        tokens.insert(tokens.len(), Token::Minus);
        assert_eq!(tokens.to_string(), "* +( , e /* x */ d )-");
    }
}
