//! TIMESTAMPTZ is an instant; the session's time zone (`SET timezone`) says how it reads.
//!
//! DataFusion keeps a time zone in each column's type. The session's is given to what SQL writes, and
//! here to what a scan returns, whatever it was when the column was made. Casts between TIMESTAMPTZ and
//! TIMESTAMP go by the time zone in both directions; Arrow's to TIMESTAMP gives UTC.

use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, exec_err};
use datafusion::execution::SessionState;
use datafusion::functions::datetime::to_local_time::ToLocalTimeFunc;
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, Projection,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Values,
};
use datafusion::optimizer::AnalyzerRule;

use crate::arithmetic::null_where_an_argument_is;
use crate::error::SqlState;

/// The time zone of a session that sets none. TIMESTAMPTZ without one would be TIMESTAMP.
pub(crate) const DEFAULT: &str = "UTC";

/// Instants read in this time zone from here on.
pub(crate) fn set(state: &mut SessionState, time_zone: &str) {
    state.config_mut().options_mut().execution.time_zone = Some(time_zone.to_owned());
}

/// A time zone as the engine knows it: by its name, as hours from UTC to the east, or in POSIX's form, which counts
/// them to the west: `Europe/Berlin`, `+02:00`, `2`, `GMT-2`.
///
/// # Errors
/// When the time zone is unknown.
pub(crate) fn checked(text: &str) -> Result<String> {
    let plain: String = text.split_whitespace().collect();
    let is_known = |zone: &String| zone.parse::<Tz>().is_ok();
    let named = Some(plain.clone()).filter(is_known);
    let known = named.or_else(|| match plain.to_ascii_uppercase().as_str() {
        "DEFAULT" | "UTC" | "GMT" | "ZULU" => Some(DEFAULT.to_owned()),
        _ => hours(&plain).or_else(|| posix(&plain)).filter(is_known),
    });
    known.ok_or_else(|| {
        SqlState::INVALID_PARAMETER.error(format!(
            "unknown time zone '{text}'; expected a name such as 'Europe/Berlin' or an offset such as '+02:00'"
        ))
    })
}

/// Hours to the east: `-7`, `5.5`.
fn hours(text: &str) -> Option<String> {
    let minutes = text.parse::<f64>().ok()? * 60.0;
    let whole = minutes.round().abs();
    let sign = if minutes < 0.0 { '-' } else { '+' };
    (whole < 1440.0).then(|| format!("{sign}{:02}:{:02}", whole as u32 / 60, whole as u32 % 60))
}

/// A name of any letters and hours to the west: `GMT+5`, `<-03>3:30`.
fn posix(text: &str) -> Option<String> {
    let rest = match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?.1,
        None => {
            let rest = text.trim_start_matches(|it: char| it.is_ascii_alphabetic());
            (text.len() - rest.len() >= 3).then_some(rest)?
        }
    };
    let (east, digits) = match rest.strip_prefix('-') {
        Some(digits) => ('+', digits),
        None => ('-', rest.strip_prefix('+').unwrap_or(rest)),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then(|| format!("{east}{hours:02}:{minutes:02}"))
}

/// Whether local time is UTC.
pub(crate) fn is_utc(time_zone: &str) -> bool {
    matches!(time_zone, "UTC" | "utc" | "Etc/UTC" | "+00:00" | "+00" | "+0000" | "Z")
}

/// Gives columns of tables and files the session's time zone, before types are settled.
#[derive(Debug, Default)]
pub(crate) struct SessionTimeZone;

impl AnalyzerRule for SessionTimeZone {
    fn name(&self) -> &str {
        "session_time_zone"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let Some(time_zone) = &config.execution.time_zone else { return Ok(plan) };
        let zoned = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Dml(dml) => inserted(dml, time_zone).map(Transformed::yes),
            node => scanned(node, time_zone),
        });
        zoned.map(|zoned| zoned.data)
    }
}

/// What is stored reads in the session's time zone too, whatever the column's type: it is the casts to
/// that type that read it.
fn inserted(dml: DmlStatement, time_zone: &str) -> Result<LogicalPlan> {
    let input = Arc::unwrap_or_clone(dml.input);
    let input = Arc::new(read(input, time_zone)?);
    Ok(LogicalPlan::Dml(DmlStatement { input, ..dml }))
}

