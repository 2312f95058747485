//! Splits a text into statements, each with the line on which it begins.
//!
//! A script arrives in pieces, mostly lines. Each piece is tokenized once, whatever came before it: a statement of a
//! million lines costs as much as a million statements of one line.

use datafusion::common::config::Dialect as DialectName;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::{GenericDialect, dialect_from_str};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

use atoll_sql_common::error::{SourcePosition, SqlError, is_unfinished};

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, without the semicolon.
    pub text: String,
    /// The line of the script on which it begins, from 1.
    pub line: u64,
    /// Whether a semicolon ends it.
    pub complete: bool,
}

/// Splits a script at its semicolons, except those in quotes and comments.
///
/// # Errors
/// For text that cannot be tokenized, such as a quote that is never closed.
pub fn split_statements(script: &str) -> Result<Vec<Statement>, SqlError> {
    let mut splitter = Splitter::default();
    let mut statements = splitter.push(script)?;
    statements.extend(splitter.finish()?);
    Ok(statements)
}

/// Splits a script that arrives in pieces, which end at line ends.
#[derive(Default)]
pub struct Splitter {
    /// Determines the dialect of the text; the default one if there is none.
    context: Option<SessionContext>,
    /// Text that no semicolon has ended yet.
    open: String,
    /// How much of it has been tokenized.
    scanned: usize,
    /// The start of the open statement in it, and its line in the script.
    begin: Option<(usize, u64)>,
    /// Lines of the script before `open[scanned..]`.
    lines: u64,
}

impl Splitter {
    /// A splitter that uses the session's dialect at the time the text arrives.
    pub fn for_session(session: &crate::session::Session) -> Self {
        Self { context: Some(session.context.clone()), ..Self::default() }
    }

    /// The statements that end in this piece.
    ///
    /// # Errors
    /// For text that cannot be tokenized; it is dropped. A quote or a comment that is still open waits for its end.
    pub fn push(&mut self, piece: &str) -> Result<Vec<Statement>, SqlError> {
        let is_in_quotes = self.scanned < self.open.len();
        self.open.push_str(piece);
        if is_in_quotes && !may_close(piece) {
            return Ok(Vec::new());
        }
        let (tokens, failed) = self.tokens();
        let (statements, end) = self.cut(&tokens);
        let whole = match &failed {
            Some(_) => end,
            None => self.open.len(),
        };
        self.lines += newlines(&self.open[self.scanned..whole]);
        self.scanned = whole;
        if let Some(error) = failed.filter(|error| !is_unfinished(&error.message)) {
            let error = self.error(&error);
            self.lines += newlines(&self.open[self.scanned..]);
            self.forget();
            return Err(error);
        }
        self.drop_ended();
        Ok(statements)
    }

    /// The last statement, which ends with the script.
    ///
    /// # Errors
    /// For a quote or a comment that is never closed.
    pub fn finish(mut self) -> Result<Option<Statement>, SqlError> {
        if self.scanned < self.open.len()
            && let (_, Some(error)) = self.tokens()
        {
            return Err(self.error(&error));
        }
        let Some((begin, line)) = self.begin.take() else { return Ok(None) };
        let text = self.open[begin..].trim_end().to_owned();
        Ok(Some(Statement { text, line, complete: false }))
    }

    /// Whether the open text is only blanks and closed comments.
    pub fn is_idle(&self) -> bool {
        self.begin.is_none() && self.scanned == self.open.len()
    }

    /// Skips a line that is not SQL; only while idle.
    pub fn skip_line(&mut self) {
        self.forget();
        self.lines += 1;
    }

    /// Skips a line that is not SQL and belongs to the statement before it, even in open text.
    pub fn pass_line(&mut self) {
        self.lines += 1;
    }

    fn forget(&mut self) {
        self.open.clear();
        self.scanned = 0;
        self.begin = None;
    }

    /// The tokens of the unscanned text, up to the first error.
    fn tokens(&self) -> (Vec<TokenWithSpan>, Option<TokenizerError>) {
        let name = self.context.as_ref().map_or(DialectName::Generic, |context| {
            context.state_ref().read().config_options().sql_parser.dialect
        });
        let dialect = dialect_from_str(name).unwrap_or_else(|| Box::new(GenericDialect {}));
        let mut tokens = Vec::new();
        let text = &self.open[self.scanned..];
        let done =
            Tokenizer::new(dialect.as_ref(), text).tokenize_with_location_into_buf(&mut tokens);
        (tokens, done.err())
    }

    /// The statements that the tokens end, and the offset at which the last token ends.
    fn cut(&mut self, tokens: &[TokenWithSpan]) -> (Vec<Statement>, usize) {
        let mut statements = Vec::new();
        let mut cursor =
            OffsetCursor { text: &self.open, offset: self.scanned, line: 1, column: 1 };
        for token in tokens {
            let start = cursor.advance(token.span.start.line, token.span.start.column);
            let line = self.lines + token.span.start.line;
            match token.token {
                Token::SemiColon => {
                    if let Some((begin, line)) = self.begin.take() {
                        let text = self.open[begin..start].trim_end().to_owned();
                        statements.push(Statement { text, line, complete: true });
                    }
                }
                Token::Whitespace(_) | Token::EOF => {}
                _ => self.begin = self.begin.or(Some((start, line))),
            }
        }
        let end = tokens
            .last()
            .map_or(cursor.offset, |last| cursor.advance(last.span.end.line, last.span.end.column));
        (statements, end)
    }

