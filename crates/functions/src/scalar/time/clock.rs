//! The time of a transaction, of a statement and now, in microseconds like all TIMESTAMPTZ: DataFusion's nanoseconds
//! end in 2262.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::listing::Listing;
use crate::temporal::{StatementClock, TemporalStyle};

/// Replaces DataFusion's `now()`.
pub(in crate::scalar) fn register(context: &SessionContext) {
    let now = Listing::new(
        "now",
        &["current_timestamp", "get_current_timestamp", "transaction_timestamp"],
        "",
        "When the transaction began: the same for all statements between `BEGIN` and `COMMIT`.",
        "now()",
    );
    let statement = Listing::new(
        "statement_timestamp",
        &[],
        "",
        "When the statement began.",
        "statement_timestamp()",
    );
    let clock = Listing::new(
        "clock_timestamp",
        &[],
        "",
        "The time, which goes on while a statement runs.",
        "clock_timestamp()",
    );
    for (moment, listing, volatility) in [
        (ClockReading::Transaction, now, Volatility::Stable),
        (ClockReading::Statement, statement, Volatility::Stable),
        (ClockReading::Now, clock, Volatility::Volatile),
    ] {
        let signature = Signature::nullary(volatility);
        let (zone, listing) = (None, Arc::new(listing));
        context.register_udf(ScalarUDF::from(Clock { moment, zone, signature, listing }));
    }
}

/// When a statement and its transaction began, in microseconds since 1970: an extension of the statement's settings.
/// Without it both are the time at which DataFusion says the query began.
#[derive(Clone, Debug, Default)]
pub struct StatementStart {
    /// The statement, for `statement_timestamp()`.
    pub statement: Option<i64>,
    /// The transaction, for texts such as `'now'`.
    pub transaction: Option<i64>,
}

impl StatementStart {
    /// Returns when the transaction of the statement with these settings began; None for cached plans.
    pub fn transaction_of(options: &ConfigOptions) -> Option<i64> {
        options.extensions.get::<Self>()?.transaction
    }
}

impl<'a> StatementClock<'a> {
    /// Returns the clock of a statement with these settings.
    pub fn from_options(options: &'a ConfigOptions) -> Self {
        Self {
            time_zone: options.execution.time_zone.as_deref(),
            begun: StatementStart::transaction_of(options),
            style: TemporalStyle::from_options(options),
        }
    }
}

crate::statement_extension!(StatementStart, "statement_start");

/// Which time a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockReading {
    Transaction,
    Statement,
    Now,
}

/// `now()` and `statement_timestamp()`, which are constant within a statement, or `clock_timestamp()`.
#[derive(Clone, Debug)]
struct Clock {
    moment: ClockReading,
    zone: Option<Arc<str>>,
    signature: Signature,
    listing: Arc<Listing>,
}

impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        self.listing == other.listing && self.zone == other.zone
    }
}

impl Eq for Clock {}

impl Hash for Clock {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.listing.hash(state);
        self.zone.hash(state);
    }
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &str {
        match self.moment {
            ClockReading::Transaction => "now",
            ClockReading::Statement => "statement_timestamp",
            ClockReading::Now => "clock_timestamp",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.listing.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, self.zone.clone()))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, false)))
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let zone = config.execution.time_zone.as_deref().map(Arc::from);
        Some(ScalarUDF::from(Self { zone, ..self.clone() }))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let transaction = context.query_execution_start_time().map(|it| it.timestamp_micros());
        let statement = || context.config_options().extensions.get::<StatementStart>();
        let micros = match self.moment {
            ClockReading::Transaction => transaction,
            ClockReading::Statement => {
                statement().and_then(|start| start.statement).or(transaction)
            }
            ClockReading::Now => None,
        };
        let Some(micros) = micros else { return Ok(ExprSimplifyResult::Original(args)) };
        let value = ScalarValue::TimestampMicrosecond(Some(micros), self.zone.clone());
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.moment != ClockReading::Now {
            return internal_err!("the time of a statement is known before it runs");
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).ok();
        let value = ScalarValue::TimestampMicrosecond(micros, self.zone.clone());
        Ok(ColumnarValue::Scalar(value))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}
