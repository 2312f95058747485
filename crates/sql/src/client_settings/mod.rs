//! The settings of a session: for the session, for the open transaction, and as they were when that began.
//!
//! SET changes the session's value and SET LOCAL the transaction's, which ends with it. ROLLBACK restores the values of
//! BEGIN, ROLLBACK TO those of the savepoint.

mod known;
mod units;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use atoll_functions::temporal::TemporalStyle;
use atoll_store::database::{Isolation, LockPatience, TransactionOptions};
use datafusion::common::Result;
use datafusion::execution::SessionState;
use parking_lot::{Mutex, RwLock};

use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::first_schema;
use atoll_sql_exec::watch::StatementWatch;
use atoll_sql_semantics::timezone;
use known::{
    DATE_STYLE, DEFAULT_ISOLATION, DEFAULT_READ_ONLY, INTERVAL_STYLE, IS_SUPERUSER, Kind,
    MAX_CONNECTIONS, milliseconds,
};
pub(crate) use known::{
    DEFAULT_DEFERRABLE, DEFERRABLE, ISOLATION, MESSAGES, PARAMETERS, Parameter, READ_COMMITTED,
    READ_ONLY, READ_UNCOMMITTED, REPEATABLE_READ, SEARCH_PATH, SERIALIZABLE, SESSION_AUTHORIZATION,
    TIME_ZONE, flag, known, setting_named,
};

/// The PostgreSQL version that clients are shown.
pub const POSTGRESQL_VERSION: &str = "15.0";

/// The settings of a session that differ from their defaults. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSettings(Arc<SettingsParts>);

#[derive(Debug, Default)]
struct SettingsParts {
    state: Mutex<SettingsState>,
    /// The engine that settings affect, once the session is made.
    engine: OnceLock<SettingsEngine>,
}

/// The engine that settings affect.
struct SettingsEngine {
    state: Weak<RwLock<SessionState>>,
    /// Called after each change that may change the meaning of a statement.
    on_change: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for SettingsEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SettingsEngine")
    }
}

/// The canonical name of a setting.
type Name = Cow<'static, str>;

type ValueMap = BTreeMap<Name, String>;

#[derive(Debug, Default)]
struct SettingsState {
    /// The values that the client set when it began the session, which RESET restores.
    first: ValueMap,
    values: ParameterValues,
    transaction: Option<TransactionSettings>,
    /// Settings with a dot in their names that were set once: they remain, empty if their value is gone.
    own: BTreeSet<Name>,
    /// Changes that the client was not notified of yet.
    changed: Vec<Name>,
}

/// Values of the session and of its transaction. Copies share what does not differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ParameterValues {
    session: Arc<ValueMap>,
    local: Arc<ValueMap>,
}

/// The settings state of the open transaction.
#[derive(Debug)]
struct TransactionSettings {
    options: TransactionOptions,
    /// Whether READ UNCOMMITTED was specified, which is shown and is READ COMMITTED.
    is_uncommitted: bool,
    is_deferrable: bool,
    before: ParameterValues,
    savepoints: Vec<(String, ParameterValues)>,
}

/// A row of `pg_settings`.
pub(crate) struct ShownSetting {
    pub(crate) name: &'static str,
    /// Its default, in the unit.
    pub(crate) first: String,
    pub(crate) value: String,
    pub(crate) unit: Option<&'static str>,
    /// `bool`, `enum`, `integer` or `string`.
    pub(crate) value_type: &'static str,
    pub(crate) is_fixed: bool,
}

impl ParameterValues {
    fn get(&self, name: &str) -> Option<&String> {
        self.local.get(name).or_else(|| self.session.get(name))
    }

    /// Settings whose value differs in `other`.
    fn differing(&self, other: &Self) -> Vec<Name> {
        let maps = [&self.session, &self.local, &other.session, &other.local];
        let mut names: Vec<Name> = maps.into_iter().flat_map(|map| map.keys().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.get(name) != other.get(name));
        names
    }
}

