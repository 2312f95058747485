//! PostgreSQL's settings of a session, which its clients set and ask for: `SET application_name = 'x'`, `SHOW
//! server_version`, `RESET ALL`. Settings of the engine are DataFusion's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_store::database::LockPatience;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use parking_lot::Mutex;

use super::Session;
use super::execute::QueryResult;
use super::tag::StatementTag;
use crate::error::SqlState;
use crate::parse::begins_with;

/// The version of PostgreSQL whose clients' queries are answered.
pub const POSTGRESQL_VERSION: &str = "15.0";

/// How a setting may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Never.
    Fixed,
    /// To any text.
    Text,
    /// To a time in milliseconds, or with a unit; 0 is none.
    Time,
    /// To one of these, which is all that is supported.
    One(&'static [&'static str]),
}

/// A setting: its name, what it is at first, how it is changed, and whether clients are told of changes.
struct Parameter(&'static str, &'static str, Kind, bool);

/// Settings with an effect here, and those that clients set or ask for though they have none.
const PARAMETERS: &[Parameter] = &[
    Parameter("application_name", "", Kind::Text, true),
    Parameter("bytea_output", "hex", Kind::One(&["hex"]), false),
    Parameter(
        "client_encoding",
        "UTF8",
        Kind::One(&["UTF8", "UTF-8", "UNICODE", "SQL_ASCII"]),
        true,
    ),
    Parameter("client_min_messages", "notice", Kind::Text, false),
    Parameter(
        "DateStyle",
        "ISO, MDY",
        Kind::One(&["ISO, MDY", "ISO", "ISO, DMY", "ISO, YMD"]),
        true,
    ),
    Parameter("default_table_access_method", "heap", Kind::Text, false),
    Parameter("default_transaction_read_only", "off", Kind::One(&["off", "false"]), true),
    Parameter("extra_float_digits", "1", Kind::Text, false),
    Parameter("idle_in_transaction_session_timeout", "0", Kind::Time, false),
    Parameter("in_hot_standby", "off", Kind::Fixed, true),
    Parameter("integer_datetimes", "on", Kind::Fixed, true),
    Parameter("IntervalStyle", "postgres", Kind::One(&["postgres"]), true),
    Parameter("jit", "off", Kind::Text, false),
    Parameter("lc_collate", "C.UTF-8", Kind::Fixed, false),
    Parameter("lc_ctype", "C.UTF-8", Kind::Fixed, false),
    Parameter("lc_messages", "C", Kind::Text, false),
    Parameter("lc_monetary", "C", Kind::Text, false),
    Parameter("lock_timeout", "0", Kind::Time, false),
    Parameter("max_identifier_length", "63", Kind::Fixed, false),
    Parameter("max_index_keys", "32", Kind::Fixed, false),
    Parameter("row_security", "off", Kind::Text, false),
    Parameter("search_path", "public", Kind::Text, false),
    Parameter("server_encoding", "UTF8", Kind::Fixed, true),
    Parameter("server_version", POSTGRESQL_VERSION, Kind::Fixed, true),
    Parameter("server_version_num", "150000", Kind::Fixed, false),
    Parameter("standard_conforming_strings", "on", Kind::One(&["on", "true"]), true),
    Parameter("statement_timeout", "0", Kind::Time, false),
    Parameter("synchronous_commit", "on", Kind::Text, false),
    Parameter("transaction_isolation", "read committed", Kind::Fixed, false),
    Parameter("transaction_read_only", "off", Kind::Fixed, false),
];

/// The settings of a session that are not what they are at first. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSettings(Arc<Mutex<ParameterValues>>);

