//! Aggregates that collect the rows of a subquery in its order, and windows that number them in it.
//!
//! ```text
//! SELECT array_agg(x) FROM (SELECT x FROM t ORDER BY y) q
//! SELECT array_agg(x ORDER BY "$order 0") FROM (SELECT x, y AS "$order 0" FROM t ORDER BY y) q
//!
//! SELECT row_number() OVER () FROM (SELECT x FROM t ORDER BY x) q
//! SELECT row_number() OVER (ORDER BY x) FROM (SELECT x FROM t ORDER BY x) q
//! ```
//!
//! PostgreSQL passes the rows of a subquery on in order, so a list of them keeps the order, and `ARRAY(SELECT …
//! ORDER BY …)` is ordered by definition. DataFusion 55.2 drops a sort that nothing above requires
//! (`enable_subquery_sort_elimination`, which is off). Here the aggregate or window requires the order, and other sorts
//! are dropped.

use std::sync::Arc;

use atoll_functions::gathered_in_order;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, LogicalPlan, Projection, Sort, SubqueryAlias, Window,
};
use datafusion::optimizer::AnalyzerRule;

use super::outer_names::is_lateral;

/// Adds an order to such aggregates; see the module.
#[derive(Debug, Default)]
pub struct KeptOrder;

impl AnalyzerRule for KeptOrder {
    fn name(&self) -> &str {
        "kept_order"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let (mut sorts, mut relations, mut has_any) = (false, false, false);
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Sort(_) => sorts = true,
                LogicalPlan::SubqueryAlias(_) => relations = true,
                LogicalPlan::Aggregate(aggregate) => has_any = has_any || gathers(aggregate),
                LogicalPlan::Window(window) => has_any = has_any || counts(window),
                LogicalPlan::Distinct(Distinct::On(_)) => sorts = true,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !sorts {
            return Ok(plan);
        }
        let plan = match has_any {
            true => plan.transform_up_with_subqueries(with_order).data()?,
            false => plan,
        };
        match relations {
            true => without_idle_sorts(plan, false).data(),
            false => Ok(plan),
        }
    }
}

/// Drops the sorts of relations whose order does not matter above, as DataFusion does unless it is configured
/// to keep them.
fn without_idle_sorts(plan: LogicalPlan, within: bool) -> Result<Transformed<LogicalPlan>> {
    let within = match &plan {
        LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::Limit(_) => false,
        _ => within,
    };
    match plan {
        LogicalPlan::Sort(sort) if within && sort.fetch.is_none() => {
            let input = without_idle_sorts(Arc::unwrap_or_clone(sort.input), within)?;
            Ok(Transformed::yes(input.data))
        }
        plan => plan
            .map_children(|child| without_idle_sorts(child, within))?
            .transform_data(|plan| plan.map_subqueries(|plan| without_idle_sorts(plan, false))),
    }
}

fn gathers(aggregate: &Aggregate) -> bool {
    aggregate.aggr_expr.iter().any(|expr| gathered_in_order(expr, &[]).is_some())
}

fn counts(window: &Window) -> bool {
    window.window_expr.iter().any(|expr| counted_in_order(expr, &[]).is_some())
}

/// Adds an order to a window function that has none and no frame; None for others.
fn counted_in_order(expr: &Expr, order: &[SortKey]) -> Option<Expr> {
    const COUNTING: [&str; 4] = ["row_number", "lag", "lead", "ntile"];
    let Expr::WindowFunction(function) = expr else { return None };
    if !COUNTING.contains(&function.fun.name()) || !function.params.order_by.is_empty() {
        return None;
    }
    let mut function = function.clone();
    function.params.order_by = order.to_vec();
    Some(Expr::WindowFunction(function))
}

/// Adds the input's order to aggregates that collect rows, or to windows that number them.
fn with_order(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let ordered = match &node {
        LogicalPlan::Aggregate(aggregate) if gathers(aggregate) => aggregated_in_order(aggregate)?,
        LogicalPlan::Window(window) if counts(window) => windows_in_order(window)?,
        _ => None,
    };
    Ok(ordered.map_or_else(|| Transformed::no(node), Transformed::yes))
}

