//! The COPY statement in PostgreSQL's syntax.
//!
//! ```text
//! COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)      COPY (SELECT …) TO STDOUT
//! COPY t FROM STDIN CSV HEADER DELIMITER ';'              as PostgreSQL wrote it until 8.4
//! ```

use atoll_sql::datafusion::sql::sqlparser::keywords::Keyword;
use atoll_sql::datafusion::sql::sqlparser::parser::Parser;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::Token;
use atoll_sql::{is_at_end, is_word, next_name, next_word, offset, parser_of, within_parentheses};

use super::{CopyForm, CopyFormat, CopyHeader, ForcedColumns};
use crate::wire::ErrorFields;
use atoll_sql::TextEncoding;

/// COPY between a table and a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CopyStatement {
    pub(crate) direction: CopyDirection,
    pub(crate) format: CopyFormat,
    /// The encoding of the data, if it is not the client's.
    pub(crate) encoding: Option<TextEncoding>,
}

/// The direction of a COPY.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    /// Into these columns of a table, no columns meaning all, the rows that meet a condition.
    In { table: String, columns: Vec<String>, condition: Option<String> },
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
        let (format, encoding) = format(&mut parser)?;
        let condition = condition(&mut parser, sql)?;
        if !is_in && condition.is_some() {
            return Err(ErrorFields::error("42601", "WHERE clause not allowed with COPY TO"));
        }
        if !is_in && matches!(&format, CopyFormat::Text(form) if form.header == CopyHeader::Match) {
            return Err(syntax("cannot use \"match\" with HEADER in COPY TO"));
        }
        if let CopyFormat::Text(form) = &format {
            check_direction(form, is_in)?;
        }
        let direction = match (is_in, is_query) {
            (true, true) => return Ok(None),
            (true, false) => CopyDirection::In { table: source, columns, condition },
            (false, true) => CopyDirection::Out { query: source },
            (false, false) => {
                let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
                CopyDirection::Out { query: format!("SELECT {columns} FROM {source}") }
            }
        };
        Ok(Some(CopyStatement { direction, format, encoding }))
    }
}

/// The text of the condition after WHERE, which ends the statement.
fn condition(parser: &mut Parser, sql: &str) -> Result<Option<String>, ErrorFields> {
    if is_at_end(parser) {
        return Ok(None);
    }
    let start = offset(sql, parser.peek_token_ref().span.end);
    let text = start.and_then(|start| sql.get(start..)).unwrap_or_default();
    match text.trim().trim_end_matches(';').trim_end() {
        "" => Err(syntax("expected a condition after WHERE")),
        text => Ok(Some(text.to_owned())),
    }
}

/// Refuses options of the other direction.
fn check_direction(form: &CopyForm, is_in: bool) -> Result<(), ErrorFields> {
    let is_set = |columns: &ForcedColumns| *columns != ForcedColumns::None;
    let message = match is_in {
        true if is_set(&form.quoted) => "COPY force quote only available using COPY TO",
        false if is_set(&form.not_null) => "COPY force not null only available using COPY FROM",
        false if is_set(&form.null_in_quotes) => "COPY force null only available using COPY FROM",
        _ => return Ok(()),
    };
    Err(ErrorFields::error("0A000", message))
}

/// The value of an option.
#[derive(Debug)]
enum OptionValue {
    Text(String),
    Columns(ForcedColumns),
}

/// The format, and the encoding if an option names one.
fn format(parser: &mut Parser) -> Result<(CopyFormat, Option<TextEncoding>), ErrorFields> {
    let mut options = Vec::new();
    let mut open = 0_i32;
    while !(is_at_end(parser) || open == 0 && is_word(&parser.peek_token_ref().token, "where")) {
        match parser.peek_token_ref().token {
            Token::LParen => open += 1,
            Token::RParen => open -= 1,
            Token::Comma => {}
            _ => {
                options.push(option(parser)?);
                continue;
            }
        }
        parser.advance_token();
    }
    if open != 0 {
        return Err(syntax("the parentheses around the options of COPY are not closed"));
    }
    let has_format = |format: &str| {
        options.iter().any(|(name, value)| {
            name == "format" && matches!(value, OptionValue::Text(value) if value == format)
        })
    };
    let mut form = if has_format("csv") { CopyForm::csv() } else { CopyForm::text() };
    for (name, value) in &options {
        match value {
            OptionValue::Text(value) => set(&mut form, name, value)?,
            OptionValue::Columns(columns) => force(&mut form, name, columns)?,
        }
    }
    let encoding = encoding(&options)?;
    if !has_format("binary") {
        return Ok((CopyFormat::Text(form), encoding));
    }
    let of_lines = |name: &str| !matches!(name, "format" | "encoding" | "freeze");
    match options.iter().find(|(name, _)| of_lines(name)) {
        Some((name, _)) => {
            let message = format!("COPY in binary format has no option {}", name.to_uppercase());
            Err(syntax(&message))
        }
        None => Ok((CopyFormat::Binary, encoding)),
    }
}

fn encoding(options: &[(String, OptionValue)]) -> Result<Option<TextEncoding>, ErrorFields> {
    let Some((_, value)) = options.iter().find(|(name, _)| name == "encoding") else {
        return Ok(None);
    };
    match value {
        OptionValue::Text(value) if let Some(encoding) = TextEncoding::named(value) => {
            Ok(Some(encoding))
        }
        _ => {
            let message = "argument to option \"encoding\" must be a valid encoding name";
            Err(ErrorFields::error("22023", message))
        }
    }
}