impl SettingsState {
    fn value(&self, name: &str) -> &str {
        match (self.values.get(name), known(name)) {
            (Some(value), _) => value,
            (None, Some(parameter)) => self.first_value(parameter),
            (None, None) => self.first.get(name).map_or("", String::as_str),
        }
    }

    /// The value that RESET gives a setting.
    fn first_value(&self, parameter: &Parameter) -> &str {
        self.first.get(parameter.name).map_or(parameter.first, String::as_str)
    }

    /// Options of transactions that do not specify them.
    fn default_options(&self) -> TransactionOptions {
        let isolation = match self.value(DEFAULT_ISOLATION) {
            REPEATABLE_READ => Isolation::RepeatableRead,
            SERIALIZABLE => Isolation::Serializable,
            _ => Isolation::ReadCommitted,
        };
        let read_only = self.value(DEFAULT_READ_ONLY) == "on";
        TransactionOptions { isolation, read_only, ..TransactionOptions::default() }
    }

    /// Replaces the values; the settings that differ.
    fn replace(&mut self, values: ParameterValues) -> Vec<Name> {
        let names = self.values.differing(&values);
        self.values = values;
        self.changed.extend(names.iter().cloned());
        names
    }
}

impl ClientSettings {
    /// Applies settings that affect the engine to it from now on.
    pub(crate) fn connect(
        &self,
        state: Weak<RwLock<SessionState>>,
        on_change: impl Fn() + Send + Sync + 'static,
    ) {
        let on_change = Box::new(on_change);
        // A session is made once.
        let _ = self.0.engine.set(SettingsEngine { state, on_change });
    }

