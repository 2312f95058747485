//! Parses statements about cursors.

use atoll_sql::begins_with;
use atoll_sql::datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::wire::ErrorFields;

/// A statement about cursors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CursorStatement {
    /// DECLARE. The query begins at this byte of the statement. A cursor WITH HOLD outlives its transaction.
    Declare { name: String, query: usize, holds: bool },
    /// FETCH or MOVE: returns or skips the next rows; all if there is no count.
    Fetch { name: String, count: Option<usize>, moves: bool },
    /// CLOSE of one cursor, or of all.
    Close { name: Option<String> },
}

impl CursorStatement {
    /// Parses a text; None for any other statement.
    pub(super) fn parse(sql: &str) -> Result<Option<Self>, ErrorFields> {
        if !begins_with(sql, &["declare", "fetch", "move", "close"]) {
            return Ok(None);
        }
        let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location() else {
            return Ok(None);
        };
        let is_blank =
            |it: &TokenWithSpan| matches!(it.token, Token::Whitespace(_) | Token::SemiColon);
        let tokens = tokens.into_iter().filter(|token| !is_blank(token)).collect();
        let mut words = CursorWords { tokens, at: 0 };
        let statement = match words.word().as_str() {
            "declare" => words.declare(sql)?,
            "fetch" => words.fetch(false)?,
            "move" => words.fetch(true)?,
            _ => words.close()?,
        };
        Ok(Some(statement))
    }
}

/// A statement's tokens, and how many of them have been read.
struct CursorWords {
    tokens: Vec<TokenWithSpan>,
    at: usize,
}

impl CursorWords {
    /// `name [INSENSITIVE] [NO SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`
    fn declare(&mut self, sql: &str) -> Result<CursorStatement, ErrorFields> {
        let name = self.name()?;
        loop {
            match self.word().as_str() {
                "insensitive" | "asensitive" => {}
                "no" if self.take("scroll") => {}
                "cursor" => break,
                "scroll" => return Err(unsupported("SCROLL", "omit it")),
                "binary" => return Err(unsupported("BINARY", "omit it")),
                _ => return Err(self.unexpected("CURSOR")),
            }
        }
        let holds = match self.word().as_str() {
            "for" => false,
            "without" if self.take("hold") && self.take("for") => false,
            "with" if self.take("hold") && self.take("for") => true,
            _ => return Err(self.unexpected("FOR")),
        };
        let Some(first) = self.tokens.get(self.at) else { return Err(self.unexpected("a query")) };
        let query = byte_of(sql, first.span.start);
        if begins_with(&sql[query..], &["insert", "update", "delete", "merge"]) {
            return Err(self.unexpected("a query"));
        }
        Ok(CursorStatement::Declare { name, query, holds })
    }

    /// `[NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] name`
    fn fetch(&mut self, moves: bool) -> Result<CursorStatement, ErrorFields> {
        let is_named = self.take("next");
        let forward = self.take("forward");
        let count = match self.tokens.get(self.at).map(|it| &it.token) {
            _ if is_named => Some(1),
            Some(Token::Number(number, _)) => {
                let count = number.parse().map_err(|_| self.unexpected("a count of rows"))?;
                self.at += 1;
                Some(count)
            }
            Some(Token::Word(word)) if is(word, "all") => {
                self.at += 1;
                None
            }
            Some(Token::Minus) => return Err(backward()),
            Some(Token::Word(word)) if !forward && BACKWARD.iter().any(|it| is(word, it)) => {
                return Err(backward());
            }
            _ => Some(1),
        };
        let _ = self.take("from") || self.take("in");
        let name = self.name()?;
        self.end()?;
        Ok(CursorStatement::Fetch { name, count, moves })
    }

    /// `name | ALL`
    fn close(&mut self) -> Result<CursorStatement, ErrorFields> {
        let name = if self.take("all") { None } else { Some(self.name()?) };
        self.end()?;
        Ok(CursorStatement::Close { name })
    }

