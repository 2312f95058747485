//! Two-phase commit: PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::role::is_superuser;
use crate::session::Session;
use crate::session::transaction::TransactionEnd;
use atoll_sql_common::error::{SqlState, transaction_error};
use atoll_sql_parse::syntax::{is_at_end, next_word, parser_of};

/// Bytes of a name at most.
const NAME_BYTES: usize = 199;

/// A statement of two-phase commit.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum TwoPhaseStatement {
    /// `PREPARE TRANSACTION 'name'`
    Prepare { name: String },
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
            ("prepare", "transaction") => Some(Self::Prepare { name }),
            ("commit" | "rollback", "prepared") => {
                Some(Self::End { verb: verb.to_uppercase(), name })
            }
            _ => None,
        }
    }
}

impl Session {
    /// Runs a statement of two-phase commit; returns its tag.
    pub(in crate::session) async fn run_two_phase(
        &self,
        statement: &TwoPhaseStatement,
    ) -> Result<String> {
        match statement {
            TwoPhaseStatement::Prepare { name } => {
                if name.len() > NAME_BYTES {
                    let message = format!("transaction identifier \"{name}\" is too long");
                    return Err(SqlState::INVALID_PARAMETER.error(message));
                }
                let name: Arc<str> = name.as_str().into();
                Ok(self.end_transaction(TransactionEnd::Prepare(&name)).await?.to_owned())
            }
            TwoPhaseStatement::End { verb, name } => {
                self.check_not_failed()?;
                if self.is_in_transaction() {
                    self.fail_transaction();
                    let message = format!("{verb} PREPARED cannot run inside a transaction block");
                    return Err(SqlState::ACTIVE_TRANSACTION.error(message));
                }
                self.end_prepared(name, verb == "COMMIT").await?;
                Ok(format!("{verb} PREPARED"))
            }
        }
    }

    async fn end_prepared(&self, name: &str, commits: bool) -> Result<()> {
        let ending = self.database().store().ending(name).map_err(transaction_error)?;
        let is_own = ending.prepared().owner == self.identity.user;
        if !is_own && !is_superuser(self.database(), &self.identity) {
            return Err(SqlState::INSUFFICIENT_PRIVILEGE.detailed(
                "permission denied to finish prepared transaction",
                String::new(),
                "Must be superuser or the user that prepared the transaction.",
            ));
        }
        self.database().end_prepared(ending, commits).await
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
        let prepare = |name: &str| Some(TwoPhaseStatement::Prepare { name: name.to_owned() });
        for (sql, wanted) in [
            ("PREPARE TRANSACTION 'a'", prepare("a")),
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
