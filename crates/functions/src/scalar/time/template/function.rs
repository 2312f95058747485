//! The functions.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use datafusion::prelude::SessionContext;

use super::items;
use super::read::read;
use super::write::{Moment, write, write_interval};
use crate::listing::Listing;
use crate::scalar::call::Call;
use crate::scalar::numeric::templates::{self, is_number};
use crate::temporal::civil::{MICROS_OF_DAY, MICROS_OF_MINUTE};
use crate::temporal::{Endless, Moments, cast_moments};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Returns the function that writes.
const TO_CHAR: &str = "to_char";

const TO_TIMESTAMP: &str = "to_timestamp";

/// Names with their documentation.
const FUNCTIONS: [(&str, &str, &str, &str); 3] = [
    (
        TO_CHAR,
        "value, template",
        "A date, time, timestamp or interval as text, by a template of PostgreSQL such as 'YYYY-MM-DD HH24:MI:SS', or by \
         a format with specifiers such as %Y; a number by one such as 'FM9,990.00'.",
        "to_char(DATE '2024-03-05', 'FMDD Month YYYY')",
    ),
    (
        "to_date",
        "text[, template]",
        "A text as a date, by a template of PostgreSQL such as 'DD Mon YYYY', or by formats with specifiers such \
         as %Y, of which the first that fits counts.",
        "to_date('05 Mar 2024', 'DD Mon YYYY')",
    ),
    (
        TO_TIMESTAMP,
        "value[, template]",
        "A text as a timestamp, by a template of PostgreSQL such as 'YYYY-MM-DD HH24:MI', or by formats with \
         specifiers such as %Y; a number as the seconds since 1970.",
        "to_timestamp('2024-03-05 13:04', 'YYYY-MM-DD HH24:MI')",
    ),
];

/// Replaces DataFusion's functions, which only support formats with a `%` and return other formats
/// unchanged.
pub(crate) fn register(context: &SessionContext) {
    let state = context.state();
    for (name, arguments, about, example) in FUNCTIONS {
        let Some(inner) = state.scalar_functions().get(name).cloned() else { continue };
        let listing = Arc::new(Listing::new(name, &[], arguments, about, example));
        let takes_more = matches!(name, TO_CHAR | TO_TIMESTAMP);
        let own = takes_more.then(|| Signature::user_defined(inner.signature().volatility));
        context.register_udf(ScalarUDF::from(Templated { name, inner, own, listing }));
    }
}

/// A DataFusion function that also takes templates.
#[derive(Debug, Clone)]
struct Templated {
    name: &'static str,
    inner: Arc<ScalarUDF>,
    /// The signature, if it accepts more than DataFusion's.
    own: Option<Signature>,
    listing: Arc<Listing>,
}

