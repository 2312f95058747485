//! Statements without effect: `DROP TYPE IF EXISTS x` for kinds of objects that never exist, `CREATE EXTENSION IF NOT
//! EXISTS plpgsql`. Dumps and migrations begin with them.

use datafusion::common::Result;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::session::Session;
use crate::session::statement::command_tag::{missing, there, with_notices};
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::begins_with;

/// Kinds of objects that never exist, by the words of their DROP.
const KINDS: [&str; 16] = [
    "aggregate",
    "collation",
    "conversion",
    "domain",
    "event trigger",
    "extension",
    "foreign table",
    "language",
    "materialized view",
    "policy",
    "procedure",
    "publication",
    "rule",
    "server",
    "trigger",
    "type",
];

/// Those that share their namespace with tables.
const RELATIONS: [&str; 2] = ["foreign table", "materialized view"];

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
        if !begins_with(sql, &["drop", "create"]) {
            return None;
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().ok()?;
        let is_blank = |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon);
        let tokens: Vec<Token> = tokens.into_iter().filter(|token| !is_blank(token)).collect();
        let words: Vec<String> = tokens.iter().map(|it| it.to_string().to_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["create", "extension", "if", "not", "exists", "plpgsql" | "\"plpgsql\"", ..] => {
                let notice = there("extension", BUILT_IN);
                let names = vec![(BUILT_IN.to_owned(), notice)];
                Some(Self { tag: "CREATE EXTENSION".to_owned(), kind: "extension", names })
            }
            ["drop", rest @ ..] => {
                let kind = KINDS.into_iter().find(|kind| {
                    let of: Vec<&str> = kind.split(' ').collect();
                    rest.starts_with(&of)
                })?;
                let start = 1 + kind.split(' ').count();
                if words.get(start..start + 2)? != ["if", "exists"] {
                    return None;
                }
                let tag = format!("DROP {}", kind.to_uppercase());
                Some(Self { tag, kind, names: names(kind, tokens.get(start + 2..)?) })
            }
            _ => None,
        }
    }
}

/// The names of a list, with the notices that they do not exist.
fn names(kind: &str, tokens: &[Token]) -> Vec<(String, String)> {
    let mut depth = 0_usize;
    let items = tokens.split(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Comma
    });
    let item = |tokens: &[Token]| {
        let (name, rest) = leading_name(tokens)?;
        let text: String = name.iter().map(ToString::to_string).collect();
        let Some(Token::Word(last)) = name.last() else { return None };
        let notice = match rest {
            [Token::Word(on), table @ ..] if on.value.eq_ignore_ascii_case("on") => {
                let table: String =
                    leading_name(table)?.0.iter().map(ToString::to_string).collect();
                let (name, table) = (&last.value, table.trim_matches('"'));
                format!("{kind} \"{name}\" for relation \"{table}\" does not exist, skipping")
            }
            _ => missing(if kind == "domain" { "type" } else { kind }, &last.value),
        };
        Some((text, notice))
    };
    items.filter_map(item).collect()
}

/// Words with dots between them, and the rest.
fn leading_name(tokens: &[Token]) -> Option<(&[Token], &[Token])> {
    let is_part = |(at, token): (usize, &Token)| match at % 2 {
        0 => matches!(token, Token::Word(_)),
        _ => *token == Token::Period,
    };
    let end = tokens.iter().enumerate().position(|it| !is_part(it)).unwrap_or(tokens.len());
    (end > 0).then(|| tokens.split_at(end))
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
