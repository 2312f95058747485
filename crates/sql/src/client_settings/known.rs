//! The known settings and their valid values.

use std::borrow::Cow;

use atoll_functions::TextEncoding;
use atoll_functions::temporal::{IntervalFormat, TemporalStyle};
use datafusion::common::{DataFusionError, Result};

use super::POSTGRESQL_VERSION;
use super::units::{MEMORY, TIME, Units, quantity, shown};
use atoll_sql_common::error::SqlState;
use atoll_sql_semantics::timezone;

/// How a setting may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Never.
    Fixed,
    /// By SET TRANSACTION, or under its own name in a transaction that has not begun to work.
    Transaction,
    /// To any text.
    Text,
    /// To `on` or `off`, in PostgreSQL's words for them.
    Flag,
    /// To a time in milliseconds, or with a unit; 0 means unlimited.
    Time,
    /// To a size in kilobytes, or with a unit, and at least this many.
    Memory(u64),
    /// To a time zone.
    TimeZone,
    /// To a format of dates, an order of their numbers, or both; what is not named stays.
    DateStyle,
    /// To an encoding, by any of its names.
    Encoding,
    /// To one of these, the only supported values.
    One(&'static [&'static str]),
}

/// A setting: its name, its default, how it is changed, and whether clients are notified of changes.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) first: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_reported: bool,
}

const fn silent(name: &'static str, first: &'static str, kind: Kind) -> Parameter {
    Parameter { name, first, kind, is_reported: false }
}

const fn reported(name: &'static str, first: &'static str, kind: Kind) -> Parameter {
    Parameter { name, first, kind, is_reported: true }
}

pub(crate) const DATE_STYLE: &str = "DateStyle";
pub(crate) const DEFAULT_DEFERRABLE: &str = "default_transaction_deferrable";
pub(crate) const DEFAULT_ISOLATION: &str = "default_transaction_isolation";
pub(crate) const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";
pub(crate) const DEFERRABLE: &str = "transaction_deferrable";
pub(crate) const INTERVAL_STYLE: &str = "IntervalStyle";
pub(crate) const ISOLATION: &str = "transaction_isolation";
pub(crate) const MESSAGES: &str = "client_min_messages";
pub(crate) const READ_ONLY: &str = "transaction_read_only";
pub(crate) const SEARCH_PATH: &str = "search_path";
pub(crate) const TIME_ZONE: &str = "TimeZone";
pub(crate) const READ_COMMITTED: &str = "read committed";
pub(crate) const READ_UNCOMMITTED: &str = "read uncommitted";
pub(crate) const REPEATABLE_READ: &str = "repeatable read";
pub(crate) const SERIALIZABLE: &str = "serializable";

/// Isolation levels by name; READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
const LEVELS: Kind = Kind::One(&[READ_COMMITTED, READ_UNCOMMITTED, REPEATABLE_READ, SERIALIZABLE]);
/// The lowest severity of messages sent to clients, except for errors, in PostgreSQL's words.
const SEVERITIES: Kind = Kind::One(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
]);
/// Texts are compared and numbers written without a locale.
const LOCALE: Kind = Kind::One(&["C", "POSIX", "C.UTF-8"]);
/// `atoll.durability` determines what commits wait for, and promises no less than any of these.
const COMMITS: Kind =
    Kind::One(&["on", "off", "local", "remote_write", "remote_apply", "true", "false"]);
/// Backslashes in strings are ordinary characters, and `E'\''` is a quote, whatever the encoding.
const BACKSLASH: Kind = Kind::One(&["safe_encoding", "on", "true"]);

