//! `CREATE FUNCTION … LANGUAGE sql | plpgsql` and `CREATE PROCEDURE`, which sqlparser reads only in part.
//!
//! Types, defaults and the body stay texts: what they name is resolved when the routine is called.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::folded;
use crate::syntax::{is_at_end, is_word, next_word, offset, parser_of, within_parentheses};
use atoll_sql_common::error::SqlState;

/// A function or a procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Its name, as it was written.
    pub name: ObjectName,
    /// Whether CALL runs it.
    pub is_procedure: bool,
    /// Whether it may replace one with its name.
    pub or_replace: bool,
    /// All of its parameters, including the columns of `RETURNS TABLE`.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub returns: Returns,
    /// Whether its body is PL/pgSQL, and else SQL.
    pub is_block: bool,
    /// Its code.
    pub body: String,
    /// Whether it is not run, and returns NULL, if an argument is NULL.
    pub is_strict: bool,
    /// Whether each call may return something else.
    pub is_volatile: bool,
    /// Whether it promises the same value for the same arguments.
    pub is_immutable: bool,
}

/// A parameter, or a column of `RETURNS TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, folded.
    pub name: Option<String>,
    /// Whether a call passes a value.
    pub is_in: bool,
    /// Whether it is a column of the result.
    pub is_out: bool,
    /// Whether it is declared by `RETURNS TABLE`.
    pub is_of_table: bool,
    /// The text of its type.
    pub of: String,
    /// The text of its default.
    pub default: Option<String>,
}

/// What a routine returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `void`, and procedures without OUT parameters.
    Nothing,
    /// One value of a type.
    One(String),
    /// Its OUT parameters as one row.
    Row,
    /// Any number of values of a type.
    Many(String),
    /// Any number of rows of its OUT parameters.
    Rows,
}

impl Routine {
    /// Parses a CREATE FUNCTION or CREATE PROCEDURE; `None` for other statements, including `CREATE FUNCTION f(x) AS x + 1`,
    /// which is CREATE MACRO.
    ///
    /// # Errors
    /// For text that cannot be parsed, and clauses that are not supported.
    pub fn parse(sql: &str) -> Result<Option<Self>> {
        let Some(mut parser) = parser_of(sql, &["create"]) else { return Ok(None) };
        parser.advance_token();
        let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
        let kind = next_word(&mut parser);
        let is_procedure = kind == "procedure";
        if !is_procedure && (kind != "function" || !has_attributes(sql)) {
            return Ok(None);
        }
        let name = parser.parse_object_name(false).map_err(syntax)?;
        let Some(inside) = within_parentheses(&mut parser, sql) else {
            return Err(syntax(format!("{name}: expected its parameters in parentheses")));
        };
        let mut routine = Self {
            name,
            is_procedure,
            or_replace,
            parameters: parameters(inside)?,
            returns: Returns::Nothing,
            is_block: false,
            body: String::new(),
            is_strict: false,
            is_volatile: true,
            is_immutable: false,
        };
        routine.attributes(&mut parser, sql)?;
        Ok(Some(routine))
    }

