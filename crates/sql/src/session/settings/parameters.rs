//! PostgreSQL's session settings, which its clients set and query: `SET application_name = 'x'`, `SHOW server_version`,
//! `RESET ALL`. Settings of the engine are DataFusion's.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use atoll_functions::temporal::TemporalStyle;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    TransactionAccessMode, TransactionIsolationLevel, TransactionMode,
};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::client_settings::{
    DEFERRABLE, ISOLATION, MESSAGES, PARAMETERS, Parameter, READ_COMMITTED, READ_ONLY,
    READ_UNCOMMITTED, REPEATABLE_READ, SEARCH_PATH, SERIALIZABLE, SESSION_AUTHORIZATION, TIME_ZONE,
    flag, known, setting_named,
};
use crate::notifications::ListenChange;
use crate::session::Session;
use crate::session::statement::command_tag::StatementTag;
use crate::session::statement::ignored_ddl::IgnoredDdl;
use crate::session::statement::query_result::QueryResult;
use atoll_sql_common::error::{SqlError, SqlState};
use atoll_sql_common::settings::AtollOptions;
use atoll_sql_parse::syntax::{begins_with, parser_of};
use atoll_sql_semantics::timezone;

/// The first words of such statements.
const FIRST_WORDS: [&str; 5] = ["set", "show", "reset", "discard", "close"];

/// The time zone's name among DataFusion's settings.
const ENGINE_TIME_ZONE: [&str; 5] = ["datafusion", ".", "execution", ".", "time_zone"];

/// A statement about such a setting.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum ParameterStatement {
    Set {
        name: Cow<'static, str>,
        value: Option<String>,
        is_local: bool,
    },
    Show(Cow<'static, str>),
    ResetAll,
    /// Resets the session to its initial state.
    DiscardAll,
    /// After temporary tables and views were dropped.
    DiscardTemp,
    /// A statement about objects that never exist.
    Ignored(IgnoredDdl),
    /// Takes a role's rights, which only the session's own role gives.
    Role(String),
    /// A statement without effect.
    Nothing(&'static str),
}

impl ParameterStatement {
    /// Parses the text; `None` if it is another statement.
    pub(in crate::session) fn parse(sql: &str) -> Option<Self> {
        let tokens = parser_of(sql, &FIRST_WORDS)?.into_tokens();
        let is_path =
            tokens.iter().take(3).any(|it| plain(&it.token).eq_ignore_ascii_case(SEARCH_PATH));
        let word = if is_path { name_in_path } else { plain };
        let words: Vec<String> = tokens.iter().map(|it| word(&it.token)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        Some(match lower.as_slice() {
            ["show", "time", "zone"] => Self::Show(Cow::Borrowed(TIME_ZONE)),
            ["show", "transaction", "isolation", "level"] => Self::Show(Cow::Borrowed(ISOLATION)),
            ["show", "session", "authorization"] => {
                Self::Show(Cow::Borrowed(SESSION_AUTHORIZATION))
            }
            ["show", name @ ..] => Self::Show(setting_named(&dotted(name)?)?),
            ["reset", "all"] => Self::ResetAll,
            // A session keeps the role that it logged in as.
            ["reset", "role"] | ["reset", "session", "authorization"] => Self::Nothing("RESET"),
            ["set", "role", "none" | "default"]
            | ["set", "session" | "local", "role", "none" | "default"]
            | ["set", "session", "authorization", "default"]
            | ["set", "session" | "local", "session", "authorization", "default"] => {
                Self::Nothing("SET")
            }
            ["set", "role", _]
            | ["set", "session" | "local", "role", _]
            | ["set", "session", "authorization", _]
            | ["set", "session" | "local", "session", "authorization", _] => {
                Self::Role(role_name(&tokens.last()?.token))
            }
            ["reset", "time", "zone"] => Self::set(TIME_ZONE, None, false)?,
            ["reset", name @ ..] if *name == ENGINE_TIME_ZONE => Self::set(TIME_ZONE, None, false)?,
            ["reset", name @ ..] => Self::set(&dotted(name)?, None, false)?,
            ["discard", "all"] => Self::DiscardAll,
            ["discard", "plans"] => Self::Nothing("DISCARD PLANS"),
            ["discard", "sequences"] => Self::Nothing("DISCARD SEQUENCES"),
            ["discard", "temp" | "temporary"] => Self::DiscardTemp,
            ["close", "all"] => Self::Nothing("CLOSE CURSOR ALL"),
            ["set", "session", ..] => Self::assignment(&lower[2..], &words[2..], false)?,
            ["set", "local", ..] => Self::assignment(&lower[2..], &words[2..], true)?,
            ["set", ..] => Self::assignment(&lower[1..], &words[1..], false)?,
            _ => return None,
        })
    }

    /// The assignment after SET.
    fn assignment(lower: &[&str], words: &[&str], is_local: bool) -> Option<Self> {
        match lower {
            ["time", "zone", "local"] => Self::set(TIME_ZONE, None, is_local),
            ["time", "zone", "interval", _, rest @ ..] => {
                let unit = match rest {
                    [] | ["hour", "to", "minute"] => "",
                    ["hour"] => " hours",
                    _ => return None,
                };
                let interval = format!("interval '{}{unit}'", words[3]);
                Self::set(TIME_ZONE, Some(&[interval.as_str()]), is_local)
            }
            ["time", "zone", _, ..] => Self::set(TIME_ZONE, Some(&words[2..]), is_local),
            ["names", _] => Self::set("client_encoding", Some(&words[1..]), is_local),
            [first, second, third, fourth, fifth, "=" | "to", ..]
                if [*first, *second, *third, *fourth, *fifth] == ENGINE_TIME_ZONE =>
            {
                let zone = timezone::from_engine_name(&words[6..].concat());
                Self::set(TIME_ZONE, Some(&[zone.as_str()]), is_local)
            }
            _ => {
                let end = lower.iter().position(|word| matches!(*word, "=" | "to"))?;
                Self::set(&dotted(&lower[..end])?, Some(&words[end + 1..]), is_local)
            }
        }
    }

    fn set(name: &str, value: Option<&[&str]>, is_local: bool) -> Option<Self> {
        let value = value.map(|words| match words {
            [sign @ ("-" | "+"), number] => format!("{sign}{number}"),
            words => words.join(" ").replace(" ,", ","),
        });
        let value = value.filter(|value| !value.eq_ignore_ascii_case("default"));
        Some(Self::Set { name: setting_named(name)?, value, is_local })
    }
}

/// A name whose parts are separated by dots.
fn dotted(words: &[&str]) -> Option<String> {
    let is_point = |(at, word): (usize, &&str)| (*word == ".") == (at % 2 == 1);
    words.iter().enumerate().all(is_point).then(|| words.concat())
}

/// The value of a token.
fn plain(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    }
}

/// The role that a token names.
fn role_name(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        other => plain(other),
    }
}

