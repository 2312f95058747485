//! Two-phase commit, refused with PostgreSQL's answers where `max_prepared_transactions` is 0, which it always is.

use datafusion::common::Result;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::session::Session;
use crate::session::transaction::TransactionState;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{is_at_end, next_word, parser_of};

/// A statement of two-phase commit.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum TwoPhaseStatement {
    /// `PREPARE TRANSACTION 'name'`
    Prepare,
    /// `COMMIT PREPARED 'name'` and `ROLLBACK PREPARED 'name'`, by their first word.
    End { verb: String, name: String },
}

impl TwoPhaseStatement {
    /// Parses the text; `None` if it is another statement.
    pub(in crate::session) fn parse(sql: &str) -> Option<Self> {
        let mut parser = parser_of(sql, &["prepare", "commit", "rollback"])?;
        let (verb, second) = (next_word(&mut parser), next_word(&mut parser));
        let Token::SingleQuotedString(name) = parser.next_token().token else { return None };
        match (verb.as_str(), second.as_str()) {
            _ if !is_at_end(&parser) => None,
            ("prepare", "transaction") => Some(Self::Prepare),
            ("commit" | "rollback", "prepared") => {
                Some(Self::End { verb: verb.to_uppercase(), name })
            }
            _ => None,
        }
    }
}

impl Session {
    /// Refuses a statement of two-phase commit. PREPARE TRANSACTION ends the transaction, as in PostgreSQL.
    pub(in crate::session) async fn run_two_phase(
        &self,
        statement: &TwoPhaseStatement,
    ) -> Result<String> {
        match statement {
            TwoPhaseStatement::Prepare => {
                let is_failed = self.transaction_state() == TransactionState::Failed;
                let tag = self.roll_back().await?;
                if is_failed {
                    return Ok(tag.to_owned());
                }
                Err(SqlState::NOT_IN_PREREQUISITE_STATE.detailed(
                    "prepared transactions are disabled",
                    "The transaction was rolled back.".to_owned(),
                    "max_prepared_transactions is 0 and cannot be changed; end the transaction with COMMIT",
                ))
            }
            TwoPhaseStatement::End { verb, name } => {
                self.check_not_failed()?;
                if self.is_in_transaction() {
                    self.fail_transaction();
                    let message = format!("{verb} PREPARED cannot run inside a transaction block");
                    return Err(SqlState::ACTIVE_TRANSACTION.error(message));
                }
                let message =
                    format!("prepared transaction with identifier \"{name}\" does not exist");
                Err(SqlState::UNDEFINED_OBJECT.error(message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_two_phase_commit_are_recognised() {
        let end = |verb: &str, name: &str| {
            Some(TwoPhaseStatement::End { verb: verb.to_owned(), name: name.to_owned() })
        };
        for (sql, wanted) in [
            ("PREPARE TRANSACTION 'a'", Some(TwoPhaseStatement::Prepare)),
            ("commit prepared 'a b';", end("COMMIT", "a b")),
            ("ROLLBACK PREPARED ''", end("ROLLBACK", "")),
            ("PREPARE transaction AS SELECT 1", None),
            ("PREPARE p AS SELECT 'a'", None),
            ("COMMIT PREPARED", None),
            ("COMMIT", None),
            ("ROLLBACK PREPARED 'a' 'b'", None),
        ] {
            assert_eq!(TwoPhaseStatement::parse(sql), wanted, "{sql}");
        }
    }
}