    /// The parameters for which a call passes values.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_in)
    }

    /// The parameters that are columns of the result.
    pub fn outputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_out)
    }

    /// Its name without a schema, folded.
    pub fn own_name(&self) -> String {
        self.name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default()
    }

    /// Whether it returns any number of rows.
    pub fn returns_set(&self) -> bool {
        matches!(self.returns, Returns::Many(_) | Returns::Rows)
    }

    /// Its kind, as in messages.
    pub fn kind(&self) -> &'static str {
        if self.is_procedure { "procedure" } else { "function" }
    }

    fn attributes(&mut self, parser: &mut Parser, sql: &str) -> Result<()> {
        let (mut returns, mut language, mut body) = (None, None, None);
        while !is_at_end(parser) {
            match next_word(parser).as_str() {
                "returns" if parser.parse_keyword(Keyword::NULL) => {
                    expect(parser, &["on", "null", "input"])?;
                    self.is_strict = true;
                }
                "returns" => returns = Some(self.returned(parser, sql)?),
                "language" => language = Some(language_of(parser)?),
                "as" => body = Some(code(parser)?),
                "return" => {
                    body = Some(format!("SELECT {}", rest(parser, sql)));
                    language.get_or_insert(false);
                }
                "begin" => {
                    expect(parser, &["atomic"])?;
                    let text = rest(parser, sql);
                    body = text.strip_suffix_word("end").map(str::to_owned);
                    if body.is_none() {
                        return Err(syntax("BEGIN ATOMIC: expected END at its end"));
                    }
                    language.get_or_insert(false);
                }
                "immutable" => (self.is_volatile, self.is_immutable) = (false, true),
                "stable" => self.is_volatile = false,
                "volatile" | "leakproof" => {}
                "not" => expect(parser, &["leakproof"])?,
                "strict" => self.is_strict = true,
                "called" => expect(parser, &["on", "null", "input"])?,
                "parallel" | "cost" | "rows" => parser.advance_token(),
                "external" => {}
                "security" => match next_word(parser).as_str() {
                    "invoker" => {}
                    _ => {
                        return Err(refused(
                            "SECURITY DEFINER",
                            "a routine has its caller's rights",
                        ));
                    }
                },
                "set" => return Err(refused("SET in CREATE FUNCTION", "use SET before the call")),
                word @ ("window" | "support" | "transform") => {
                    return Err(refused(
                        &format!("{} in CREATE FUNCTION", word.to_uppercase()),
                        "",
                    ));
                }
                _ => {
                    let found = parser.get_current_token();
                    return Err(syntax(format!("{}: unexpected '{found}'", self.name)));
                }
            }
        }
        self.settle(returns)?;
        let Some(body) = body else { return Err(definition("no function body specified")) };
        self.body = body;
        match language {
            Some(is_block) => self.is_block = is_block,
            None => return Err(definition("no language specified")),
        }
        Ok(())
    }

    /// What follows RETURNS; the columns of a table become parameters.
    fn returned(&mut self, parser: &mut Parser, sql: &str) -> Result<Returns> {
        if parser.parse_keyword(Keyword::TABLE) {
            let Some(inside) = within_parentheses(parser, sql) else {
                return Err(syntax("RETURNS TABLE: expected its columns in parentheses"));
            };
            for mut column in parameters(inside)? {
                (column.is_in, column.is_out, column.is_of_table) = (false, true, true);
                self.parameters.push(column);
            }
            return Ok(Returns::Rows);
        }
        let is_set = parser.parse_keyword(Keyword::SETOF);
        let of = type_text(parser, sql);
        match of.to_lowercase().as_str() {
            "" => Err(syntax("RETURNS: expected a type")),
            "trigger" | "event_trigger" => Err(refused(
                &format!("RETURNS {of}"),
                "there are no triggers; DEFAULT, CHECK and generated columns fill and check rows",
            )),
            "void" => Ok(Returns::Nothing),
            "record" if is_set => Ok(Returns::Rows),
            "record" => Ok(Returns::Row),
            _ if is_set => Ok(Returns::Many(of)),
            _ => Ok(Returns::One(of)),
        }
    }

    /// Checks what it returns against its OUT parameters.
    fn settle(&mut self, returns: Option<Returns>) -> Result<()> {
        let outputs: Vec<&str> = self.outputs().map(|output| output.of.as_str()).collect();
        self.returns = match (returns, outputs.as_slice()) {
            (None, []) if self.is_procedure => Returns::Nothing,
            (None, []) => return Err(definition("function result type must be specified")),
            (Some(_), _) if self.is_procedure => return Err(syntax("a procedure has no RETURNS")),
            (None, _) if self.is_procedure => Returns::Row,
            (None, [of]) => Returns::One((*of).to_owned()),
            (None, _) => Returns::Row,
            (Some(Returns::Row | Returns::Rows), []) => {
                return Err(refused(
                    "RETURNS record without OUT parameters",
                    "declare the columns: RETURNS TABLE (a INT, b TEXT)",
                ));
            }
            (Some(Returns::Row), [_]) => {
                return Err(definition(&format!("function result type must be {}", outputs[0])));
            }
            (Some(Returns::Nothing), [_, ..]) => {
                return Err(definition("function result type must be record"));
            }
            (Some(returns), _) => returns,
        };
        let mut names: Vec<&String> = Vec::new();
        for parameter in &self.parameters {
            let Some(name) = &parameter.name else { continue };
            if names.contains(&name) {
                return Err(definition(&format!("parameter name \"{name}\" used more than once")));
            }
            names.push(name);
        }
        let mut has_default = false;
        for input in self.inputs() {
            if has_default && input.default.is_none() {
                return Err(definition(
                    "input parameters after one with a default value must also have defaults",
                ));
            }
            has_default |= input.default.is_some();
        }
        Ok(())
    }
}

/// Whether the text has the words of a routine, and not only those of a macro.
fn has_attributes(sql: &str) -> bool {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().unwrap_or_default();
    let words = ["returns", "language", "return"];
    tokens.iter().any(|token| words.iter().any(|word| is_word(token, word)))
}

/// `a INT, OUT b TEXT, c INT DEFAULT 1`
fn parameters(text: &str) -> Result<Vec<Parameter>> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let mut tokens = tokens.map_err(|error| syntax(error.to_string()))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut depth = 0_usize;
    let is_comma = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.token == Token::Comma
    };
    tokens.split(is_comma).map(|tokens| parameter(text, tokens)).collect()
}

