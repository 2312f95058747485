//! Statements about roles, in PostgreSQL's words.
//!
//! ```text
//! CREATE ROLE ann LOGIN PASSWORD '…'      CREATE USER ann …      ALTER ROLE ann …      DROP ROLE ann
//! GRANT readers TO ann                    REVOKE readers FROM ann
//! ```
//!
//! They are parsed from tokens: the parser's AST lacks half of their options, and its messages might show a password.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::definition::Role;
use super::verifier::ScramVerifier;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{
    comma_separated, is_at_end, is_word, next_name, next_word, parser_of,
};

/// A statement about roles.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RoleStatement {
    /// CREATE ROLE, USER or GROUP.
    Create { role: String, options: RoleOptions, if_missing: bool },
    /// ALTER ROLE or USER.
    Alter { role: String, options: RoleOptions },
    /// DROP ROLE, USER or GROUP.
    Drop { roles: Vec<String>, if_exists: bool },
    /// GRANT and REVOKE of memberships.
    Grant { of: Vec<String>, to: Vec<String>, is_revoked: bool },
}

/// The options of a role in a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleOptions(Vec<RoleOption>);

#[derive(Debug, PartialEq, Eq)]
enum RoleOption {
    Login(bool),
    Superuser(bool),
    CreateRole(bool),
    /// A password or its verifier; `None` removes it.
    Password(Option<String>),
    InRole(Vec<String>),
    /// A setting that its sessions begin with; `None` resets it.
    Setting {
        name: String,
        value: Option<String>,
    },
    /// Resets all settings.
    NoSettings,
}

impl RoleStatement {
    /// Parses the text; `None` if it is not a statement about roles.
    ///
    /// # Errors
    /// If such a statement is invalid.
    pub(crate) fn parse(sql: &str) -> Result<Option<Self>> {
        match parser_of(sql, &["create", "alter", "drop", "grant", "revoke"]) {
            Some(mut parser) => statement(&mut parser),
            None => Ok(None),
        }
    }
}

impl RoleOptions {
    /// Changes a role.
    pub(crate) fn apply(&self, role: &mut Role) -> Result<()> {
        for option in &self.0 {
            match option {
                RoleOption::Login(is) => role.can_login = *is,
                RoleOption::Superuser(is) => role.is_superuser = *is,
                RoleOption::CreateRole(is) => role.creates_roles = *is,
                RoleOption::InRole(of) => role.member_of.extend(of.iter().cloned()),
                RoleOption::Setting { name, value: Some(value) } => {
                    role.settings.insert(name.clone(), value.clone());
                }
                RoleOption::Setting { name, value: None } => drop(role.settings.remove(name)),
                RoleOption::NoSettings => role.settings.clear(),
                RoleOption::Password(None) => role.verifier = None,
                RoleOption::Password(Some(password)) => {
                    role.verifier = Some(ScramVerifier::of_password(password)?);
                }
            }
        }
        Ok(())
    }

    /// Whether a role may change all of these options for itself: its password and settings.
    pub(crate) fn is_personal(&self) -> bool {
        use RoleOption::{NoSettings, Password, Setting};
        self.0.iter().all(|option| matches!(option, Password(_) | Setting { .. } | NoSettings))
    }

    /// The settings that are given a value.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|option| match option {
            RoleOption::Setting { name, value: Some(value) } => {
                Some((name.as_str(), value.as_str()))
            }
            _ => None,
        })
    }
}

fn statement(parser: &mut Parser) -> Result<Option<RoleStatement>> {
    let verb = next_word(parser);
    if matches!(verb.as_str(), "grant" | "revoke") {
        return grant(parser, verb == "revoke");
    }
    let kind = next_word(parser);
    if !matches!(kind.as_str(), "role" | "user" | "group") {
        return Ok(None);
    }
    match verb.as_str() {
        "create" => create(parser, kind == "user").map(Some),
        "alter" => alter(parser).map(Some),
        _ => drop_roles(parser).map(Some),
    }
}

fn create(parser: &mut Parser, is_user: bool) -> Result<RoleStatement> {
    let if_missing = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let role = name(parser)?;
    let mut options = options(parser)?;
    if is_user {
        options.0.insert(0, RoleOption::Login(true));
    }
    Ok(RoleStatement::Create { role, options, if_missing })
}

fn alter(parser: &mut Parser) -> Result<RoleStatement> {
    let role = name(parser)?;
    Ok(RoleStatement::Alter { role, options: options(parser)? })
}

fn drop_roles(parser: &mut Parser) -> Result<RoleStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let roles = comma_separated(parser, name)?;
    end(parser)?;
    Ok(RoleStatement::Drop { roles, if_exists })
}

/// A GRANT of roles; `None` if it grants rights on objects, which has an ON.
fn grant(parser: &mut Parser, is_revoked: bool) -> Result<Option<RoleStatement>> {
    let tokens = (parser.index()..).map(|at| &parser.token_at(at).token);
    if tokens.take_while(|token| **token != Token::EOF).any(|token| is_word(token, "on")) {
        return Ok(None);
    }
    let of = comma_separated(parser, name)?;
    let preposition = if is_revoked { Keyword::FROM } else { Keyword::TO };
    if !parser.parse_keyword(preposition) {
        return Err(syntax(&format!("expected {preposition:?} and the names of roles")));
    }
    let to = comma_separated(parser, name)?;
    end(parser)?;
    Ok(Some(RoleStatement::Grant { of, to, is_revoked }))
}