    /// Drops the text of returned statements.
    fn drop_ended(&mut self) {
        let keep = self.begin.map_or(self.scanned, |(begin, _)| begin);
        // The line on which the rest starts stays whole, for the excerpts of errors.
        let keep = self.open[..keep].rfind('\n').map_or(0, |newline| newline + 1);
        self.open.drain(..keep);
        self.scanned -= keep;
        self.begin = self.begin.map(|(begin, line)| (begin - keep, line));
    }

    /// The error with its position counted from the start of the script.
    fn error(&self, error: &TokenizerError) -> SqlError {
        let line_start = self.open[..self.scanned].rfind('\n').map_or(0, |newline| newline + 1);
        let mut place = SourcePosition::from_location(error.location);
        if place.line == 1 {
            place.column += self.open[line_start..self.scanned].chars().count() as u64;
        }
        let mut error = SqlError::syntax(error.message.clone(), place, &self.open[line_start..]);
        if let Some(place) = &mut error.place {
            place.line += self.lines;
        }
        error
    }
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Whether a quote or a comment may end in this piece: one of many lines is not rescanned for each of them.
fn may_close(piece: &str) -> bool {
    piece.contains(['\'', '"', '`', '$', ']']) || piece.contains("*/")
}

/// Converts increasing lines and columns into byte offsets. It never returns to the start of a line, which would be
/// quadratic in the length of a long one.
struct OffsetCursor<'a> {
    text: &'a str,
    offset: usize,
    line: u64,
    column: u64,
}

impl OffsetCursor<'_> {
    /// Byte offset of a line and column, both from 1, the column in characters.
    fn advance(&mut self, line: u64, column: u64) -> usize {
        let mut rest = self.text[self.offset..].chars();
        while (self.line, self.column) < (line, column) {
            match rest.next() {
                Some('\n') => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.offset = self.text.len() - rest.as_str().len();
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(statements: Vec<Statement>) -> Vec<(String, u64)> {
        statements.into_iter().map(|statement| (statement.text, statement.line)).collect()
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let script = "-- one\nSELECT 'é;'; /* ; */ SELECT\n2 ;;\n SELECT \"ü\"\n";
        let expected = [("SELECT 'é;'", 2), ("SELECT\n2", 2), ("SELECT \"ü\"", 4)];
        let expected = expected.map(|(text, line)| (text.to_owned(), line));
        assert_eq!(texts(split_statements(script).unwrap()), expected);
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        for line in script.split_inclusive('\n') {
            found.extend(splitter.push(line).unwrap());
        }
        found.extend(splitter.finish().unwrap());
        assert_eq!(texts(found), expected);
    }

    #[test]
    fn open_text_waits_and_is_kept_in_one_piece() {
        let mut splitter = Splitter::default();
        assert!(splitter.push("SELECT 1; SELECT '\n").unwrap().len() == 1 && !splitter.is_idle());
        assert_eq!(splitter.push(";\n").unwrap(), []);
        let found = splitter.push("', 2; /* \n").unwrap();
        assert_eq!(texts(found), [("SELECT '\n;\n', 2".to_owned(), 1)]);
        assert!(!splitter.is_idle());
        assert!(splitter.push("*/\n").unwrap().is_empty() && splitter.is_idle());
    }

    #[test]
    fn every_kind_of_quote_and_comment_ends_where_it_ends() {
        let quoted =
            ["'a;\nb\n'", "\"a;\nb\n\"", "`a;\nb\n`", "$$a;\nb\n$$", "$x$a;\n$x$", "E'a\n\\';\n'"];
        for quoted in quoted.into_iter().chain(["/* a;\n/* b;\n*/ ;\n*/ 1"]) {
            let mut splitter = Splitter::default();
            let mut found = Vec::new();
            for line in format!("SELECT {quoted}\n; SELECT 2;\n").split_inclusive('\n') {
                found.extend(splitter.push(line).unwrap());
            }
            let expected = [format!("SELECT {quoted}"), "SELECT 2".to_owned()];
            let found: Vec<String> = found.into_iter().map(|statement| statement.text).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn errors_have_the_line_and_the_column_of_the_script() {
        let mut splitter = Splitter::default();
        splitter.push("SELECT 1;\n").unwrap();
        splitter.push("SELECT 2; SELECT 'a\n").unwrap();
        splitter.push("b\n").unwrap();
        let error = splitter.finish().unwrap_err();
        let place = error.place.unwrap();
        assert_eq!((place.line, place.column), (2, 18), "{error}");
        assert!(error.to_string().contains("SELECT 2; SELECT 'a"), "{error}");
    }
}
