//! Statements without effect: `DROP TRIGGER IF EXISTS x ON t` for kinds of objects that never exist, `CREATE EXTENSION IF NOT
//! EXISTS plpgsql`. Dumps and migrations begin with them.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::Session;
use crate::session::statement::command_tag::{missing, there, with_notices};
use atoll_sql_common::error::SqlState;
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_parse::syntax::{is_word, next_name, parser_of, within_parentheses};

/// Kinds of objects that never exist, by the words of their DROP.
const KINDS: [&str; 13] = [
    "aggregate",
    "collation",
    "conversion",
    "event trigger",
    "extension",
    "foreign table",
    "language",
    "policy",
    "procedure",
    "publication",
    "rule",
    "server",
    "trigger",
];

/// Those that share their namespace with tables.
const RELATIONS: [&str; 1] = ["foreign table"];

/// Types of texts.
const TEXTS: [&str; 3] = ["character varying", "text", "varchar"];

/// The extension that every PostgreSQL database has.
const BUILT_IN: &str = "plpgsql";

/// A statement about an object that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct IgnoredDdl {
    tag: String,
    kind: &'static str,
    /// The names, as written, each with its notice.
    names: Vec<(String, String)>,
    /// The ENUM of a cast.
    enum_name: Option<String>,
}

impl IgnoredDdl {
    /// Parses the text; `None` if it is another statement.
    pub(in crate::session) fn parse(sql: &str) -> Option<Self> {
        let mut parser = parser_of(sql, &["drop", "create"])?;
        let creates =
            [Keyword::CREATE, Keyword::EXTENSION, Keyword::IF, Keyword::NOT, Keyword::EXISTS];
        if parser.parse_keywords(&creates) {
            next_name(&mut parser).filter(|name| name.eq_ignore_ascii_case(BUILT_IN))?;
            let names = vec![(BUILT_IN.to_owned(), there("extension", BUILT_IN))];
            let tag = "CREATE EXTENSION".to_owned();
            return Some(Self { tag, kind: "extension", names, enum_name: None });
        }
        if let Some(cast) = Self::parse_cast(&mut parser, sql) {
            return Some(cast);
        }
        if !parser.parse_keyword(Keyword::DROP) {
            return None;
        }
        let kind = KINDS.into_iter().find(|kind| {
            let mut words = kind.split(' ').enumerate();
            words.all(|(at, word)| is_word(&parser.peek_nth_token_ref(at).token, word))
        })?;
        kind.split(' ').for_each(|_| parser.advance_token());
        if !parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]) {
            return None;
        }
        let tag = format!("DROP {}", kind.to_uppercase());
        Some(Self { tag, kind, names: names(&mut parser, kind, sql), enum_name: None })
    }

    /// Casts between texts and ENUMs exist already: `CREATE CAST (varchar AS mood) WITH INOUT AS IMPLICIT`, and DROP CAST.
    fn parse_cast(parser: &mut Parser, sql: &str) -> Option<Self> {
        let word = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
        if !word(1, "cast") {
            return None;
        }
        let creates = word(0, "create");
        (0..2).for_each(|_| parser.advance_token());
        let if_exists = !creates && parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let types = within_parentheses(parser, sql)?.to_lowercase();
        let (from, to) = types.split_once(" as ")?;
        let is_text = |name: &str| TEXTS.contains(&name.trim().trim_start_matches("pg_catalog."));
        let is_inout = || {
            let with = parser.peek_nth_token_ref(0);
            is_word(&with.token, "with") && is_word(&parser.peek_nth_token_ref(1).token, "inout")
        };
        if is_text(from) == is_text(to) || creates && !is_inout() {
            return None;
        }
        let tag = if creates { "CREATE CAST" } else { "DROP CAST" };
        let (from, to) = (from.trim(), to.trim());
        let notice = format!("cast from type {from} to type {to} does not exist, skipping");
        let names = if if_exists { vec![(String::new(), notice)] } else { vec![] };
        let enum_name = Some(if is_text(from) { to } else { from }.to_owned());
        Some(Self { tag: tag.to_owned(), kind: "cast", names, enum_name })
    }
}

