//! Ranges of TIMESTAMPTZ in the session's time zone: rows that leave the database show their bounds in it, and so are the
//! types of `lower` and `upper`.

use atoll_functions::{RangeType, function_named};
use atoll_sql_common::logical::map_named;
use atoll_sql_common::pg_type::Checked;
use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};

use crate::timezone::{is_utc, wanted_type};

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

/// Gives bounds of ranges the session's time zone.
pub(crate) fn bounds_in_zone(
    node: LogicalPlan,
    time_zone: &str,
) -> Result<Transformed<LogicalPlan>> {
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
