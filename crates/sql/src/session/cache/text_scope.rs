//! Scopes of sessions that interpret a text alike: they have the same settings and nothing of their own.

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Set, Statement as Ast};
use parking_lot::Mutex;

use crate::session::settings::variables::variable;

/// The setting that enables shared scans; it does not change the meaning of texts.
pub(in crate::session) const SHARED_SCAN_KEY: &str = "atoll.shared_scan";

/// Sessions that interpret a text alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::session) struct TextScope(pub(super) u64);

/// The scope of a session's texts, determined on first use.
#[derive(Debug, Default)]
pub(in crate::session) struct SessionScope(Mutex<ScopeParts>);

#[derive(Debug, Default)]
struct ScopeParts {
    scope: Option<TextScope>,
    /// Whether names may have a meaning of their own in this session: because of variables, for one.
    is_own: bool,
}

impl SessionScope {
    /// Notes a statement after which texts may have another meaning.
    pub(in crate::session) fn heed(&self, statement: &Parsed) {
        let is_own = match statement {
            Parsed::Explain(_) | Parsed::CopyTo(_) => return,
            Parsed::Reset(_) => true,
            Parsed::CreateExternalTable(_) => true,
            Parsed::Statement(ast) => match ast.as_ref() {
                Ast::Query(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) => return,
                Ast::Merge(_) | Ast::Truncate(_) | Ast::Copy { .. } | Ast::Lock(_) => return,
                Ast::Explain { .. } | Ast::Prepare { .. } | Ast::Execute { .. } => return,
                Ast::Deallocate { .. } | Ast::ShowVariable { .. } => return,
                Ast::Analyze(_) | Ast::Vacuum(_) | Ast::NOTIFY { .. } => return,
                Ast::LISTEN { .. } | Ast::UNLISTEN { .. } => return,
                Ast::Set(Set::SingleAssignment { variable: name, .. }) => variable(name).is_some(),
                _ => true,
            },
        };
        let mut parts = self.0.lock();
        parts.scope = None;
        parts.is_own |= is_own;
    }

    /// Notes that the settings have changed.
    pub(in crate::session) fn forget(&self) {
        self.0.lock().scope = None;
    }

    /// The scope, computed by `find` on first use, whose argument is whether it is the session's own.
    pub(in crate::session) fn get_or_find(
        &self,
        find: impl FnOnce(bool) -> TextScope,
    ) -> TextScope {
        let mut parts = self.0.lock();
        let is_own = parts.is_own;
        *parts.scope.get_or_insert_with(|| find(is_own))
    }
}