/// Settings with an effect here, and those that clients set or read although they have none.
pub(crate) const PARAMETERS: &[Parameter] = &[
    reported("application_name", "", Kind::Text),
    silent("backslash_quote", "safe_encoding", BACKSLASH),
    silent("block_size", "8192", Kind::Fixed),
    silent("bytea_output", "hex", Kind::One(&["hex"])),
    silent("check_function_bodies", "on", Kind::Flag),
    reported("client_encoding", "UTF8", Kind::Encoding),
    silent(MESSAGES, "notice", SEVERITIES),
    reported(DATE_STYLE, "ISO, MDY", Kind::DateStyle),
    silent("default_table_access_method", "heap", Kind::One(&["heap"])),
    silent("default_tablespace", "", Kind::One(&["", "pg_default"])),
    silent(DEFAULT_DEFERRABLE, "off", Kind::Flag),
    silent(DEFAULT_ISOLATION, READ_COMMITTED, LEVELS),
    reported(DEFAULT_READ_ONLY, "off", Kind::Flag),
    silent("escape_string_warning", "on", Kind::Flag),
    silent("extra_float_digits", "1", Kind::One(&["1", "2", "3"])),
    silent("idle_in_transaction_session_timeout", "0", Kind::Time),
    silent("idle_session_timeout", "0", Kind::One(&["0"])),
    reported("in_hot_standby", "off", Kind::Fixed),
    reported("integer_datetimes", "on", Kind::Fixed),
    reported(INTERVAL_STYLE, "postgres", Kind::One(IntervalFormat::NAMES)),
    silent(IS_SUPERUSER, "on", Kind::Fixed),
    silent("jit", "off", Kind::Text),
    silent("lc_collate", "C.UTF-8", Kind::Fixed),
    silent("lc_ctype", "C.UTF-8", Kind::Fixed),
    silent("lc_messages", "C", Kind::Text),
    silent("lc_monetary", "C", Kind::Text),
    silent("lc_numeric", "C", LOCALE),
    silent("lc_time", "C", LOCALE),
    silent("lock_timeout", "0", Kind::Time),
    silent("maintenance_work_mem", "64MB", Kind::Memory(1024)),
    silent(MAX_CONNECTIONS, "1", Kind::Fixed),
    silent("max_identifier_length", "63", Kind::Fixed),
    silent("max_index_keys", "32", Kind::Fixed),
    silent("max_prepared_transactions", "1000", Kind::Fixed),
    silent("password_encryption", "scram-sha-256", Kind::One(&["scram-sha-256"])),
    silent("role", "none", Kind::Fixed),
    silent("row_security", "on", Kind::Flag),
    silent(SEARCH_PATH, "public", Kind::Text),
    reported("server_encoding", "UTF8", Kind::Fixed),
    reported("server_version", POSTGRESQL_VERSION, Kind::Fixed),
    silent("server_version_num", "150000", Kind::Fixed),
    silent(SESSION_AUTHORIZATION, "", Kind::Fixed),
    reported("standard_conforming_strings", "on", Kind::One(&["on", "true"])),
    silent("statement_timeout", "0", Kind::Time),
    silent("synchronize_seqscans", "on", Kind::Flag),
    silent("synchronous_commit", "on", COMMITS),
    silent("temp_tablespaces", "", Kind::One(&[""])),
    reported(TIME_ZONE, timezone::DEFAULT, Kind::TimeZone),
    silent(DEFERRABLE, "off", Kind::Transaction),
    silent(ISOLATION, READ_COMMITTED, Kind::Transaction),
    silent(READ_ONLY, "off", Kind::Transaction),
    silent("transaction_timeout", "0", Kind::One(&["0"])),
    silent("wal_level", "minimal", Kind::Fixed),
    silent("work_mem", "4MB", Kind::Memory(64)),
    silent("xmloption", "content", Kind::One(&["content", "document"])),
];

/// Settings that depend on the session's user and server.
pub(crate) const IS_SUPERUSER: &str = "is_superuser";
pub(crate) const MAX_CONNECTIONS: &str = "max_connections";
pub(crate) const SESSION_AUTHORIZATION: &str = "session_authorization";

/// Settings of the engine, which DataFusion keeps.
const OF_ENGINE: [&str; 2] = ["atoll", "datafusion"];

/// The setting with a name, in any case.
pub(crate) fn known(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))
}

/// The canonical name of a setting: a known one, or one with a dot, which applications define.
pub(crate) fn setting_named(name: &str) -> Option<Cow<'static, str>> {
    if let Some(parameter) = known(name) {
        return Some(Cow::Borrowed(parameter.name));
    }
    let name = name.to_lowercase();
    let is_word = |part: &str| {
        let is_letter = |it: char| it.is_alphabetic() || it == '_';
        part.starts_with(is_letter)
            && part.chars().all(|it| is_letter(it) || it.is_numeric() || it == '$')
    };
    let of = name.split_once('.')?.0;
    (!OF_ENGINE.contains(&of) && name.split('.').all(is_word)).then_some(Cow::Owned(name))
}

impl Parameter {
    /// The canonical form of a value; `current` is the present one.
    ///
    /// # Errors
    /// If the value is invalid for the setting.
    pub(crate) fn value(&self, value: &str, current: &str) -> Result<String> {
        let Self { name, kind, .. } = self;
        match kind {
            Kind::Text => Ok(value.to_owned()),
            Kind::Fixed => {
                let message = format!("setting '{name}' cannot be changed");
                Err(SqlState::CANT_CHANGE.error(message))
            }
            Kind::Transaction => {
                let message = format!("setting '{name}' is changed by SET TRANSACTION");
                Err(SqlState::CANT_CHANGE.error(message))
            }
            Kind::Flag => {
                let kept = flag(value).map(str::to_owned);
                kept.ok_or_else(|| self.invalid(value, "on or off"))
            }
            Kind::Time => {
                self.quantity(value, TIME, 0, "a time such as 5s or 250ms, or 0 for none")
            }
            Kind::Memory(least) => {
                self.quantity(value, MEMORY, *least, "a size of at least 64kB such as 64MB")
            }
            Kind::TimeZone => timezone::checked(value),
            Kind::DateStyle => {
                let current = TemporalStyle::from_settings(current, "");
                let style = current.with_date_style(value);
                style.map(|style| style.date_style().to_owned()).ok_or_else(|| {
                    self.invalid(value, "ISO, SQL, Postgres or German, and MDY, DMY or YMD")
                })
            }
            Kind::Encoding => match TextEncoding::named(value) {
                Some(encoding) => Ok(encoding.name().to_owned()),
                None => Err(self.invalid(value, "the name of an encoding, such as UTF8 or LATIN1")),
            },
            Kind::One(values) => {
                let found = values.iter().find(|it| it.eq_ignore_ascii_case(value.trim()));
                let found = found.map(|found| plain(found).to_owned());
                found.ok_or_else(|| self.invalid(value, &listed(values)))
            }
        }
    }