fn windows_in_order(window: &Window) -> Result<Option<LogicalPlan>> {
    let Some(Ordered { plan, keys }) = Keys::default().ordered(&window.input)? else {
        return Ok(None);
    };
    let exprs = window.window_expr.iter();
    let exprs = exprs.map(|expr| counted_in_order(expr, &keys).unwrap_or_else(|| expr.clone()));
    let ordered = Window::try_new(exprs.collect(), Arc::new(plan))?;
    // Its own columns come last. Nodes above reference them by name.
    let own = window.schema.fields().len() - window.window_expr.len();
    let moved = ordered.schema.fields().len() - window.schema.fields().len();
    let made = (own..window.schema.fields().len())
        .map(|at| column(&ordered.schema, at + moved).alias(window.schema.field(at).name()));
    let columns = window.input.schema().columns().into_iter().map(Expr::Column);
    let columns = columns.chain(made).collect();
    let ordered = Arc::new(LogicalPlan::Window(ordered));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, ordered)?)))
}

fn aggregated_in_order(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Some(Ordered { plan, keys }) = Keys::default().ordered(&aggregate.input)? else {
        return Ok(None);
    };
    let (mut exprs, mut functions) = (Vec::new(), Vec::new());
    for expr in &aggregate.aggr_expr {
        let (expr, function) = gathered_in_order(expr, &keys).unwrap_or((expr.clone(), None));
        exprs.push(expr);
        functions.push(function);
    }
    let ordered = Aggregate::try_new(Arc::new(plan), aggregate.group_expr.clone(), exprs)?;
    // Group columns come first. Nodes above reference the aggregates by name.
    let groups = ordered.schema.fields().len() - functions.len();
    let column = |at: usize| -> Expr {
        let column = Expr::Column(Column::from(ordered.schema.qualified_field(at)));
        let Some(of) = at.checked_sub(groups) else { return column };
        let value = match &functions[of] {
            Some(function) => function.call(vec![column]),
            None => column,
        };
        value.alias(aggregate.schema.field(at).name())
    };
    let columns = (0..ordered.schema.fields().len()).map(column).collect();
    let ordered = Arc::new(LogicalPlan::Aggregate(ordered.clone()));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns, ordered)?)))
}

/// A plan and the columns that order its rows.
struct Ordered {
    plan: LogicalPlan,
    keys: Vec<SortKey>,
}

/// Turns sort keys into columns.
#[derive(Default)]
struct Keys {
    /// Number of columns created.
    count: usize,
}

