//! Statements without effect: `DROP TYPE IF EXISTS x` for kinds of objects that never exist, `CREATE EXTENSION IF NOT
//! EXISTS plpgsql`. Dumps and migrations begin with them.

use datafusion::common::Result;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::Session;
use crate::session::statement::command_tag::{missing, there, with_notices};
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{is_word, next_name, parser_of, within_parentheses};

/// Kinds of objects that never exist, by the words of their DROP.
const KINDS: [&str; 15] = [
    "aggregate",
    "collation",
    "conversion",
    "domain",
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
    "type",
];

/// Those that share their namespace with tables.
const RELATIONS: [&str; 1] = ["foreign table"];

/// The extension that every PostgreSQL database has.
const BUILT_IN: &str = "plpgsql";

/// A statement about an object that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct IgnoredDdl {
    tag: String,
    kind: &'static str,
    /// The names, as written, each with its notice.
    names: Vec<(String, String)>,
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
            return Some(Self { tag: "CREATE EXTENSION".to_owned(), kind: "extension", names });
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
        Some(Self { tag, kind, names: names(&mut parser, kind, sql) })
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
                _ => missing(if kind == "domain" { "type" } else { kind }, &last.value),
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
    /// If another object has the name.
    pub(in crate::session) fn run_ignored(&self, ignored: &IgnoredDdl) -> Result<String> {
        let IgnoredDdl { tag, kind, names } = ignored;
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
                "drop type if exists a, \"S\".\"B\" cascade;",
                "DROP TYPE: type \"a\" does not exist, skipping; type \"B\" does not exist, skipping",
            ),
            ("DROP DOMAIN IF EXISTS d", "DROP DOMAIN: type \"d\" does not exist, skipping"),
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
        for sql in
            ["DROP TYPE a", "DROP TABLE IF EXISTS t", "CREATE EXTENSION x", "DROP", "SELECT 1"]
        {
            assert_eq!(said(sql), None, "{sql}");
        }
    }
}
