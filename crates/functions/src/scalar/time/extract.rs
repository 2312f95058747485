//! `extract(part FROM value)`: DataFusion's parts and those it lacks, seconds with their fraction, and
//! all parts of intervals, as in PostgreSQL.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::{CastOptions, cast};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::failure::FunctionFailure;
use crate::listing::Listing;
use crate::scalar::call::wall_clock;
use crate::scalar::time::parts::era_of;
use crate::temporal::civil::{Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, split};
use crate::temporal::{Endless, Moments, cast_moments, set_aside};

const NAME: &str = "date_part";

/// The function that implements `extract`.
pub(crate) static DATE_PART: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(DatePart::new())));

pub(in crate::scalar) fn register(context: &SessionContext) {
    context.register_udf(DATE_PART.as_ref().clone());
}

#[derive(Debug)]
struct DatePart {
    builtin: Arc<ScalarUDF>,
    signature: Signature,
    listing: Listing,
}

impl DatePart {
    fn new() -> Self {
        Self {
            builtin: datetime::date_part(),
            signature: Signature::user_defined(Volatility::Immutable),
            listing: Listing::new(
                NAME,
                &["datepart"],
                "part, value",
                "A part of a date, time, timestamp or interval: extract(part FROM value).",
                "date_part('epoch', INTERVAL '1 day 1 hour') = 90000",
            ),
        }
    }
}

impl DatePart {
    /// DataFusion's part of finite values. Arrow has no parts of days as distant as the infinite values; but the
    /// last nanosecond is in 2262, and seconds since 1970 are computed for any number.
    fn of_builtin(
        &self,
        part: Option<Part>,
        mut args: ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let is_epoch = part == Some(Part::Epoch);
        let [_, value] = &args.args[..] else { return self.builtin.invoke_with_args(args) };
        let is_near = matches!(value.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
        if !is_epoch && !is_near {
            return self.builtin.invoke_with_args(args);
        }
        let is_constant = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if is_constant { 1 } else { args.number_rows })?;
        let Some((finite, aside)) = set_aside(&values)? else {
            return self.builtin.invoke_with_args(args);
        };
        args.args[1] = ColumnarValue::Array(finite);
        let mut parts = self.builtin.invoke_with_args(args)?.into_array(values.len())?;
        if is_epoch {
            let seconds = parts.as_primitive::<Float64Type>();
            let of = |row: usize| match aside.endless(row) {
                Some(endless) => Some(endless.number()),
                None => seconds.is_valid(row).then(|| seconds.value(row)),
            };
            let all: Float64Array = (0..values.len()).map(of).collect();
            parts = Arc::new(all);
        }
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?),
            false => ColumnarValue::Array(parts),
        })
    }
}

impl PartialEq for DatePart {
    fn eq(&self, other: &Self) -> bool {
        self.listing == other.listing
    }
}

impl Eq for DatePart {}

impl std::hash::Hash for DatePart {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.listing.hash(state);
    }
}

