//! ROLLUP, CUBE and GROUPING SETS over the groups of their finest set.
//!
//! DataFusion (55.2) aggregates each row once per set. Where one of the sets has all keys, its groups are made first, in
//! an aggregation without sets, and those of all sets are made of them: sums of counts and of sums, and the smallest of
//! the smallest. A sum leaves its type in the finest set if it does in a group of another.

use std::sync::Arc;

use atoll_functions::CheckedSum;
use atoll_sql_common::logical::{BottomUp, RewriteNode};
use atoll_sql_common::settings::{AggregateMethod, AtollOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, GroupingSet, LogicalPlan, Projection, cast, lit, when,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule.
pub fn finest_sets() -> Arc<dyn OptimizerRule + Send + Sync> {
    let rewrite: RewriteNode = rewrite;
    Arc::new(BottomUp { name: "finest_sets", rewrite })
}

fn rewrite(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let options = config.options();
    let method = options.extensions.get::<AtollOptions>().map(|options| options.aggregate);
    if method.unwrap_or_default() == AggregateMethod::Off {
        return Ok(Transformed::no(plan));
    }
    match over_finest(aggregate)? {
        Some(plan) => Ok(Transformed::yes(plan)),
        None => Ok(Transformed::no(plan)),
    }
}

/// The aggregation over the groups of its finest set; `None` where it stays as it is.
fn over_finest(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let [Expr::GroupingSet(sets)] = &aggregate.group_expr[..] else { return Ok(None) };
    let Some(keys) = finest(sets) else { return Ok(None) };
    let parts: Option<Vec<&AggregateFunction>> = aggregate.aggr_expr.iter().map(part).collect();
    let Some(parts) = parts.filter(|parts| parts.iter().all(|part| !is_of_floats(part, aggregate)))
    else {
        return Ok(None);
    };
    let groups = Aggregate::try_new(
        Arc::clone(&aggregate.input),
        keys.clone(),
        parts.iter().map(|part| Expr::AggregateFunction((*part).clone())).collect(),
    )?;
    let columns = groups.schema.columns();
    let (of_keys, of_parts) = columns.split_at(keys.len());
    let key = |expr: &Expr| {
        let at = keys.iter().position(|key| key == expr);
        at.map(|at| Expr::Column(of_keys[at].clone()))
    };
    let Some(sets) = mapped(sets, key) else { return Ok(None) };
    let wholes = parts.iter().zip(of_parts).map(|(part, column)| whole(part, column)).collect();
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    let all = Aggregate::try_new(groups, vec![Expr::GroupingSet(sets)], wholes)?;
    Ok(Some(LogicalPlan::Projection(results(aggregate, &parts, all)?)))
}

/// The results under the names and with the types of the aggregation that they replace.
fn results(
    before: &Aggregate,
    parts: &[&AggregateFunction],
    after: Aggregate,
) -> Result<Projection> {
    let keys = before.schema.fields().len() - parts.len();
    let columns = after.schema.columns().into_iter().map(Expr::Column).enumerate();
    let result = |(at, column): (usize, Expr)| {
        let (qualifier, field) = before.schema.qualified_field(at);
        let value = match at.checked_sub(keys).map(|at| parts[at].func.name()) {
            // Without rows there are no counts to add, and their sum is NULL.
            Some("count") => when(column.clone().is_null(), lit(0_i64)).otherwise(column)?,
            Some("sum") => cast(column, field.data_type().clone()),
            _ => column,
        };
        Ok(value.alias_qualified(qualifier.cloned(), field.name()))
    };
    let results = columns.map(result).collect::<Result<_>>()?;
    let input = Arc::new(LogicalPlan::Aggregate(after));
    Projection::try_new_with_schema(results, input, Arc::clone(&before.schema))
}

/// The keys of the set that has all of them; `None` without such a set, and for a single set.
fn finest(sets: &GroupingSet) -> Option<Vec<Expr>> {
    let mut all: Vec<Expr> = Vec::new();
    for key in sets.distinct_expr() {
        if all.contains(key) {
            return None;
        }
        all.push(key.clone());
    }
    let has_finest = match sets {
        GroupingSet::Rollup(_) | GroupingSet::Cube(_) => true,
        GroupingSet::GroupingSets(sets) => {
            sets.len() > 1 && sets.iter().any(|set| all.iter().all(|key| set.contains(key)))
        }
    };
    let is_plain = |key: &Expr| !key.is_volatile() && !matches!(key, Expr::Alias(_));
    (has_finest && !all.is_empty() && all.iter().all(is_plain)).then_some(all)
}

/// The sets with other keys.
fn mapped(sets: &GroupingSet, key: impl Fn(&Expr) -> Option<Expr>) -> Option<GroupingSet> {
    let mapped = |keys: &Vec<Expr>| keys.iter().map(&key).collect::<Option<Vec<_>>>();
    Some(match sets {
        GroupingSet::Rollup(keys) => GroupingSet::Rollup(mapped(keys)?),
        GroupingSet::Cube(keys) => GroupingSet::Cube(mapped(keys)?),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.iter().map(mapped).collect::<Option<_>>()?)
        }
    })
}

/// An aggregate that can be made of those of parts of its rows.
fn part(expr: &Expr) -> Option<&AggregateFunction> {
    let Expr::AggregateFunction(function) = expr else { return None };
    let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } =
        &function.params;
    let is_plain = args.len() == 1
        && !distinct
        && filter.is_none()
        && order_by.is_empty()
        && null_treatment.is_none()
        && !args[0].is_volatile();
    let is_known = matches!(function.func.name(), "count" | "sum" | "min" | "max");
    (is_plain && is_known).then_some(function)
}

/// Sums of floats depend on the order in which they are added.
fn is_of_floats(part: &AggregateFunction, aggregate: &Aggregate) -> bool {
    use datafusion::logical_expr::ExprSchemable;
    let data_type = part.params.args[0].get_type(aggregate.input.schema());
    part.func.name() == "sum"
        && !data_type.is_ok_and(|of| of.is_integer() || matches!(of, DataType::Decimal128(..)))
}

/// The aggregate of all parts, under the name of that of the rows.
fn whole(part: &AggregateFunction, column: &Column) -> Expr {
    let func = match part.func.name() {
        "count" | "sum" => Arc::new(AggregateUDF::from(CheckedSum::default())),
        _ => Arc::clone(&part.func),
    };
    let whole = AggregateFunction::new_udf(
        func,
        vec![Expr::Column(column.clone())],
        false,
        None,
        vec![],
        None,
    );
    Expr::AggregateFunction(whole).alias(&column.name)
}
