//! The selections that sessions sent as text, planned once for all sessions that read them alike.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::database::{DatabaseNames, DatabaseVersion};
use datafusion::arrow::datatypes::DataType;
use parking_lot::Mutex;

use super::selection::SharedSelection;

/// Texts that are remembered.
const TEXTS_MAX: usize = 4096;

/// Settings that are told apart. More of them start anew: scopes that were given stay as they are.
const SETTINGS_MAX: usize = 1024;

/// Sessions that read a text alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextScope(u64);

/// What came of a text.
#[derive(Debug)]
pub(crate) struct TextSelection {
    /// Types of its values.
    pub(crate) types: Vec<DataType>,
    /// None where the text does not fit.
    pub(crate) selection: Option<Arc<SharedSelection>>,
}

/// All settings of a session.
type Settings = Vec<(String, Option<String>)>;

/// The selections of a database's sessions, by scope and by text with parameters.
#[derive(Debug, Default)]
pub(crate) struct TextSelections(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Names as they were when the texts were planned.
    names: DatabaseNames,
    texts: HashMap<TextScope, HashMap<String, Arc<TextSelection>>>,
    count: usize,
    scopes: HashMap<Settings, TextScope>,
    next: u64,
}

impl TextSelections {
    /// The scope of sessions with these settings.
    pub(crate) fn scope_of(&self, settings: Settings) -> TextScope {
        let mut kept = self.0.lock();
        if let Some(scope) = kept.scopes.get(&settings) {
            return *scope;
        }
        if kept.scopes.len() >= SETTINGS_MAX {
            kept.scopes.clear();
        }
        let scope = kept.next_scope();
        kept.scopes.insert(settings, scope);
        scope
    }

    /// A scope that no other session has.
    pub(crate) fn own_scope(&self) -> TextScope {
        self.0.lock().next_scope()
    }

    /// What a text is, as planned under the names of this version.
    pub(crate) fn find(
        &self,
        scope: TextScope,
        text: &str,
        version: &DatabaseVersion,
    ) -> Option<Arc<TextSelection>> {
        let kept = self.0.lock();
        let are_same = kept.names.are_those_of(version);
        kept.texts.get(&scope).filter(|_| are_same)?.get(text).cloned()
    }

    /// Keeps what a text is, which was planned under the names of this version or later ones.
    pub(crate) fn keep(
        &self,
        scope: TextScope,
        text: String,
        selection: &Arc<TextSelection>,
        version: &DatabaseVersion,
    ) {
        let mut kept = self.0.lock();
        if !kept.names.are_those_of(version) || kept.count >= TEXTS_MAX {
            kept.names = version.names();
            kept.texts.clear();
            kept.count = 0;
        }
        let texts = kept.texts.entry(scope).or_default();
        let is_new = texts.insert(text, Arc::clone(selection)).is_none();
        kept.count += usize::from(is_new);
    }

    /// Forgets a text that no longer fits.
    pub(crate) fn forget(&self, scope: TextScope, text: &str) {
        let mut kept = self.0.lock();
        let removed = kept.texts.get_mut(&scope).and_then(|texts| texts.remove(text));
        kept.count -= usize::from(removed.is_some());
    }
}

impl Kept {
    fn next_scope(&mut self) -> TextScope {
        self.next += 1;
        TextScope(self.next)
    }
}