/// A token in a list of schemas: names in their actual case, quoted if necessary.
fn name_in_path(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        Token::Word(word) => quote_identifier(&word.value).into_owned(),
        Token::SingleQuotedString(text) if text.is_empty() => "\"\"".to_owned(),
        Token::SingleQuotedString(text) => quote_identifier(text).into_owned(),
        other => other.to_string(),
    }
}

/// The column of SHOW.
pub(in crate::session) fn shown_schema(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]))
}

impl Session {
    /// Settings that PostgreSQL's clients are notified of, with their values.
    pub fn reported_parameters(&self) -> Vec<(&'static str, String)> {
        self.parameters.take_changed();
        self.reported(PARAMETERS.iter())
    }

    /// Those that were changed since the last notification.
    pub fn changed_parameters(&self) -> Vec<(&'static str, String)> {
        let changed = self.parameters.take_changed();
        self.reported(changed.iter().filter_map(|name| known(name)))
    }

    fn reported(
        &self,
        parameters: impl Iterator<Item = &'static Parameter>,
    ) -> Vec<(&'static str, String)> {
        let names = parameters.filter(|parameter| parameter.is_reported).map(|it| it.name);
        names.filter_map(|name| Some((name, self.parameters.get(name)?))).collect()
    }

    /// Sets how many sessions clients may have at the same time, which `max_connections` shows.
    pub fn set_connections_max(&self, count: usize) {
        self.parameters.set_connections_max(count);
    }

    /// Parses a statement about one of PostgreSQL's settings, or without effect. An unknown name with a dot may be that
    /// of a table.
    pub(in crate::session) fn parameter_statement(&self, sql: &str) -> Option<ParameterStatement> {
        let ignored = || IgnoredDdl::parse(sql).map(ParameterStatement::Ignored);
        let statement = ParameterStatement::parse(sql).or_else(ignored)?;
        match &statement {
            ParameterStatement::Show(name) if self.parameters.get(name).is_none() => None,
            _ => Some(statement),
        }
    }