#[derive(Debug, Default)]
struct ParameterValues {
    values: BTreeMap<&'static str, String>,
    /// What settings were before SET LOCAL, the last one behind.
    before: Vec<(&'static str, Option<String>)>,
    /// Changes that the client is not told of yet.
    changed: Vec<&'static str>,
}

/// What such statements begin with.
const FIRST_WORDS: [&str; 6] = ["set", "show", "reset", "discard", "close", "unlisten"];

/// A setting, as `pg_settings` tells of it.
pub(crate) struct ShownSetting {
    pub(crate) name: &'static str,
    /// What it is at first.
    pub(crate) first: &'static str,
    pub(crate) value: String,
    pub(crate) is_fixed: bool,
}

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
            ["show", name] => Self::Show(known(name)?.0),
            ["show", "transaction", "isolation", "level"] => Self::Show("transaction_isolation"),
            ["reset", "all"] => Self::ResetAll,
            ["reset", name] => Self::set(name, None, false)?,
            ["discard", "all"] => Self::ResetAll,
            ["discard", ..] => Self::Nothing("DISCARD"),
            ["close", "all"] => Self::Nothing("CLOSE CURSOR ALL"),
            ["unlisten", _] => Self::Nothing("UNLISTEN"),
            ["set", "session" | "local", name, "=" | "to", ..] => {
                Self::set(name, Some(&words[4..]), lower[1] == "local")?
            }
            ["set", "names", _] => Self::set("client_encoding", Some(&words[2..]), false)?,
            ["set", name, "=" | "to", ..] => Self::set(name, Some(&words[3..]), false)?,
            _ => return None,
        })
    }

    fn set(name: &str, value: Option<&[&str]>, is_local: bool) -> Option<Self> {
        let value = value.map(|words| words.join(" ").replace(" ,", ","));
        let value = value.filter(|value| !value.eq_ignore_ascii_case("default"));
        Some(Self::Set { name: known(name)?.0, value, is_local })
    }
}

fn known(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.0.eq_ignore_ascii_case(name))
}

/// A token as it is meant.
fn plain(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    }
}

impl ClientSettings {
    /// What a setting is; none where there is no such setting.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let Parameter(name, first, ..) = known(name)?;
        Some(self.0.lock().values.get(name).cloned().unwrap_or_else(|| (*first).to_owned()))
    }

    /// A time that is a setting; none without a bound, as it is at first.
    fn time(&self, name: &'static str) -> Option<Duration> {
        let milliseconds = milliseconds(self.0.lock().values.get(name)?);
        milliseconds.filter(|it| *it > 0).map(Duration::from_millis)
    }

    /// Waits for locks end after `lock_timeout`, as it is when they begin.
    pub(super) fn lock_patience(&self) -> LockPatience {
        let settings = self.clone();
        LockPatience::new(move || match settings.time("lock_timeout") {
            Some(time) => Box::pin(tokio::time::sleep(time)),
            None => Box::pin(std::future::pending()),
        })
    }

    /// Changes a setting; back to what it is at first without a value.
    pub(crate) fn set(&self, name: &str, value: Option<String>, is_local: bool) -> Result<()> {
        let Some(Parameter(name, _, kind, _)) = known(name) else {
            return Err(SqlState::UNDEFINED_OBJECT.error(format!("unknown setting '{name}'")));
        };
        if let Some(value) = &value {
            check(name, value, *kind)?;
        }
        let mut parameters = self.0.lock();
        let before = match value {
            Some(value) => parameters.values.insert(name, value),
            None => parameters.values.remove(name),
        };
        if is_local {
            parameters.before.push((name, before));
        }
        parameters.changed.push(name);
        Ok(())
    }

    /// All settings, by name.
    pub(crate) fn all(&self) -> Vec<ShownSetting> {
        let shown = |Parameter(name, first, kind, _): &Parameter| ShownSetting {
            name,
            first,
            value: self.get(name).unwrap_or_default(),
            is_fixed: *kind == Kind::Fixed,
        };
        PARAMETERS.iter().map(shown).collect()
    }

    fn reset_all(&self) {
        let mut parameters = self.0.lock();
        let names: Vec<_> = std::mem::take(&mut parameters.values).into_keys().collect();
        parameters.changed.extend(names);
    }

    /// The end of a transaction: what was set for it alone is what it was before.
    pub(super) fn end_transaction(&self) {
        let mut parameters = self.0.lock();
        for (name, value) in std::mem::take(&mut parameters.before).into_iter().rev() {
            match value {
                Some(value) => drop(parameters.values.insert(name, value)),
                None => drop(parameters.values.remove(name)),
            }
            parameters.changed.push(name);
        }
    }

    fn take_changed(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().changed)
    }
}

fn check(name: &str, value: &str, kind: Kind) -> Result<()> {
    let is_valid = match kind {
        Kind::Text => true,
        Kind::Fixed => {
            return Err(SqlState::CANT_CHANGE.error(format!("setting '{name}' cannot be changed")));
        }
        Kind::Time => milliseconds(value).is_some(),
        Kind::One(values) => {
            let plain = value.trim();
            values.iter().any(|it| it.eq_ignore_ascii_case(plain))
        }
    };
    if is_valid {
        return Ok(());
    }
    let expected = match kind {
        Kind::One(values) => values.join(" or "),
        _ => "a time such as 5s or 250ms, or 0 for none".to_owned(),
    };
    let message = format!("invalid value '{value}' for setting '{name}'; expected {expected}");
    Err(SqlState::INVALID_PARAMETER.error(message))
}

