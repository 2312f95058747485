//! Which sessions read a text alike: those that have the same settings and nothing of their own.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Set, Statement as Ast};
use parking_lot::Mutex;

use crate::session::cache::planned_texts::TextScope;
use crate::session::settings::variables::variable;

/// The setting that says whether texts ride at all, not what they mean.
pub(in crate::session) const SHARED_SCAN_KEY: &str = "atoll.shared_scan";

/// The scope of a session's texts, found when one is asked for.
#[derive(Debug, Default)]
pub(in crate::session) struct SessionScope(Mutex<ScopeParts>);

#[derive(Debug, Default)]
struct ScopeParts {
    scope: Option<TextScope>,
    /// Whether names may mean what they mean in no other session: variables, for one.
    is_own: bool,
    /// How often the settings have changed.
    changes: u64,
}

impl SessionScope {
    /// Heeds a statement after which texts may mean something else.
    pub(in crate::session) fn heed(&self, statement: &Parsed) {
        let is_own = match statement {
            Parsed::Explain(_) | Parsed::CopyTo(_) => return,
            Parsed::Reset(_) => true,
            Parsed::CreateExternalTable(_) => true,
            Parsed::Statement(ast) => match ast.as_ref() {
                Ast::Query(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) => return,
                Ast::Explain { .. } | Ast::Prepare { .. } | Ast::Execute { .. } => return,
                Ast::Set(Set::SingleAssignment { variable: name, .. }) => variable(name).is_some(),
                _ => true,
            },
        };
        let mut parts = self.0.lock();
        parts.scope = None;
        parts.is_own |= is_own;
    }

    /// The settings have changed.
    pub(in crate::session) fn forget(&self) {
        let mut parts = self.0.lock();
        parts.scope = None;
        parts.changes += 1;
    }

    /// A number that is another one once the settings have changed.
    pub(in crate::session) fn changes(&self) -> u64 {
        self.0.lock().changes
    }

    /// The scope, or what is found for it; `find` is told whether it is the session's own.
    pub(in crate::session) fn get_or_find(
        &self,
        find: impl FnOnce(bool) -> TextScope,
    ) -> TextScope {
        let mut parts = self.0.lock();
        let is_own = parts.is_own;
        *parts.scope.get_or_insert_with(|| find(is_own))
    }
}
