//! The COPY statement in PostgreSQL's syntax.
//!
//! ```text
//! COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)      COPY (SELECT …) TO STDOUT
//! COPY t FROM STDIN CSV HEADER DELIMITER ';'              as PostgreSQL wrote it until 8.4
//! ```

use atoll_sql::begins_with;
use atoll_sql::datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use atoll_sql::datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

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
        if !begins_with(sql, &["copy"]) {
            return Ok(None);
        }
        let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize() else {
            return Ok(None);
        };
        let tokens = tokens.into_iter().filter(|token| *token != Token::SemiColon);
        CopyTokens { tokens: tokens.collect(), at: 0 }.statement()
    }
}

/// A statement's tokens, and how many of them have been read.
struct CopyTokens {
    tokens: Vec<Token>,
    at: usize,
}

impl CopyTokens {
    fn statement(&mut self) -> Result<Option<CopyStatement>, ErrorFields> {
        self.next();
        let (source, is_query) = match self.peek() {
            Some(Token::LParen) => (self.within_parentheses(), true),
            _ => (self.name(), false),
        };
        let mut columns = Vec::new();
        if !is_query && self.peek() == Some(&Token::LParen) {
            let list = self.within_parentheses();
            columns = list.split(',').map(|name| name.trim().to_owned()).collect();
        }
        let is_in = match self.word().as_str() {
            "from" => true,
            "to" => false,
            _ => return Ok(None),
        };
        // Either word means the client, as in PostgreSQL.
        if !matches!(self.word().as_str(), "stdin" | "stdout") {
            return Ok(None);
        }
        let format = self.format()?;
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

    fn format(&mut self) -> Result<CopyFormat, ErrorFields> {
        let mut options = Vec::new();
        while self.peek().is_some() {
            match self.peek() {
                Some(Token::LParen | Token::RParen | Token::Comma) => drop(self.next()),
                _ => options.push(self.option()?),
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
                let message =
                    format!("COPY in binary format has no option {}", name.to_uppercase());
                Err(syntax(&message))
            }
            None => Ok(CopyFormat::Binary),
        }
    }

    /// Reads the next option's name and value; the value is empty if there is none.
    fn option(&mut self) -> Result<(String, String), ErrorFields> {
        let name = self.word();
        match name.as_str() {
            "with" => Ok(("freeze".to_owned(), String::new())),
            "csv" | "binary" => Ok(("format".to_owned(), name)),
            "force" => Ok((format!("force_{}", self.word()), self.star())),
            "force_quote" => Ok((name, self.star())),
            "" => Err(syntax("expected an option of COPY")),
            _ => {
                if matches!(name.as_str(), "delimiter" | "delimiters" | "null" | "quote" | "escape")
                {
                    self.take("as");
                }
                let value = match self.peek() {
                    Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) => {
                        self.next().map(text).unwrap_or_default()
                    }
                    Some(Token::Word(word)) if is_value(&name, &word.value) => {
                        self.next().map(text).unwrap_or_default().to_lowercase()
                    }
                    _ => String::new(),
                };
                Ok((name, value))
            }
        }
    }

    /// Reads a star; empty if there is none.
    fn star(&mut self) -> String {
        match self.peek() {
            Some(Token::Mul) => self.next().map(text).unwrap_or_default(),
            _ => String::new(),
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.tokens.get(self.at), Some(Token::Whitespace(_))) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<&Token> {
        self.skip_blanks();
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&Token> {
        self.skip_blanks();
        self.at += 1;
        self.tokens.get(self.at - 1)
    }

    /// Reads the next token, and returns it in lower case if it is a word, or else an empty text.
    fn word(&mut self) -> String {
        match self.next() {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_lowercase(),
            _ => String::new(),
        }
    }

    fn take(&mut self, wanted: &str) {
        if matches!(self.peek(), Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(wanted))
        {
            self.next();
        }
    }

    /// A possibly qualified name, verbatim.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Word(_) if name.is_empty() || name.ends_with('.') => {}
                Token::Period => {}
                _ => break,
            }
            name += &self.next().map(ToString::to_string).unwrap_or_default();
        }
        name
    }

    /// The text within the next parentheses, verbatim.
    fn within_parentheses(&mut self) -> String {
        self.next();
        let (mut inner, mut depth) = (String::new(), 1);
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner += &token.to_string();
        }
        inner
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

fn text(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
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
