//! Parses statements about cursors.

use atoll_sql::datafusion::sql::sqlparser::keywords::Keyword;
use atoll_sql::datafusion::sql::sqlparser::parser::Parser;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::Token;
use atoll_sql::{begins_with, is_at_end, is_word, next_name, next_word, offset, parser_of};

use crate::wire::ErrorFields;

/// A statement about cursors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CursorStatement {
    /// DECLARE. The query begins at this byte of the statement.
    Declare { name: String, query: usize, options: CursorOptions },
    /// FETCH or MOVE: returns or skips rows.
    Fetch { name: String, motion: CursorMotion, moves: bool },
    /// CLOSE of one cursor, or of all.
    Close { name: Option<String> },
}

/// The options of DECLARE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CursorOptions {
    /// SCROLL: it moves in both directions.
    pub(super) scrolls: bool,
    /// WITH HOLD: it outlives its transaction.
    pub(super) holds: bool,
    /// BINARY: FETCH over the simple protocol returns binary values.
    pub(super) is_binary: bool,
}

/// The rows that FETCH returns, and where it leaves the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorMotion {
    /// The next rows, at most this many; the current one for 0.
    Forward(usize),
    /// The rows before the current one, at most this many, the nearest first; the current one for 0.
    Backward(usize),
    /// The row with this number, from 1; counted from the end if negative. 0 is before the first row.
    Absolute(i32),
    /// The row this many rows after the current one.
    Relative(i32),
}

impl CursorMotion {
    /// Whether any cursor can do it, wherever it is.
    pub(super) fn is_forward(self) -> bool {
        matches!(self, Self::Forward(_) | Self::Backward(0) | Self::Relative(0..))
    }
}

impl CursorStatement {
    /// Parses a text; None for any other statement.
    pub(super) fn parse(sql: &str) -> Result<Option<Self>, ErrorFields> {
        let Some(mut parser) = parser_of(sql, &["declare", "fetch", "move", "close"]) else {
            return Ok(None);
        };
        match next_word(&mut parser).as_str() {
            "declare" => declare(&mut parser, sql),
            "fetch" => fetch(&mut parser, false),
            "move" => fetch(&mut parser, true),
            _ => close(&mut parser),
        }
        .map(Some)
    }
}

/// `name [BINARY] [INSENSITIVE | ASENSITIVE] [[NO] SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`
fn declare(parser: &mut Parser, sql: &str) -> Result<CursorStatement, ErrorFields> {
    let name = name(parser)?;
    let (mut options, mut words) = (CursorOptions::default(), Vec::new());
    loop {
        let word = next_word(parser);
        match word.as_str() {
            "insensitive" | "asensitive" => {}
            "no" if parser.parse_keyword(Keyword::SCROLL) => {}
            "scroll" => options.scrolls = true,
            "binary" => options.is_binary = true,
            "cursor" => break,
            _ => return Err(unexpected(parser, "CURSOR")),
        }
        words.push(word);
    }
    for (one, other, message) in [
        ("scroll", "no", "cannot specify both SCROLL and NO SCROLL"),
        ("asensitive", "insensitive", "cannot specify both ASENSITIVE and INSENSITIVE"),
    ] {
        if [one, other].iter().all(|it| words.iter().any(|word| word == it)) {
            return Err(ErrorFields::error("42P11", message));
        }
    }
    options.holds = match next_word(parser).as_str() {
        "for" => false,
        "without" if parser.parse_keywords(&[Keyword::HOLD, Keyword::FOR]) => false,
        "with" if parser.parse_keywords(&[Keyword::HOLD, Keyword::FOR]) => true,
        _ => return Err(unexpected(parser, "FOR")),
    };
    parser.advance_token();
    let first = offset(sql, parser.get_current_token().span.start);
    let changes_rows =
        |at: usize| begins_with(&sql[at..], &["insert", "update", "delete", "merge"]);
    match first.filter(|at| !changes_rows(*at)) {
        Some(query) => Ok(CursorStatement::Declare { name, query, options }),
        None => Err(unexpected(parser, "a query")),
    }
}

