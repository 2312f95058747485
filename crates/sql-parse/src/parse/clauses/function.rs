//! Function calls. The planner looks only at the clauses that the kind of function supports.

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArgumentClause, FunctionArguments, NullTreatment,
};

use super::refuse;
use atoll_sql_common::functions::Functions;

/// Window functions that have a meaning for IGNORE NULLS.
const SKIP_NULLS: [&str; 5] = ["first_value", "lag", "last_value", "lead", "nth_value"];

/// Aggregates for which DISTINCT makes a difference and for which DataFusion 55.2 ignores it (apache/datafusion#2406).
const FORGET_DISTINCT: [&str; 6] =
    ["approx_percentile_cont", "corr", "covar", "covar_pop", "covar_samp", "nth_value"];

pub(super) fn check(function: &Function, state: &SessionState) -> Result<()> {
    let name = function.name.to_string().to_lowercase();
    let has_parameters = !matches!(function.parameters, FunctionArguments::None);
    refuse(has_parameters, &format!("a second list of arguments of {name}"), "")?;
    let is_query = matches!(function.args, FunctionArguments::Subquery(_));
    let instead = "put it in parentheses; array_agg() makes an array of its rows";
    refuse(is_query, &format!("a query as the argument of {name}"), instead)?;
    let functions = Functions::for_session(state);
    let is_scalar = functions.has_scalar(&name)
        || matches!(name.as_str(), "make_map" | "unnest" | "unnest_outer");
    if is_scalar {
        return scalar(function, &name);
    }
    let skips_nulls = matches!(nulls(function), Some(NullTreatment::IgnoreNulls));
    if function.over.is_none() {
        let forgets = FORGET_DISTINCT.contains(&name.as_str()) || name.starts_with("regr_");
        return refuse(forgets && is_distinct(function), &format!("DISTINCT in {name}"), "");
    }
    let is_window = functions.window(&name).is_some();
    let knows_nulls = match is_window {
        true => SKIP_NULLS.contains(&name.as_str()),
        false => {
            functions.aggregate(&name).is_some_and(|udaf| udaf.supports_null_handling_clause())
        }
    };
    refuse(skips_nulls && !knows_nulls, &format!("IGNORE NULLS in {name}"), "")?;
    let in_window = format!("in the window function {name}");
    refuse(is_window && function.filter.is_some(), &format!("FILTER {in_window}"), "")?;
    refuse(is_window && is_distinct(function), &format!("DISTINCT {in_window}"), "")
}

fn scalar(function: &Function, name: &str) -> Result<()> {
    let of = |clause: &str| format!("{clause} in {name}, which is not an aggregate function,");
    refuse(function.over.is_some(), &of("OVER"), "")?;
    refuse(function.filter.is_some(), &of("FILTER"), "")?;
    refuse(!function.within_group.is_empty(), &of("WITHIN GROUP"), "")?;
    refuse(nulls(function).is_some(), &of("IGNORE or RESPECT NULLS"), "")?;
    refuse(is_distinct(function), &of("DISTINCT"), "")?;
    let FunctionArguments::List(list) = &function.args else { return Ok(()) };
    refuse(!list.clauses.is_empty(), &of("a clause among the arguments"), "")
}

fn is_distinct(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
}

fn nulls(function: &Function) -> Option<NullTreatment> {
    let FunctionArguments::List(list) = &function.args else { return function.null_treatment };
    let among = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => Some(*nulls),
        _ => None,
    });
    function.null_treatment.or(among)
}