/// Reads the next option's name and value; an option without a value has an empty one.
fn option(parser: &mut Parser) -> Result<(String, OptionValue), ErrorFields> {
    let name = next_word(parser);
    match name.as_str() {
        "with" => return Ok(("freeze".to_owned(), OptionValue::Text(String::new()))),
        "csv" | "binary" => return Ok(("format".to_owned(), OptionValue::Text(name))),
        "force" => {
            let mut name = format!("force_{}", next_word(parser));
            if name == "force_not" {
                name = format!("force_not_{}", next_word(parser));
            }
            return Ok((name, OptionValue::Columns(forced(parser)?)));
        }
        "force_quote" | "force_not_null" | "force_null" => {
            return Ok((name, OptionValue::Columns(forced(parser)?)));
        }
        "" => return Err(syntax("expected an option of COPY")),
        "delimiter" | "delimiters" | "null" | "quote" | "escape" => {
            let _ = parser.parse_keyword(Keyword::AS);
        }
        _ => {}
    }
    let value = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
        Token::Word(word) if is_value(&name, &word.value) => word.value.to_lowercase(),
        _ => return Ok((name, OptionValue::Text(String::new()))),
    };
    parser.advance_token();
    Ok((name, OptionValue::Text(value)))
}

/// Reads a star, or names of columns, which may be in parentheses.
fn forced(parser: &mut Parser) -> Result<ForcedColumns, ErrorFields> {
    if parser.consume_token(&Token::Mul) {
        return Ok(ForcedColumns::All);
    }
    let has_parentheses = parser.consume_token(&Token::LParen);
    let mut names = Vec::new();
    loop {
        let name = next_name(parser);
        names.push(name.ok_or_else(|| syntax("expected the name of a column of COPY"))?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    if has_parentheses && !parser.consume_token(&Token::RParen) {
        return Err(syntax("expected \")\" after the columns of an option of COPY"));
    }
    Ok(ForcedColumns::Named(names))
}

/// Sets an option of columns.
fn force(form: &mut CopyForm, name: &str, columns: &ForcedColumns) -> Result<(), ErrorFields> {
    let (option, words) = match name {
        "force_quote" => (&mut form.quoted, "force quote"),
        "force_not_null" if *columns != ForcedColumns::All => {
            (&mut form.not_null, "force not null")
        }
        "force_null" if *columns != ForcedColumns::All => (&mut form.null_in_quotes, "force null"),
        _ => {
            return Err(syntax(&format!(
                "COPY has no option {} of these columns",
                name.to_uppercase()
            )));
        }
    };
    *option = columns.clone();
    match form.is_csv {
        true => Ok(()),
        false => {
            let message = format!("COPY {words} available only in CSV mode");
            Err(ErrorFields::error("0A000", message))
        }
    }
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
        // FREEZE has no effect: rows are visible at once anyway.
        "encoding" | "freeze" => {}
        other => {
            let message = format!("option {} of COPY is not supported", other.to_uppercase());
            return Err(ErrorFields::error("0A000", message));
        }
    }
    Ok(())
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
            condition: None,
        };
        assert_eq!(parse("COPY t FROM STDIN").map(|it| it.direction), Some(into("t", &[])));
        let statement = parse("copy \"S\".t (a, \"B c\") from stdin with (freeze on);");
        assert_eq!(statement.map(|it| it.direction), Some(into("\"S\".t", &["a", "\"B c\""])));
        let out = |query: &str| CopyDirection::Out { query: query.to_owned() };
        let statement = parse("COPY (SELECT ')' FROM (SELECT 1) t) TO STDOUT");
        assert_eq!(statement.map(|it| it.direction), Some(out("SELECT ')' FROM (SELECT 1) t")));
        let statement = parse("COPY t(a, b) TO STDOUT");
        assert_eq!(statement.map(|it| it.direction), Some(out("SELECT a, b FROM t")));
        let condition = |sql: &str| match parse(sql).map(|it| it.direction) {
            Some(CopyDirection::In { condition, .. }) => condition,
            _ => None,
        };
        for sql in ["COPY t FROM STDIN WHERE a > 1", "COPY t FROM STDIN (FORMAT csv) WHERE a > 1;"]
        {
            assert_eq!(condition(sql).as_deref(), Some("a > 1"), "{sql}");
        }
        for sql in ["COPY t TO STDOUT WHERE a > 1", "COPY t FROM STDIN WHERE"] {
            assert!(CopyStatement::parse(sql).is_err(), "{sql}");
        }
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
        let wanted = CopyForm { quoted: ForcedColumns::All, ..CopyForm::csv() };
        assert_eq!(form("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE *)"), wanted);
        assert_eq!(form("COPY t TO STDOUT CSV FORCE QUOTE *"), wanted);
        let named =
            |names: &[&str]| ForcedColumns::Named(names.iter().map(ToString::to_string).collect());
        let columns = form("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE (A, \"B\"), HEADER)");
        assert_eq!(columns.quoted, named(&["a", "B"]));
        assert_eq!(columns.header, CopyHeader::Names);
        let columns = form("COPY t FROM STDIN (FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))");
        assert_eq!((columns.not_null, columns.null_in_quotes), (named(&["a"]), named(&["b"])));
        let columns = form("COPY t FROM STDIN CSV FORCE NOT NULL a, b");
        assert_eq!(columns.not_null, named(&["a", "b"]));
        for refused in [
            "COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)",
            "COPY t TO STDOUT (FORCE_QUOTE *)",
            "COPY t TO STDOUT (FORMAT csv, FORCE_NULL (a))",
            "COPY t FROM STDIN (FORMAT csv, FORCE_NULL *)",
            "COPY t FROM STDIN (FORMAT csv, FORCE_NULL (a)",
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
