//! What functions may ask of the statement that calls them.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{Result, exec_err};

use crate::catalog::Catalogs;
use crate::role::rights::LimitedUser;
use crate::shared_transaction::SharedTransaction;

/// The statement that is planned, for functions: its transaction, its user where that may not do everything, and
/// what its names mean. None in the settings of plans that are kept, which would keep all of this.
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

    /// The transaction of the statement with these settings.
    pub(crate) fn of(options: &ConfigOptions) -> Option<(SharedTransaction, Option<&LimitedUser>)> {
        let parts = Self::parts(options)?;
        Some((parts.transaction.clone(), parts.user.as_deref()))
    }

    /// The names that the statement with these settings sees, and whose rights limit it.
    pub(crate) fn names_of(options: &ConfigOptions) -> Option<(&Catalogs, Option<&LimitedUser>)> {
        let parts = Self::parts(options)?;
        Some((&parts.names, parts.user.as_deref()))
    }

    fn parts(options: &ConfigOptions) -> Option<&StatementParts> {
        options.extensions.get::<Self>()?.0.as_deref()
    }
}

impl ConfigExtension for StatementHandle {
    const PREFIX: &'static str = "statement";
}

impl ExtensionOptions for StatementHandle {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        exec_err!("'statement.{key}' is not a setting")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