fn parameter(text: &str, tokens: &[TokenWithSpan]) -> Result<Parameter> {
    let is_default = |token: &TokenWithSpan| {
        is_word(&token.token, "default") || matches!(token.token, Token::Eq | Token::Assignment)
    };
    let at = tokens.iter().position(is_default);
    let (declared, default) = match at {
        Some(at) => (&tokens[..at], Some(slice(text, &tokens[at + 1..]))),
        None => (tokens, None),
    };
    if default.as_ref().is_some_and(String::is_empty) {
        return Err(syntax("a parameter's default is missing"));
    }
    let modes = ["in", "out", "inout", "variadic"];
    let mode = |token: Option<&TokenWithSpan>| {
        modes.into_iter().find(|mode| token.is_some_and(|token| is_word(&token.token, mode)))
    };
    let mut rest = declared;
    let mut said = mode(rest.first());
    if said.is_some() {
        rest = &rest[1..];
    }
    let mut name = None;
    if let [first, second, ..] = rest
        && let Token::Word(word) = &first.token
        && mode(Some(second)).is_some()
    {
        // The mode may follow the name.
        said = mode(Some(second));
        name = Some(ident(word));
        rest = &rest[2..];
    } else if let [first, second, ..] = rest
        && let (Token::Word(word), Token::Word(next)) = (&first.token, &second.token)
        && !(word.quote_style.is_none() && is_two_words(&word.value, &next.value))
    {
        name = Some(ident(word));
        rest = &rest[1..];
    }
    let of = slice(text, rest);
    let is_out = matches!(said, Some("out" | "inout"));
    match said {
        _ if of.is_empty() => Err(syntax("a parameter's type is missing")),
        Some("variadic") => Err(refused("VARIADIC", "declare an array")),
        Some("out") if default.is_some() => {
            Err(definition("only input parameters can have default values"))
        }
        said => {
            let is_in = said != Some("out");
            let name = name.map(|name| folded(&name));
            Ok(Parameter { name, is_in, is_out, is_of_table: false, of, default })
        }
    }
}

fn ident(word: &datafusion::sql::sqlparser::tokenizer::Word) -> Ident {
    Ident { quote_style: word.quote_style, ..Ident::new(word.value.clone()) }
}

/// Whether two words are a type, and not a name and a type.
fn is_two_words(first: &str, second: &str) -> bool {
    let is = |word: &str, words: &[&str]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
    is(first, &["double"]) && is(second, &["precision"])
        || is(first, &["character", "char", "bit", "national"])
            && is(second, &["varying", "character", "char"])
        || is(first, &["timestamp", "time"]) && is(second, &["with", "without"])
        || is(first, &["interval"])
            && is(second, &["year", "month", "day", "hour", "minute", "second"])
}

/// The text of these tokens.
fn slice(text: &str, tokens: &[TokenWithSpan]) -> String {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    let from = offset(text, first.span.start).unwrap_or(text.len());
    let to = offset(text, last.span.end).unwrap_or(text.len());
    text.get(from..to).unwrap_or_default().trim().to_owned()
}

/// The words that may follow a type.
const AFTER_TYPE: [&str; 20] = [
    "language",
    "as",
    "immutable",
    "stable",
    "volatile",
    "strict",
    "called",
    "returns",
    "security",
    "parallel",
    "cost",
    "rows",
    "leakproof",
    "not",
    "window",
    "set",
    "support",
    "return",
    "begin",
    "external",
];

/// The text of a type in RETURNS.
fn type_text(parser: &mut Parser, sql: &str) -> String {
    let mut tokens = Vec::new();
    loop {
        let token = parser.peek_token();
        let is_end = AFTER_TYPE.iter().any(|word| is_word(&token.token, word));
        if token.token == Token::EOF || is_end {
            return slice(sql, &tokens);
        }
        tokens.push(token);
        parser.advance_token();
    }
}

/// The text up to the end.
fn rest(parser: &mut Parser, sql: &str) -> String {
    let start = offset(sql, parser.peek_token().span.start).unwrap_or(sql.len());
    while !is_at_end(parser) {
        parser.advance_token();
    }
    sql[start..].trim_end_matches([';', ' ', '\n', '\r', '\t']).to_owned()
}

trait StripSuffixWord {
    fn strip_suffix_word(&self, word: &str) -> Option<&str>;
}

impl StripSuffixWord for str {
    fn strip_suffix_word(&self, word: &str) -> Option<&str> {
        let at = self.len().checked_sub(word.len())?;
        let (before, last) = self.split_at_checked(at)?;
        last.eq_ignore_ascii_case(word).then_some(before)
    }
}

fn expect(parser: &mut Parser, words: &[&str]) -> Result<()> {
    for word in words {
        if next_word(parser) != **word {
            return Err(syntax(format!("expected {}", words.join(" ").to_uppercase())));
        }
    }
    Ok(())
}