impl Keys {
    /// Adds columns for the sort keys of a plan's rows; None if the plan has no order.
    fn ordered(&mut self, plan: &LogicalPlan) -> Result<Option<Ordered>> {
        match plan {
            LogicalPlan::Sort(sort) => self.of_sort(sort).map(Some),
            LogicalPlan::Projection(projection) => self.of_projection(projection),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(Ordered { plan, keys }) = self.ordered(&alias.input)? else {
                    return Ok(None);
                };
                let inner = Arc::clone(plan.schema());
                let alias = SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?;
                let keys = renamed(keys, &inner, &alias.schema)?;
                Ok(Some(Ordered { plan: LogicalPlan::SubqueryAlias(alias), keys }))
            }
            LogicalPlan::Filter(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Subquery(_) => {
                let Some(below) = self.ordered(plan.inputs()[0])? else { return Ok(None) };
                let plan = plan.with_new_exprs(plan.expressions(), vec![below.plan])?;
                Ok(Some(Ordered { plan, keys: below.keys }))
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => Ok(first_rows(plan, distinct)),
            LogicalPlan::Join(join)
                if matches!(join.join_type, JoinType::Inner | JoinType::Left)
                    && is_lateral(&join.right) =>
            {
                self.of_lateral(plan, &join.left, &join.right)
            }
            _ => Ok(None),
        }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("$order {}", self.count - 1)
    }

    /// A sort over columns: computed keys are evaluated once.
    fn of_sort(&mut self, sort: &Sort) -> Result<Ordered> {
        let is_column = |key: &SortKey| matches!(key.expr, Expr::Column(_));
        if sort.expr.iter().all(is_column) {
            let keys = sort.expr.clone();
            return Ok(Ordered { plan: LogicalPlan::Sort(sort.clone()), keys });
        }
        let input = sort.input.schema().columns().into_iter();
        let mut columns: Vec<Expr> = input.map(Expr::Column).collect();
        let mut keys = Vec::with_capacity(sort.expr.len());
        for key in &sort.expr {
            if is_column(key) {
                keys.push(key.clone());
                continue;
            }
            let name = self.name();
            columns.push(key.expr.clone().alias(name.as_str()));
            keys.push(key.with_expr(Expr::Column(Column::from_name(name))));
        }
        let projection = Projection::try_new(columns, Arc::clone(&sort.input))?;
        let input = Arc::new(LogicalPlan::Projection(projection));
        let plan = LogicalPlan::Sort(Sort { expr: keys.clone(), input, fetch: sort.fetch });
        Ok(Ordered { plan, keys })
    }

    /// A projection that passes the keys on, as additional columns if it lacks them.
    fn of_projection(&mut self, projection: &Projection) -> Result<Option<Ordered>> {
        let Some(Ordered { plan, keys }) = self.ordered(&projection.input)? else {
            return Ok(None);
        };
        let mut exprs = projection.expr.clone();
        let mut places = Vec::with_capacity(keys.len());
        for key in &keys {
            let is_key = |expr: &Expr| unaliased(expr) == &key.expr;
            let place = exprs.iter().position(is_key);
            places.push(place.unwrap_or(exprs.len()));
            if place.is_none() {
                exprs.push(key.expr.clone().alias(self.name()));
            }
        }
        let projection = Projection::try_new(exprs, Arc::new(plan))?;
        let keys = keys.iter().zip(places);
        let keys = keys.map(|(key, place)| key.with_expr(column(&projection.schema, place)));
        let keys = keys.collect();
        Ok(Some(Ordered { plan: LogicalPlan::Projection(projection), keys }))
    }

    /// The rows of a LATERAL subquery in its order, for each row on the left in the left order.
    fn of_lateral(
        &mut self,
        join: &LogicalPlan,
        left: &LogicalPlan,
        right: &LogicalPlan,
    ) -> Result<Option<Ordered>> {
        let (left_ordered, right_ordered) = (self.ordered(left)?, self.ordered(right)?);
        if left_ordered.is_none() && right_ordered.is_none() {
            return Ok(None);
        }
        let as_it_is = |plan: &LogicalPlan| Ordered { plan: plan.clone(), keys: vec![] };
        let left = left_ordered.unwrap_or_else(|| as_it_is(left));
        let right = right_ordered.unwrap_or_else(|| as_it_is(right));
        let plan = join.with_new_exprs(join.expressions(), vec![left.plan, right.plan])?;
        Ok(Some(Ordered { plan, keys: [left.keys, right.keys].concat() }))
    }
}

/// The order of DISTINCT ON, whose first keys identify the rows.
fn first_rows(plan: &LogicalPlan, distinct: &DistinctOn) -> Option<Ordered> {
    let sorted = distinct.sort_expr.as_ref()?;
    let keys = sorted.iter().take(distinct.on_expr.len()).map(|key| {
        let is_key = |expr: &Expr| unaliased(expr) == &key.expr;
        let place = distinct.select_expr.iter().position(is_key)?;
        Some(key.with_expr(column(&distinct.schema, place)))
    });
    Some(Ordered { keys: keys.collect::<Option<_>>()?, plan: plan.clone() })
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

fn column(schema: &DFSchema, at: usize) -> Expr {
    Expr::Column(Column::from(schema.qualified_field(at)))
}

/// Renames keys as their columns are named further out.
fn renamed(keys: Vec<SortKey>, inner: &DFSchema, outer: &DFSchema) -> Result<Vec<SortKey>> {
    let renamed = keys.into_iter().map(|key| match &key.expr {
        Expr::Column(of) => {
            let place = inner.index_of_column(of)?;
            Ok(key.with_expr(column(outer, place)))
        }
        _ => Ok(key),
    });
    renamed.collect()
}