/// A time, `500`, `250ms`, `5s`, `1min`, `1 h`.
fn milliseconds(value: &str) -> Option<u64> {
    let value = value.trim();
    let end = value.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..end].parse().ok()?;
    let unit = match value[end..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The column of SHOW.
pub(super) fn shown_schema(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]))
}

impl Session {
    /// Settings that PostgreSQL's clients are told of, and what they are.
    pub fn reported_parameters(&self) -> Vec<(&'static str, String)> {
        self.parameters.take_changed();
        self.reported(PARAMETERS.iter().map(|parameter| parameter.0))
    }

    /// Those that were changed since they were last told.
    pub fn changed_parameters(&self) -> Vec<(&'static str, String)> {
        let changed = self.parameters.take_changed();
        self.reported(changed.into_iter())
    }

    fn reported(&self, names: impl Iterator<Item = &'static str>) -> Vec<(&'static str, String)> {
        let names = names.filter(|name| known(name).is_some_and(|parameter| parameter.3));
        names.filter_map(|name| Some((name, self.parameters.get(name)?))).collect()
    }

    /// Changes one of PostgreSQL's settings, as a client does that begins a session; false where there is no such
    /// setting, or it is not changed to this.
    pub fn set_parameter(&self, name: &str, value: &str) -> bool {
        let is_set = self.parameters.set(name, Some(value.to_owned()), false).is_ok();
        if is_set && name.eq_ignore_ascii_case("search_path") {
            self.set_search_path(Some(value));
        }
        is_set
    }

    /// How long a statement may run; none without a bound.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.timeout("statement_timeout")
    }

    /// How long a transaction may wait for its client.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.timeout("idle_in_transaction_session_timeout")
    }

    fn timeout(&self, name: &'static str) -> Option<Duration> {
        self.parameters.time(name)
    }

    /// Carries out a statement about such a setting.
    pub(super) fn parameter(
        &self,
        statement: ParameterStatement,
        sql: &str,
    ) -> Result<QueryResult> {
        let parameters = &self.parameters;
        let tag = match statement {
            ParameterStatement::Set { name, value, is_local } => {
                if name == "search_path" {
                    self.set_search_path(value.as_deref());
                }
                parameters.set(name, value, is_local && self.is_in_transaction())?;
                "SET"
            }
            ParameterStatement::Show(name) => {
                let value = parameters.get(name).unwrap_or_default();
                let column: ArrayRef = Arc::new(StringArray::from(vec![value]));
                let batch = RecordBatch::try_new(shown_schema(name), vec![column])?;
                let result = QueryResult::of(batch.schema(), vec![batch], sql);
                return Ok(result.tagged(StatementTag::shown("SHOW")));
            }
            ParameterStatement::ResetAll => {
                parameters.reset_all();
                self.set_search_path(None);
                "RESET"
            }
            ParameterStatement::Nothing(tag) => tag,
        };
        Ok(QueryResult::done(tag.to_owned(), sql))
    }

    /// The first schema of the path is where names without one are looked up, and where they are created.
    fn set_search_path(&self, path: Option<&str>) {
        let schemas = path.unwrap_or_default().split(',').map(|it| it.trim().trim_matches('"'));
        let mut schemas = schemas.filter(|it| !matches!(*it, "" | "$user" | "pg_catalog"));
        let schema = schemas.next().unwrap_or(crate::catalog::SCHEMA).to_owned();
        let state = self.context.state_ref();
        state.write().config_mut().options_mut().catalog.default_schema = schema;
        self.scope.forget();
    }
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
        for other in ["SET atoll.join = 'merge'", "SHOW TABLES", "SELECT 1", "SET VARIABLE x = 1"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_local_setting_ends_with_its_transaction() {
        let parameters = ClientSettings::default();
        parameters.set("statement_timeout", Some("5s".to_owned()), false).expect("a time");
        parameters.set("statement_timeout", Some("1s".to_owned()), true).expect("a time");
        parameters.set("statement_timeout", Some("2s".to_owned()), true).expect("a time");
        parameters.end_transaction();
        assert_eq!(parameters.get("STATEMENT_TIMEOUT").as_deref(), Some("5s"));
        assert!(parameters.set("statement_timeout", Some("soon".to_owned()), false).is_err());
        assert!(parameters.set("server_version", Some("9".to_owned()), false).is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, wanted) in
            [("0", Some(0)), ("250ms", Some(250)), ("5 s", Some(5000)), ("x", None)]
        {
            assert_eq!(milliseconds(text), wanted, "{text}");
        }
    }
}