fn options(parser: &mut Parser) -> Result<RoleOptions> {
    let _ = parser.parse_keyword(Keyword::WITH);
    let mut options = Vec::new();
    while !is_at_end(parser) {
        let option = match next_word(parser).as_str() {
            "login" => RoleOption::Login(true),
            "nologin" => RoleOption::Login(false),
            "superuser" => RoleOption::Superuser(true),
            "nosuperuser" => RoleOption::Superuser(false),
            "createrole" => RoleOption::CreateRole(true),
            "nocreaterole" => RoleOption::CreateRole(false),
            "encrypted" => continue,
            "password" => RoleOption::Password(password(parser)?),
            "set" => setting(parser)?,
            "reset" if parser.parse_keyword(Keyword::ALL) => RoleOption::NoSettings,
            "reset" => RoleOption::Setting { name: setting_name(parser)?, value: None },
            "in" if parser.parse_keyword(Keyword::ROLE) => {
                RoleOption::InRole(comma_separated(parser, name)?)
            }
            "in" => return Err(syntax("expected ROLE after IN")),
            // Options that all roles have here, or none has.
            "inherit" | "noinherit" | "createdb" | "nocreatedb" | "noreplication"
            | "nobypassrls" => continue,
            other => {
                return Err(syntax(&format!(
                    "unknown option {} of a role; expected LOGIN, SUPERUSER, CREATEROLE, each with or without \
                     NO, PASSWORD 'text', PASSWORD NULL, IN ROLE name, SET name = value or RESET name",
                    other.to_uppercase()
                )));
            }
        };
        options.push(option);
    }
    Ok(RoleOptions(options))
}

/// `name = value`, `name TO a, b`, `name TO DEFAULT`
fn setting(parser: &mut Parser) -> Result<RoleOption> {
    let name = setting_name(parser)?;
    if !parser.parse_keyword(Keyword::TO) && !parser.consume_token(&Token::Eq) {
        return Err(syntax("expected = or TO after the name of a setting"));
    }
    let value = match parser.parse_keyword(Keyword::DEFAULT) {
        true => None,
        false => Some(comma_separated(parser, setting_value)?.join(", ")),
    };
    Ok(RoleOption::Setting { name, value })
}

/// A name such as `statement_timeout` or `atoll.home`.
fn setting_name(parser: &mut Parser) -> Result<String> {
    let mut full = name(parser)?;
    while parser.consume_token(&Token::Period) {
        full = format!("{full}.{}", name(parser)?);
    }
    Ok(full)
}

fn setting_value(parser: &mut Parser) -> Result<String> {
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    match parser.next_token().token {
        Token::Number(number, _) => Ok(format!("{sign}{number}")),
        _ if !sign.is_empty() => Err(syntax("expected a number after -")),
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        Token::Word(word) => Ok(word.value),
        _ => Err(syntax("expected the value of a setting")),
    }
}

fn password(parser: &mut Parser) -> Result<Option<String>> {
    match parser.next_token().token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(Some(text)),
        null if is_word(&null, "null") => Ok(None),
        _ => Err(syntax("expected a quoted text or NULL after PASSWORD")),
    }
}

fn name(parser: &mut Parser) -> Result<String> {
    next_name(parser).ok_or_else(|| syntax("expected the name of a role"))
}

fn end(parser: &Parser) -> Result<()> {
    match is_at_end(parser) {
        true => Ok(()),
        false => Err(syntax("expected the end of the statement after the role names")),
    }
}

fn syntax(message: &str) -> DataFusionError {
    SqlState::SYNTAX_ERROR.error(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(sql: &str) -> Role {
        let Ok(Some(RoleStatement::Create { role, options, .. })) = RoleStatement::parse(sql)
        else {
            panic!("{sql}");
        };
        let mut created = Role::new(&role);
        options.apply(&mut created).expect(sql);
        created
    }

    #[test]
    fn a_role_survives_a_round_trip() {
        let role = created(
            "create user \"An\"\"n\" with superuser encrypted password 'pencil' in role a, b;",
        );
        assert_eq!(role.name, "An\"n");
        assert!(role.can_login && role.is_superuser && !role.creates_roles);
        assert_eq!(role.member_of.len(), 2);
        let text = role.to_string();
        assert!(!text.contains("pencil"), "{text}");
        assert_eq!(Role::parse(&role.name, &text), Some(role));
    }

    #[test]
    fn a_role_keeps_its_settings() {
        let mut role = created(
            "CREATE ROLE ann SET atoll.home = 1 SET search_path TO s, public SET x.\"Y\" = 'it''s'",
        );
        let settings: Vec<_> =
            role.settings.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(settings, [("atoll.home", "1"), ("search_path", "s, public"), ("x.Y", "it's")]);
        assert_eq!(Role::parse("ann", &role.to_string()), Some(role.clone()));
        let Ok(Some(RoleStatement::Alter { options, .. })) =
            RoleStatement::parse("ALTER ROLE ann RESET atoll.home SET search_path TO DEFAULT")
        else {
            panic!("it is one");
        };
        options.apply(&mut role).expect("applied");
        assert_eq!(role.settings.len(), 1);
        assert!(options.is_personal());
        for sql in ["ALTER ROLE ann SET", "ALTER ROLE ann SET x", "ALTER ROLE ann SET x = ,"] {
            RoleStatement::parse(sql).expect_err(sql);
        }
    }

    #[test]
    fn other_statements_are_left_alone() {
        for sql in [
            "CREATE TABLE role (a INT)",
            "DROP TABLE t",
            "GRANT SELECT ON t TO ann",
            "SELECT 1",
            "cr",
        ] {
            assert_eq!(RoleStatement::parse(sql).expect(sql), None, "{sql}");
        }
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for sql in [
            "CREATE ROLE ann PASSWORD secret",
            "ALTER USER ann PASSWORD 'secret' BLUE",
            "CREATE ROLE",
        ] {
            let error = RoleStatement::parse(sql).expect_err(sql).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
