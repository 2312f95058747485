//! `SET CONSTRAINTS ALL DEFERRED`, `SET CONSTRAINTS a, s.b IMMEDIATE`, which the parser does not know.

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::DatabaseVersion;
use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::Session;
use atoll_sql_common::error::{SqlState, stated_err, transaction_error};
use atoll_sql_parse::syntax::{comma_separated, is_at_end, next_name, next_word, parser_of};

/// When constraints are checked until the transaction ends.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct SetConstraints {
    /// Names, qualified if the statement qualifies them; `None` for all.
    named: Option<Vec<(Option<String>, String)>>,
    is_deferred: bool,
}

impl SetConstraints {
    /// Parses the text; `None` if it is another statement.
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        let Some(mut parser) = parser_of(sql, &["set"]) else { return Ok(None) };
        parser.advance_token();
        if next_word(&mut parser) != "constraints" {
            return Ok(None);
        }
        let named = match parser.parse_keyword(Keyword::ALL) {
            true => None,
            false => Some(comma_separated(&mut parser, constraint_name)?),
        };
        let is_deferred = match next_word(&mut parser).as_str() {
            "deferred" => true,
            "immediate" => false,
            _ => return Err(expected()),
        };
        match is_at_end(&parser) {
            true => Ok(Some(Self { named, is_deferred })),
            false => Err(expected()),
        }
    }
}

fn expected() -> DataFusionError {
    SqlState::SYNTAX_ERROR
        .error("expected SET CONSTRAINTS ALL or names, then DEFERRED or IMMEDIATE")
}

fn constraint_name(parser: &mut Parser) -> Result<(Option<String>, String)> {
    let name = next_name(parser).ok_or_else(expected)?;
    match parser.consume_token(&Token::Period) {
        true => Ok((Some(name), next_name(parser).ok_or_else(expected)?)),
        false => Ok((None, name)),
    }
}

impl Session {
    /// Runs SET CONSTRAINTS, which has no effect outside of a transaction block.
    pub(in crate::session) async fn set_constraints(&self, set: SetConstraints) -> Result<String> {
        let within = self.statement_transaction()?;
        let version = within.statement(true).await?;
        let named = match set.named {
            None => None,
            Some(named) => {
                let mut found = Vec::new();
                for (schema, name) in named {
                    found.extend(constraints_named(&version, schema.as_deref(), &name)?);
                }
                Some(found)
            }
        };
        let mut transaction = within.transaction.lock().await?;
        let done = transaction.set_constraints(named, set.is_deferred).await;
        drop(transaction);
        if let Err(error) = done {
            within.fail_settled().await;
            return Err(transaction_error(error));
        }
        Ok("SET CONSTRAINTS".to_owned())
    }
}

/// The foreign keys and unique constraints with a name.
fn constraints_named(
    version: &DatabaseVersion,
    schema: Option<&str>,
    name: &str,
) -> Result<Vec<(TableId, Arc<str>)>> {
    let (mut found, mut has_other) = (Vec::new(), false);
    for (id, table) in version.tables() {
        let is_in = |wanted: &str| version.table_name(id).is_some_and(|at| &*at.schema == wanted);
        if !schema.is_none_or(is_in) {
            continue;
        }
        let definition = table.definition();
        let keys = definition.foreign_keys.iter().filter(|key| &*key.name == name);
        found.extend(keys.map(|key| (id, Arc::clone(&key.name))));
        let uniques = definition.uniques.iter();
        let uniques = uniques.filter(|unique| &*unique.name == name && !unique.is_index);
        found.extend(uniques.map(|unique| (id, Arc::clone(&unique.name))));
        has_other |= definition.checks.iter().any(|check| &*check.name == name);
    }
    match (found.is_empty(), has_other) {
        (false, _) => Ok(found),
        (true, true) => stated_err!(WRONG_OBJECT_TYPE, "constraint \"{name}\" is not deferrable"),
        (true, false) => stated_err!(UNDEFINED_OBJECT, "constraint \"{name}\" does not exist"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_named_with_and_without_their_schemas() {
        let of = |sql: &str| SetConstraints::parse(sql).unwrap();
        let all = SetConstraints { named: None, is_deferred: true };
        assert_eq!(of("set constraints all deferred;"), Some(all));
        let named = |schema: Option<&str>, name: &str| (schema.map(str::to_owned), name.to_owned());
        let some = SetConstraints {
            named: Some(vec![named(None, "a_fkey"), named(Some("S"), "b")]),
            is_deferred: false,
        };
        assert_eq!(of("SET CONSTRAINTS A_fkey, \"S\".b IMMEDIATE"), Some(some));
        assert_eq!(of("SET constraint_exclusion = on"), None);
        assert_eq!(of("SET x = 1"), None);
        for wrong in
            ["SET CONSTRAINTS a", "SET CONSTRAINTS a, DEFERRED", "SET CONSTRAINTS 1 DEFERRED"]
        {
            assert!(SetConstraints::parse(wrong).is_err(), "{wrong}");
        }
    }
}
