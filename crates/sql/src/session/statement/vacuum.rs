//! VACUUM, ANALYZE and REINDEX, which have no effect. Deleted rows are folded away in the background, statistics are
//! exact for the rows that a query reads, and indexes do not bloat.

use datafusion::common::{Result, TableReference, plan_err};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::Session;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::plain;
use atoll_sql_parse::syntax::{is_at_end, is_word, next_word, parser_of, within_parentheses};

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
        let Some(mut parser) = parser_of(sql, &["vacuum", "analyze", "analyse", "reindex"]) else {
            return Ok(None);
        };
        let tag = match next_word(&mut parser).as_str() {
            "vacuum" => "VACUUM",
            "reindex" => "REINDEX",
            _ => "ANALYZE",
        };
        let mut names_others = false;
        loop {
            let next = &parser.peek_token_ref().token;
            let is_other = tag == "REINDEX" && OTHERS.iter().any(|word| is_word(next, word));
            if is_other || OPTIONS.iter().any(|word| is_word(next, word)) {
                names_others |= is_other;
                parser.advance_token();
            } else if within_parentheses(&mut parser, sql).is_none() {
                break;
            }
        }
        let mut tables = Vec::new();
        while !is_at_end(&parser) {
            let Token::Word(_) = parser.peek_token_ref().token else {
                let found = parser.peek_token_ref();
                return plan_err!("expected the name of a table in {tag}, found {found}");
            };
            tables.push(parser.parse_object_name(false)?.to_string());
            // The columns.
            let _ = within_parentheses(&mut parser, sql);
            if !parser.consume_token(&Token::Comma) && !is_at_end(&parser) {
                let found = parser.peek_token_ref();
                return plan_err!("expected a comma before {found} in {tag}");
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
                return Err(SqlState::missing_table(&plain(&at)));
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