    /// Sets one of PostgreSQL's settings for a client that begins a session, which RESET restores; false if there is no
    /// such setting.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn set_parameter(&self, name: &str, value: &str) -> std::result::Result<bool, SqlError> {
        self.parameters.set_first(name, value).map_err(|error| SqlError::new(error, ""))
    }

    /// How long a statement may run; `None` if it is unlimited.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.parameters.time("statement_timeout")
    }

    /// How long a transaction may wait for its client.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.parameters.time("idle_in_transaction_session_timeout")
    }

    /// Whether the client receives notices.
    pub fn tells_notices(&self) -> bool {
        self.parameters.get(MESSAGES).is_none_or(|least| !["warning", "error"].contains(&&*least))
    }

    /// Whether it receives warnings.
    pub fn tells_warnings(&self) -> bool {
        self.parameters.get(MESSAGES).is_none_or(|least| least != "error")
    }

    /// The session's time zone, which determines the current date.
    pub fn time_zone(&self) -> Option<String> {
        self.context.state_ref().read().config_options().execution.time_zone.clone()
    }

    /// How the session writes and reads dates, times and intervals.
    pub fn temporal_style(&self) -> TemporalStyle {
        TemporalStyle::from_options(self.context.state_ref().read().config_options())
    }

    /// Keeps what a statement of transactions says about DEFERRABLE.
    pub(in crate::session) fn keep_deferrable(&self, sql: &str) {
        if let Some(is_deferrable) = said_deferrable(sql) {
            self.parameters.set_deferrable(is_deferrable);
        }
    }

    /// Runs a statement about such a setting.
    pub(in crate::session) async fn parameter(
        &self,
        statement: ParameterStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        self.check_not_failed()?;
        let parameters = &self.parameters;
        let tag = match statement {
            ParameterStatement::Set { name, value, .. } if name == DEFERRABLE => {
                let Some(value) = flag(value.as_deref().unwrap_or_default()) else {
                    let message = format!("parameter \"{DEFERRABLE}\" requires a Boolean value");
                    return Err(SqlState::INVALID_PARAMETER.error(message));
                };
                self.set_transaction(&[])?;
                parameters.set_deferrable(value == "on");
                "SET"
            }
            ParameterStatement::Set { name, value, .. }
                if [ISOLATION, READ_ONLY].contains(&&*name) =>
            {
                self.set_transaction(&[mode(&name, value.as_deref())?])?;
                "SET"
            }
            ParameterStatement::Set { name, value, is_local } => {
                parameters.set(&name, value.as_deref(), is_local)?;
                if begins_with(sql, &["reset"]) { "RESET" } else { "SET" }
            }
            ParameterStatement::Show(name) => {
                let value = parameters.get(&name).unwrap_or_default();
                let column: ArrayRef = Arc::new(StringArray::from(vec![value]));
                let batch = RecordBatch::try_new(shown_schema(&name), vec![column])?;
                let result = QueryResult::from_batches(batch.schema(), vec![batch], sql);
                return Ok(result.tagged(StatementTag::shown("SHOW")));
            }
            ParameterStatement::ResetAll => {
                self.reset_all();
                "RESET"
            }
            ParameterStatement::DiscardAll => {
                self.reset_all();
                self.prepared.remove("all")?;
                self.variables.clear();
                self.advisory.release();
                self.change_listening(ListenChange::UnlistenAll).await?;
                self.discard_temporary().await?;
                "DISCARD ALL"
            }
            ParameterStatement::DiscardTemp => {
                self.discard_temporary().await?;
                "DISCARD TEMP"
            }
            ParameterStatement::Ignored(ignored) => {
                return Ok(QueryResult::done(self.run_ignored(&ignored).await?, sql));
            }
            ParameterStatement::Role(role) => self.keep_role(&role)?,
            ParameterStatement::Nothing(tag) => tag,
        };
        Ok(QueryResult::done(tag.to_owned(), sql))
    }

    /// A session keeps the role that it logged in as.
    fn keep_role(&self, role: &str) -> Result<&'static str> {
        if *role == *self.identity().user {
            return Ok("SET");
        }
        if self.database.role(role).is_none() {
            let message = format!("role \"{role}\" does not exist");
            return Err(SqlState::INVALID_PARAMETER.error(message));
        }
        not_impl_err!("SET ROLE to another role is not supported; log in as role '{role}'")
    }

    /// Resets all settings of the session; those of the whole database stay.
    fn reset_all(&self) {
        let defaults = self.first_options();
        let (limit, home) = (defaults.session_memory, defaults.home);
        let first = self.template.settings().clone();
        {
            let state = self.context.state_ref();
            let mut state = state.write();
            let options = state.config_mut().options_mut();
            let mut extensions = std::mem::take(&mut options.extensions);
            if let Some(own) = extensions.get_mut::<AtollOptions>() {
                let (durability, cores) = (own.durability, own.cores);
                *own = AtollOptions { durability, cores, ..defaults };
            }
            *options = first;
            options.extensions = extensions;
        }
        *self.pool.lock() = None;
        self.watch.set_home(home);
        self.watch.memory().set_limit(limit);
        self.parameters.reset_all();
        self.begin_again_with(None);
    }
}

