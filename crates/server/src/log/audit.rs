//! The audit log: log-ins, log-outs, and statements that change definitions, rights, roles or other sessions, or copy
//! the database.

use std::time::{Duration, SystemTime};

use atoll_sql::activity::without_passwords;
use atoll_sql::{begins_with, split_first_word};
use serde_json::{Value, json};

use super::{Logs, TEXT_MAX, timestamp};

/// The client in an audit record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditedClient<'a> {
    pub(crate) role: &'a str,
    /// An address with its port, or `local`.
    pub(crate) address: &'a str,
    /// The session's number; None before it has one.
    pub(crate) session: Option<u32>,
}

/// An audited event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditEvent<'a> {
    /// A client logged in over this protocol.
    LogIn { over: &'a str, is_encrypted: bool, application: &'a str },
    /// A log-in was refused with this SQLSTATE and message.
    Refused { over: &'a str, is_encrypted: bool, state: &'a str, reason: &'a str },
    /// A session ended.
    LogOut { after: Option<Duration> },
    /// A statement ended, with this SQLSTATE if it failed.
    Statement { class: AuditClass, statement: &'a str, error: Option<&'a str> },
}

/// Classes of audited statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditClass {
    /// CREATE, ALTER, DROP, TRUNCATE, COMMENT.
    Definition,
    /// GRANT, REVOKE.
    Grant,
    /// CREATE, ALTER and DROP of roles.
    Role,
    /// BACKUP, EXPORT, IMPORT.
    Backup,
    /// KILL, and the functions that do the same.
    Kill,
}

/// Functions that do what KILL does.
const KILLS: [&str; 2] = ["pg_terminate_backend", "pg_cancel_backend"];

impl AuditClass {
    /// The class of a statement; None if it is not audited. A PREPARE has the class of the statement that it prepares.
    pub(crate) fn from_sql(sql: &str) -> Option<Self> {
        let (first, rest) = split_first_word(sql);
        let is_role = || begins_with(rest, &["role", "user", "group"]);
        match first.to_ascii_lowercase().as_str() {
            "create" | "alter" | "drop" if is_role() => Some(Self::Role),
            "create" | "alter" | "drop" | "truncate" | "comment" => Some(Self::Definition),
            "grant" | "revoke" => Some(Self::Grant),
            "backup" | "export" | "import" => Some(Self::Backup),
            "kill" => Some(Self::Kill),
            "prepare" => prepared(rest).and_then(Self::from_sql),
            _ => has_any(sql, &KILLS).then_some(Self::Kill),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Grant => "grant",
            Self::Role => "role",
            Self::Backup => "backup",
            Self::Kill => "kill",
        }
    }
}

/// The statement that `PREPARE name [(types)] AS` prepares.
fn prepared(rest: &str) -> Option<&str> {
    let at = rest.as_bytes().windows(4).position(|window| {
        window[0].is_ascii_whitespace()
            && window[1..3].eq_ignore_ascii_case(b"as")
            && window[3].is_ascii_whitespace()
    })?;
    rest.get(at + 4..)
}

/// Whether a text contains any of the words, ignoring case.
fn has_any(sql: &str, words: &[&str]) -> bool {
    let is_at = |word: &[u8], at: &[u8]| at.eq_ignore_ascii_case(word);
    let mut words = words.iter().map(|word| word.as_bytes());
    words.any(|word| sql.as_bytes().windows(word.len()).any(|at| is_at(word, at)))
}

impl Logs {
    /// Whether there is an audit log.
    pub(crate) fn has_audit(&self) -> bool {
        self.audit.is_some()
    }

    /// Logs an event if there is an audit log.
    pub(crate) fn audit(&self, client: &AuditedClient<'_>, event: &AuditEvent<'_>) {
        let Some(sink) = &self.audit else { return };
        let mut line = json!({
            "time": timestamp(SystemTime::now()),
            "event": event.name(),
            "result": event.result(),
            "role": client.role,
            "address": client.address,
            "session": client.session,
        });
        event.add(&mut line);
        self.write(sink, &line);
    }

    /// Logs a statement if its class is audited.
    pub(crate) fn audit_statement(
        &self,
        client: &AuditedClient<'_>,
        sql: &str,
        error: Option<&str>,
    ) {
        if !self.has_audit() {
            return;
        }
        if let Some(class) = AuditClass::from_sql(sql) {
            let statement = without_passwords(sql, TEXT_MAX);
            self.audit(client, &AuditEvent::Statement { class, statement, error });
        }
    }
}

impl AuditEvent<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::LogIn { .. } | Self::Refused { .. } => "login",
            Self::LogOut { .. } => "logout",
            Self::Statement { class, .. } => class.name(),
        }
    }

    /// `ok`, or an SQLSTATE.
    fn result(&self) -> &str {
        match self {
            Self::LogIn { .. } | Self::LogOut { .. } => "ok",
            Self::Refused { state, .. } => state,
            Self::Statement { error, .. } => error.unwrap_or("ok"),
        }
    }

    /// Adds the fields that only this event has.
    fn add(&self, line: &mut Value) {
        match *self {
            Self::LogIn { over, is_encrypted, application } => {
                line["over"] = over.into();
                line["tls"] = is_encrypted.into();
                line["application"] = application.into();
            }
            Self::Refused { over, is_encrypted, reason, .. } => {
                line["over"] = over.into();
                line["tls"] = is_encrypted.into();
                line["reason"] = reason.into();
            }
            Self::LogOut { after } => line["seconds"] = after.map(|after| after.as_secs()).into(),
            Self::Statement { statement, .. } => line["statement"] = statement.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_classified_by_their_first_words() {
        for (sql, class) in [
            ("CREATE TABLE t (a INT)", Some(AuditClass::Definition)),
            ("/* x */ alter -- y\n ROLE ann PASSWORD 'x'", Some(AuditClass::Role)),
            ("CREATE USER ann", Some(AuditClass::Role)),
            ("DROP VIEW v", Some(AuditClass::Definition)),
            ("GRANT a TO b", Some(AuditClass::Grant)),
            ("revoke all on t from b", Some(AuditClass::Grant)),
            ("BACKUP DATABASE TO 'x'", Some(AuditClass::Backup)),
            ("KILL QUERY 7", Some(AuditClass::Kill)),
            ("SELECT Pg_Terminate_Backend(7)", Some(AuditClass::Kill)),
            ("PREPARE p AS\nCREATE TABLE t AS SELECT 1", Some(AuditClass::Definition)),
            ("PREPARE p AS SELECT 1", None),
            ("PREPARE p", None),
            ("SELECT 'create'", None),
            ("INSERT INTO t VALUES (1)", None),
            ("", None),
        ] {
            assert_eq!(AuditClass::from_sql(sql), class, "{sql}");
        }
    }
}