/// A part that DataFusion lacks, or returns without its fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Millennium,
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Epoch,
    Julian,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        let name = name.trim_matches(['\'', '"']).to_ascii_lowercase();
        Some(match name.as_str() {
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "century" | "centuries" | "cent" | "c" => Self::Century,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "year" | "years" | "yr" | "yrs" | "y" => Self::Year,
            "quarter" | "qtr" => Self::Quarter,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "day" | "days" | "d" => Self::Day,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Self::Millisecond,
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Self::Microsecond,
            "epoch" => Self::Epoch,
            "julian" => Self::Julian,
            "timezone" => Self::Timezone,
            "timezone_hour" => Self::TimezoneHour,
            "timezone_minute" => Self::TimezoneMinute,
            _ => return None,
        })
    }

    /// Whether DataFusion's answer differs.
    fn is_own(self, of: &DataType) -> bool {
        use Part::{
            Century, Decade, Julian, Millennium, Millisecond, Second, Timezone, TimezoneHour,
            TimezoneMinute,
        };
        matches!(of, DataType::Interval(_))
            || matches!(
                self,
                Millennium | Century | Decade | Second | Millisecond | Julian | Timezone
            )
            || matches!(self, TimezoneHour | TimezoneMinute)
    }

    /// Whether it may have a fraction.
    fn is_broken(self) -> bool {
        matches!(self, Self::Second | Self::Millisecond | Self::Epoch | Self::Julian)
    }

    /// Returns the type of the part.
    fn data_type(self) -> DataType {
        match self {
            part if part.is_broken() => DataType::Float64,
            Self::Microsecond => DataType::Int64,
            _ => DataType::Int32,
        }
    }

    /// Computes the part from a day since 1970, a time of day, and the zone's offset in seconds.
    fn of_moment(self, days: i64, of_day: i64, ahead: Option<i64>) -> Option<f64> {
        let year = || Civil::of_days(days).year;
        Some(match self {
            Self::Millennium => era_of(year(), 1000) as f64,
            Self::Century => era_of(year(), 100) as f64,
            Self::Decade => year().div_euclid(10) as f64,
            Self::Second => (of_day % MICROS_OF_MINUTE) as f64 / 1e6,
            Self::Millisecond => (of_day % MICROS_OF_MINUTE) as f64 / 1e3,
            Self::Julian => (days + 2_440_588) as f64 + of_day as f64 / MICROS_OF_DAY as f64,
            Self::Timezone => ahead? as f64,
            Self::TimezoneHour => (ahead? / 3600) as f64,
            Self::TimezoneMinute => (ahead? / 60 % 60) as f64,
            _ => return None,
        })
    }

    /// Returns the part of an infinite value: infinity for parts that grow without bound, as in PostgreSQL;
    /// NULL for others.
    fn of_endless(self, endless: Endless) -> Option<f64> {
        matches!(self, Self::Julian | Self::Epoch).then(|| endless.number())
    }

    /// Computes the part from months, days and microseconds.
    fn of_interval(self, months: i32, days: i32, micros: i64) -> Option<f64> {
        const DAYS_OF_YEAR: f64 = 365.25;
        const SECONDS_OF_DAY: f64 = 86_400.0;
        let (years, month) = (f64::from(months / 12), f64::from(months % 12));
        Some(match self {
            Self::Millennium => f64::from(months / 12_000),
            Self::Century => f64::from(months / 1200),
            Self::Decade => f64::from(months / 120),
            Self::Year => years,
            Self::Quarter => f64::from(months % 12 / 3 + 1),
            Self::Month => month,
            Self::Day => f64::from(days),
            Self::Hour => (micros / MICROS_OF_HOUR) as f64,
            Self::Minute => (micros % MICROS_OF_HOUR / MICROS_OF_MINUTE) as f64,
            Self::Second => (micros % MICROS_OF_MINUTE) as f64 / 1e6,
            Self::Millisecond => (micros % MICROS_OF_MINUTE) as f64 / 1e3,
            Self::Microsecond => (micros % MICROS_OF_MINUTE) as f64,
            Self::Epoch => {
                let all_days = years * DAYS_OF_YEAR + month * 30.0 + f64::from(days);
                all_days * SECONDS_OF_DAY + micros as f64 / 1e6
            }
            _ => return None,
        })
    }
}

/// Returns the part that the arguments name, if it is implemented here.
fn own(part: Option<&ScalarValue>, of: &DataType) -> Result<Option<Part>> {
    let Some(name) = part.and_then(|part| part.try_as_str().flatten()) else { return Ok(None) };
    match (Part::named(name), of) {
        (Some(part), of) if part.is_own(of) => Ok(Some(part)),
        (None, DataType::Interval(_)) => refused(name, "interval"),
        _ => Ok(None),
    }
}

fn refused<T>(part: &str, of: &str) -> Result<T> {
    let part = part.to_ascii_lowercase();
    let message = format!("unit \"{part}\" not supported for type {of}");
    Err(FunctionFailure { state: "0A000", message }.into_datafusion())
}

impl ScalarUDFImpl for DatePart {
    fn name(&self) -> &str {
        NAME
    }

