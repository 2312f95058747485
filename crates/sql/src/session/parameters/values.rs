//! What the settings of a session are: for the session, for the open transaction, and as they were when that began.
//!
//! SET changes the session's value and SET LOCAL the transaction's, which goes with it. ROLLBACK gives back what was
//! there at BEGIN, ROLLBACK TO what was there at the savepoint.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use atoll_store::database::{Isolation, LockPatience, TransactionOptions};
use datafusion::common::Result;
use datafusion::execution::SessionState;
use parking_lot::{Mutex, RwLock};

use super::super::text_scope::SessionScope;
use super::known::{
    DEFAULT_ISOLATION, DEFAULT_READ_ONLY, ISOLATION, Kind, PARAMETERS, Parameter, READ_COMMITTED,
    READ_ONLY, REPEATABLE_READ, SEARCH_PATH, TIME_ZONE, known, milliseconds,
};
use crate::error::SqlState;
use crate::timezone;
use crate::watch::StatementWatch;

/// The settings of a session that are not what they are at first. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSettings(Arc<SettingsParts>);

#[derive(Debug, Default)]
struct SettingsParts {
    state: Mutex<SettingsState>,
    /// What settings have an effect on, once the session is made.
    engine: OnceLock<(Weak<RwLock<SessionState>>, Arc<SessionScope>)>,
}

type ValueMap = BTreeMap<&'static str, String>;

#[derive(Debug, Default)]
struct SettingsState {
    /// What the client set when it began the session: what RESET goes back to.
    first: ValueMap,
    values: ParameterValues,
    transaction: Option<TransactionSettings>,
    /// Changes that the client is not told of yet.
    changed: Vec<&'static str>,
}

/// Values that are set, of the session and of its transaction. Copies share what does not differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ParameterValues {
    session: Arc<ValueMap>,
    local: Arc<ValueMap>,
}

/// The open transaction, as far as it matters for settings.
#[derive(Debug)]
struct TransactionSettings {
    options: TransactionOptions,
    before: ParameterValues,
    savepoints: Vec<(String, ParameterValues)>,
}

/// A setting, as `pg_settings` tells of it.
pub(crate) struct ShownSetting {
    pub(crate) name: &'static str,
    /// What it is at first.
    pub(crate) first: &'static str,
    pub(crate) value: String,
    pub(crate) is_fixed: bool,
}

impl ParameterValues {
    fn get(&self, name: &str) -> Option<&String> {
        self.local.get(name).or_else(|| self.session.get(name))
    }

    /// Settings whose value is another one in `other`.
    fn differing(&self, other: &Self) -> Vec<&'static str> {
        let maps = [&self.session, &self.local, &other.session, &other.local];
        let mut names: Vec<&'static str> =
            maps.into_iter().flat_map(|map| map.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.get(name) != other.get(name));
        names
    }
}

impl SettingsState {
    fn value(&self, name: &'static str) -> &str {
        match (self.values.get(name), known(name)) {
            (Some(value), _) => value,
            (None, Some(parameter)) => self.first_value(parameter),
            (None, None) => "",
        }
    }

    /// What a setting is that is reset.
    fn first_value(&self, parameter: &Parameter) -> &str {
        self.first.get(parameter.name).map_or(parameter.first, String::as_str)
    }

    /// What transactions are that do not say otherwise.
    fn default_options(&self) -> TransactionOptions {
        let isolation = match self.value(DEFAULT_ISOLATION) {
            REPEATABLE_READ => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        let read_only = self.value(DEFAULT_READ_ONLY) == "on";
        TransactionOptions { isolation, read_only, ..TransactionOptions::default() }
    }

    /// The values are others from here on; the settings that differ.
    fn replace(&mut self, values: ParameterValues) -> Vec<&'static str> {
        let names = self.values.differing(&values);
        self.values = values;
        self.changed.extend(&names);
        names
    }
}

impl ClientSettings {
    /// Settings that say how the engine works change it from here on.
    pub(in crate::session) fn connect(
        &self,
        state: Weak<RwLock<SessionState>>,
        scope: Arc<SessionScope>,
    ) {
        // A session is made once.
        let _ = self.0.engine.set((state, scope));
    }

