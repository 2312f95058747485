//! Runs one statement of either protocol, and manages the transaction around it.

use atoll_sql::{Session, TransactionState, begins_with};

use super::failure::Failure;
use super::{Client, Connection};
use crate::error_fields::error_fields;
use crate::wire::{ErrorFields, Severity};

/// Rows of a batch to write before checking whether to send.
pub(super) const ROWS: usize = 1024;

/// How a statement controls transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// It begins one.
    Begin,
    /// It ends one.
    End,
    /// Any other statement.
    None,
}

impl Control {
    pub(crate) fn from_sql(sql: &str) -> Self {
        if begins_with(sql, &["begin", "start"]) {
            Self::Begin
        } else if begins_with(sql, &["commit", "end", "rollback", "abort"]) && !is_of_other(sql)
            || is_prepare_transaction(sql)
        {
            Self::End
        } else {
            Self::None
        }
    }
}

/// Whether it ends no transaction of its own: ROLLBACK TO a savepoint, COMMIT PREPARED and ROLLBACK PREPARED.
fn is_of_other(sql: &str) -> bool {
    let mut words = sql.split_ascii_whitespace().skip(1);
    words.any(|word| word.eq_ignore_ascii_case("to") || word.eq_ignore_ascii_case("prepared"))
}

/// Whether it is PREPARE TRANSACTION, and not the PREPARE of a statement of this name.
fn is_prepare_transaction(sql: &str) -> bool {
    if !begins_with(sql, &["prepare"]) {
        return false;
    }
    let mut words = sql.split_ascii_whitespace().skip(1);
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("transaction"))
        && words.next().is_some_and(|name| name.starts_with('\''))
}

impl Connection {
    /// Runs a transaction command; like PostgreSQL, warns if it has no effect.
    pub(super) async fn control(
        client: &mut Client,
        session: &Session,
        is_implicit: &mut bool,
        control: Control,
        sql: &str,
    ) -> Result<(), Failure> {
        let is_open = session.transaction_state() != TransactionState::Idle;
        match control {
            Control::Begin if *is_implicit => {
                // Earlier statements of the group are part of the transaction.
                *is_implicit = false;
                client.output().command_complete("BEGIN");
                return Ok(());
            }
            Control::Begin if session.transaction_state() == TransactionState::Open => {
                warn(client, session, "25001", "there is already a transaction in progress");
                client.output().command_complete("BEGIN");
                return Ok(());
            }
            Control::End if !is_open => {
                warn(client, session, "25P01", "there is no transaction in progress");
                let is_commit = begins_with(sql, &["commit", "end"]);
                client.output().command_complete(if is_commit { "COMMIT" } else { "ROLLBACK" });
                return Ok(());
            }
            _ => {}
        }
        let sql = if begins_with(sql, &["abort"]) { "ROLLBACK" } else { sql };
        *is_implicit = false;
        let result = client.unless_ended(session.run(sql)).await?;
        let result = result.map_err(|error| error_fields(&error, sql, 0))?;
        client.complete(&result.tag());
        Ok(())
    }

    /// Deallocates protocol-level prepared statements on DEALLOCATE and DISCARD ALL; returns whether nothing else is
    /// left to do.
    pub(super) fn deallocate(&mut self, sql: &str) -> bool {
        if !begins_with(sql, &["deallocate", "discard"]) {
            return false;
        }
        let words: Vec<String> = sql
            .split(|letter: char| letter.is_whitespace() || letter == ';')
            .filter(|word| !word.is_empty())
            .map(|word| word.trim_matches('"').to_owned())
            .collect();
        let is = |at: usize, wanted: &str| words[at].eq_ignore_ascii_case(wanted);
        let name = match words.len() {
            2 if is(0, "deallocate") => 1,
            3 if is(0, "deallocate") && is(1, "prepare") => 2,
            2 if is(0, "discard") && is(1, "all") => 1,
            _ => return false,
        };
        if is(name, "all") {
            self.prepared.clear();
            self.session.forget_client_statement(None);
            return false;
        }
        let is_known = self.prepared.remove(&words[name]).is_some();
        if is_known {
            self.session.forget_client_statement(Some(&words[name]));
            self.client.output().command_complete("DEALLOCATE");
        }
        is_known
    }

    /// Begins the transaction of a group of statements, unless one is open.
    pub(super) async fn begin_group(&mut self) -> Result<(), Failure> {
        if self.session.transaction_state() == TransactionState::Idle {
            self.command("BEGIN").await?;
            self.is_implicit = true;
        }
        Ok(())
    }

    /// Ends the transaction of a group of statements, if there is one.
    pub(super) async fn end_group(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.is_implicit) {
            return Ok(());
        }
        match self.session.transaction_state() {
            TransactionState::Idle => Ok(()),
            TransactionState::Open => self.command("COMMIT").await,
            TransactionState::Failed => self.command("ROLLBACK").await,
        }
    }

    async fn command(&mut self, sql: &str) -> Result<(), Failure> {
        let done = self.session.run(sql).await;
        done.map(drop).map_err(|error| error_fields(&error, sql, 0).into())
    }
}

/// Sends a warning.
fn warn(client: &mut Client, session: &Session, state: &'static str, message: &str) {
    if !session.tells_warnings() {
        return;
    }
    let warning = ErrorFields::new(Severity::Warning, state, message);
    client.output().error(&warning);
}

/// Sends the tag of a statement. Text beyond PostgreSQL's tag becomes a notice.
pub(super) fn complete(client: &mut Client, session: &Session, tag: &str) {
    match tag.split_once(": ") {
        Some((tag, rest)) => {
            for notice in rest.lines().filter(|_| session.tells_notices()) {
                client.output().error(&ErrorFields::new(Severity::Notice, "00000", notice));
            }
            client.complete(tag);
        }
        None => client.complete(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_commands_are_recognized_by_their_first_word() {
        for (sql, control) in [
            ("BEGIN", Control::Begin),
            ("  -- x\n/* y */ start transaction", Control::Begin),
            ("commit;", Control::End),
            ("END", Control::End),
            ("ROLLBACK TO SAVEPOINT a", Control::None),
            ("ROLLBACK", Control::End),
            ("COMMIT PREPARED 'a'", Control::None),
            ("rollback prepared 'to'", Control::None),
            ("SELECT 'begin'", Control::None),
            ("--", Control::None),
            ("", Control::None),
        ] {
            assert_eq!(Control::from_sql(sql), control, "{sql}");
        }
    }
}