    /// The units of its numbers; `None` if it is not a number.
    pub(crate) fn units(&self) -> Option<&'static Units> {
        match self.kind {
            Kind::Time => Some(TIME),
            Kind::Memory(_) => Some(MEMORY),
            _ => None,
        }
    }

    /// A canonical value, as a plain number if the setting has a unit.
    pub(crate) fn in_unit(&self, value: &str) -> String {
        let number = self.units().and_then(|units| quantity(value, units));
        number.map_or_else(|| value.to_owned(), |number| number.to_string())
    }

    /// The type of its values, in PostgreSQL's words.
    pub(crate) fn value_type(&self) -> &'static str {
        match self.kind {
            Kind::Flag => "bool",
            Kind::Time | Kind::Memory(_) => "integer",
            Kind::One(_) => "enum",
            _ => "string",
        }
    }

    fn quantity(&self, value: &str, units: &Units, least: u64, expected: &str) -> Result<String> {
        let number = quantity(value, units).filter(|number| *number >= least);
        number.map(|number| shown(number, units)).ok_or_else(|| self.invalid(value, expected))
    }

    fn invalid(&self, value: &str, expected: &str) -> DataFusionError {
        let name = self.name;
        let message = format!("invalid value '{value}' for setting '{name}'; expected {expected}");
        SqlState::INVALID_PARAMETER.error(message)
    }
}

fn listed(values: &[&str]) -> String {
    let values = values.iter().map(|value| if value.is_empty() { "''" } else { *value });
    values.collect::<Vec<_>>().join(" or ")
}

/// The word that clients are shown for one of several synonyms.
fn plain(value: &'static str) -> &'static str {
    match value {
        "true" => "on",
        "false" => "off",
        "debug" => "debug2",
        other => other,
    }
}

pub(crate) fn flag(value: &str) -> Option<&'static str> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some("on"),
        "off" | "false" | "no" | "0" | "f" | "n" => Some("off"),
        _ => None,
    }
}

/// The milliseconds of a time setting.
pub(crate) fn milliseconds(value: &str) -> Option<u64> {
    quantity(value, TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_stored_in_the_form_that_clients_see() {
        let kept =
            |name: &str, value: &str| known(name).and_then(|it| it.value(value, it.first).ok());
        for (name, value, wanted) in [
            ("client_encoding", "utf-8", Some("UTF8")),
            ("client_encoding", "iso-8859-15", Some("LATIN9")),
            ("client_encoding", "klingon", None),
            ("datestyle", "iso", Some("ISO, MDY")),
            ("datestyle", "ISO, MDY", Some("ISO, MDY")),
            ("datestyle", "dmy", Some("ISO, DMY")),
            ("datestyle", "German", Some("German, DMY")),
            ("datestyle", "ISO, SQL", None),
            ("intervalstyle", "ISO_8601", Some("iso_8601")),
            ("intervalstyle", "short", None),
            ("default_transaction_read_only", "TRUE", Some("on")),
            ("default_transaction_isolation", "Repeatable Read", Some("repeatable read")),
            ("default_transaction_isolation", "SERIALIZABLE", Some("serializable")),
            ("default_transaction_isolation", "snapshot", None),
            ("default_tablespace", "", Some("")),
            ("default_tablespace", "fast", None),
            ("statement_timeout", "5000", Some("5s")),
            ("work_mem", "1GB", Some("1GB")),
            ("work_mem", "1", None),
            ("row_security", "maybe", None),
            ("timezone", "Europe/Berlin", Some("Europe/Berlin")),
            ("timezone", "Nowhere", None),
            ("server_version", "9", None),
            ("transaction_isolation", "read committed", None),
        ] {
            assert_eq!(kept(name, value).as_deref(), wanted, "{name} {value}");
        }
    }

    #[test]
    fn programs_have_settings_of_their_own() {
        for (name, wanted) in [
            ("TIMEZONE", Some("TimeZone")),
            ("My.Tenant", Some("my.tenant")),
            ("a.b.c", Some("a.b.c")),
            ("nothing", None),
            ("a.", None),
            ("a.1", None),
            ("atoll.join", None),
            ("datafusion.execution.batch_size", None),
        ] {
            assert_eq!(setting_named(name).as_deref(), wanted, "{name}");
        }
    }
}
