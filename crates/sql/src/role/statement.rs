//! Statements about roles, in PostgreSQL's words.
//!
//! ```text
//! CREATE ROLE ann LOGIN PASSWORD '…'      CREATE USER ann …      ALTER ROLE ann …      DROP ROLE ann
//! GRANT readers TO ann                    REVOKE readers FROM ann
//! ```
//!
//! They are parsed from tokens: the parser's AST lacks half of their options, and its messages might show a password.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::definition::Role;
use super::verifier::ScramVerifier;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::begins_with;

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
        if !begins_with(sql, &["create", "alter", "drop", "grant", "revoke"]) {
            return Ok(None);
        }
        let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize() else {
            return Ok(None);
        };
        let mut tokens: Vec<Token> =
            tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        while tokens.last() == Some(&Token::SemiColon) {
            tokens.pop();
        }
        Words(&tokens).statement()
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

/// The remaining tokens of a statement.
struct Words<'a>(&'a [Token]);

impl Words<'_> {
    fn statement(&mut self) -> Result<Option<RoleStatement>> {
        let verb = self.word();
        match verb.as_str() {
            "create" | "alter" | "drop" => {
                let kind = self.word();
                if !matches!(kind.as_str(), "role" | "user" | "group") {
                    return Ok(None);
                }
                match verb.as_str() {
                    "create" => self.create(kind == "user").map(Some),
                    "alter" => self.alter().map(Some),
                    _ => self.drop().map(Some),
                }
            }
            verb => self.grant(verb == "revoke"),
        }
    }

    fn create(&mut self, is_user: bool) -> Result<RoleStatement> {
        let if_missing = self.take(&["if", "not", "exists"]);
        let role = self.name()?;
        let mut options = self.options()?;
        if is_user {
            options.0.insert(0, RoleOption::Login(true));
        }
        Ok(RoleStatement::Create { role, options, if_missing })
    }

    fn alter(&mut self) -> Result<RoleStatement> {
        let role = self.name()?;
        Ok(RoleStatement::Alter { role, options: self.options()? })
    }

    fn drop(&mut self) -> Result<RoleStatement> {
        let if_exists = self.take(&["if", "exists"]);
        let roles = self.names()?;
        self.end()?;
        Ok(RoleStatement::Drop { roles, if_exists })
    }

    /// A GRANT of roles; `None` if it grants rights on objects, which has an ON.
    fn grant(&mut self, is_revoked: bool) -> Result<Option<RoleStatement>> {
        let is_on = |token: &Token| matches!(token, Token::Word(word) if is(word, "on"));
        if self.0.iter().any(is_on) {
            return Ok(None);
        }
        let of = self.names()?;
        let preposition = if is_revoked { "from" } else { "to" };
        if !self.take(&[preposition]) {
            return Err(syntax(&format!(
                "expected {} and the names of roles",
                preposition.to_uppercase()
            )));
        }
        let to = self.names()?;
        self.end()?;
        Ok(Some(RoleStatement::Grant { of, to, is_revoked }))
    }

    fn options(&mut self) -> Result<RoleOptions> {
        self.take(&["with"]);
        let mut options = Vec::new();
        while !self.0.is_empty() {
            let option = match self.word().as_str() {
                "login" => RoleOption::Login(true),
                "nologin" => RoleOption::Login(false),
                "superuser" => RoleOption::Superuser(true),
                "nosuperuser" => RoleOption::Superuser(false),
                "createrole" => RoleOption::CreateRole(true),
                "nocreaterole" => RoleOption::CreateRole(false),
                "encrypted" => continue,
                "password" => RoleOption::Password(self.password()?),
                "set" => self.setting()?,
                "reset" if self.take(&["all"]) => RoleOption::NoSettings,
                "reset" => RoleOption::Setting { name: self.setting_name()?, value: None },
                "in" => {
                    if !self.take(&["role"]) {
                        return Err(syntax("expected ROLE after IN"));
                    }
                    RoleOption::InRole(self.names()?)
                }
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
    fn setting(&mut self) -> Result<RoleOption> {
        let name = self.setting_name()?;
        if !self.take(&["to"]) && self.next() != Some(&Token::Eq) {
            return Err(syntax("expected = or TO after the name of a setting"));
        }
        if self.take(&["default"]) {
            return Ok(RoleOption::Setting { name, value: None });
        }
        let mut values = vec![self.setting_value()?];
        while self.0.first() == Some(&Token::Comma) {
            self.next();
            values.push(self.setting_value()?);
        }
        Ok(RoleOption::Setting { name, value: Some(values.join(", ")) })
    }

    /// A name such as `statement_timeout` or `atoll.home`.
    fn setting_name(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.0.first() == Some(&Token::Period) {
            self.next();
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name)
    }

    fn setting_value(&mut self) -> Result<String> {
        match self.next() {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                Ok(text.clone())
            }
            Some(Token::Number(number, _)) => Ok(number.clone()),
            Some(Token::Word(word)) => Ok(word.value.clone()),
            Some(Token::Minus) => Ok(format!("-{}", self.setting_value()?)),
            _ => Err(syntax("expected the value of a setting")),
        }
    }

    fn password(&mut self) -> Result<Option<String>> {
        match self.next() {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                Ok(Some(text.clone()))
            }
            Some(Token::Word(word)) if is(word, "null") => Ok(None),
            _ => Err(syntax("expected a quoted text or NULL after PASSWORD")),
        }
    }

    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next word in lower case; empty if it is another token.
    fn word(&mut self) -> String {
        match self.next() {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                word.value.to_ascii_lowercase()
            }
            _ => String::new(),
        }
    }

    /// Skips words, if they come next.
    fn take(&mut self, words: &[&str]) -> bool {
        let is_next = self.0.len() >= words.len()
            && self.0.iter().zip(words).all(|(token, wanted)| match token {
                Token::Word(word) => is(word, wanted),
                _ => false,
            });
        if is_next {
            self.0 = &self.0[words.len()..];
        }
        is_next
    }

    fn name(&mut self) -> Result<String> {
        match self.next() {
            Some(Token::Word(word)) if word.quote_style.is_some() => Ok(word.value.clone()),
            Some(Token::Word(word)) => Ok(word.value.to_lowercase()),
            _ => Err(syntax("expected the name of a role")),
        }
    }

    fn names(&mut self) -> Result<Vec<String>> {
        let mut names = vec![self.name()?];
        while self.0.first() == Some(&Token::Comma) {
            self.next();
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn end(&self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(syntax("expected the end of the statement after the role names")),
        }
    }
}

fn is(word: &Word, wanted: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted)
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
