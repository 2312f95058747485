//! Texts of statements that repeat, as text or prepared, planned once: queries for all sessions of a database that
//! interpret them alike, others for their session.
//!
//! A plan is valid while three things are what they were when it was made:
//! - the names of the database: tables, views, macros and the rights of roles, all of which are relations
//!   ([`DatabaseNames`]); if one changes, all plans end;
//! - the scope of the session: its settings, search path, user and variables ([`TextScope`]);
//! - the definition of the table: its columns, constraints and indexes (`Shape::is_current`).
//!
//! A prepared statement keeps its plan beside the cache, by the same rule.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::database::{DatabaseNames, DatabaseVersion};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::session::cache::point::PlannedStatement;
use crate::session::cache::raw_text::{RawText, RawValue};
use crate::session::cache::text_scope::TextScope;
use crate::session::plan::declared_operands::DeclaredType;

/// Maximum number of cached texts, those that were sent included.
const TEXTS_MAX: usize = 8192;

/// Maximum number of distinct settings. Beyond it the map starts anew; existing scopes remain valid.
const SETTINGS_MAX: usize = 1024;

/// A text that the first session to ask plans once; others wait for it.
pub(in crate::session) type PlannedText = Arc<OnceCell<PlannedStatement>>;

/// A text that was sent, with its values that are parameters.
#[derive(Debug)]
pub(in crate::session) struct KnownText {
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

/// The cached plans of sessions, by scope and text with parameters in place of values.
#[derive(Debug, Default)]
pub(in crate::session) struct PlanCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The names for which the texts were planned.
    names: DatabaseNames,
    texts: HashMap<TextScope, ScopeTexts>,
    /// The number of texts of all scopes.
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

impl ValuePlace {
    /// The value in a text.
    pub(in crate::session) fn value_in(self, raw: &RawText) -> Cow<'_, RawValue> {
        let value = &raw.values[self.at];
        match self.is_negative && value.is_number {
            true => Cow::Owned(RawValue { text: format!("-{}", value.text), ..value.clone() }),
            false => Cow::Borrowed(value),
        }
    }
}

/// A text with the declared types of its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::session) struct DeclaredText {
    pub(in crate::session) text: String,
    pub(in crate::session) types: Vec<DeclaredType>,
}

impl DeclaredText {
    pub(in crate::session) fn new(text: &str, types: &[DeclaredType]) -> Self {
        Self { text: text.to_owned(), types: types.to_vec() }
    }
}

impl PlanCache {
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

    /// Remembers a text that was sent and is `text` with parameters, unless its plan was evicted.
    pub(in crate::session) fn remember(
        &self,
        scope: TextScope,
        text: &DeclaredText,
        key: String,
        known: KnownText,
    ) {
        let kept = &mut *self.0.lock();
        let Some(texts) = kept.texts.get_mut(&scope) else { return };
        let planned = texts.planned.get(text);
        let is_kept = planned.is_some_and(|planned| Arc::ptr_eq(planned, &known.planned));
        if is_kept && kept.count < TEXTS_MAX {
            let before = texts.known.insert(key, Arc::new(known));
            kept.count += usize::from(before.is_none());
        }
    }

    /// Removes a stale text.
    pub(in crate::session) fn forget(&self, scope: TextScope, text: &DeclaredText) {
        let kept = &mut *self.0.lock();
        let Some(texts) = kept.texts.get_mut(&scope) else { return };
        let Some(removed) = texts.planned.remove(text) else { return };
        let before = texts.known.len();
        texts.known.retain(|_, known| !Arc::ptr_eq(&known.planned, &removed));
        kept.count -= 1 + before - texts.known.len();
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
