//! Functions about the calling session and others: `current_user`, `pg_backend_pid()`,
//! `current_setting('search_path')`, `pg_cancel_backend(7)`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use crate::activity::Interrupt;
use crate::client_settings::{ClientSettings, POSTGRESQL_VERSION};
use crate::database::Database;
use crate::role::{Identity, is_superuser};
use atoll_sql_common::error::SqlState;

/// Computes a function from the values of its arguments.
type Compute = Box<dyn Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync>;

/// A function of the session.
struct SessionFunction {
    name: &'static str,
    signature: Signature,
    gives: DataType,
    compute: Compute,
}

/// Registers the functions of a client's session.
pub(crate) fn register(
    context: &SessionContext,
    database: &Database,
    identity: &Arc<Identity>,
    settings: &ClientSettings,
) {
    let add = |name, counts: &[usize], gives: DataType, compute: Compute| {
        // Functions with effects do not run during planning.
        let volatility = if acts(name) { Volatility::Volatile } else { Volatility::Stable };
        let takes = counts.iter().map(|count| match count {
            0 => TypeSignature::Nullary,
            1 if is_interruption(name) => TypeSignature::Exact(vec![DataType::Int64]),
            count => TypeSignature::Any(*count),
        });
        let signature = Signature::one_of(takes.collect(), volatility);
        let function = SessionFunction { name, signature, gives, compute };
        context.register_udf(ScalarUDF::new_from_impl(function));
    };
    let (text, number, flag) = (DataType::Utf8, DataType::Int64, DataType::Boolean);
    let known = settings.clone();
    add(
        "current_setting",
        &[1, 2],
        text.clone(),
        Box::new(move |values| match (known.get(&values[0].to_string()), values.get(1)) {
            (Some(value), _) => Ok(ScalarValue::from(value)),
            (None, Some(ScalarValue::Boolean(Some(true)))) => Ok(ScalarValue::Utf8(None)),
            (None, _) => Err(SqlState::UNDEFINED_OBJECT
                .error(format!("unrecognized configuration parameter \"{}\"", values[0]))),
        }),
    );
    let known = settings.clone();
    add(
        "pg_client_encoding",
        &[0],
        text.clone(),
        Box::new(move |_| Ok(ScalarValue::from(known.get("client_encoding")))),
    );
    let known = settings.clone();
    add(
        "set_config",
        &[3],
        text.clone(),
        Box::new(move |values| {
            let (name, value) = (values[0].to_string(), values[1].to_string());
            known.set(&name, Some(&value), values[2] == ScalarValue::from(true))?;
            Ok(ScalarValue::from(known.get(&name).unwrap_or(value)))
        }),
    );
    if identity.user.is_empty() {
        // The process's own session has no client.
        return;
    }
    for name in ["current_user", "session_user", "current_role", "user"] {
        let user = identity.user.to_string();
        add(name, &[0], text.clone(), Box::new(move |_| Ok(ScalarValue::from(user.clone()))));
    }
    let own = i64::from(identity.number);
    add("pg_backend_pid", &[0], number.clone(), Box::new(move |_| Ok(ScalarValue::from(own))));
    let version = format!("PostgreSQL {POSTGRESQL_VERSION} (Atoll {})", env!("CARGO_PKG_VERSION"));
    add("version", &[0], text, Box::new(move |_| Ok(ScalarValue::from(version.clone()))));
    for (name, interrupt) in
        [("pg_cancel_backend", Interrupt::Cancel), ("pg_terminate_backend", Interrupt::Terminate)]
    {
        let (database, identity) = (database.clone(), Arc::clone(identity));
        let end = move |values: &[ScalarValue]| {
            let ScalarValue::Int64(Some(session)) = values[0].cast_to(&DataType::Int64)? else {
                return Ok(ScalarValue::from(false));
            };
            may_interrupt(&database, &identity, session)?;
            let session = u32::try_from(session).unwrap_or(0);
            Ok(ScalarValue::from(database.activity().interrupt(session, interrupt)))
        };
        add(name, &[1], flag.clone(), Box::new(end));
    }
}

/// Whether a function is about PostgreSQL's settings; `atoll.functions` does not list those.
pub(crate) fn is_setting_function(name: &str) -> bool {
    matches!(name, "current_setting" | "pg_client_encoding" | "set_config")
}

/// Whether a function has an effect.
fn acts(name: &str) -> bool {
    name == "set_config" || is_interruption(name)
}

/// Whether a function interrupts the session with a number.
fn is_interruption(name: &str) -> bool {
    matches!(name, "pg_cancel_backend" | "pg_terminate_backend")
}

/// Whether a user may interrupt a session: users may interrupt their own, superusers all.
fn may_interrupt(database: &Database, identity: &Identity, session: i64) -> Result<()> {
    let sessions = database.activity().sessions();
    let other = sessions.iter().find(|other| i64::from(other.number) == session);
    let is_own = other.is_none_or(|other| *other.client.user == *identity.user);
    match is_own || is_superuser(database, identity) {
        true => Ok(()),
        false => Err(SqlState::INSUFFICIENT_PRIVILEGE
            .error("permission denied to interrupt the session of another user")),
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.gives.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let row = |row: usize| {
            let values = args.args.iter().map(|arg| match arg {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(values) => ScalarValue::try_from_array(values, row),
            });
            let values = values.collect::<Result<Vec<_>>>()?;
            match values.iter().any(ScalarValue::is_null) {
                true => ScalarValue::try_from(&self.gives),
                false => (self.compute)(&values),
            }
        };
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if is_constant {
            return row(0).map(ColumnarValue::Scalar);
        }
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(&self.gives)));
        }
        let values = (0..args.number_rows).map(row).collect::<Result<Vec<_>>>()?;
        ScalarValue::iter_to_array(values).map(ColumnarValue::Array)
    }
}

impl fmt::Debug for SessionFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