/// `[NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL | FORWARD [n | ALL] | BACKWARD [n | ALL]]
/// [FROM | IN] name`
fn fetch(parser: &mut Parser, moves: bool) -> Result<CursorStatement, ErrorFields> {
    let motion = motion(parser)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
    let name = name(parser)?;
    end(parser)?;
    Ok(CursorStatement::Fetch { name, motion, moves })
}

fn motion(parser: &mut Parser) -> Result<CursorMotion, ErrorFields> {
    use CursorMotion::{Absolute, Backward, Forward, Relative};
    // A word at the end is the name of a cursor.
    let is_name = parser.peek_nth_token_ref(1).token == Token::EOF;
    let word = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() && !is_name => {
            word.value.to_ascii_lowercase()
        }
        Token::Number(..) | Token::Minus | Token::Plus => return Ok(forward(integer(parser)?)),
        _ => return Ok(Forward(1)),
    };
    let simple = match word.as_str() {
        "next" => Forward(1),
        "prior" => Backward(1),
        "first" => Absolute(1),
        "last" => Absolute(-1),
        "all" => Forward(usize::MAX),
        "absolute" | "relative" => {
            parser.advance_token();
            let row = integer(parser)?;
            return Ok(if word == "absolute" { Absolute(row) } else { Relative(row) });
        }
        "forward" | "backward" => {
            parser.advance_token();
            let is_back = word == "backward";
            let rows = rows(parser)?;
            return Ok(match rows {
                None if is_back => Backward(usize::MAX),
                None => Forward(usize::MAX),
                Some(rows) if is_back => backward(rows),
                Some(rows) => forward(rows),
            });
        }
        _ => return Ok(Forward(1)),
    };
    parser.advance_token();
    Ok(simple)
}

/// `[n | ALL]`: the number of rows, 1 by default; None for all.
fn rows(parser: &mut Parser) -> Result<Option<i32>, ErrorFields> {
    let is_name = parser.peek_nth_token_ref(1).token == Token::EOF;
    match &parser.peek_token_ref().token {
        Token::Number(..) | Token::Minus | Token::Plus => integer(parser).map(Some),
        word if is_word(word, "all") && !is_name => {
            parser.advance_token();
            Ok(None)
        }
        _ => Ok(Some(1)),
    }
}

fn forward(rows: i32) -> CursorMotion {
    let count = rows.unsigned_abs() as usize;
    if rows < 0 { CursorMotion::Backward(count) } else { CursorMotion::Forward(count) }
}

fn backward(rows: i32) -> CursorMotion {
    let count = rows.unsigned_abs() as usize;
    if rows < 0 { CursorMotion::Forward(count) } else { CursorMotion::Backward(count) }
}

fn integer(parser: &mut Parser) -> Result<i32, ErrorFields> {
    let sign = match parser.peek_token_ref().token {
        Token::Minus => "-",
        Token::Plus => "+",
        _ => "",
    };
    if !sign.is_empty() {
        parser.advance_token();
    }
    let number = match parser.next_token().token {
        Token::Number(number, _) => format!("{sign}{number}").parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| unexpected(parser, "a count of rows"))
}

/// `name | ALL`
fn close(parser: &mut Parser) -> Result<CursorStatement, ErrorFields> {
    let name = if parser.parse_keyword(Keyword::ALL) { None } else { Some(name(parser)?) };
    end(parser)?;
    Ok(CursorStatement::Close { name })
}

fn name(parser: &mut Parser) -> Result<String, ErrorFields> {
    next_name(parser).ok_or_else(|| unexpected(parser, "the name of a cursor"))
}

fn end(parser: &mut Parser) -> Result<(), ErrorFields> {
    if is_at_end(parser) {
        return Ok(());
    }
    parser.advance_token();
    Err(unexpected(parser, "the end of the statement"))
}

