//! The state of a statement that its functions can access.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;

use crate::catalog::Catalogs;
use crate::role::rights::LimitedUser;
use crate::shared_transaction::SharedTransaction;

/// The state of a statement for functions: its transaction, its user if that has limited rights, and its names. None in
/// the settings of cached plans, which would keep all of this alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementHandle(Option<Arc<StatementParts>>);

#[derive(Debug)]
struct StatementParts {
    transaction: SharedTransaction,
    user: Option<Arc<LimitedUser>>,
    names: Catalogs,
}

impl StatementHandle {
    pub(crate) fn new(
        transaction: SharedTransaction,
        user: Option<Arc<LimitedUser>>,
        names: Catalogs,
    ) -> Self {
        Self(Some(Arc::new(StatementParts { transaction, user, names })))
    }

    /// The transaction and the limited user of the statement with these settings.
    pub(crate) fn transaction_of(
        options: &ConfigOptions,
    ) -> Option<(SharedTransaction, Option<&LimitedUser>)> {
        let parts = Self::parts(options)?;
        Some((parts.transaction.clone(), parts.user.as_deref()))
    }

    /// The names and the limited user of the statement with these settings.
    pub(crate) fn names_of(options: &ConfigOptions) -> Option<(&Catalogs, Option<&LimitedUser>)> {
        let parts = Self::parts(options)?;
        Some((&parts.names, parts.user.as_deref()))
    }

    fn parts(options: &ConfigOptions) -> Option<&StatementParts> {
        options.extensions.get::<Self>()?.0.as_deref()
    }
}

atoll_functions::statement_extension!(StatementHandle, "statement");