    /// The value of a setting; `None` if it does not exist.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let name = setting_named(name)?;
        let state = self.0.state.lock();
        let name = match name {
            Cow::Borrowed(name) => name,
            Cow::Owned(name) => {
                return state.own.contains(name.as_str()).then(|| state.value(&name).to_owned());
            }
        };
        if name == DEFERRABLE {
            let is_on = state.transaction.as_ref().map(|open| open.is_deferrable);
            let is_on = is_on.unwrap_or_else(|| state.value(DEFAULT_DEFERRABLE) == "on");
            return Some(if is_on { "on" } else { "off" }.to_owned());
        }
        if name != ISOLATION && name != READ_ONLY {
            return Some(state.value(name).to_owned());
        }
        let open = state.transaction.as_ref().map(|open| (open.options, open.is_uncommitted));
        let (options, is_uncommitted) = open.unwrap_or_else(|| {
            (state.default_options(), state.value(DEFAULT_ISOLATION) == READ_UNCOMMITTED)
        });
        let text = match (name, options.isolation, options.read_only) {
            (ISOLATION, Isolation::ReadCommitted, _) if is_uncommitted => READ_UNCOMMITTED,
            (ISOLATION, Isolation::ReadCommitted, _) => READ_COMMITTED,
            (ISOLATION, Isolation::RepeatableRead, _) => REPEATABLE_READ,
            (ISOLATION, Isolation::Serializable, _) => SERIALIZABLE,
            (_, _, true) => "on",
            (_, _, false) => "off",
        };
        Some(text.to_owned())
    }

    /// The value of a time setting; `None` if it is unlimited.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        let state = self.0.state.lock();
        milliseconds(state.value(name)).filter(|it| *it > 0).map(Duration::from_millis)
    }

    /// How long a statement waits for a lock; `None` if it is unlimited.
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        self.time("lock_timeout")
    }

    /// Waits for locks end after the `lock_timeout` of their start; the statement is watched while it waits.
    pub(crate) fn lock_patience(&self, watch: &StatementWatch) -> LockPatience {
        let (settings, watch) = (self.clone(), watch.clone());
        LockPatience::new(move || {
            let (waits, timeout) = (watch.waiting_for_lock(), settings.lock_timeout());
            Box::pin(async move {
                let _waits = waits;
                match timeout {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            })
        })
    }

    /// Options of transactions that do not specify them.
    pub(crate) fn default_options(&self) -> TransactionOptions {
        self.0.state.lock().default_options()
    }

    /// Sets the options of transactions that do not specify them.
    pub(crate) fn set_default_options(
        &self,
        options: TransactionOptions,
        is_uncommitted: bool,
    ) -> Result<()> {
        let level = match options.isolation {
            Isolation::ReadCommitted if is_uncommitted => READ_UNCOMMITTED,
            Isolation::ReadCommitted => READ_COMMITTED,
            Isolation::RepeatableRead => REPEATABLE_READ,
            Isolation::Serializable => SERIALIZABLE,
        };
        let read_only = if options.read_only { "on" } else { "off" };
        self.set(DEFAULT_ISOLATION, Some(level), false)?;
        self.set(DEFAULT_READ_ONLY, Some(read_only), false)
    }

    /// Changes a setting, or resets it without a value. A `local` value lasts for the open transaction, and has no
    /// effect without one.
    pub(crate) fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<()> {
        let Some(name) = setting_named(name) else {
            return Err(SqlState::UNDEFINED_OBJECT
                .error(format!("unrecognized configuration parameter \"{name}\"")));
        };
        let parameter = known(&name);
        let mut state = self.0.state.lock();
        let value = value.map(|value| match parameter {
            Some(parameter) => parameter.value(value, state.value(&name)),
            None => Ok(value.to_owned()),
        });
        let value = value.transpose()?;
        if parameter.is_none() {
            state.own.insert(name.clone());
        }
        if is_local && state.transaction.is_none() {
            return Ok(());
        }
        let value = match (value, parameter) {
            (None, Some(parameter)) if is_local => Some(state.first_value(parameter).to_owned()),
            (value, _) => value,
        };
        let values = &mut state.values;
        if values.local.contains_key(&name) {
            Arc::make_mut(&mut values.local).remove(&name);
        }
        let into = Arc::make_mut(if is_local { &mut values.local } else { &mut values.session });
        match value {
            Some(value) => drop(into.insert(name.clone(), value)),
            None => drop(into.remove(&name)),
        }
        state.changed.push(name.clone());
        drop(state);
        self.apply(&[name]);
        Ok(())
    }

    /// Sets the values that depend on the session's user, for as long as the session lasts.
    pub(crate) fn connect_as(&self, user: &str, is_superuser: bool) {
        self.set_fact(SESSION_AUTHORIZATION, user);
        self.set_fact(IS_SUPERUSER, if is_superuser { "on" } else { "off" });
    }

    /// Sets how many sessions clients may have at the same time.
    pub(crate) fn set_connections_max(&self, count: usize) {
        self.set_fact(MAX_CONNECTIONS, &count.to_string());
    }

    fn set_fact(&self, name: &'static str, value: &str) {
        self.0.state.lock().first.insert(Cow::Borrowed(name), value.to_owned());
    }

    /// Whether a setting returns to its first value by itself.
    pub(crate) fn knows(&self, name: &str) -> bool {
        setting_named(name).is_some()
    }

    /// Sets the value that RESET restores, as the client requests when it begins the session.
    pub(crate) fn set_first(&self, name: &str, value: &str) -> Result<bool> {
        let Some(name) = setting_named(name) else { return Ok(false) };
        let mut state = self.0.state.lock();
        let value = match known(&name) {
            Some(parameter) => parameter.value(value, state.value(&name))?,
            None => value.to_owned(),
        };
        if known(&name).is_none() {
            state.own.insert(name.clone());
        }
        state.first.insert(name.clone(), value);
        state.changed.push(name.clone());
        drop(state);
        self.apply(&[name]);
        Ok(true)
    }

    /// All settings, by name.
    pub(crate) fn all(&self) -> Vec<ShownSetting> {
        let shown = PARAMETERS.iter().map(|parameter| ShownSetting {
            name: parameter.name,
            first: parameter.in_unit(parameter.first),
            value: parameter.in_unit(&self.get(parameter.name).unwrap_or_default()),
            unit: parameter.units().and_then(<[_]>::first).map(|(name, _)| *name),
            value_type: parameter.value_type(),
            is_fixed: parameter.kind == Kind::Fixed,
        });
        shown.collect()
    }

    /// Resets all settings.
    pub(crate) fn reset_all(&self) {
        let names = self.0.state.lock().replace(ParameterValues::default());
        self.apply(&names);
        // This also resets the engine's settings under its own names.
        self.apply(&[SEARCH_PATH, TIME_ZONE, DATE_STYLE].map(Cow::Borrowed));
    }

    /// Begins a transaction. Of several at a time, the first one counts. Without `is_uncommitted`, the default level is
    /// shown.
    pub(crate) fn begin_transaction(
        &self,
        options: TransactionOptions,
        is_uncommitted: Option<bool>,
    ) {
        let mut state = self.0.state.lock();
        let (before, savepoints) = (state.values.clone(), Vec::new());
        let is_uncommitted =
            is_uncommitted.unwrap_or_else(|| state.value(DEFAULT_ISOLATION) == READ_UNCOMMITTED);
        let is_deferrable = state.value(DEFAULT_DEFERRABLE) == "on";
        state.transaction.get_or_insert(TransactionSettings {
            options,
            is_uncommitted,
            is_deferrable,
            before,
            savepoints,
        });
    }

    /// Sets the options of the open transaction.
    pub(crate) fn set_transaction(&self, options: TransactionOptions, is_uncommitted: bool) {
        if let Some(open) = &mut self.0.state.lock().transaction {
            open.options = options;
            open.is_uncommitted = is_uncommitted;
        }
    }

    /// Makes the open transaction DEFERRABLE, which shows and has no effect, or not.
    pub(crate) fn set_deferrable(&self, is_deferrable: bool) {
        if let Some(open) = &mut self.0.state.lock().transaction {
            open.is_deferrable = is_deferrable;
        }
    }

    /// Ends a transaction: restores the values that it set for itself alone, and, unless it was committed, those that
    /// it set for the session.
    pub(crate) fn end_transaction(&self, is_committed: bool) {
        let mut state = self.0.state.lock();
        let Some(open) = state.transaction.take() else { return };
        let values = match is_committed {
            true => ParameterValues { local: Arc::default(), ..state.values.clone() },
            false => open.before,
        };
        let names = state.replace(values);
        drop(state);
        self.apply(&names);
    }

    /// Makes a savepoint.
    pub(crate) fn savepoint(&self, name: &str) {
        let mut state = self.0.state.lock();
        let values = state.values.clone();
        if let Some(open) = &mut state.transaction {
            open.savepoints.push((name.to_owned(), values));
        }
    }

    /// Removes a savepoint and later ones.
    pub(crate) fn release(&self, name: &str) {
        if let Some(open) = &mut self.0.state.lock().transaction
            && let Some(at) = open.savepoints.iter().rposition(|(of, _)| of == name)
        {
            open.savepoints.truncate(at);
        }
    }

    /// Restores the values of a savepoint, which remains.
    pub(crate) fn rollback_to(&self, name: &str) {
        let mut state = self.0.state.lock();
        let Some(open) = &mut state.transaction else { return };
        let Some(at) = open.savepoints.iter().rposition(|(of, _)| of == name) else { return };
        open.savepoints.truncate(at + 1);
        let values = open.savepoints[at].1.clone();
        let names = state.replace(values);
        drop(state);
        self.apply(&names);
    }

    /// How dates, times and intervals are written and read.
    fn style(&self) -> TemporalStyle {
        let state = self.0.state.lock();
        TemporalStyle::from_settings(state.value(DATE_STYLE), state.value(INTERVAL_STYLE))
    }

    pub(crate) fn take_changed(&self) -> Vec<Name> {
        std::mem::take(&mut self.0.state.lock().changed)
    }

    /// Applies these settings to the engine.
    fn apply(&self, names: &[Name]) {
        let Some(engine) = self.0.engine.get() else { return };
        for name in names {
            let value = self.0.state.lock().value(name).to_owned();
            let Some(state) = engine.state.upgrade() else { return };
            match &**name {
                SEARCH_PATH => set_search_path(&mut state.write(), &value),
                TIME_ZONE => timezone::set(&mut state.write(), &value),
                DATE_STYLE | INTERVAL_STYLE => set_style(&mut state.write(), self.style()),
                _ => continue,
            }
            (engine.on_change)();
        }
    }
}

