//! Parses statements about cursors.

use atoll_sql::datafusion::sql::sqlparser::keywords::Keyword;
use atoll_sql::datafusion::sql::sqlparser::parser::Parser;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::Token;
use atoll_sql::{begins_with, is_at_end, is_word, next_name, next_word, offset, parser_of};

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

/// `name [INSENSITIVE] [NO SCROLL] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`
fn declare(parser: &mut Parser, sql: &str) -> Result<CursorStatement, ErrorFields> {
    let name = name(parser)?;
    loop {
        match next_word(parser).as_str() {
            "insensitive" | "asensitive" => {}
            "no" if parser.parse_keyword(Keyword::SCROLL) => {}
            "cursor" => break,
            "scroll" => return Err(unsupported("SCROLL", "omit it")),
            "binary" => return Err(unsupported("BINARY", "omit it")),
            _ => return Err(unexpected(parser, "CURSOR")),
        }
    }
    let holds = match next_word(parser).as_str() {
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
        Some(query) => Ok(CursorStatement::Declare { name, query, holds }),
        None => Err(unexpected(parser, "a query")),
    }
}

/// `[NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] name`
fn fetch(parser: &mut Parser, moves: bool) -> Result<CursorStatement, ErrorFields> {
    let is_named = parser.parse_keyword(Keyword::NEXT);
    let forward = parser.parse_keyword(Keyword::FORWARD);
    let count = match &parser.peek_token_ref().token {
        _ if is_named => Some(1),
        Token::Number(number, _) => {
            let count = number.parse();
            parser.advance_token();
            Some(count.map_err(|_| unexpected(parser, "a count of rows"))?)
        }
        Token::Minus => return Err(backward()),
        word if !forward && BACKWARD.iter().any(|it| is_word(word, it)) => return Err(backward()),
        word if is_word(word, "all") => {
            parser.advance_token();
            None
        }
        _ => Some(1),
    };
    let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
    let name = name(parser)?;
    end(parser)?;
    Ok(CursorStatement::Fetch { name, count, moves })
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

/// Directions of FETCH other than forward.
const BACKWARD: [&str; 6] = ["backward", "prior", "first", "last", "absolute", "relative"];

fn unsupported(option: &str, instead: &str) -> ErrorFields {
    ErrorFields::error("0A000", format!("{option} cursors are not supported")).hint(instead)
}

fn backward() -> ErrorFields {
    let error = ErrorFields::error("55000", "cursor can only scan forward");
    error.hint("use FETCH NEXT, FETCH n, FETCH ALL or FETCH FORWARD")
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