impl PartialEq for Templated {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Templated {}

impl Hash for Templated {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Templated {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.own.as_ref().unwrap_or_else(|| self.inner.signature())
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [value, _] if self.name == TO_CHAR && is_number(value) => {
                return Ok(vec![value.clone(), DataType::Utf8]);
            }
            [DataType::Interval(_), _] if self.name == TO_CHAR => {
                return Ok(vec![INTERVAL, DataType::Utf8]);
            }
            [seconds] if is_number(seconds) => return Ok(vec![DataType::Float64]),
            _ => {}
        }
        let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
        let fields: Vec<FieldRef> = given.iter().map(field).collect();
        let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let template = args.scalar_arguments.get(1).copied().flatten();
        let is_template =
            template.and_then(|it| it.try_as_str().flatten()).is_some_and(has_no_specifier);
        let is_of_seconds = self.name == TO_TIMESTAMP
            && matches!(args.arg_fields, [seconds] if *seconds.data_type() == DataType::Float64);
        let field = self.inner.return_field_from_args(args)?;
        match field.data_type() {
            // Supports years before 1677 and after 2262.
            DataType::Timestamp(_, zone) if is_template || is_of_seconds => {
                let wide = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                Ok(Arc::new(field.as_ref().clone().with_data_type(wide)))
            }
            _ => Ok(field),
        }
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::from(Self { inner, ..self.clone() }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_of_number = self.name == TO_CHAR && is_number(&args.args[0].data_type());
        if self.name == TO_TIMESTAMP
            && let [seconds] = &args.args[..]
            && seconds.data_type() == DataType::Float64
        {
            return moments_of_seconds(args);
        }
        let is_of_interval = self.name == TO_CHAR && args.args[0].data_type() == INTERVAL;
        if !is_of_number
            && !is_of_interval
            && (args.args.len() != 2 || !is_template(&args.args[1])?)
        {
            return self.inner.invoke_with_args(args);
        }
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let result = match self.name {
            _ if is_of_number => templates::written(self.name, args, rows)?,
            _ if is_of_interval => intervals_written(self.name, args, rows)?,
            TO_CHAR => written(self.name, args, rows)?,
            _ => parsed(self.name, args, rows)?,
        };
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

fn has_no_specifier(format: &str) -> bool {
    !format.contains('%')
}

/// Whether a format is a template, without a `%`.
///
/// # Errors
/// If only some of the formats contain a `%`.
fn is_template(formats: &ColumnarValue) -> Result<bool> {
    match formats {
        ColumnarValue::Scalar(scalar) => {
            Ok(scalar.try_as_str().flatten().is_some_and(has_no_specifier))
        }
        ColumnarValue::Array(array) => {
            let (DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) = array.data_type()
            else {
                return Ok(false);
            };
            let texts = cast(array, &DataType::Utf8)?;
            let mut kinds = texts.as_string::<i32>().iter().flatten().map(has_no_specifier);
            let Some(first) = kinds.next() else { return Ok(false) };
            match kinds.any(|kind| kind != first) {
                true => plan_err!(
                    "formats with a % and templates without one do not go together in one column"
                ),
                false => Ok(first),
            }
        }
    }
}

/// Casts an argument to a type; infinite dates and timestamps stay infinite.
fn argument(value: &ColumnarValue, to: &DataType) -> Result<ColumnarValue> {
    let is_moment = |of: &DataType| matches!(of, DataType::Date32 | DataType::Timestamp(..));
    if !is_moment(&value.data_type()) || !is_moment(to) {
        return value.cast_to(to, None);
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    Ok(match value {
        ColumnarValue::Array(values) => ColumnarValue::Array(cast_moments(values, to, &strict)?),
        ColumnarValue::Scalar(value) => {
            let values = cast_moments(&value.to_array()?, to, &strict)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)
        }
    })
}

fn call_of(
    name: &'static str,
    mut args: ScalarFunctionArgs,
    rows: usize,
    types: [DataType; 2],
) -> Result<Call> {
    for (at, to) in types.into_iter().enumerate() {
        args.args[at] = argument(&args.args[at], &to)?;
        args.arg_fields[at] = Arc::new(Field::new(args.arg_fields[at].name(), to, true));
    }
    Call::new(name, args, rows)
}

fn written(name: &'static str, args: ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    let (is_time, zone) = match args.args[0].data_type() {
        DataType::Time32(_) | DataType::Time64(_) => (true, None),
        DataType::Timestamp(_, zone) => (false, zone),
        DataType::Duration(_) => {
            return plan_err!("to_char of a duration takes no template; cast it to VARCHAR");
        }
        _ => (false, None),
    };
    let to = match is_time {
        true => DataType::Time64(TimeUnit::Microsecond),
        false => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
    };
    let call = call_of(name, args, rows, [to, DataType::Utf8])?;
    let local = call.moments(0)?;
    let utc = match is_time {
        true => local.clone(),
        false => Moments::new(call.arrays[0].as_primitive().clone()),
    };
    let templates = call.text(1);
    let kept = (rows > 0 && call.arrays[1].is_valid(0))
        .then(|| (templates.value(0), items(templates.value(0))));
    call.texts(|row, out| {
        // Infinite values have no parts to write: NULL, as in PostgreSQL.
        let (Ok(micros), Ok(utc)) = (local.at(row), utc.at(row)) else { return Ok(false) };
        let offset = (micros - utc) / MICROS_OF_MINUTE;
        let moment = Moment { micros, zone: zone.as_deref(), offset };
        match &kept {
            Some((same, items)) if *same == templates.value(row) => write(items, moment, out),
            _ => write(&items(templates.value(row)), moment, out),
        }
        Ok(true)
    })
}

/// Converts seconds since 1970 to instants.
fn moments_of_seconds(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let call = Call::new(TO_TIMESTAMP, args, rows)?;
    let seconds = call.double(0);
    let moments = call.primitives::<TimestampMicrosecondType>(|row| {
        let micros = (seconds.value(row) * 1e6).round();
        match micros.abs() < i64::MAX as f64 {
            true => Ok(Some(micros as i64)),
            false if seconds.value(row) == f64::INFINITY => Ok(Some(Endless::Future.moment())),
            false if seconds.value(row) == f64::NEG_INFINITY => Ok(Some(Endless::Past.moment())),
            false => call.fails_as("22008", format_args!("{} is out of range", seconds.value(row))),
        }
    })?;
    match is_constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&moments, 0)?)),
        false => Ok(ColumnarValue::Array(moments)),
    }
}

