//! TIMESTAMPTZ is an instant; the session's time zone (`SET timezone`) determines how it is displayed.
//!
//! DataFusion stores a time zone in each column's type. Expressions in SQL get the session's, and so do the
//! columns of a scan here, whatever it was when the column was created. Casts between TIMESTAMPTZ and
//! TIMESTAMP use the time zone in both directions; Arrow's cast to TIMESTAMP gives UTC.

use std::sync::Arc;

use atoll_functions::null_where_an_argument_is;
use atoll_functions::temporal::{
    IntervalFields, IntervalFormat, call_with_finite, named_zone, posix_zone, read_interval,
    zone_ahead,
};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, exec_err};
use datafusion::execution::SessionState;
use datafusion::functions::datetime::to_local_time::ToLocalTimeFunc;
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Values,
};
use datafusion::optimizer::AnalyzerRule;

use atoll_sql_common::error::SqlState;
use atoll_sql_common::logical::map_named;
use atoll_sql_common::user_type::enum_oid;

/// The time zone of a session that sets none. TIMESTAMPTZ without a zone would be TIMESTAMP.
pub const DEFAULT: &str = "UTC";

/// Sets the time zone, which was checked before, for all following statements.
pub fn set(state: &mut SessionState, time_zone: &str) {
    state.config_mut().options_mut().execution.time_zone = Some(engine_name(time_zone));
}

/// A time zone as SHOW displays it: by its name; in POSIX form, which counts hours to the west; and, for a number of
/// hours or an interval to the east, in POSIX notation. `Europe/Berlin`, `-02:00`, `GMT-2`, `<+02>-02` for `2`.
///
/// # Errors
/// If the time zone is unknown.
pub fn checked(text: &str) -> Result<String> {
    let known = match seconds_east(text) {
        Some(seconds) => shown_ahead(seconds),
        None => named_zone(text).or_else(|| posix_zone(text).map(|_| text.to_owned())),
    };
    known.ok_or_else(|| {
        SqlState::INVALID_PARAMETER.error(format!(
            "unknown time zone '{text}'; expected a name such as 'Europe/Berlin' or hours to the east such as 2 or -3.5"
        ))
    })
}

/// Converts a displayed time zone to the engine's name.
fn engine_name(shown: &str) -> String {
    match shown {
        "UTC" | "GMT" | "Zulu" => DEFAULT.to_owned(),
        _ => named_zone(shown).or_else(|| posix_zone(shown)).unwrap_or_else(|| DEFAULT.to_owned()),
    }
}

/// Displays a time zone given by the engine's name, whose offsets count to the east.
pub fn from_engine_name(name: &str) -> String {
    let west = match (name.strip_prefix('+'), name.strip_prefix('-')) {
        (Some(rest), _) => format!("-{rest}"),
        (_, Some(rest)) => format!("+{rest}"),
        _ => return name.to_owned(),
    };
    format!("<{name}>{west}")
}

/// Parses hours to the east, `-7` or `5.5`, and `interval '2:00'`, into seconds.
fn seconds_east(text: &str) -> Option<f64> {
    let Some(interval) = interval_text(text) else {
        return Some(text.parse::<f64>().ok()? * 3600.0);
    };
    let interval = read_interval(interval, IntervalFields::default(), IntervalFormat::Postgres)?;
    let is_time = interval.months == 0 && interval.days == 0;
    is_time.then_some(interval.nanoseconds as f64 / 1e9)
}

fn interval_text(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked("interval".len())?;
    let quoted = word.eq_ignore_ascii_case("interval").then(|| rest.trim())?;
    quoted.strip_prefix('\'')?.strip_suffix('\'')
}

/// Returns the zone with this offset if it is in whole minutes and less than a day.
fn shown_ahead(seconds: f64) -> Option<String> {
    let is_zone = seconds.abs() < 86_400.0 && seconds % 60.0 == 0.0;
    let ahead = is_zone.then(|| zone_ahead(seconds as i64))?;
    Some(from_engine_name(ahead.strip_suffix(":00").unwrap_or(&ahead)))
}

