//! The settings that there are, and what each may be set to.

use datafusion::common::Result;

use super::POSTGRESQL_VERSION;
use crate::error::SqlState;
use crate::timezone;

/// How a setting may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Never.
    Fixed,
    /// By SET TRANSACTION, or under its own name in a transaction that has not begun to work.
    Transaction,
    /// To any text.
    Text,
    /// To `on` or `off`, in PostgreSQL's words for them.
    Flag,
    /// To a time in milliseconds, or with a unit; 0 is none.
    Time,
    /// To a time zone.
    TimeZone,
    /// To one of these, which is all that is supported.
    One(&'static [&'static str]),
}

/// A setting: its name, what it is at first, how it is changed, and whether clients are told of changes.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) first: &'static str,
    pub(super) kind: Kind,
    pub(super) is_reported: bool,
}

const fn silent(name: &'static str, first: &'static str, kind: Kind) -> Parameter {
    Parameter { name, first, kind, is_reported: false }
}

const fn reported(name: &'static str, first: &'static str, kind: Kind) -> Parameter {
    Parameter { name, first, kind, is_reported: true }
}

pub(super) const DEFAULT_ISOLATION: &str = "default_transaction_isolation";
pub(super) const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";
pub(super) const ISOLATION: &str = "transaction_isolation";
pub(super) const READ_ONLY: &str = "transaction_read_only";
pub(super) const SEARCH_PATH: &str = "search_path";
pub(super) const TIME_ZONE: &str = "TimeZone";
pub(super) const READ_COMMITTED: &str = "read committed";
pub(super) const REPEATABLE_READ: &str = "repeatable read";

/// Levels of isolation by their names; READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
const LEVELS: Kind = Kind::One(&[READ_COMMITTED, "read uncommitted", REPEATABLE_READ]);

/// Settings with an effect here, and those that clients set or ask for though they have none.
pub(super) const PARAMETERS: &[Parameter] = &[
    reported("application_name", "", Kind::Text),
    silent("bytea_output", "hex", Kind::One(&["hex"])),
    reported("client_encoding", "UTF8", Kind::One(&["UTF8", "UTF-8", "UNICODE", "SQL_ASCII"])),
    silent("client_min_messages", "notice", Kind::Text),
    reported("DateStyle", "ISO, MDY", Kind::One(&["ISO, MDY", "ISO", "ISO, DMY", "ISO, YMD"])),
    silent("default_table_access_method", "heap", Kind::Text),
    silent(DEFAULT_ISOLATION, READ_COMMITTED, LEVELS),
    reported(DEFAULT_READ_ONLY, "off", Kind::Flag),
    silent("extra_float_digits", "1", Kind::Text),
    silent("idle_in_transaction_session_timeout", "0", Kind::Time),
    reported("in_hot_standby", "off", Kind::Fixed),
    reported("integer_datetimes", "on", Kind::Fixed),
    reported("IntervalStyle", "postgres", Kind::One(&["postgres"])),
    silent("jit", "off", Kind::Text),
    silent("lc_collate", "C.UTF-8", Kind::Fixed),
    silent("lc_ctype", "C.UTF-8", Kind::Fixed),
    silent("lc_messages", "C", Kind::Text),
    silent("lc_monetary", "C", Kind::Text),
    silent("lock_timeout", "0", Kind::Time),
    silent("max_identifier_length", "63", Kind::Fixed),
    silent("max_index_keys", "32", Kind::Fixed),
    silent("row_security", "off", Kind::Text),
    silent(SEARCH_PATH, "public", Kind::Text),
    reported("server_encoding", "UTF8", Kind::Fixed),
    reported("server_version", POSTGRESQL_VERSION, Kind::Fixed),
    silent("server_version_num", "150000", Kind::Fixed),
    reported("standard_conforming_strings", "on", Kind::One(&["on", "true"])),
    silent("statement_timeout", "0", Kind::Time),
    silent("synchronous_commit", "on", Kind::Text),
    reported(TIME_ZONE, timezone::DEFAULT, Kind::TimeZone),
    silent(ISOLATION, READ_COMMITTED, Kind::Transaction),
    silent(READ_ONLY, "off", Kind::Transaction),
];

/// The setting of a name, in whatever case.
pub(super) fn known(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))
}

impl Parameter {
    /// A value as it is kept.
    ///
    /// # Errors
    /// When the setting cannot be that.
    pub(super) fn value(&self, value: &str) -> Result<String> {
        let Self { name, kind, .. } = self;
        let (kept, expected) = match kind {
            Kind::Text => (Some(value.to_owned()), ""),
            Kind::Fixed => {
                let message = format!("setting '{name}' cannot be changed");
                return Err(SqlState::CANT_CHANGE.error(message));
            }
            Kind::Transaction => {
                let message = format!("setting '{name}' is changed by SET TRANSACTION");
                return Err(SqlState::CANT_CHANGE.error(message));
            }
            Kind::Flag => (flag(value).map(str::to_owned), "on or off"),
            Kind::Time => (
                milliseconds(value).map(|_| value.to_owned()),
                "a time such as 5s or 250ms, or 0 for none",
            ),
            Kind::TimeZone => return timezone::checked(value),
            Kind::One(values) => {
                let found = values.iter().find(|it| it.eq_ignore_ascii_case(value.trim()));
                let Some(found) = found else {
                    return Err(self.invalid(value, &values.join(" or ")));
                };
                (Some(plain(found).to_owned()), "")
            }
        };
        kept.ok_or_else(|| self.invalid(value, expected))
    }

    fn invalid(&self, value: &str, expected: &str) -> datafusion::common::DataFusionError {
        let name = self.name;
        let message = format!("invalid value '{value}' for setting '{name}'; expected {expected}");
        SqlState::INVALID_PARAMETER.error(message)
    }
}

/// One of several words for the same as clients are told of it.
fn plain(value: &'static str) -> &'static str {
    match value {
        "UTF-8" | "UNICODE" => "UTF8",
        "ISO" => "ISO, MDY",
        "true" => "on",
        other => other,
    }
}

fn flag(value: &str) -> Option<&'static str> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some("on"),
        "off" | "false" | "no" | "0" => Some("off"),
        _ => None,
    }
}

/// A time, `500`, `250ms`, `5s`, `1min`, `1 h`.
pub(super) fn milliseconds(value: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, wanted) in
            [("0", Some(0)), ("250ms", Some(250)), ("5 s", Some(5000)), ("x", None)]
        {
            assert_eq!(milliseconds(text), wanted, "{text}");
        }
    }

    #[test]
    fn values_are_kept_as_clients_are_told_of_them() {
        let kept = |name: &str, value: &str| known(name).and_then(|it| it.value(value).ok());
        for (name, value, wanted) in [
            ("client_encoding", "utf-8", Some("UTF8")),
            ("datestyle", "iso", Some("ISO, MDY")),
            ("default_transaction_read_only", "TRUE", Some("on")),
            ("default_transaction_isolation", "Repeatable Read", Some("repeatable read")),
            ("default_transaction_isolation", "serializable", None),
            ("timezone", "Europe/Berlin", Some("Europe/Berlin")),
            ("timezone", "Nowhere", None),
            ("server_version", "9", None),
            ("transaction_isolation", "read committed", None),
        ] {
            assert_eq!(kept(name, value).as_deref(), wanted, "{name} {value}");
        }
    }
}