fn intervals_written(
    name: &'static str,
    args: ScalarFunctionArgs,
    rows: usize,
) -> Result<ArrayRef> {
    let call = call_of(name, args, rows, [INTERVAL, DataType::Utf8])?;
    let (intervals, templates) =
        (call.arrays[0].as_primitive::<IntervalMonthDayNanoType>(), call.text(1));
    call.texts(|row, out| {
        let interval = intervals.value(row);
        let (months, days) = (interval.months.into(), interval.days.into());
        let parts = (months, days, interval.nanoseconds / 1000);
        match write_interval(&items(templates.value(row)), parts, out) {
            true => Ok(true),
            false => call.fails_as(
                "22007",
                format_args!(
                    "the template '{}' asks for what an interval does not have",
                    templates.value(row)
                ),
            ),
        }
    })
}

fn parsed(name: &'static str, args: ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    let result = args.return_field.data_type().clone();
    let given = args.args[0].data_type();
    if !matches!(given, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null)
    {
        return plan_err!("{name} with a template takes a text");
    }
    let call = call_of(name, args, rows, [DataType::Utf8, DataType::Utf8])?;
    let (texts, templates) = (call.text(0), call.text(1));
    let kept = (rows > 0 && call.arrays[1].is_valid(0))
        .then(|| (templates.value(0), items(templates.value(0))));
    let moment = |row: usize| {
        let (text, template) = (texts.value(row), templates.value(row));
        let moment = match &kept {
            Some((same, items)) if *same == template => read(items, text),
            _ => read(&items(template), text),
        };
        moment.or_else(|why| {
            call.fails_as(
                "22007",
                format_args!("'{text}' does not match the template '{template}': {why}"),
            )
        })
    };
    if result == DataType::Date32 {
        return call.dates(|row| {
            let days = moment(row)?.div_euclid(MICROS_OF_DAY);
            i32::try_from(days).map(Some).or_else(|_| call.fails("the date is out of range"))
        });
    }
    let mut wall = call.plain::<TimestampMicrosecondType>(|row| moment(row).map(Some))?;
    // A text with a UTC offset does not depend on the session's zone.
    let has_zone =
        |template: &str| ["TZH", "tzh", "TZM", "tzm"].iter().any(|it| template.contains(it));
    if templates.iter().flatten().any(has_zone) {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        wall = cast(&wall, &utc)?;
    }
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&wall, &result, &checked)?)
}