/// Whether local time is UTC.
pub(crate) fn is_utc(time_zone: &str) -> bool {
    matches!(time_zone, "UTC" | "utc" | "Etc/UTC" | "+00:00" | "+00" | "+0000" | "Z")
}

/// Gives columns of tables and files the session's time zone, before type coercion.
#[derive(Debug, Default)]
pub struct SessionTimeZone;

impl AnalyzerRule for SessionTimeZone {
    fn name(&self) -> &str {
        "session_time_zone"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let Some(time_zone) = &config.execution.time_zone else { return Ok(plan) };
        let zoned = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Dml(dml) => inserted(dml, time_zone).map(Transformed::yes),
            node => {
                scanned(node, time_zone)?.transform_data(|node| bounds_in_zone(node, time_zone))
            }
        });
        zoned.map(|zoned| zoned.data)
    }
}

/// Stored values are displayed in the session's time zone too, whatever the column's type: only casts to
/// that type convert them.
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

/// Casts to TIMESTAMPTZ by the time zone.
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

/// Gives bounds of ranges, `lower` and `upper`, the session's time zone.
fn bounds_in_zone(node: LogicalPlan, time_zone: &str) -> Result<Transformed<LogicalPlan>> {
    if is_utc(time_zone) {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    map_named(node, |expr| {
        expr.transform_up(|expr| {
            let of_bound = match &expr {
                Expr::ScalarFunction(call) if matches!(call.func.name(), "lower" | "upper") => {
                    wanted_type(&expr.get_type(&schema)?, time_zone)
                }
                _ => None,
            };
            Ok(match of_bound {
                Some(wanted) => Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), wanted))),
                None => Transformed::no(expr),
            })
        })
    })
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

/// Returns a type in the session's time zone instead of another zone.
fn wanted_type(data_type: &DataType, time_zone: &str) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(unit, Some(other))
            if **other != *time_zone && enum_oid(data_type).is_none() =>
        {
            Some(DataType::Timestamp(*unit, Some(time_zone.into())))
        }
        _ => None,
    }
}

/// Casts TIMESTAMPTZ to TIMESTAMP by the time zone; None for other casts and in UTC.
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

/// DataFusion's `to_local_time` with the name and nullability of a cast, and with support for infinite values.
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
        let call = |arguments| self.builtin.invoke_with_args(arguments);
        call_with_finite(arguments, 0, true, call)
    }
}

#[cfg(test)]
mod tests {
    use super::{checked, engine_name, from_engine_name};

    /// PostgreSQL's answers, except for zones that the engine lacks.
    #[test]
    fn time_zones_are_named_in_several_ways() {
        for (text, shown, engine) in [
            ("Europe/Berlin", "Europe/Berlin", "Europe/Berlin"),
            ("utc", "UTC", "UTC"),
            ("zulu", "Zulu", "UTC"),
            ("+02:00", "+02:00", "-02:00"),
            ("-02:00", "-02:00", "+02:00"),
            ("-7", "<-07>+07", "-07:00"),
            ("5.5", "<+05:30>-05:30", "+05:30"),
            ("0", "<+00>-00", "+00:00"),
            ("interval '-2:30'", "<-02:30>+02:30", "-02:30"),
            ("INTERVAL '2 hours'", "<+02>-02", "+02:00"),
            ("GMT-02:00", "GMT-02:00", "+02:00"),
            ("EET+5", "EET+5", "-05:00"),
            ("<-03>3:30", "<-03>3:30", "-03:30"),
        ] {
            assert_eq!(checked(text).ok().as_deref(), Some(shown), "{text}");
            assert_eq!(engine_name(shown), engine, "{text}");
        }
        let refused = [
            "GMT+99",
            "25",
            "- 7",
            "nan",
            "",
            "0.01",
            "interval '1 day'",
            "interval '",
            "Nowhere/X",
        ];
        for text in refused {
            assert!(checked(text).is_err(), "{text}");
        }
        assert_eq!(from_engine_name("+02:00"), "<+02:00>-02:00");
    }
}