/// The transaction mode that a setting specifies.
fn mode(name: &str, value: Option<&str>) -> Result<TransactionMode> {
    use TransactionIsolationLevel as Level;
    let value = value.unwrap_or_default().to_ascii_lowercase();
    Ok(match (name, value.as_str()) {
        (ISOLATION, READ_COMMITTED) => TransactionMode::IsolationLevel(Level::ReadCommitted),
        (ISOLATION, READ_UNCOMMITTED) => TransactionMode::IsolationLevel(Level::ReadUncommitted),
        (ISOLATION, REPEATABLE_READ) => TransactionMode::IsolationLevel(Level::RepeatableRead),
        (ISOLATION, SERIALIZABLE) => TransactionMode::IsolationLevel(Level::Serializable),
        (READ_ONLY, "on" | "true") => TransactionMode::AccessMode(TransactionAccessMode::ReadOnly),
        (READ_ONLY, "off" | "false") => {
            TransactionMode::AccessMode(TransactionAccessMode::ReadWrite)
        }
        _ => {
            let message = format!("invalid value '{value}' for setting '{name}'");
            return Err(SqlState::INVALID_PARAMETER.error(message));
        }
    })
}

/// Whether the modes of a statement say DEFERRABLE, or NOT DEFERRABLE; the parser drops both.
pub(in crate::session) fn said_deferrable(sql: &str) -> Option<bool> {
    let words: Vec<&str> = sql.split(|it: char| !it.is_ascii_alphanumeric() && it != '_').collect();
    let is = |at: usize, wanted: &str| words[at].eq_ignore_ascii_case(wanted);
    let at = (0..words.len()).rev().find(|at| is(*at, "deferrable"))?;
    let before = (0..at).rev().find(|at| !words[*at].is_empty());
    Some(!before.is_some_and(|at| is(at, "not")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &'static str, value: &str) -> Option<ParameterStatement> {
        let (name, value) = (Cow::Borrowed(name), Some(value.to_owned()));
        Some(ParameterStatement::Set { name, value, is_local: false })
    }

    #[test]
    fn statements_about_settings_of_postgresql_are_known() {
        let of = ParameterStatement::parse;
        assert_eq!(of("SET application_name TO 'my app';"), set("application_name", "my app"));
        assert_eq!(of("set datestyle = ISO, MDY"), set("DateStyle", "ISO, MDY"));
        let version = Cow::Borrowed("server_version");
        assert_eq!(of("SHOW Server_Version"), Some(ParameterStatement::Show(version)));
        for (text, value) in [
            ("SET my.x = '1'", set("my.x", "1")),
            ("set session MY.X to one", set("my.x", "one")),
            ("SET search_path = a, Public, \"B c\"", set("search_path", "a, public, \"B c\"")),
            ("SET search_path TO 'a, b'", set("search_path", "\"a, b\"")),
            ("SET search_path = ''", set("search_path", "\"\"")),
        ] {
            assert_eq!(of(text), value, "{text}");
        }
        for zone in [
            "SET timezone = 'Asia/Tokyo'",
            "set time zone 'Asia/Tokyo'",
            "SET SESSION TIME ZONE 'Asia/Tokyo'",
            "SET datafusion.execution.time_zone TO 'Asia/Tokyo'",
        ] {
            assert_eq!(of(zone), set("TimeZone", "Asia/Tokyo"), "{zone}");
        }
        for (text, zone) in [
            ("SET TIME ZONE - 7", "-7"),
            ("SET TIME ZONE INTERVAL '2:00' HOUR TO MINUTE", "interval '2:00'"),
            ("SET LOCAL TIME ZONE INTERVAL '-3' HOUR", "interval '-3 hours'"),
            ("SET datafusion.execution.time_zone = '+02:00'", "<+02:00>-02:00"),
        ] {
            let is_local = text.contains("LOCAL");
            let value = Some(zone.to_owned());
            let wanted =
                ParameterStatement::Set { name: Cow::Borrowed(TIME_ZONE), value, is_local };
            assert_eq!(of(text), Some(wanted), "{text}");
        }
        for other in [
            "SET datafusion.execution.batch_size = 1",
            "SET atoll.join = 'merge'",
            "SHOW TABLES",
            "SELECT 1",
            "SET VARIABLE x = 1",
            "SET TRANSACTION READ ONLY",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
