//! LISTEN, UNLISTEN and NOTIFY, which take effect when their transaction commits.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::notifications::{ListenChange, Notification, check_channel};
use crate::session::Session;
use crate::session::statement::query_result::QueryResult;
use atoll_sql_common::error::stated_err;
use atoll_sql_parse::syntax::begins_with;

/// A statement about notifications.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum NotifyStatement {
    Listen(String),
    /// From one channel, or from all.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
}

impl NotifyStatement {
    /// Parses the text; `None` if it is another statement.
    ///
    /// # Errors
    /// For texts that begin like one of these statements and are none.
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        if !begins_with(sql, &["listen", "unlisten", "notify"]) {
            return Ok(None);
        }
        let failed = |error| DataFusionError::SQL(Box::new(error), None);
        let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(sql).map_err(failed)?;
        parse_statement(&mut parser).map(Some).map_err(failed)
    }
}

fn parse_statement(parser: &mut Parser<'_>) -> Result<NotifyStatement, ParserError> {
    let first = parser.next_token().to_string().to_ascii_lowercase();
    let statement = match first.as_str() {
        "listen" => NotifyStatement::Listen(channel(parser)?),
        "unlisten" if parser.consume_token(&Token::Mul) => NotifyStatement::Unlisten(None),
        "unlisten" => NotifyStatement::Unlisten(Some(channel(parser)?)),
        _ => {
            let channel = channel(parser)?;
            let has_payload = parser.consume_token(&Token::Comma);
            let payload = if has_payload { payload(parser)? } else { String::new() };
            NotifyStatement::Notify { channel, payload }
        }
    };
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token().token {
        Token::EOF => Ok(statement),
        _ => parser.expected("end of statement", parser.peek_token()),
    }
}

/// The name of a channel, in lower case unless it is quoted.
fn channel(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::Word(Word { value, quote_style: None, .. }) => Ok(value.to_lowercase()),
        Token::Word(Word { value, .. }) if value.is_empty() => {
            Err(ParserError::ParserError("zero-length delimited identifier".to_owned()))
        }
        Token::Word(Word { value, .. }) => Ok(value),
        _ => parser.expected("the name of a channel", token),
    }
}

fn payload(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => parser.expected("a payload as a string", token),
    }
}

impl Session {
    /// Runs a statement about notifications.
    pub(in crate::session) async fn run_notify(
        &self,
        statement: NotifyStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        let tag = match statement {
            NotifyStatement::Listen(channel) => {
                if self.listener.is_deaf() {
                    return stated_err!(
                        FEATURE_NOT_SUPPORTED,
                        "this connection cannot receive notifications; LISTEN over PostgreSQL's protocol"
                    );
                }
                check_channel(&channel)?;
                self.change_listening(ListenChange::Listen(channel.into())).await?;
                "LISTEN"
            }
            NotifyStatement::Unlisten(channel) => {
                let change = match channel {
                    Some(channel) => {
                        check_channel(&channel)?;
                        ListenChange::Unlisten(channel.into())
                    }
                    None => ListenChange::UnlistenAll,
                };
                self.change_listening(change).await?;
                "UNLISTEN"
            }
            NotifyStatement::Notify { channel, payload } => {
                let process = self.identity.process();
                let notification = Notification::try_new(process, &channel, &payload)?;
                let transaction = self.statement_transaction()?;
                transaction.transaction.announce(|it| it.notify(notification))?;
                transaction.finish(self.database()).await?;
                "NOTIFY"
            }
        };
        Ok(QueryResult::done(tag.to_owned(), sql))
    }

    /// Changes which channels the session listens on, when its transaction commits.
    pub(in crate::session) async fn change_listening(&self, change: ListenChange) -> Result<()> {
        let transaction = self.statement_transaction()?;
        transaction.transaction.announce(|it| it.listen(&self.listener, change));
        transaction.finish(self.database()).await
    }

    /// Waits until notifications have arrived, or too many waited and were lost.
    pub async fn notified(&self) {
        self.listener.arrived().await;
    }

    /// Takes the notifications that have arrived. A client receives them outside of transactions.
    pub fn take_notifications(&self) -> Vec<Notification> {
        self.listener.take()
    }

    /// Whether notifications were lost since the last call, because too many waited for the session.
    pub fn take_lost_notifications(&self) -> bool {
        self.listener.take_lost()
    }

    /// Refuses LISTEN from now on: for clients to which nothing can be delivered.
    pub fn refuse_listen(&self) {
        self.listener.set_deaf();
    }
}

#[cfg(test)]
mod tests {
    use atoll_sql_common::error::SqlState;

    use super::*;

    #[test]
    fn channels_are_names_and_payloads_are_strings() {
        let notify = |channel: &str, payload: &str| NotifyStatement::Notify {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
        };
        for (sql, statement) in [
            ("LISTEN Jobs", NotifyStatement::Listen("jobs".to_owned())),
            ("listen \"My Jobs\";", NotifyStatement::Listen("My Jobs".to_owned())),
            ("UNLISTEN *", NotifyStatement::Unlisten(None)),
            ("UNLISTEN \"*\"", NotifyStatement::Unlisten(Some("*".to_owned()))),
            ("/* x */ NOTIFY a", notify("a", "")),
            ("NOTIFY a, 'it''s'", notify("a", "it's")),
            ("NOTIFY a, E'1\\n2';", notify("a", "1\n2")),
            ("NOTIFY a, $$x'y$$", notify("a", "x'y")),
        ] {
            assert_eq!(NotifyStatement::parse(sql).unwrap(), Some(statement), "{sql}");
        }
        for sql in [
            "LISTEN",
            "LISTEN *",
            "LISTEN 'a'",
            "LISTEN \"\"",
            "LISTEN a, b",
            "NOTIFY a 'x'",
            "NOTIFY a, b",
        ] {
            let error = NotifyStatement::parse(sql).unwrap_err();
            assert_eq!(SqlState::from_error(&error), SqlState::SYNTAX_ERROR, "{sql}: {error}");
        }
        assert_eq!(NotifyStatement::parse("SELECT 'listen'").unwrap(), None);
    }
}
