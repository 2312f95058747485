//! LOCK TABLE … IN ACCESS SHARE MODE, by which pg_dump keeps its tables. Nothing is locked: a transaction reads its
//! version of the database, whatever others alter or drop. Other modes are refused.

use datafusion::common::{Result, TableReference};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::role::rights::Right;
use crate::session::Session;
use crate::session::transaction::StatementTransaction;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::plain;
use atoll_sql_parse::syntax::begins_with;

/// The words after the tables.
const MODE: [&str; 4] = ["in", "access", "share", "mode"];

/// `LOCK [TABLE] [ONLY] t, s.u IN ACCESS SHARE MODE [NOWAIT]`
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct LockStatement {
    /// The tables, as written.
    tables: Vec<String>,
}

impl LockStatement {
    /// Parses the text; `None` if it is another statement, or locks in another mode.
    pub(in crate::session) fn parse(sql: &str) -> Option<Self> {
        if !begins_with(sql, &["lock"]) {
            return None;
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().ok()?;
        let is_blank = |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon);
        let tokens: Vec<Token> = tokens.into_iter().filter(|token| !is_blank(token)).collect();
        let word = |at: usize| tokens.get(at).map(|token| token.to_string().to_lowercase());
        let is = |at: usize, wanted: &str| word(at).as_deref() == Some(wanted);
        let end = tokens.len() - usize::from(is(tokens.len() - 1, "nowait"));
        let start = if is(1, "table") { 2 } else { 1 };
        let mode = end.checked_sub(MODE.len()).filter(|mode| *mode > start)?;
        if !MODE.iter().enumerate().all(|(at, wanted)| is(mode + at, wanted)) {
            return None;
        }
        let names = tokens[start..mode].split(|token| *token == Token::Comma);
        let tables: Option<Vec<String>> = names.map(name).collect();
        tables.map(|tables| Self { tables })
    }
}

/// `[ONLY] s.t [*]`
fn name(tokens: &[Token]) -> Option<String> {
    let tokens = match tokens {
        [Token::Word(only), rest @ ..]
            if !rest.is_empty() && only.value.eq_ignore_ascii_case("only") =>
        {
            rest
        }
        tokens => tokens,
    };
    let tokens = tokens.strip_suffix(&[Token::Mul]).unwrap_or(tokens);
    let is_part = |(at, token): (usize, &Token)| match at % 2 {
        0 => matches!(token, Token::Word(_)),
        _ => *token == Token::Period,
    };
    let is_name = tokens.len() % 2 == 1 && tokens.iter().enumerate().all(is_part);
    is_name.then(|| tokens.iter().map(ToString::to_string).collect())
}

impl Session {
    /// Checks that the tables exist and may be read.
    pub(in crate::session) async fn run_lock(
        &self,
        transaction: &StatementTransaction,
        lock: &LockStatement,
    ) -> Result<()> {
        if !self.is_in_transaction() {
            let message = "LOCK TABLE can only be used in transaction blocks; say BEGIN first";
            return Err(SqlState::NO_ACTIVE_TRANSACTION.error(message));
        }
        let planner = self.planner(transaction, false).await?;
        for table in &lock.tables {
            let at = planner.resolve(TableReference::from(table.as_str()));
            if planner.names.table(&at)?.is_none() {
                return Err(SqlState::missing_table(&plain(&at)));
            }
            planner.check_right(Right::Select, &at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_locks_are_parsed() {
        let tables = |sql: &str| LockStatement::parse(sql).map(|lock| lock.tables.join("|"));
        let of = |sql| tables(sql).expect(sql);
        assert_eq!(of("LOCK TABLE public.t IN ACCESS SHARE MODE;"), "public.t");
        assert_eq!(of("lock only s.\"T\" *, u in access share mode nowait"), "s.\"T\"|u");
        for other in ["LOCK TABLE t", "LOCK t IN SHARE MODE", "LOCK IN ACCESS SHARE MODE", "LOCK"] {
            assert_eq!(tables(other), None, "{other}");
        }
    }
}
