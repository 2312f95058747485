//! A cursor over a synthetic description, which reports what was expected at its position.

use super::SyntheticError;

/// A text and the current position.
pub(super) struct TextCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TextCursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The remaining text.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Offset in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Whether this character is next.
    pub(super) fn is_next(&self, character: char) -> bool {
        self.rest().starts_with(character)
    }

    pub(super) fn is_next_digit(&self) -> bool {
        self.rest().starts_with(|character: char| character.is_ascii_digit())
    }

    /// Goes back to an earlier offset.
    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Skips whitespace; returns whether there was any.
    pub(super) fn blanks(&mut self) -> bool {
        !self.take_while(char::is_whitespace).is_empty()
    }

    /// Reads characters while they match.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !fits(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Reads the character if it is next.
    pub(super) fn take(&mut self, character: char) -> bool {
        let found = self.rest().starts_with(character);
        self.at += if found { character.len_utf8() } else { 0 };
        found
    }

    /// An error at the current position.
    pub(super) fn error(&self, expected: impl Into<String>) -> SyntheticError {
        self.error_at(self.at, expected)
    }

    /// An error at an earlier offset.
    pub(super) fn error_at(&self, at: usize, expected: impl Into<String>) -> SyntheticError {
        SyntheticError {
            text: self.text.chars().take(200).collect(),
            position: self.text[..at].chars().count() + 1,
            expected: expected.into(),
            found: found(&self.text[at..]),
        }
    }
}

/// The first word, or the first character where no word begins.
fn found(rest: &str) -> String {
    let Some(first) = rest.chars().next() else { return "the end".to_owned() };
    let is_word = |character: char| character.is_alphanumeric() || "-+._".contains(character);
    let word: String = rest.chars().take_while(|&character| is_word(character)).take(40).collect();
    if word.is_empty() { format!("'{first}'") } else { format!("'{word}'") }
}
