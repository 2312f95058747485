//! Databases with their sessions.

use std::path::PathBuf;
use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::Result;

use crate::database::{Database, DatabaseOptions};
use crate::role::Identity;
use crate::session::Session;
use crate::session::template::{SessionTemplate, TemplateParts};
use atoll_sql_common::settings::AtollOptions;
use atoll_sql_exec::admission::StatementClass;

impl Database {
    /// Starts a database whose queries run on the pools of `runtime` and whose tables are in its machine's memory: the
    /// one in the directory of the options, or a new one without a directory.
    ///
    /// # Errors
    /// If the directory cannot be opened: it is open elsewhere, damaged, of a later version, or there is not enough
    /// memory for its data.
    pub fn start(runtime: Runtime, options: DatabaseOptions) -> Result<Self> {
        let database = Self::open(runtime, options)?;
        database.template()?;
        Ok(database)
    }

    /// Starts another database on the same workers, in a directory or in memory; `salvage` as in [`DatabaseOptions`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn reopen(&self, directory: Option<PathBuf>, salvage: bool) -> Result<Session> {
        let options = DatabaseOptions { directory, salvage, ..self.options().clone() };
        Self::start(self.runtime().clone(), options)?.session()
    }

    /// A new session of this process's user, who may do everything.
    ///
    /// # Errors
    /// If the spill directory cannot be created.
    pub fn session(&self) -> Result<Session> {
        self.session_of(Identity { is_owner: true, ..Identity::default() })
    }

    /// A new session of an identity.
    ///
    /// # Errors
    /// If the spill directory cannot be created.
    pub fn session_of(&self, identity: Identity) -> Result<Session> {
        Session::with_identity(self.clone(), identity)
    }

    /// The template of its sessions.
    pub(super) fn template(&self) -> Result<Arc<SessionTemplate>> {
        self.extension(|| {
            let (options, admission) = (self.options(), self.admission());
            SessionTemplate::new(&TemplateParts {
                pools: self.pools(),
                knowledge: self.knowledge(),
                pool: self.pool(),
                gauge: self.gauge(),
                limit: self.limit(),
                options: AtollOptions {
                    placement: options.placement,
                    session_memory: options.session_memory,
                    small_statements: admission.first_limit(StatementClass::Small),
                    large_statements: admission.first_limit(StatementClass::Large),
                    ..AtollOptions::default()
                },
            })
        })
    }
}
