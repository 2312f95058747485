//! PostgreSQL's settings of a session, which its clients set and ask for: `SET application_name = 'x'`, `SHOW
//! server_version`, `RESET ALL`. Settings of the engine are DataFusion's.

mod known;
mod values;

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    TransactionAccessMode, TransactionIsolationLevel, TransactionMode,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::Session;
use super::execute::QueryResult;
use super::tag::StatementTag;
use crate::error::{SqlError, SqlState};
use crate::parse::begins_with;
use crate::settings::AtollOptions;
use known::{ISOLATION, PARAMETERS, READ_COMMITTED, READ_ONLY, REPEATABLE_READ, TIME_ZONE, known};
pub(crate) use values::ClientSettings;

/// The version of PostgreSQL whose clients' queries are answered.
pub const POSTGRESQL_VERSION: &str = "15.0";

/// What such statements begin with.
const FIRST_WORDS: [&str; 6] = ["set", "show", "reset", "discard", "close", "unlisten"];

/// The time zone by the name that it has among DataFusion's settings.
const ENGINE_TIME_ZONE: [&str; 5] = ["datafusion", ".", "execution", ".", "time_zone"];

/// A statement about such a setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParameterStatement {
    Set {
        name: &'static str,
        value: Option<String>,
        is_local: bool,
    },
    Show(&'static str),
    ResetAll,
    /// The session is as it began.
    DiscardAll,
    /// Temporary tables and views were dropped.
    DiscardTemp,
    /// One that has nothing to do here: there are no cursors or channels to listen on.
    Nothing(&'static str),
}

impl ParameterStatement {
    /// The statement of a text, if it is one.
    pub(super) fn of(sql: &str) -> Option<Self> {
        if !begins_with(sql, &FIRST_WORDS) {
            return None;
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().ok()?;
        let is_blank = |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon);
        let tokens: Vec<Token> = tokens.into_iter().filter(|token| !is_blank(token)).collect();
        let words: Vec<String> = tokens.iter().map(plain).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        Some(match lower.as_slice() {
            ["show", "time", "zone"] => Self::Show(TIME_ZONE),
            ["show", name] => Self::Show(known(name)?.name),
            ["show", "transaction", "isolation", "level"] => Self::Show(ISOLATION),
            ["reset", "all"] => Self::ResetAll,
            // A session keeps the role that it logged in as.
            ["reset", "role"] | ["reset", "session", "authorization"] => Self::Nothing("RESET"),
            ["set", "role", "none" | "default"]
            | ["set", "session" | "local", "role", "none" | "default"]
            | ["set", "session", "authorization", "default"] => Self::Nothing("SET"),
            ["reset", "time", "zone"] => Self::set(TIME_ZONE, None, false)?,
            ["reset", name] => Self::set(name, None, false)?,
            ["reset", name @ ..] if *name == ENGINE_TIME_ZONE => Self::set(TIME_ZONE, None, false)?,
            ["discard", "all"] => Self::DiscardAll,
            ["discard", "plans"] => Self::Nothing("DISCARD PLANS"),
            ["discard", "sequences"] => Self::Nothing("DISCARD SEQUENCES"),
            ["discard", "temp" | "temporary"] => Self::DiscardTemp,
            ["close", "all"] => Self::Nothing("CLOSE CURSOR ALL"),
            ["unlisten", _] => Self::Nothing("UNLISTEN"),
            ["set", "session", ..] => Self::assignment(&lower[2..], &words[2..], false)?,
            ["set", "local", ..] => Self::assignment(&lower[2..], &words[2..], true)?,
            ["set", ..] => Self::assignment(&lower[1..], &words[1..], false)?,
            _ => return None,
        })
    }

    /// What stands behind SET.
    fn assignment(lower: &[&str], words: &[&str], is_local: bool) -> Option<Self> {
        match lower {
            ["time", "zone", "local"] => Self::set(TIME_ZONE, None, is_local),
            ["time", "zone", _, ..] => Self::set(TIME_ZONE, Some(&words[2..]), is_local),
            ["names", _] => Self::set("client_encoding", Some(&words[1..]), is_local),
            [name, "=" | "to", ..] => Self::set(name, Some(&words[2..]), is_local),
            [first, second, third, fourth, fifth, "=" | "to", ..]
                if [*first, *second, *third, *fourth, *fifth] == ENGINE_TIME_ZONE =>
            {
                Self::set(TIME_ZONE, Some(&words[6..]), is_local)
            }
            _ => None,
        }
    }

    fn set(name: &str, value: Option<&[&str]>, is_local: bool) -> Option<Self> {
        let value = value.map(|words| words.join(" ").replace(" ,", ","));
        let value = value.filter(|value| !value.eq_ignore_ascii_case("default"));
        Some(Self::Set { name: known(name)?.name, value, is_local })
    }
}

/// A token as it is meant.
fn plain(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    }
}