/// The engine keeps the first schema of the path; statements find the others by the setting.
fn set_search_path(state: &mut SessionState, path: &str) {
    state.config_mut().options_mut().catalog.default_schema = first_schema(path);
}

fn set_style(state: &mut SessionState, style: TemporalStyle) {
    state.config_mut().options_mut().extensions.insert(style);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &ClientSettings, value: &str, is_local: bool) {
        settings.set("statement_timeout", Some(value), is_local).expect("a time");
    }

    fn shown(settings: &ClientSettings) -> String {
        settings.get("STATEMENT_TIMEOUT").expect("it is a setting")
    }

    #[test]
    fn a_local_setting_ends_with_its_transaction() {
        let settings = ClientSettings::default();
        set(&settings, "5s", false);
        set(&settings, "9s", true);
        assert_eq!(shown(&settings), "5s");
        for is_committed in [true, false] {
            settings.begin_transaction(TransactionOptions::default(), None);
            set(&settings, "1s", true);
            set(&settings, "2s", true);
            assert_eq!(shown(&settings), "2s");
            settings.end_transaction(is_committed);
            assert_eq!(shown(&settings), "5s");
        }
        settings.begin_transaction(TransactionOptions::default(), None);
        settings.set("statement_timeout", None, true).expect("reset");
        assert_eq!(shown(&settings), "0");
        settings.end_transaction(true);
        assert_eq!(shown(&settings), "5s");
    }

    #[test]
    fn a_setting_goes_back_with_its_transaction() {
        let settings = ClientSettings::default();
        set(&settings, "5s", false);
        settings.begin_transaction(TransactionOptions::default(), None);
        set(&settings, "1s", true);
        set(&settings, "6s", false);
        assert_eq!(shown(&settings), "6s");
        set(&settings, "2s", true);
        settings.end_transaction(true);
        assert_eq!(shown(&settings), "6s");
        settings.begin_transaction(TransactionOptions::default(), None);
        set(&settings, "7s", false);
        settings.end_transaction(false);
        assert_eq!(shown(&settings), "6s");
    }

    #[test]
    fn savepoints_keep_settings() {
        let settings = ClientSettings::default();
        settings.begin_transaction(TransactionOptions::default(), None);
        set(&settings, "1s", false);
        settings.savepoint("a");
        set(&settings, "2s", false);
        settings.savepoint("b");
        set(&settings, "3s", true);
        settings.rollback_to("b");
        assert_eq!(shown(&settings), "2s");
        settings.rollback_to("a");
        settings.rollback_to("b");
        assert_eq!(shown(&settings), "1s");
        settings.release("a");
        set(&settings, "4s", false);
        settings.rollback_to("a");
        assert_eq!(shown(&settings), "4s");
        settings.end_transaction(false);
        assert_eq!(shown(&settings), "0");
    }

    #[test]
    fn a_reset_restores_the_initial_values_of_the_client() {
        let settings = ClientSettings::default();
        assert!(settings.set_first("Application_Name", "mine").expect("it is set"));
        assert!(!settings.set_first("nothing", "x").expect("it is passed over"));
        assert!(settings.set_first("TimeZone", "Nowhere").is_err());
        settings.set("application_name", Some("other"), false).expect("set");
        settings.reset_all();
        assert_eq!(settings.get("application_name").as_deref(), Some("mine"));
    }
    #[test]
    fn settings_of_programs_stay_once_they_were_set() {
        let settings = ClientSettings::default();
        assert_eq!(settings.get("my.x"), None);
        settings.begin_transaction(TransactionOptions::default(), None);
        settings.set("my.x", Some("1"), true).expect("set");
        assert_eq!(settings.get("My.X").as_deref(), Some("1"));
        settings.end_transaction(true);
        assert_eq!(settings.get("my.x").as_deref(), Some(""));
        settings.set("my.x", Some("2"), false).expect("set");
        settings.reset_all();
        assert_eq!(settings.get("my.x").as_deref(), Some(""));
        assert!(settings.set("nothing", Some("1"), false).is_err());
    }
}
