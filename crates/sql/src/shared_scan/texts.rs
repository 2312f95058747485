//! Statements that were sent as text, planned once: queries for all sessions of a database that read them alike, others
//! for their session.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::database::{DatabaseNames, DatabaseVersion};
use datafusion::arrow::datatypes::DataType;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::session::Shape;

/// Texts that are remembered.
const TEXTS_MAX: usize = 4096;

/// Settings that are told apart. More of them start anew: scopes that were given stay as they are.
const SETTINGS_MAX: usize = 1024;

/// Sessions that read a text alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextScope(u64);

/// What came of a text.
#[derive(Debug)]
pub(crate) struct TextPlan {
    /// Types of its values.
    pub(crate) types: Vec<DataType>,
    /// How it runs with other values.
    pub(crate) shape: Shape,
}

/// A text that is planned once, by the first session that asks; others wait for it.
pub(crate) type PlannedText = Arc<OnceCell<TextPlan>>;

/// All settings of a session.
type Settings = Vec<(String, Option<String>)>;

/// The texts of sessions, by scope and with parameters in place of values.
#[derive(Debug, Default)]
pub(crate) struct PlannedTexts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Names as they were when the texts were planned.
    names: DatabaseNames,
    texts: HashMap<TextScope, HashMap<String, PlannedText>>,
    count: usize,
    scopes: HashMap<Settings, TextScope>,
    next: u64,
}

impl PlannedTexts {
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

    /// A text, as planned under the names of this version or later ones.
    pub(crate) fn get(
        &self,
        scope: TextScope,
        text: &str,
        version: &DatabaseVersion,
    ) -> PlannedText {
        let mut kept = self.0.lock();
        if !kept.names.are_those_of(version) {
            kept.start_anew(version);
        }
        let texts = kept.texts.get(&scope);
        if let Some(known) = texts.and_then(|texts| texts.get(text)) {
            return Arc::clone(known);
        }
        if kept.count >= TEXTS_MAX {
            kept.start_anew(version);
        }
        kept.count += 1;
        let planned = PlannedText::default();
        kept.texts.entry(scope).or_default().insert(text.to_owned(), Arc::clone(&planned));
        planned
    }

    /// Forgets a text that no longer fits.
    pub(crate) fn forget(&self, scope: TextScope, text: &str) {
        let mut kept = self.0.lock();
        let removed = kept.texts.get_mut(&scope).and_then(|texts| texts.remove(text));
        kept.count -= usize::from(removed.is_some());
    }
}

impl Kept {
    fn start_anew(&mut self, version: &DatabaseVersion) {
        self.names = version.names();
        self.texts.clear();
        self.count = 0;
    }

    fn next_scope(&mut self) -> TextScope {
        self.next += 1;
        TextScope(self.next)
    }
}
