//! The COPY statement in PostgreSQL's syntax.
//!
//! ```text
//! COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)      COPY (SELECT …) TO STDOUT
//! COPY t FROM STDIN CSV HEADER DELIMITER ';'              as PostgreSQL wrote it until 8.4
//! ```

use atoll_sql::datafusion::sql::sqlparser::keywords::Keyword;
use atoll_sql::datafusion::sql::sqlparser::parser::Parser;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::Token;
use atoll_sql::{is_at_end, next_word, parser_of, within_parentheses};

use super::{CopyForm, CopyFormat, CopyHeader};
use crate::wire::ErrorFields;

/// COPY between a table and a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CopyStatement {
    pub(crate) direction: CopyDirection,
    pub(crate) format: CopyFormat,
}

/// The direction of a COPY.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    /// Into these columns of a table; no columns means all.
    In { table: String, columns: Vec<String> },
    /// Out of a query.
    Out { query: String },
}

impl CopyStatement {
    /// Parses a text; None for any other statement and for COPY with files.
    pub(crate) fn parse(sql: &str) -> Result<Option<Self>, ErrorFields> {
        let Some(mut parser) = parser_of(sql, &["copy"]) else { return Ok(None) };
        parser.advance_token();
        let query = within_parentheses(&mut parser, sql);
        let source = match query {
            Some(query) => query.to_owned(),
            None => match parser.parse_object_name(false) {
                Ok(table) => table.to_string(),
                Err(_) => return Ok(None),
            },
        };
        let is_query = query.is_some();
        let columns = within_parentheses(&mut parser, sql).filter(|_| !is_query);
        let columns: Vec<String> = columns
            .map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
            .unwrap_or_default();
        let is_in = match next_word(&mut parser).as_str() {
            "from" => true,
            "to" => false,
            _ => return Ok(None),
        };
        // Either word means the client, as in PostgreSQL.
        if !matches!(next_word(&mut parser).as_str(), "stdin" | "stdout") {
            return Ok(None);
        }
        let format = format(&mut parser)?;
        if !is_in && matches!(&format, CopyFormat::Text(form) if form.header == CopyHeader::Match) {
            return Err(syntax("cannot use \"match\" with HEADER in COPY TO"));
        }
        if is_in && matches!(&format, CopyFormat::Text(form) if form.quotes_all) {
            let message = "COPY force quote only available using COPY TO";
            return Err(ErrorFields::error("0A000", message));
        }
        let direction = match (is_in, is_query) {
            (true, true) => return Ok(None),
            (true, false) => CopyDirection::In { table: source, columns },
            (false, true) => CopyDirection::Out { query: source },
            (false, false) => {
                let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
                CopyDirection::Out { query: format!("SELECT {columns} FROM {source}") }
            }
        };
        Ok(Some(CopyStatement { direction, format }))
    }
}

fn format(parser: &mut Parser) -> Result<CopyFormat, ErrorFields> {
    let mut options = Vec::new();
    while !is_at_end(parser) {
        match parser.peek_token_ref().token {
            Token::LParen | Token::RParen | Token::Comma => parser.advance_token(),
            _ => options.push(option(parser)?),
        }
    }
    let has_format = |format: &str| options.iter().any(|it| it.0 == "format" && it.1 == format);
    let mut form = if has_format("csv") { CopyForm::csv() } else { CopyForm::text() };
    for (name, value) in &options {
        set(&mut form, name, value)?;
    }
    if !has_format("binary") {
        return Ok(CopyFormat::Text(form));
    }
    let of_lines = |name: &str| !matches!(name, "format" | "encoding" | "freeze");
    match options.iter().find(|(name, _)| of_lines(name)) {
        Some((name, _)) => {
            let message = format!("COPY in binary format has no option {}", name.to_uppercase());
            Err(syntax(&message))
        }
        None => Ok(CopyFormat::Binary),
    }
}

/// Reads the next option's name and value; an option without a value has an empty one.
fn option(parser: &mut Parser) -> Result<(String, String), ErrorFields> {
    let name = next_word(parser);
    match name.as_str() {
        "with" => return Ok(("freeze".to_owned(), String::new())),
        "csv" | "binary" => return Ok(("format".to_owned(), name)),
        "force" => return Ok((format!("force_{}", next_word(parser)), star(parser))),
        "force_quote" => return Ok((name, star(parser))),
        "" => return Err(syntax("expected an option of COPY")),
        "delimiter" | "delimiters" | "null" | "quote" | "escape" => {
            let _ = parser.parse_keyword(Keyword::AS);
        }
        _ => {}
    }
    let value = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
        Token::Word(word) if is_value(&name, &word.value) => word.value.to_lowercase(),
        _ => return Ok((name, String::new())),
    };
    parser.advance_token();
    Ok((name, value))
}

/// Reads a star, or nothing.
fn star(parser: &mut Parser) -> String {
    if parser.consume_token(&Token::Mul) { "*".to_owned() } else { String::new() }
}

/// Whether a word is the option's value rather than the next option.
fn is_value(option: &str, word: &str) -> bool {
    match option {
        "format" | "encoding" => true,
        "header" | "freeze" => {
            ["on", "off", "true", "false", "match"].iter().any(|it| word.eq_ignore_ascii_case(it))
        }
        _ => false,
    }
}

