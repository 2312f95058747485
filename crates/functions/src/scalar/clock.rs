//! The time of a statement, in microseconds as all TIMESTAMPTZ: DataFusion's nanoseconds end in 2262.

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

/// Puts `now()` in the place of DataFusion's.
pub(super) fn register(context: &SessionContext) {
    let now = Listing::new(
        "now",
        &[
            "current_timestamp",
            "get_current_timestamp",
            "transaction_timestamp",
            "statement_timestamp",
        ],
        "",
        "When the statement began.",
        "now()",
    );
    let clock = Listing::new(
        "clock_timestamp",
        &[],
        "",
        "The time, which goes on while a statement runs.",
        "clock_timestamp()",
    );
    for (listing, volatility) in [(now, Volatility::Stable), (clock, Volatility::Volatile)] {
        let signature = Signature::nullary(volatility);
        let (zone, listing) = (None, Arc::new(listing));
        context.register_udf(ScalarUDF::from(Clock { zone, signature, listing }));
    }
}

/// `now()`, which is the same wherever it stands in a statement, or `clock_timestamp()`.
#[derive(Clone, Debug)]
struct Clock {
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

impl Clock {
    fn is_volatile(&self) -> bool {
        self.signature.volatility == Volatility::Volatile
    }
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &str {
        if self.is_volatile() { "clock_timestamp" } else { "now" }
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
        match context.query_execution_start_time() {
            Some(start) if !self.is_volatile() => {
                let micros = Some(start.timestamp_micros());
                let value = ScalarValue::TimestampMicrosecond(micros, self.zone.clone());
                Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
            }
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !self.is_volatile() {
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