    /// Reads the next token, and returns it in lower case if it is a word, or else an empty text.
    fn word(&mut self) -> String {
        self.at += 1;
        match self.tokens.get(self.at - 1).map(|it| &it.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => String::new(),
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        let token = self.tokens.get(self.at).map(|it| &it.token);
        let is_it = matches!(token, Some(Token::Word(word)) if is(word, wanted));
        self.at += usize::from(is_it);
        is_it
    }

    fn name(&mut self) -> Result<String, ErrorFields> {
        let name = match self.tokens.get(self.at).map(|it| &it.token) {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => {
                self.at += 1;
                return Err(self.unexpected("the name of a cursor"));
            }
        };
        self.at += 1;
        Ok(name)
    }

    fn end(&mut self) -> Result<(), ErrorFields> {
        self.at += 1;
        match self.tokens.get(self.at - 1) {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the statement")),
        }
    }

    /// The error for the token that was read last.
    fn unexpected(&self, wanted: &str) -> ErrorFields {
        let found = self.tokens.get(self.at - 1).map(|it| it.token.to_string());
        let found = found.unwrap_or_else(|| "the end".to_owned());
        ErrorFields::error("42601", format!("expected {wanted}, found {found}"))
    }
}

/// Directions of FETCH other than forward.
const BACKWARD: [&str; 6] = ["backward", "prior", "first", "last", "absolute", "relative"];

fn is(word: &atoll_sql::datafusion::sql::sqlparser::tokenizer::Word, name: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name)
}

fn unsupported(option: &str, instead: &str) -> ErrorFields {
    ErrorFields::error("0A000", format!("{option} cursors are not supported")).hint(instead)
}

fn backward() -> ErrorFields {
    let error = ErrorFields::error("55000", "cursor can only scan forward");
    error.hint("use FETCH NEXT, FETCH n, FETCH ALL or FETCH FORWARD")
}

/// The byte offset of a line and column, which count characters from 1.
fn byte_of(sql: &str, place: Location) -> usize {
    let line = usize::try_from(place.line).unwrap_or(1).saturating_sub(1);
    let before: usize = sql.split_inclusive('\n').take(line).map(str::len).sum();
    let column = usize::try_from(place.column).unwrap_or(1).saturating_sub(1);
    let within = sql[before..].char_indices().nth(column).map(|(at, _)| at);
    before + within.unwrap_or(sql.len() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_statements_are_parsed() {
        let parse =
            |sql: &str| CursorStatement::parse(sql).unwrap_or_else(|error| panic!("{error:?}"));
        let fetch = |name: &str, count, moves| {
            Some(CursorStatement::Fetch { name: name.to_owned(), count, moves })
        };
        for (sql, wanted) in [
            ("FETCH c", fetch("c", Some(1), false)),
            ("fetch next from C;", fetch("c", Some(1), false)),
            ("FETCH FORWARD ALL IN \"C c\"", fetch("C c", None, false)),
            ("FETCH FORWARD c", fetch("c", Some(1), false)),
            ("FETCH ALL c", fetch("c", None, false)),
            ("MOVE 7 FROM c", fetch("c", Some(7), true)),
            ("CLOSE ALL", Some(CursorStatement::Close { name: None })),
            ("CLOSE c", Some(CursorStatement::Close { name: Some("c".to_owned()) })),
            ("SELECT 1", None),
        ] {
            assert_eq!(parse(sql), wanted, "{sql}");
        }
        let sql = "DECLARE \"ä\" INSENSITIVE NO SCROLL CURSOR\n WITHOUT HOLD FOR\n  SELECT 'ä;'";
        let Some(CursorStatement::Declare { name, query, holds }) = parse(sql) else {
            panic!("{sql}")
        };
        assert_eq!((name.as_str(), &sql[query..], holds), ("ä", "SELECT 'ä;'", false));
        let held = parse("DECLARE c CURSOR WITH HOLD FOR SELECT 1");
        assert!(matches!(held, Some(CursorStatement::Declare { holds: true, .. })), "{held:?}");
    }

    #[test]
    fn unsupported_cursor_options_are_refused() {
        for (sql, state) in [
            ("DECLARE c SCROLL CURSOR FOR SELECT 1", "0A000"),
            ("DECLARE c CURSOR WITH FOR SELECT 1", "42601"),
            ("DECLARE c CURSOR FOR INSERT INTO t VALUES (1) RETURNING a", "42601"),
            ("DECLARE c CURSOR FOR", "42601"),
            ("DECLARE", "42601"),
            ("FETCH -1 FROM c", "55000"),
            ("FETCH BACKWARD 1 FROM c", "55000"),
            ("FETCH 1 FROM c d", "42601"),
            ("FETCH 99999999999999999999 FROM c", "42601"),
            ("FETCH", "42601"),
            ("CLOSE", "42601"),
        ] {
            let error = CursorStatement::parse(sql).expect_err(sql);
            assert_eq!(error.state, state, "{sql}: {error:?}");
        }
    }
}