fn read(plan: LogicalPlan, time_zone: &str) -> Result<LogicalPlan> {
    let cast = |expr| cast_in(expr, time_zone);
    match plan {
        LogicalPlan::Projection(projection) => {
            let input = read(Arc::unwrap_or_clone(projection.input), time_zone)?;
            let exprs = projection.expr.into_iter().map(cast).collect();
            Projection::try_new(exprs, Arc::new(input)).map(LogicalPlan::Projection)
        }
        LogicalPlan::Values(values) => {
            let fields = values.schema.iter().map(|(table, field)| {
                let wanted = wanted_type(field.data_type(), time_zone);
                let wanted = wanted.unwrap_or_else(|| field.data_type().clone());
                (table.cloned(), Arc::new(field.as_ref().clone().with_data_type(wanted)))
            });
            let metadata = values.schema.metadata().clone();
            let schema = DFSchema::new_with_metadata(fields.collect(), metadata)?;
            let rows = values.values.into_iter();
            let values = rows.map(|row| row.into_iter().map(cast).collect()).collect();
            Ok(LogicalPlan::Values(Values { schema: Arc::new(schema), values }))
        }
        other => Ok(other),
    }
}

/// A cast to TIMESTAMPTZ by the time zone.
fn cast_in(expr: Expr, time_zone: &str) -> Expr {
    match expr {
        Expr::Alias(alias) => {
            let inner = cast_in(*alias.expr, time_zone);
            Expr::Alias(Alias { expr: Box::new(inner), ..alias })
        }
        Expr::Cast(cast) => match wanted_type(cast.field.data_type(), time_zone) {
            Some(wanted) => Expr::Cast(Cast::new(cast.expr, wanted)),
            None => Expr::Cast(cast),
        },
        other => other,
    }
}

fn scanned(node: LogicalPlan, time_zone: &str) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
    let schema = Arc::clone(&scan.projected_schema);
    if !schema.fields().iter().any(|field| wanted_type(field.data_type(), time_zone).is_some()) {
        return Ok(Transformed::no(node));
    }
    let columns = in_columns(&schema, time_zone);
    LogicalPlanBuilder::from(node).project(columns)?.build().map(Transformed::yes)
}

fn in_columns(schema: &DFSchema, time_zone: &str) -> Vec<Expr> {
    let columns = schema.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        match wanted_type(field.data_type(), time_zone) {
            Some(wanted) => Expr::Cast(Cast::new(Box::new(column), wanted))
                .alias_qualified(table.cloned(), field.name()),
            None => column,
        }
    });
    columns.collect()
}

/// The type in the session's time zone of one in another.
fn wanted_type(data_type: &DataType, time_zone: &str) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(unit, Some(other)) if **other != *time_zone => {
            Some(DataType::Timestamp(*unit, Some(time_zone.into())))
        }
        _ => None,
    }
}

/// A cast of TIMESTAMPTZ to TIMESTAMP by the time zone; none for other casts and in UTC.
pub(crate) fn local_time(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    let (DataType::Timestamp(unit, Some(time_zone)), DataType::Timestamp(to_unit, None)) =
        (from, to)
    else {
        return None;
    };
    if is_utc(time_zone) {
        return None;
    }
    let function = Arc::new(ScalarUDF::from(LocalTime::default()));
    let local = ScalarFunction::new_udf(function, vec![value.clone()]);
    let local = Expr::ScalarFunction(local);
    Some(match unit == to_unit {
        true => local,
        false => Expr::Cast(Cast::new(Box::new(local), to.clone())),
    })
}

/// DataFusion's `to_local_time` under the name and the nullability of a cast.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct LocalTime {
    builtin: ToLocalTimeFunc,
}

impl ScalarUDFImpl for LocalTime {
    fn name(&self) -> &str {
        "local_time"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value] => Ok(value.schema_name().to_string()),
            _ => exec_err!("local time of {} values", arguments.len()),
        }
    }

    fn signature(&self) -> &Signature {
        self.builtin.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        null_where_an_argument_is(self, &arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.builtin.invoke_with_args(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn time_zones_are_named_in_several_ways() {
        for (text, wanted) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("+02:00", Some("+02:00")),
            ("- 7", Some("-07:00")),
            ("5.5", Some("+05:30")),
            ("GMT-02:00", Some("+02:00")),
            ("EET+5", Some("-05:00")),
            ("<-03>3:30", Some("-03:30")),
            ("GMT+99", None),
            ("25", None),
            ("nan", None),
            ("", None),
            ("Nowhere/X", None),
        ] {
            assert_eq!(checked(text).ok().as_deref(), wanted, "{text}");
        }
    }
}
