//! VACUUM, ANALYZE and REINDEX, which have no effect. Deleted rows are folded away in the background, statistics are
//! exact for the rows that a query reads, and indexes do not bloat.

use datafusion::common::{Result, TableReference, plan_err};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::session::Session;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::plain;
use atoll_sql_parse::syntax::begins_with;

/// Words that may come before table names.
const OPTIONS: [&str; 8] =
    ["full", "freeze", "verbose", "analyze", "analyse", "table", "skip_locked", "concurrently"];

/// Objects of REINDEX that are not tables.
const OTHERS: [&str; 4] = ["index", "schema", "database", "system"];

/// VACUUM, ANALYZE or REINDEX.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct VacuumStatement {
    pub(in crate::session) tag: &'static str,
    /// The tables that it names, as written.
    tables: Vec<String>,
}

impl VacuumStatement {
    /// Parses the text; `None` if it is another statement.
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        if !begins_with(sql, &["vacuum", "analyze", "analyse", "reindex"]) {
            return Ok(None);
        }
        let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize() else {
            return Ok(None);
        };
        let is_blank = |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon);
        let mut tokens = tokens.into_iter().filter(|token| !is_blank(token)).peekable();
        let first = tokens.next().map(|token| token.to_string().to_lowercase());
        let tag = match first.as_deref() {
            Some("vacuum") => "VACUUM",
            Some("analyze" | "analyse") => "ANALYZE",
            Some("reindex") => "REINDEX",
            _ => return Ok(None),
        };
        let (mut tables, mut depth) = (Vec::new(), 0_usize);
        let (mut is_next, mut is_qualified, mut names_others) = (true, false, false);
        for token in tokens {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                // Options, and columns of a table.
                _ if depth > 0 => {}
                Token::Comma => is_next = true,
                Token::Period => is_qualified = true,
                Token::Word(word)
                    if tables.is_empty()
                        && word.quote_style.is_none()
                        && OPTIONS.contains(&word.value.to_lowercase().as_str()) => {}
                Token::Word(word)
                    if tag == "REINDEX"
                        && tables.is_empty()
                        && OTHERS.contains(&word.value.to_lowercase().as_str()) =>
                {
                    names_others = true;
                }
                Token::Word(word) => match tables.last_mut() {
                    Some(table) if std::mem::take(&mut is_qualified) => {
                        *table = format!("{table}.{word}");
                    }
                    _ if is_next => {
                        tables.push(word.to_string());
                        is_next = false;
                    }
                    _ => return plan_err!("expected a comma before {word} in {tag}"),
                },
                other => return plan_err!("expected the name of a table in {tag}, found {other}"),
            }
        }
        if names_others {
            tables.clear();
        }
        Ok(Some(Self { tag, tables }))
    }
}

impl Session {
    /// Checks that the tables exist.
    pub(in crate::session) fn run_vacuum(&self, vacuum: &VacuumStatement) -> Result<()> {
        let (names, state) = (self.names(), self.context.state_ref());
        let catalog = state.read().config_options().catalog.clone();
        for table in &vacuum.tables {
            let at = names.resolve(TableReference::from(table.as_str()), &catalog);
            if names.table(&at)?.is_none() {
                return stated_err!(UNDEFINED_TABLE, "table '{}' does not exist", plain(&at));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_options() {
        for (sql, tag, tables) in [
            ("VACUUM", "VACUUM", vec![]),
            ("vacuum analyze t;", "VACUUM", vec!["t"]),
            ("VACUUM (FULL, PARALLEL 2) s.\"T\", u (a, b)", "VACUUM", vec!["s.\"T\"", "u"]),
            ("ANALYZE VERBOSE", "ANALYZE", vec![]),
            ("REINDEX (VERBOSE) TABLE CONCURRENTLY s.t", "REINDEX", vec!["s.t"]),
            ("REINDEX INDEX i", "REINDEX", vec![]),
        ] {
            let vacuum = VacuumStatement::parse(sql).expect(sql).expect(sql);
            assert_eq!(
                (vacuum.tag, vacuum.tables),
                (tag, tables.iter().map(|it| it.to_string()).collect())
            );
        }
        assert_eq!(VacuumStatement::parse("SELECT 1").expect("another statement"), None);
        assert!(VacuumStatement::parse("VACUUM t u").is_err());
        assert!(VacuumStatement::parse("VACUUM 5").is_err());
    }
}