/// The error for the token that was read last.
fn unexpected(parser: &Parser, wanted: &str) -> ErrorFields {
    let found = match &parser.get_current_token().token {
        Token::EOF => "the end".to_owned(),
        other => other.to_string(),
    };
    ErrorFields::error("42601", format!("expected {wanted}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_statements_are_parsed() {
        use CursorMotion::{Absolute, Backward, Forward, Relative};
        let parse =
            |sql: &str| CursorStatement::parse(sql).unwrap_or_else(|error| panic!("{error:?}"));
        let fetch = |name: &str, motion, moves| {
            Some(CursorStatement::Fetch { name: name.to_owned(), motion, moves })
        };
        for (sql, wanted) in [
            ("FETCH c", fetch("c", Forward(1), false)),
            ("fetch next from C;", fetch("c", Forward(1), false)),
            ("FETCH FORWARD ALL IN \"C c\"", fetch("C c", Forward(usize::MAX), false)),
            ("FETCH FORWARD c", fetch("c", Forward(1), false)),
            ("FETCH ALL c", fetch("c", Forward(usize::MAX), false)),
            ("FETCH -2 c", fetch("c", Backward(2), false)),
            ("FETCH + 2 c", fetch("c", Forward(2), false)),
            ("FETCH PRIOR FROM c", fetch("c", Backward(1), false)),
            ("FETCH BACKWARD c", fetch("c", Backward(1), false)),
            ("FETCH BACKWARD -3 c", fetch("c", Forward(3), false)),
            ("FETCH FIRST IN c", fetch("c", Absolute(1), false)),
            ("FETCH LAST c", fetch("c", Absolute(-1), false)),
            ("FETCH ABSOLUTE -7 c", fetch("c", Absolute(-7), false)),
            ("FETCH RELATIVE 0 FROM c", fetch("c", Relative(0), false)),
            ("FETCH absolute", fetch("absolute", Forward(1), false)),
            ("FETCH backward all", fetch("all", Backward(1), false)),
            ("MOVE 7 FROM c", fetch("c", Forward(7), true)),
            ("MOVE BACKWARD ALL IN c", fetch("c", Backward(usize::MAX), true)),
            ("CLOSE ALL", Some(CursorStatement::Close { name: None })),
            ("CLOSE c", Some(CursorStatement::Close { name: Some("c".to_owned()) })),
            ("SELECT 1", None),
        ] {
            assert_eq!(parse(sql), wanted, "{sql}");
        }
        let sql = "DECLARE \"ä\" INSENSITIVE NO SCROLL CURSOR\n WITHOUT HOLD FOR\n  SELECT 'ä;'";
        let Some(CursorStatement::Declare { name, query, options }) = parse(sql) else {
            panic!("{sql}")
        };
        assert_eq!((name.as_str(), &sql[query..]), ("ä", "SELECT 'ä;'"));
        assert_eq!(options, CursorOptions::default());
        let all = parse("DECLARE c BINARY SCROLL CURSOR WITH HOLD FOR SELECT 1");
        let wanted = CursorOptions { scrolls: true, holds: true, is_binary: true };
        let is_all =
            matches!(all, Some(CursorStatement::Declare { options, .. }) if options == wanted);
        assert!(is_all, "{all:?}");
    }

    #[test]
    fn invalid_cursor_statements_are_refused() {
        for (sql, state) in [
            ("DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT 1", "42P11"),
            ("DECLARE c INSENSITIVE ASENSITIVE CURSOR FOR SELECT 1", "42P11"),
            ("DECLARE c CURSOR WITH FOR SELECT 1", "42601"),
            ("DECLARE c CURSOR FOR INSERT INTO t VALUES (1) RETURNING a", "42601"),
            ("DECLARE c CURSOR FOR", "42601"),
            ("DECLARE", "42601"),
            ("FETCH ABSOLUTE c", "42601"),
            ("FETCH RELATIVE FROM c", "42601"),
            ("FETCH 1 FROM c d", "42601"),
            ("FETCH 99999999999999999999 FROM c", "42601"),
            ("FETCH ABSOLUTE 2147483648 FROM c", "42601"),
            ("FETCH", "42601"),
            ("CLOSE", "42601"),
        ] {
            let error = CursorStatement::parse(sql).expect_err(sql);
            assert_eq!(error.state, state, "{sql}: {error:?}");
        }
    }
}