    /// What a setting is; none where there is no such setting.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let name = known(name)?.name;
        let state = self.0.state.lock();
        if name != ISOLATION && name != READ_ONLY {
            return Some(state.value(name).to_owned());
        }
        let open = state.transaction.as_ref().map(|open| open.options);
        let options = open.unwrap_or_else(|| state.default_options());
        let text = match (name, options.isolation, options.read_only) {
            (ISOLATION, Isolation::ReadCommitted, _) => READ_COMMITTED,
            (ISOLATION, Isolation::RepeatableRead, _) => REPEATABLE_READ,
            (_, _, true) => "on",
            (_, _, false) => "off",
        };
        Some(text.to_owned())
    }

    /// A time that is a setting; none without a bound.
    pub(super) fn time(&self, name: &'static str) -> Option<Duration> {
        let state = self.0.state.lock();
        milliseconds(state.value(name)).filter(|it| *it > 0).map(Duration::from_millis)
    }

    /// Waits for locks end after `lock_timeout`, as it is when they begin; the statement is watched while it waits.
    pub(in crate::session) fn lock_patience(&self, watch: &StatementWatch) -> LockPatience {
        let (settings, watch) = (self.clone(), watch.clone());
        LockPatience::new(move || {
            let (waits, timeout) = (watch.waiting_for_lock(), settings.time("lock_timeout"));
            Box::pin(async move {
                let _waits = waits;
                match timeout {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            })
        })
    }

    /// What transactions are that do not say otherwise.
    pub(in crate::session) fn default_options(&self) -> TransactionOptions {
        self.0.state.lock().default_options()
    }

    /// Transactions that do not say otherwise are like this from here on.
    pub(in crate::session) fn set_default_options(
        &self,
        options: TransactionOptions,
    ) -> Result<()> {
        let level = match options.isolation {
            Isolation::ReadCommitted => READ_COMMITTED,
            Isolation::RepeatableRead => REPEATABLE_READ,
        };
        let read_only = if options.read_only { "on" } else { "off" };
        self.set(DEFAULT_ISOLATION, Some(level), false)?;
        self.set(DEFAULT_READ_ONLY, Some(read_only), false)
    }

    /// Changes a setting; back to what it is at first without a value. What is `local` holds for the open
    /// transaction, and where there is none for nothing.
    pub(crate) fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<()> {
        let Some(parameter) = known(name) else {
            return Err(SqlState::UNDEFINED_OBJECT.error(format!("unknown setting '{name}'")));
        };
        let value = value.map(|value| parameter.value(value)).transpose()?;
        let name = parameter.name;
        let mut state = self.0.state.lock();
        if is_local && state.transaction.is_none() {
            return Ok(());
        }
        let value = match value {
            None if is_local => Some(state.first_value(parameter).to_owned()),
            value => value,
        };
        let values = &mut state.values;
        if values.local.contains_key(name) {
            Arc::make_mut(&mut values.local).remove(name);
        }
        let into = Arc::make_mut(if is_local { &mut values.local } else { &mut values.session });
        match value {
            Some(value) => drop(into.insert(name, value)),
            None => drop(into.remove(name)),
        }
        state.changed.push(name);
        drop(state);
        self.apply(&[name]);
        Ok(())
    }

    /// Whether a setting goes back by itself to what the session began with.
    pub(crate) fn knows(&self, name: &str) -> bool {
        known(name).is_some()
    }

    /// Sets what RESET goes back to, as the client asks for it that begins the session.
    pub(in crate::session) fn set_first(&self, name: &str, value: &str) -> Result<bool> {
        let Some(parameter) = known(name) else { return Ok(false) };
        let value = parameter.value(value)?;
        let mut state = self.0.state.lock();
        state.first.insert(parameter.name, value);
        state.changed.push(parameter.name);
        drop(state);
        self.apply(&[parameter.name]);
        Ok(true)
    }

    /// All settings, by name.
    pub(crate) fn all(&self) -> Vec<ShownSetting> {
        let shown = PARAMETERS.iter().map(|parameter| ShownSetting {
            name: parameter.name,
            first: parameter.first,
            value: self.get(parameter.name).unwrap_or_default(),
            is_fixed: parameter.kind == Kind::Fixed,
        });
        shown.collect()
    }

    /// All are what they are at first.
    pub(super) fn reset_all(&self) {
        let names = self.0.state.lock().replace(ParameterValues::default());
        self.apply(&names);
        // What the engine was set to under its own names is gone too.
        self.apply(&[SEARCH_PATH, TIME_ZONE]);
    }

    /// A transaction begins. Of several that a client has at a time the first one counts.
    pub(in crate::session) fn begin_transaction(&self, options: TransactionOptions) {
        let mut state = self.0.state.lock();
        let (before, savepoints) = (state.values.clone(), Vec::new());
        state.transaction.get_or_insert(TransactionSettings { options, before, savepoints });
    }

    /// The open transaction runs like this.
    pub(in crate::session) fn set_transaction(&self, options: TransactionOptions) {
        if let Some(open) = &mut self.0.state.lock().transaction {
            open.options = options;
        }
    }

    /// The end of a transaction: what was set for it alone is what it was before, and what was set in it for the
    /// session too unless it was committed.
    pub(in crate::session) fn end_transaction(&self, is_committed: bool) {
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

    /// A savepoint of this name.
    pub(in crate::session) fn savepoint(&self, name: &str) {
        let mut state = self.0.state.lock();
        let values = state.values.clone();
        if let Some(open) = &mut state.transaction {
            open.savepoints.push((name.to_owned(), values));
        }
    }

    /// Forgets a savepoint and those behind it.
    pub(in crate::session) fn release(&self, name: &str) {
        if let Some(open) = &mut self.0.state.lock().transaction
            && let Some(at) = open.savepoints.iter().rposition(|(of, _)| of == name)
        {
            open.savepoints.truncate(at);
        }
    }

    /// All is as at the savepoint, which stays.
    pub(in crate::session) fn rollback_to(&self, name: &str) {
        let mut state = self.0.state.lock();
        let Some(open) = &mut state.transaction else { return };
        let Some(at) = open.savepoints.iter().rposition(|(of, _)| of == name) else { return };
        open.savepoints.truncate(at + 1);
        let values = open.savepoints[at].1.clone();
        let names = state.replace(values);
        drop(state);
        self.apply(&names);
    }

    pub(super) fn take_changed(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.state.lock().changed)
    }

    /// Has the engine work as these settings say.
    fn apply(&self, names: &[&'static str]) {
        let Some((engine, scope)) = self.0.engine.get() else { return };
        for name in names {
            let value = self.0.state.lock().value(name).to_owned();
            let Some(engine) = engine.upgrade() else { return };
            match *name {
                SEARCH_PATH => set_search_path(&mut engine.write(), &value),
                TIME_ZONE => timezone::set(&mut engine.write(), &value),
                _ => continue,
            }
            scope.forget();
        }
    }
}

/// The first schema of the path is where names without one are looked up, and where they are created.
fn set_search_path(state: &mut SessionState, path: &str) {
    let schemas = path.split(',').map(|it| it.trim().trim_matches('"'));
    let mut schemas = schemas.filter(|it| !matches!(*it, "" | "$user" | "pg_catalog"));
    let schema = schemas.next().unwrap_or(crate::catalog::SCHEMA).to_owned();
    state.config_mut().options_mut().catalog.default_schema = schema;
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
            settings.begin_transaction(TransactionOptions::default());
            set(&settings, "1s", true);
            set(&settings, "2s", true);
            assert_eq!(shown(&settings), "2s");
            settings.end_transaction(is_committed);
            assert_eq!(shown(&settings), "5s");
        }
        settings.begin_transaction(TransactionOptions::default());
        settings.set("statement_timeout", None, true).expect("reset");
        assert_eq!(shown(&settings), "0");
        settings.end_transaction(true);
        assert_eq!(shown(&settings), "5s");
    }

    #[test]
    fn a_setting_goes_back_with_its_transaction() {
        let settings = ClientSettings::default();
        set(&settings, "5s", false);
        settings.begin_transaction(TransactionOptions::default());
        set(&settings, "1s", true);
        set(&settings, "6s", false);
        assert_eq!(shown(&settings), "6s");
        set(&settings, "2s", true);
        settings.end_transaction(true);
        assert_eq!(shown(&settings), "6s");
        settings.begin_transaction(TransactionOptions::default());
        set(&settings, "7s", false);
        settings.end_transaction(false);
        assert_eq!(shown(&settings), "6s");
    }

    #[test]
    fn savepoints_keep_what_settings_were() {
        let settings = ClientSettings::default();
        settings.begin_transaction(TransactionOptions::default());
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
    fn a_reset_goes_back_to_what_the_client_began_with() {
        let settings = ClientSettings::default();
        assert!(settings.set_first("Application_Name", "mine").expect("it is set"));
        assert!(!settings.set_first("nothing", "x").expect("it is passed over"));
        assert!(settings.set_first("TimeZone", "Nowhere").is_err());
        settings.set("application_name", Some("other"), false).expect("set");
        settings.reset_all();
        assert_eq!(settings.get("application_name").as_deref(), Some("mine"));
    }
}
