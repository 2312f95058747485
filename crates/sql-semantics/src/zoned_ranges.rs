//! Ranges of TIMESTAMPTZ in rows that leave the database: their bounds are shown in the session's time zone.

use atoll_functions::{RangeType, function_named};
use atoll_sql_common::pg_type::Checked;
use datafusion::arrow::datatypes::Field;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use crate::timezone::is_utc;

/// Returns a query whose ranges of TIMESTAMPTZ are texts in this time zone.
///
/// # Errors
/// If the query cannot be planned so.
pub fn ranges_shown(plan: LogicalPlan, time_zone: Option<&str>) -> Result<LogicalPlan> {
    let is_local = time_zone.is_some_and(|zone| !is_utc(zone));
    let mut fields = plan.schema().fields().iter();
    let (true, Some(show)) =
        (is_local && fields.any(|field| is_zoned(field)), function_named("range_shown"))
    else {
        return Ok(plan);
    };
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        match is_zoned(field) {
            true => show.call(vec![column]).alias_qualified(table.cloned(), field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn is_zoned(field: &Field) -> bool {
    let is_range = matches!(Checked::of_field(field), Some(Checked::Range(form)) if form.of == RangeType::Tstz);
    is_range && !field.data_type().is_nested()
}
