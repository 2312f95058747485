//! PREPARE TRANSACTION.

use std::sync::Arc;

use super::own::OwnChanges;
use super::{Result, Transaction};
use crate::change::{ChangeStep, DatabaseChange, PreparedTransaction};
use crate::database::error::TransactionError;
use crate::database::options::{Committed, Isolation};
use crate::database::prepared::{ClaimedName, PreparedError, kept_locks};
use crate::database::version::DatabaseVersion;
use crate::lock::HeldLocks;

impl Transaction {
    /// Leaves the transaction to COMMIT PREPARED or ROLLBACK PREPARED: `prepared_at` is now, in microseconds since
    /// 1970-01-01 in UTC. When this returns, that survives as the durability promises. The transaction ends here in
    /// any case; it is rolled back if it cannot be prepared.
    ///
    /// # Errors
    /// If the name is in use, the transaction is SERIALIZABLE or has changed temporary objects, a deferred check fails,
    /// or the log refuses the record.
    pub async fn prepare(
        mut self,
        name: &Arc<str>,
        owner: Arc<str>,
        prepared_at: i64,
    ) -> Result<Committed> {
        if self.database.is_read_only {
            let statement = "PREPARE TRANSACTION".to_owned();
            return Err(TransactionError::ReadOnly { statement });
        }
        if self.options.isolation == Isolation::Serializable {
            return Err(PreparedError::Serializable.into());
        }
        if self.own.steps().any(ChangeStep::is_temporary) {
            return Err(PreparedError::Temporary.into());
        }
        let claim = ClaimedName::new(&self.database, name)?;
        self.check_deferred().await?;
        let change = std::mem::replace(&mut self.own, OwnChanges::new()).finish().change;
        let locks = kept_locks(&self.locks);
        let prepared = Arc::new(PreparedTransaction { owner, prepared_at, change, locks });
        let record =
            DatabaseChange { steps: vec![ChangeStep::Prepare(Arc::clone(name), prepared)] };
        let database = Arc::clone(&self.database);
        let make = |newest: &Arc<DatabaseVersion>| -> Result<DatabaseVersion> {
            Ok(newest.apply(&record, &database.environment)?)
        };
        let ordered = database.order(&record, make, &mut |_| ()).await?;
        let none = HeldLocks::new(Arc::clone(&database.locks), self.id);
        claim.keep(std::mem::replace(&mut self.locks, none));
        drop(self);
        database.settle_and_sync(ordered).await
    }
}
