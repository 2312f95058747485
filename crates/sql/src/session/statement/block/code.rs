//! The tokens of PL/pgSQL, and what is read from them one by one.

use datafusion::common::Result;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use super::tree::Target;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{is_word, offset};

/// The tokens of the code, and how many were read.
pub(super) struct Code<'a> {
    code: &'a str,
    pub(super) tokens: Vec<TokenWithSpan>,
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl<'a> Code<'a> {
    /// The tokens of a code.
    ///
    /// # Errors
    /// For a code that has none.
    pub(super) fn new(code: &'a str) -> Result<Self> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, code).tokenize_with_location();
        let mut tokens = tokens.map_err(|error| SqlState::SYNTAX_ERROR.error(error.to_string()))?;
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        Ok(Self { code, tokens: with_ranges(tokens), at: 0, depth: 0 })
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| is_word(token, word))
    }

    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        match self.take(word) {
            true => Ok(()),
            false => self.unexpected(&word.to_uppercase()),
        }
    }

    pub(super) fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = self.peek().map_or("the end".to_owned(), |token| format!("'{token}'"));
        let message = format!("PL/pgSQL: expected {wanted}, found {found}");
        Err(SqlState::SYNTAX_ERROR.error(message))
    }

    pub(super) fn pass_semicolon(&mut self) {
        self.at += usize::from(self.peek() == Some(&Token::SemiColon));
    }

    pub(super) fn semicolon(&mut self) -> Result<()> {
        match self.peek() {
            Some(Token::SemiColon) => {
                self.at += 1;
                Ok(())
            }
            _ => self.unexpected("';'"),
        }
    }

    /// `<<label>>`
    pub(super) fn label(&mut self) -> Result<Option<String>> {
        let opens = |token: Option<&Token>| matches!(token, Some(Token::ShiftLeft));
        if !opens(self.peek()) {
            return Ok(None);
        }
        self.at += 1;
        let name = self.name()?;
        if self.peek() != Some(&Token::ShiftRight) {
            return self.unexpected("'>>'");
        }
        self.at += 1;
        Ok(Some(name))
    }

    pub(super) fn name(&mut self) -> Result<String> {
        let Some(Token::Word(word)) = self.peek() else { return self.unexpected("a name") };
        let name = match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        };
        self.at += 1;
        Ok(name)
    }

    /// A name with fields.
    pub(super) fn target(&mut self) -> Result<Target> {
        let mut parts = vec![self.name()?];
        while self.passes(&Token::Period) {
            parts.push(self.name()?);
        }
        Ok(parts)
    }

    pub(super) fn targets(&mut self) -> Result<Vec<Target>> {
        let mut targets = vec![self.target()?];
        while self.passes(&Token::Comma) {
            targets.push(self.target()?);
        }
        Ok(targets)
    }

    pub(super) fn passes(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    /// The label after an END.
    pub(super) fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if !matches!(self.peek(), Some(Token::Word(_))) {
            return Ok(());
        }
        let found = self.name()?;
        match label == Some(found.as_str()) {
            true => Ok(()),
            false => {
                let message = format!("end label \"{found}\" differs from the block's label");
                Err(SqlState::SYNTAX_ERROR.error(message))
            }
        }
    }

    /// The text from here to a semicolon, or to one of these words outside of parentheses and CASE.
    pub(super) fn text_before(&mut self, ends: &[&str]) -> Result<String> {
        let first = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            let is_end = |end: &&str| match *end {
                ".." => self.is_range(),
                end => is_word(token, end) || token.to_string() == end,
            };
            if *token == Token::SemiColon || depth == 0 && ends.iter().any(is_end) {
                break;
            }
            match token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                token if is_word(token, "case") => depth += 1,
                token if is_word(token, "end") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        match self.text(first, self.at) {
            Some(text) => Ok(text),
            None => self.unexpected("an expression or a statement, and ';'"),
        }
    }

    /// The text of these tokens, if there are any, and others after them.
    pub(super) fn text(&self, first: usize, end: usize) -> Option<String> {
        let place = |location: Location| offset(self.code, location);
        let (from, to) = (self.tokens.get(first)?, self.tokens.get(end)?);
        if first >= end {
            return None;
        }
        let (from, to) = (place(from.span.start)?, place(to.span.start)?);
        self.code.get(from..to).map(|text| text.trim_end().to_owned())
    }
}

/// `1..n`, which the tokenizer reads as `1.` and `.`, and `1..2`, which it reads as `1.` and `.2`, with the points apart.
fn with_ranges(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut split: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let TokenWithSpan { token, span } = token;
        let last = split.last_mut().filter(|last| last.span.end == span.start);
        let follows_point = match last {
            Some(last) => {
                let number = match &last.token {
                    Token::Number(digits, _) => digits.strip_suffix('.').map(str::to_owned),
                    _ => None,
                };
                let is_point = last.token == Token::Period;
                let begins = match &token {
                    Token::Period => true,
                    Token::Number(digits, _) => digits.starts_with('.'),
                    _ => false,
                };
                if let (Some(digits), true) = (number, begins) {
                    let end = last.span.end;
                    let middle = Location::new(end.line, end.column.saturating_sub(1));
                    last.token = Token::Number(digits, false);
                    last.span.end = middle;
                    let span = Span::new(middle, end);
                    split.push(TokenWithSpan { token: Token::Period, span });
                    true
                } else {
                    is_point
                }
            }
            None => false,
        };
        match &token {
            Token::Number(digits, is_long) if follows_point && digits.starts_with('.') => {
                let middle = Location::new(span.start.line, span.start.column + 1);
                let point = Span::new(span.start, middle);
                split.push(TokenWithSpan { token: Token::Period, span: point });
                let token = Token::Number(digits[1..].to_owned(), *is_long);
                split.push(TokenWithSpan { token, span: Span::new(middle, span.end) });
            }
            _ => split.push(TokenWithSpan { token, span }),
        }
    }
    split
}