    fn aliases(&self) -> &[String] {
        &self.listing.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let field = |of: &DataType| Arc::new(Field::new("", of.clone(), true));
        let fields: Vec<FieldRef> = given.iter().map(field).collect();
        let coerced = fields_with_udf(&fields, self.builtin.as_ref())?;
        let mut types: Vec<DataType> =
            coerced.iter().map(|field| field.data_type().clone()).collect();
        if let Some(of @ DataType::Interval(_)) = types.get_mut(1) {
            *of = DataType::Interval(IntervalUnit::MonthDayNano);
        }
        Ok(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [_, of] = args.arg_fields else { return self.builtin.return_field_from_args(args) };
        // Infinite values lack most parts.
        let may_be_endless = matches!(of.data_type(), DataType::Date32 | DataType::Timestamp(..));
        let is_nullable = of.is_nullable() || may_be_endless;
        if let [Some(part), _] = args.scalar_arguments
            && let Some(part) = own(Some(part), of.data_type())?
        {
            return Ok(Arc::new(Field::new(NAME, part.data_type(), is_nullable)));
        }
        let field = self.builtin.return_field_from_args(args)?;
        Ok(Arc::new(Field::clone(&field).with_nullable(is_nullable)))
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.builtin.inner().preimage(args, literal, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(name), value] = &args.args[..] else {
            return self.builtin.invoke_with_args(args);
        };
        let Some(part) = own(Some(name), &value.data_type())? else {
            let part = name.try_as_str().flatten().and_then(Part::named);
            return self.of_builtin(part, args);
        };
        let is_constant = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if is_constant { 1 } else { args.number_rows })?;
        let parts = cast(&parts(part, &values, &args)?, &part.data_type())?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?),
            false => ColumnarValue::Array(parts),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// Extracts a part from values.
fn parts(part: Part, values: &ArrayRef, args: &ScalarFunctionArgs) -> Result<ArrayRef> {
    let name = format!("{part:?}").replace("Timezone", "timezone_").to_ascii_lowercase();
    let name = name.trim_end_matches('_');
    let micros = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
    let found: Option<Float64Array> = match values.data_type() {
        DataType::Interval(_) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            let of = |row: usize| {
                let interval = intervals.value(row);
                let micros = interval.nanoseconds / 1000;
                part.of_interval(interval.months, interval.days, micros).map(Some)
            };
            each(values, of)
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let times = cast(values, &DataType::Time64(TimeUnit::Microsecond))?;
            let times = times.as_primitive::<Time64MicrosecondType>();
            let is_part = matches!(part, Part::Second | Part::Millisecond);
            let of = |row: usize| {
                part.of_moment(0, times.value(row), None).filter(|_| is_part).map(Some)
            };
            each(values, of)
        }
        DataType::Duration(_) => {
            let intervals = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            return parts(part, &intervals, args);
        }
        other => {
            let zone = match other {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let is_zoned = zone.is_some();
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let instants = cast_moments(values, &micros(zone), &options)?;
            let local = Moments::new(wall_clock(&instants, &args.config_options)?);
            let utc = Moments::new(instants.as_primitive().clone());
            let of = |row: usize| match (local.at(row), utc.at(row)) {
                (Ok(local), Ok(utc)) => {
                    let (days, of_day) = split(local);
                    let ahead = (local - utc) / 1_000_000;
                    part.of_moment(days, of_day, is_zoned.then_some(ahead)).map(Some)
                }
                (Err(endless), _) | (_, Err(endless)) => Some(part.of_endless(endless)),
            };
            each(values, of)
        }
    };
    match found {
        Some(found) => Ok(Arc::new(found)),
        None => refused(name, &crate::sql_name(values.data_type()).to_ascii_lowercase()),
    }
}

/// Extracts the part from each value; returns None if the type does not have the part.
fn each(values: &ArrayRef, part: impl Fn(usize) -> Option<Option<f64>>) -> Option<Float64Array> {
    let of = |row: usize| if values.is_null(row) { Some(None) } else { part(row) };
    (0..values.len()).map(of).collect::<Option<Vec<Option<f64>>>>().map(Float64Array::from)
}
