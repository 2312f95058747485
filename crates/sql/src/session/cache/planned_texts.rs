//! Texts of statements that repeat, as text or prepared, planned once: queries for all sessions of a database that
//! interpret them alike, others for their session.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::database::{DatabaseNames, DatabaseVersion};
use datafusion::arrow::datatypes::DataType;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::session::cache::point::PlannedStatement;

/// Maximum number of cached texts.
const TEXTS_MAX: usize = 4096;

/// Maximum number of distinct settings. Beyond it the map starts anew; existing scopes remain valid.
const SETTINGS_MAX: usize = 1024;

/// Sessions that interpret a text alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::session) struct TextScope(u64);

/// A text that the first session to ask plans once; others wait for it.
pub(in crate::session) type PlannedText = Arc<OnceCell<PlannedStatement>>;

/// A text that was sent, with its values that are parameters.
#[derive(Debug)]
pub(in crate::session) struct KnownText {
    /// The text with parameters.
    pub(in crate::session) text: DeclaredText,
    pub(in crate::session) planned: PlannedText,
    /// The positions of the parameters' values.
    pub(in crate::session) places: Vec<ValuePlace>,
}

/// A value of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct ValuePlace {
    /// Its index, from 0.
    pub(in crate::session) at: usize,
    /// Whether a minus before it is part of it.
    pub(in crate::session) is_negative: bool,
}

/// All settings of a session.
type Settings = Vec<(String, Option<String>)>;

/// The cached texts of sessions, by scope and with parameters in place of values.
#[derive(Debug, Default)]
pub(in crate::session) struct PlannedTexts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The names for which the texts were planned.
    names: DatabaseNames,
    texts: HashMap<TextScope, ScopeTexts>,
    count: usize,
    scopes: HashMap<Settings, TextScope>,
    next: u64,
}

#[derive(Debug, Default)]
struct ScopeTexts {
    planned: HashMap<DeclaredText, PlannedText>,
    /// By the text that was sent, with marks in place of its values.
    known: HashMap<String, Arc<KnownText>>,
}

/// A text with the declared types of its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::session) struct DeclaredText {
    pub(in crate::session) text: String,
    pub(in crate::session) types: Vec<Option<DataType>>,
}

impl From<&str> for DeclaredText {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), types: Vec::new() }
    }
}

impl PlannedTexts {
    /// The scope of sessions with these settings.
    pub(in crate::session) fn scope_of(&self, settings: Settings) -> TextScope {
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

    /// A new scope for one session.
    pub(in crate::session) fn own_scope(&self) -> TextScope {
        self.0.lock().next_scope()
    }

    /// The plan of a text with declared types of its parameters, valid for the names of this version; `None` if it is
    /// not cached.
    pub(in crate::session) fn find(
        &self,
        scope: TextScope,
        text: &DeclaredText,
        version: &DatabaseVersion,
    ) -> Option<PlannedText> {
        let kept = self.0.lock();
        let texts = kept.texts.get(&scope).filter(|_| kept.names.are_those_of(version))?;
        texts.planned.get(text).cloned()
    }

    /// The same, with an empty entry to be planned if it is not cached.
    pub(in crate::session) fn get(
        &self,
        scope: TextScope,
        text: &DeclaredText,
        version: &DatabaseVersion,
    ) -> PlannedText {
        let mut kept = self.0.lock();
        if !kept.names.are_those_of(version) {
            kept.start_anew(version);
        }
        let known = kept.texts.get(&scope).and_then(|texts| texts.planned.get(text));
        if let Some(known) = known {
            return Arc::clone(known);
        }
        if kept.count >= TEXTS_MAX {
            kept.start_anew(version);
        }
        kept.count += 1;
        let planned = PlannedText::default();
        let texts = kept.texts.entry(scope).or_default();
        texts.planned.insert(text.clone(), Arc::clone(&planned));
        planned
    }

    /// The known text with a key; `None` if names have changed their meaning.
    pub(in crate::session) fn known(
        &self,
        scope: TextScope,
        key: &str,
        version: &DatabaseVersion,
    ) -> Option<Arc<KnownText>> {
        let kept = self.0.lock();
        let texts = kept.texts.get(&scope).filter(|_| kept.names.are_those_of(version))?;
        texts.known.get(key).cloned()
    }

    /// Remembers a text that was sent, unless its plan was evicted.
    pub(in crate::session) fn remember(&self, scope: TextScope, key: String, known: KnownText) {
        let mut kept = self.0.lock();
        let Some(texts) = kept.texts.get_mut(&scope) else { return };
        let planned = texts.planned.get(&known.text);
        let is_kept = planned.is_some_and(|planned| Arc::ptr_eq(planned, &known.planned));
        if is_kept && texts.known.len() < TEXTS_MAX {
            texts.known.insert(key, Arc::new(known));
        }
    }

    /// Removes a stale text.
    pub(in crate::session) fn forget(&self, scope: TextScope, text: &DeclaredText) {
        let mut kept = self.0.lock();
        let Some(texts) = kept.texts.get_mut(&scope) else { return };
        let removed = texts.planned.remove(text);
        texts.known.retain(|_, known| known.text != *text);
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