/// The column of SHOW.
pub(super) fn shown_schema(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]))
}

impl Session {
    /// Settings that PostgreSQL's clients are told of, and what they are.
    pub fn reported_parameters(&self) -> Vec<(&'static str, String)> {
        self.parameters.take_changed();
        self.reported(PARAMETERS.iter().map(|parameter| parameter.name))
    }

    /// Those that were changed since they were last told.
    pub fn changed_parameters(&self) -> Vec<(&'static str, String)> {
        let changed = self.parameters.take_changed();
        self.reported(changed.into_iter())
    }

    fn reported(&self, names: impl Iterator<Item = &'static str>) -> Vec<(&'static str, String)> {
        let names = names.filter(|name| known(name).is_some_and(|parameter| parameter.is_reported));
        names.filter_map(|name| Some((name, self.parameters.get(name)?))).collect()
    }

    /// Sets one of PostgreSQL's settings as a client does that begins a session, which RESET goes back to; false
    /// where there is no such setting.
    ///
    /// # Errors
    /// When it cannot be set to this.
    pub fn set_parameter(&self, name: &str, value: &str) -> std::result::Result<bool, SqlError> {
        self.parameters.set_first(name, value).map_err(|error| SqlError::new(error, ""))
    }

    /// How long a statement may run; none without a bound.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.parameters.time("statement_timeout")
    }

    /// How long a transaction may wait for its client.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.parameters.time("idle_in_transaction_session_timeout")
    }

    /// The time zone, whose day today is.
    pub fn time_zone(&self) -> Option<String> {
        self.context.state_ref().read().config_options().execution.time_zone.clone()
    }

    /// Carries out a statement about such a setting.
    pub(super) async fn parameter(
        &self,
        statement: ParameterStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        self.check_not_failed()?;
        let parameters = &self.parameters;
        let tag = match statement {
            ParameterStatement::Set { name: name @ (ISOLATION | READ_ONLY), value, .. } => {
                self.set_transaction(&[mode(name, value.as_deref())?])?;
                "SET"
            }
            ParameterStatement::Set { name, value, is_local } => {
                parameters.set(name, value.as_deref(), is_local)?;
                if begins_with(sql, &["reset"]) { "RESET" } else { "SET" }
            }
            ParameterStatement::Show(name) => {
                let value = parameters.get(name).unwrap_or_default();
                let column: ArrayRef = Arc::new(StringArray::from(vec![value]));
                let batch = RecordBatch::try_new(shown_schema(name), vec![column])?;
                let result = QueryResult::of(batch.schema(), vec![batch], sql);
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
                self.discard_temporary().await?;
                "DISCARD ALL"
            }
            ParameterStatement::DiscardTemp => {
                self.discard_temporary().await?;
                "DISCARD TEMP"
            }
            ParameterStatement::Nothing(tag) => tag,
        };
        Ok(QueryResult::done(tag.to_owned(), sql))
    }

    /// All settings of the session are what they were when it began; those of the whole database stay.
    fn reset_all(&self) {
        let database = self.database();
        let defaults = self.first_options();
        let (limit, home) = (defaults.session_memory, defaults.home);
        let first = database.template().settings().clone();
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

/// How a transaction is to run, by the setting that says so.
fn mode(name: &str, value: Option<&str>) -> Result<TransactionMode> {
    use TransactionIsolationLevel as Level;
    let value = value.unwrap_or_default().to_ascii_lowercase();
    Ok(match (name, value.as_str()) {
        (ISOLATION, READ_COMMITTED | "read uncommitted") => {
            TransactionMode::IsolationLevel(Level::ReadCommitted)
        }
        (ISOLATION, REPEATABLE_READ) => TransactionMode::IsolationLevel(Level::RepeatableRead),
        (ISOLATION, "serializable") => TransactionMode::IsolationLevel(Level::Serializable),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &'static str, value: &str) -> Option<ParameterStatement> {
        Some(ParameterStatement::Set { name, value: Some(value.to_owned()), is_local: false })
    }

    #[test]
    fn statements_about_settings_of_postgresql_are_known() {
        let of = ParameterStatement::of;
        assert_eq!(of("SET application_name TO 'my app';"), set("application_name", "my app"));
        assert_eq!(of("set datestyle = ISO, MDY"), set("DateStyle", "ISO, MDY"));
        assert_eq!(of("SHOW Server_Version"), Some(ParameterStatement::Show("server_version")));
        assert_eq!(of("UNLISTEN *"), Some(ParameterStatement::Nothing("UNLISTEN")));
        for zone in [
            "SET timezone = 'Asia/Tokyo'",
            "set time zone 'Asia/Tokyo'",
            "SET SESSION TIME ZONE 'Asia/Tokyo'",
            "SET datafusion.execution.time_zone TO 'Asia/Tokyo'",
        ] {
            assert_eq!(of(zone), set("TimeZone", "Asia/Tokyo"), "{zone}");
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
