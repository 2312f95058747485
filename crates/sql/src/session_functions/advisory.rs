//! `pg_advisory_lock(7)` and similar functions: advisory locks of the session that calls, and of its transaction.
//!
//! Functions that wait are asynchronous, as `pg_sleep` is: a waiting statement occupies no worker, and ends when it is
//! cancelled or after `lock_timeout`.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, exec_err, not_impl_err};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use crate::advisory::{AdvisoryHolder, AdvisoryKey};
use crate::client_settings::ClientSettings;
use crate::shared_transaction::SharedTransaction;
use crate::statement_handle::StatementHandle;
use atoll_sql_common::error::SqlState;
use atoll_sql_exec::watch::StatementWatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LockAction {
    /// Waits for a lock.
    Wait,
    /// Takes a lock if it is free.
    Try,
    Unlock,
    UnlockAll,
}

/// Names, actions, and whether the lock is shared and ends with the transaction.
const FUNCTIONS: [(&str, LockAction, bool, bool); 11] = [
    ("pg_advisory_lock", LockAction::Wait, false, false),
    ("pg_advisory_lock_shared", LockAction::Wait, true, false),
    ("pg_advisory_xact_lock", LockAction::Wait, false, true),
    ("pg_advisory_xact_lock_shared", LockAction::Wait, true, true),
    ("pg_try_advisory_lock", LockAction::Try, false, false),
    ("pg_try_advisory_lock_shared", LockAction::Try, true, false),
    ("pg_try_advisory_xact_lock", LockAction::Try, false, true),
    ("pg_try_advisory_xact_lock_shared", LockAction::Try, true, true),
    ("pg_advisory_unlock", LockAction::Unlock, false, false),
    ("pg_advisory_unlock_shared", LockAction::Unlock, true, false),
    ("pg_advisory_unlock_all", LockAction::UnlockAll, false, false),
];

/// Whether a function is one of these, which `atoll.functions` does not list.
pub(crate) fn is_lock_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(function, ..)| *function == name)
}

/// Registers the functions of a session.
pub(crate) fn register(
    context: &SessionContext,
    holder: &Arc<AdvisoryHolder>,
    settings: &ClientSettings,
    watch: &StatementWatch,
) {
    for (name, action, is_shared, of_transaction) in FUNCTIONS {
        let takes = match action {
            LockAction::UnlockAll => TypeSignature::Nullary,
            _ => TypeSignature::OneOf(vec![TypeSignature::Any(1), TypeSignature::Any(2)]),
        };
        context.register_udf(ScalarUDF::new_from_impl(LockFunction {
            name,
            action,
            is_shared,
            of_transaction,
            signature: Signature::new(takes, Volatility::Volatile),
            holder: Arc::downgrade(holder),
            settings: settings.clone(),
            watch: watch.clone(),
        }));
    }
}

#[derive(Clone, Debug)]
struct LockFunction {
    name: &'static str,
    action: LockAction,
    is_shared: bool,
    of_transaction: bool,
    signature: Signature,
    /// The session's locks: they end with it, though plans may still hold its functions.
    holder: Weak<AdvisoryHolder>,
    settings: ClientSettings,
    watch: StatementWatch,
}

impl PartialEq for LockFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Weak::ptr_eq(&self.holder, &other.holder)
    }
}

impl Eq for LockFunction {}

impl Hash for LockFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl LockFunction {
    fn session(&self) -> Result<Arc<AdvisoryHolder>> {
        match self.holder.upgrade() {
            Some(holder) => Ok(holder),
            None => exec_err!("the session of {} has ended", self.name),
        }
    }

    /// The transaction that owns the lock, if one does.
    fn transaction(&self, args: &ScalarFunctionArgs) -> Result<Option<SharedTransaction>> {
        if !self.of_transaction {
            return Ok(None);
        }
        match StatementHandle::transaction_of(&args.config_options) {
            Some((transaction, _)) => Ok(Some(transaction)),
            None => exec_err!("{} outside of a statement", self.name),
        }
    }

    /// Waits for a lock as long as `lock_timeout` allows.
    async fn wait(&self, holder: &AdvisoryHolder, key: AdvisoryKey) -> Result<()> {
        if holder.try_lock(key, self.is_shared) {
            return Ok(());
        }
        let _waits = self.watch.waiting_for_lock();
        let locked = holder.lock(key, self.is_shared);
        match self.settings.lock_timeout() {
            None => locked.await,
            Some(time) => {
                let ended = tokio::time::timeout(time, locked).await;
                ended.map_err(|_| {
                    SqlState::LOCK_NOT_AVAILABLE.error(
                        "canceling statement due to lock timeout: an advisory lock is held by another session",
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Runs an action that does not wait.
    fn act(&self, holder: &AdvisoryHolder, key: AdvisoryKey) -> bool {
        match self.action {
            LockAction::Unlock => holder.unlock(key, self.is_shared),
            _ => holder.try_lock(key, self.is_shared),
        }
    }
}

impl ScalarUDFImpl for LockFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.action {
            LockAction::Try | LockAction::Unlock => DataType::Boolean,
            LockAction::Wait | LockAction::UnlockAll => DataType::Utf8,
        })
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.action != LockAction::Wait {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let waiting = AsyncScalarUDF::new(Arc::new(self.clone())).into_scalar_udf();
        let call = ScalarFunction::new_udf(Arc::new(waiting), args);
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(call)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let session = self.session()?;
        if self.action == LockAction::UnlockAll {
            session.release();
            return Ok(ColumnarValue::Array(released(args.number_rows)));
        }
        if self.action == LockAction::Wait {
            return not_impl_err!("{} here; call it in a select list or in WHERE", self.name);
        }
        let transaction = self.transaction(&args)?;
        let holder = transaction.as_ref().map_or(&*session, |it| it.advisory(&session));
        let keys = keys(&args)?;
        let done = keys.into_iter().map(|key| key.map(|key| self.act(holder, key)));
        Ok(ColumnarValue::Array(Arc::new(done.collect::<BooleanArray>())))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for LockFunction {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let session = self.session()?;
        let transaction = self.transaction(&args)?;
        let holder = transaction.as_ref().map_or(&*session, |it| it.advisory(&session));
        let keys = keys(&args)?;
        for key in keys.iter().flatten() {
            self.wait(holder, *key).await?;
        }
        let locked: StringArray = keys.iter().map(|key| key.map(|_| "")).collect();
        Ok(ColumnarValue::Array(Arc::new(locked)))
    }
}

fn released(rows: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec![""; rows]))
}

/// The keys of each row; `None` if one of them is NULL.
fn keys(args: &ScalarFunctionArgs) -> Result<Vec<Option<AdvisoryKey>>> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let column = |at: usize, wanted: &DataType| -> Result<ArrayRef> {
        let values = args.args[at].to_array(args.number_rows)?;
        Ok(cast_with_options(&values, wanted, &options)?)
    };
    if args.args.len() == 1 {
        let numbers = column(0, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        return Ok(numbers.iter().map(|number| number.map(AdvisoryKey::One)).collect());
    }
    let (first, second) = (column(0, &DataType::Int32)?, column(1, &DataType::Int32)?);
    let (first, second) = (first.as_primitive::<Int32Type>(), second.as_primitive::<Int32Type>());
    let pair = |row: usize| {
        let is_null = first.is_null(row) || second.is_null(row);
        (!is_null).then(|| AdvisoryKey::Two(first.value(row), second.value(row)))
    };
    Ok((0..args.number_rows).map(pair).collect())
}