fn set(form: &mut CopyForm, name: &str, value: &str) -> Result<(), ErrorFields> {
    match name {
        "format" => match value {
            "text" | "csv" | "binary" => {}
            other => {
                let message = format!("COPY format \"{other}\" is not supported");
                return Err(
                    ErrorFields::error("0A000", message).hint("use FORMAT text, csv or binary")
                );
            }
        },
        "delimiter" | "delimiters" => form.delimiter = byte("DELIMITER", value)?,
        "null" => form.null = value.as_bytes().to_vec(),
        "header" => {
            form.header = match value {
                "" | "on" | "true" | "1" => CopyHeader::Names,
                "off" | "false" | "0" => CopyHeader::None,
                "match" => CopyHeader::Match,
                _ => return Err(syntax("HEADER requires a Boolean value or \"match\"")),
            }
        }
        "quote" => {
            let is_default = form.escape == form.quote;
            form.quote = byte("QUOTE", value)?;
            if is_default {
                form.escape = form.quote;
            }
        }
        "escape" => form.escape = byte("ESCAPE", value)?,
        "encoding" if is_utf8(value) => {}
        "force_quote" if value == "*" && form.is_csv => form.quotes_all = true,
        // FREEZE has no effect: rows are visible at once anyway.
        "freeze" => {}
        other => {
            let message = format!("option {} of COPY is not supported", other.to_uppercase());
            return Err(ErrorFields::error("0A000", message));
        }
    }
    Ok(())
}

fn is_utf8(value: &str) -> bool {
    ["utf8", "utf-8", "unicode", "sql_ascii"].iter().any(|it| value.eq_ignore_ascii_case(it))
}

fn byte(option: &str, value: &str) -> Result<u8, ErrorFields> {
    match value.as_bytes() {
        [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(syntax(&format!("COPY {option} must be a single one-byte character"))),
    }
}

fn syntax(message: &str) -> ErrorFields {
    ErrorFields::error("42601", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> Option<CopyStatement> {
        CopyStatement::parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }

    #[test]
    fn tables_columns_and_queries_are_parsed() {
        let into = |table: &str, columns: &[&str]| CopyDirection::In {
            table: table.to_owned(),
            columns: columns.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(parse("COPY t FROM STDIN").map(|it| it.direction), Some(into("t", &[])));
        let statement = parse("copy \"S\".t (a, \"B c\") from stdin with (freeze on);");
        assert_eq!(statement.map(|it| it.direction), Some(into("\"S\".t", &["a", "\"B c\""])));
        let out = |query: &str| CopyDirection::Out { query: query.to_owned() };
        let statement = parse("COPY (SELECT ')' FROM (SELECT 1) t) TO STDOUT");
        assert_eq!(statement.map(|it| it.direction), Some(out("SELECT ')' FROM (SELECT 1) t")));
        let statement = parse("COPY t(a, b) TO STDOUT");
        assert_eq!(statement.map(|it| it.direction), Some(out("SELECT a, b FROM t")));
        assert_eq!(parse("COPY t TO STDIN").map(|it| it.direction), Some(out("SELECT * FROM t")));
        assert_eq!(parse("COPY t FROM STDOUT").map(|it| it.direction), Some(into("t", &[])));
        for other in ["COPY t FROM 'file.csv'", "COPY t TO '/tmp/x'", "SELECT 1", "COPY"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn options_are_parsed_in_both_forms() {
        let form = |sql: &str| match parse(sql).expect("it is one").format {
            CopyFormat::Text(form) => form,
            CopyFormat::Binary => panic!("{sql} is in binary format"),
        };
        let wanted = CopyForm { header: CopyHeader::Names, delimiter: b';', ..CopyForm::csv() };
        assert_eq!(form("COPY t FROM STDIN (FORMAT csv, HEADER, DELIMITER ';')"), wanted);
        assert_eq!(form("COPY t FROM STDIN WITH CSV HEADER DELIMITER AS ';'"), wanted);
        assert_eq!(form("COPY t FROM STDIN WITH DELIMITER E'\\t' NULL ''").null, b"");
        for sql in ["COPY t FROM STDIN (FORMAT binary)", "COPY t TO STDOUT WITH BINARY"] {
            assert_eq!(parse(sql).map(|it| it.format), Some(CopyFormat::Binary), "{sql}");
        }
        let wanted = CopyForm { quotes_all: true, ..CopyForm::csv() };
        assert_eq!(form("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE *)"), wanted);
        assert_eq!(form("COPY t TO STDOUT CSV FORCE QUOTE *"), wanted);
        for refused in [
            "COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)",
            "COPY t TO STDOUT (FORCE_QUOTE *)",
            "COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE (a))",
        ] {
            assert!(CopyStatement::parse(refused).is_err(), "{refused}");
        }
        assert!(CopyStatement::parse("COPY t FROM STDIN (FORMAT binary, HEADER)").is_err());
        assert!(CopyStatement::parse("COPY t FROM STDIN (FORMAT parquet)").is_err());
        assert!(CopyStatement::parse("COPY t FROM STDIN (DELIMITER 'ab')").is_err());
        assert_eq!(form("COPY t FROM STDIN (HEADER match)").header, CopyHeader::Match);
        assert!(CopyStatement::parse("COPY t TO STDOUT (HEADER match)").is_err());
        assert!(CopyStatement::parse("COPY t FROM STDIN (HEADER 'maybe')").is_err());
    }
}