/// The names of a list, with the notices that they do not exist.
fn names(parser: &mut Parser, kind: &str, sql: &str) -> Vec<(String, String)> {
    let mut names = Vec::new();
    loop {
        if let Ok(name) = parser.parse_object_name(false)
            && let Some(last) = name.0.last().and_then(|last| last.as_ident())
        {
            let on = parser.parse_keyword(Keyword::ON);
            let notice = match on.then(|| parser.parse_object_name(false)) {
                Some(Ok(table)) => {
                    let (name, table) = (&last.value, table.to_string());
                    let table = table.trim_matches('"');
                    format!("{kind} \"{name}\" for relation \"{table}\" does not exist, skipping")
                }
                _ => missing(kind, &last.value),
            };
            names.push((name.to_string(), notice));
        }
        // Arguments, and words such as CASCADE.
        while !matches!(parser.peek_token_ref().token, Token::Comma | Token::EOF) {
            if within_parentheses(parser, sql).is_none() {
                parser.advance_token();
            }
        }
        if !parser.consume_token(&Token::Comma) {
            return names;
        }
    }
}

impl Session {
    /// The tag of a statement without effect, with its notices.
    ///
    /// # Errors
    /// If another object has the name, or a cast is not that of an ENUM.
    pub(in crate::session) async fn run_ignored(&self, ignored: &IgnoredDdl) -> Result<String> {
        let IgnoredDdl { tag, kind, names, enum_name } = ignored;
        if let Some(name) = enum_name.as_ref().filter(|_| names.is_empty()) {
            let planner = self.planner(&self.statement_transaction()?, false).await?;
            let types = UserTypes::in_options(planner.state.config_options());
            let (schema, name) = match name.rsplit_once('.') {
                Some((schema, name)) => (Some(schema), name),
                None => (None, name.as_str()),
            };
            let bare = |name: &str| name.trim_matches('"').to_owned();
            let (schema, name) = (schema.map(bare), bare(name));
            if types.and_then(|types| types.named(schema.as_deref(), &name)).is_none() {
                return not_impl_err!("{tag} is not supported but for ENUMs, which texts cast to");
            }
        }
        if RELATIONS.contains(kind) {
            let objects = self.names().objects();
            let named = names.iter().find(|(name, _)| objects.has_relation(name));
            if let Some((name, _)) = named {
                return Err(SqlState::WRONG_OBJECT_TYPE.error(format!(
                    "'{name}' cannot be dropped by {tag}; DROP TABLE and DROP VIEW drop tables and views"
                )));
            }
        }
        let notices: Vec<String> = names.iter().map(|(_, notice)| notice.clone()).collect();
        Ok(with_notices(tag, &notices).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_objects_are_reported_as_missing() {
        let said = |sql: &str| {
            let ignored = IgnoredDdl::parse(sql)?;
            let notices: Vec<String> =
                ignored.names.into_iter().map(|(_, notice)| notice).collect();
            Some(format!("{}: {}", ignored.tag, notices.join("; ")))
        };
        for (sql, wanted) in [
            (
                "drop server if exists a, \"B\" cascade;",
                "DROP SERVER: server \"a\" does not exist, skipping; server \"B\" does not exist, skipping",
            ),
            (
                "DROP TRIGGER IF EXISTS x ON s.t",
                "DROP TRIGGER: trigger \"x\" for relation \"s.t\" does not exist, skipping",
            ),
            (
                "DROP AGGREGATE IF EXISTS f(int, text)",
                "DROP AGGREGATE: aggregate \"f\" does not exist, skipping",
            ),
            (
                "CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog",
                "CREATE EXTENSION: extension \"plpgsql\" already exists, skipping",
            ),
        ] {
            assert_eq!(said(sql).as_deref(), Some(wanted), "{sql}");
        }
        for sql in [
            "DROP TYPE IF EXISTS a",
            "DROP TABLE IF EXISTS t",
            "CREATE EXTENSION x",
            "DROP",
            "SELECT 1",
        ] {
            assert_eq!(said(sql), None, "{sql}");
        }
    }
}