/// Whether the language is PL/pgSQL, and else SQL.
fn language_of(parser: &mut Parser) -> Result<bool> {
    let name = match parser.next_token().token {
        Token::Word(word) => word.value.to_lowercase(),
        Token::SingleQuotedString(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    match name.as_str() {
        "sql" => Ok(false),
        "plpgsql" => Ok(true),
        name => Err(SqlState::UNDEFINED_OBJECT
            .error(format!("language \"{name}\" does not exist; expected sql or plpgsql"))),
    }
}

fn code(parser: &mut Parser) -> Result<String> {
    match parser.next_token().token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        other => Err(syntax(format!("AS: expected the body as a text, found '{other}'"))),
    }
}

fn syntax(message: impl ToString) -> DataFusionError {
    SqlState::SYNTAX_ERROR.error(format!("CREATE FUNCTION: {}", message.to_string()))
}

fn definition(message: &str) -> DataFusionError {
    SqlState::INVALID_FUNCTION_DEFINITION.error(message)
}

fn refused(clause: &str, instead: &str) -> DataFusionError {
    let instead = if instead.is_empty() { String::new() } else { format!("; {instead}") };
    SqlState::FEATURE_NOT_SUPPORTED.error(format!("{clause} is not supported{instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_routine_are_read() {
        let sql = "CREATE OR REPLACE FUNCTION s.f(a double precision, numeric(4,2), IN B int DEFAULT (1), \
                   OUT \"C\" users, d INOUT timestamp with time zone = now()) RETURNS record AS $$ x $$ \
                   LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10";
        let routine = Routine::parse(sql).expect("a routine").expect("a routine");
        let parts = |it: &Parameter| {
            let default = it.default.clone().unwrap_or_default();
            format!("{:?} {} {} {} {default}", it.name, it.is_in, it.is_out, it.of)
        };
        let parameters: Vec<String> = routine.parameters.iter().map(parts).collect();
        assert_eq!(
            parameters,
            [
                "Some(\"a\") true false double precision ",
                "None true false numeric(4,2) ",
                "Some(\"b\") true false int (1)",
                "Some(\"C\") false true users ",
                "Some(\"d\") true true timestamp with time zone now()",
            ]
        );
        assert_eq!((routine.returns, routine.body.as_str()), (Returns::Row, " x "));
        assert!(
            routine.is_block && routine.is_strict && routine.is_immutable && routine.or_replace
        );
    }

    #[test]
    fn forms_of_returns_and_of_bodies_are_read() {
        for (sql, returns, body) in [
            (
                "create function f() returns int return 1 + 1",
                Returns::One("int".into()),
                "SELECT 1 + 1",
            ),
            (
                "CREATE FUNCTION f() RETURNS SETOF double precision LANGUAGE sql AS 'x'",
                Returns::Many("double precision".into()),
                "x",
            ),
            (
                "CREATE FUNCTION f() RETURNS TABLE (a int, b text) LANGUAGE sql STABLE AS $q$x;$q$",
                Returns::Rows,
                "x;",
            ),
            ("CREATE FUNCTION f() RETURNS void LANGUAGE SQL AS 'x';", Returns::Nothing, "x"),
            (
                "CREATE PROCEDURE p(a int) BEGIN ATOMIC DELETE FROM t; DELETE FROM u; END",
                Returns::Nothing,
                "DELETE FROM t; DELETE FROM u; ",
            ),
            ("CREATE PROCEDURE p(INOUT a int) LANGUAGE sql AS 'x'", Returns::Row, "x"),
        ] {
            let routine = Routine::parse(sql).expect(sql).expect(sql);
            assert_eq!((routine.returns, routine.body.as_str()), (returns, body), "{sql}");
        }
        for sql in ["CREATE FUNCTION f(x) AS x + 1", "CREATE TABLE t (returns INT)", "SELECT 1"] {
            assert_eq!(Routine::parse(sql).expect(sql), None, "{sql}");
        }
        for sql in [
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'x'",
            "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'x'",
            "CREATE FUNCTION f() LANGUAGE sql AS 'x'",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql",
            "CREATE FUNCTION f() RETURNS int AS 'x'",
            "CREATE FUNCTION f(a int = 1, b int) RETURNS int LANGUAGE sql AS 'x'",
            "CREATE FUNCTION f(a int, a int) RETURNS int LANGUAGE sql AS 'x'",
            "CREATE FUNCTION f(VARIADIC a int[]) RETURNS int LANGUAGE sql AS 'x'",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'x'",
            "CREATE PROCEDURE p() RETURNS int LANGUAGE sql AS 'x'",
            "CREATE FUNCTION f( RETURNS int LANGUAGE sql AS 'x'",
        ] {
            assert!(Routine::parse(sql).is_err(), "{sql}");
        }
    }
}
