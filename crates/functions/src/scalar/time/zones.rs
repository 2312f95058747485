//! `timestamp AT TIME ZONE zone`: converts an instant to local time, or local time to an instant.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, StringArray, new_empty_array, new_null_array,
};
use datafusion::arrow::compute::{CastOptions, cast, concat};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use crate::listing::{Listing, no_function};
use crate::scalar::call::{Call, wall_clock};
use crate::temporal::{cast_moments, named_zone, posix_zone, zone_ahead, zone_named};

const NAME: &str = "timezone";
const ARGUMENTS: &str = "zone, timestamp";

pub(in crate::scalar) fn register(context: &SessionContext) {
    let listing = Arc::new(Listing::new(
        NAME,
        &[],
        ARGUMENTS,
        "The time in a zone of a TIMESTAMPTZ, and of a TIMESTAMP the instant at which it is that time there: \
         timestamp AT TIME ZONE zone.",
        "timezone('Asia/Tokyo', TIMESTAMPTZ '2024-03-05 12:00:00+00') = TIMESTAMP '2024-03-05 21:00:00'",
    ));
    let signature = Signature::user_defined(Volatility::Immutable);
    context.register_udf(ScalarUDF::from(AtTimeZone { zone: None, signature, listing }));
}

#[derive(Clone, Debug)]
struct AtTimeZone {
    /// The session's.
    zone: Option<Arc<str>>,
    signature: Signature,
    listing: Arc<Listing>,
}

impl PartialEq for AtTimeZone {
    fn eq(&self, other: &Self) -> bool {
        self.zone == other.zone
    }
}

impl Eq for AtTimeZone {}

impl Hash for AtTimeZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.zone.hash(state);
    }
}

fn micros(zone: Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let refused = || no_function(NAME, given, ARGUMENTS);
        let [zone, moment] = given else { return Err(refused()) };
        let zone = match zone {
            DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            zone if zone.is_string() || zone.is_null() => DataType::Utf8,
            _ => return Err(refused()),
        };
        let moment = match moment {
            DataType::Timestamp(_, of) => micros(of.clone()),
            // A date and a text are cast to TIMESTAMPTZ.
            DataType::Date32 => micros(self.zone.clone()),
            other if other.is_string() || other.is_null() => micros(self.zone.clone()),
            _ => return Err(refused()),
        };
        Ok(vec![zone, moment])
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(match given.get(1) {
            Some(DataType::Timestamp(_, None)) => micros(self.zone.clone()),
            _ => micros(None),
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let zone = config.execution.time_zone.as_deref().map(Arc::from);
        Some(ScalarUDF::from(Self { zone, ..self.clone() }))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let one_zone = matches!(args.args.first(), Some(ColumnarValue::Scalar(_)));
        let call = Call::new(NAME, args, rows)?;
        let zones = zones(&call)?;
        let moments = &call.arrays[1];
        let result = match one_zone && rows > 0 {
            true if zones.is_null(0) => new_null_array(&call.result, rows),
            true => elsewhere(&call, moments, zones.value(0))?,
            false => {
                let row = |row: usize| match zones.is_null(row) {
                    true => Ok(new_null_array(&call.result, 1)),
                    false => elsewhere(&call, &moments.slice(row, 1), zones.value(row)),
                };
                let each = (0..rows).map(row).collect::<Result<Vec<ArrayRef>>>()?;
                let each: Vec<&dyn Array> = each.iter().map(AsRef::as_ref).collect();
                match each.is_empty() {
                    true => new_empty_array(&call.result),
                    false => concat(&each)?,
                }
            }
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// Returns the zone names of all rows, as Arrow knows them.
fn zones(call: &Call) -> Result<StringArray> {
    if let DataType::Interval(_) = call.arrays[0].data_type() {
        let intervals = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>();
        let zone = |row: usize| -> Result<Option<String>> {
            if intervals.is_null(row) {
                return Ok(None);
            }
            let interval = intervals.value(row);
            if interval.months != 0 || interval.days != 0 {
                return call
                    .fails_as("22023", "interval time zone must not include months or days");
            }
            Ok(Some(zone_ahead(interval.nanoseconds / 1_000_000_000)))
        };
        return (0..intervals.len()).map(zone).collect();
    }
    let names = call.arrays[0].as_string::<i32>();
    let mut last: Option<(&str, String)> = None;
    let zone = |name: Option<_>| -> Result<Option<String>> {
        let Some(name) = name else { return Ok(None) };
        if let Some((_, zone)) = last.as_ref().filter(|(known, _)| *known == name) {
            return Ok(Some(zone.clone()));
        }
        let Some(zone) = known_zone(name) else {
            return call.fails_as("22023", format_args!("time zone '{name}' is not known"));
        };
        last = Some((name, zone.clone()));
        Ok(Some(zone))
    };
    names.iter().map(zone).collect()
}

/// Finds a zone by its name, its abbreviation, or, as in POSIX, the hours to the west.
pub(super) fn known_zone(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(seconds) = zone_named(&text.to_ascii_lowercase()) {
        return Some(zone_ahead(seconds));
    }
    named_zone(text).or_else(|| posix_zone(text))
}

/// Converts instants to local times in a zone, or local times to instants.
fn elsewhere(call: &Call, moments: &ArrayRef, zone: &str) -> Result<ArrayRef> {
    let there = micros(Some(zone.into()));
    if let DataType::Timestamp(_, Some(_)) = moments.data_type() {
        let instants = cast(moments, &there)?;
        return Ok(Arc::new(wall_clock(&instants, &call.config)?));
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let instants = cast_moments(moments, &there, &strict)?;
    Ok(cast(&instants, &call.result)?)
}

#[cfg(test)]
mod tests {
    use super::known_zone;

    #[test]
    fn zones_have_names_abbreviations_and_hours_to_the_west() {
        for (text, wanted) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("europe/berlin", Some("Europe/Berlin")),
            ("america/new_york", Some("America/New_York")),
            ("utc", Some("+00:00")),
            ("PDT", Some("-07:00")),
            ("est5edt", Some("EST5EDT")),
            ("+02", Some("-02:00")),
            ("-05:30", Some("+05:30")),
            ("UTC+2", Some("-02:00")),
            ("GMT-03:00", Some("+03:00")),
            ("nowhere", None),
            ("", None),
        ] {
            assert_eq!(known_zone(text).as_deref(), wanted, "{text}");
        }
    }
}
