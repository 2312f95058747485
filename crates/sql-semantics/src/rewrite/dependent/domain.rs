//! The values of outer columns that a subquery references, and the subquery evaluated for all of them at once.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{
    Column, DFSchema, JoinType, NullEquality, Result, ScalarValue, internal_err, not_impl_err,
};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::logical_plan::builder::unnest_with_options;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, EmptyRelation, Expr, ExprFunctionExt, ExprSchemable,
    FetchType, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SkipType, Sort,
    SubqueryAlias, Union, Unnest, Values, Window, cast, lit, when,
};
use datafusion::prelude::ident;

use super::branches::failure_of;
use super::columns::{outer_columns, unused};
use super::gate::{gate, gated};
use crate::arithmetic::Failure;
use crate::volatile::is_volatile;

/// Returns how many rows a LIMIT skips and returns.
pub(super) fn fetched(limit: &Limit) -> Result<(usize, Option<usize>)> {
    match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => Ok((skip, fetch)),
        _ => not_impl_err!("LIMIT with an expression inside a correlated subquery; give a number"),
    }
}

/// OFFSET and LIMIT, applied to the rows of each value.
enum Cut {
    Known {
        skip: usize,
        fetch: Option<usize>,
    },
    /// A nullable BIGINT, so that NULL means no limit.
    Computed {
        skip: Expr,
        fetch: Option<Expr>,
    },
}

impl Cut {
    /// Whether the row with this number is kept.
    fn leaves(self, number: Expr) -> Expr {
        match self {
            Self::Known { skip, fetch } => {
                let count = |rows: usize| lit(u64::try_from(rows).unwrap_or(u64::MAX));
                let behind = number.clone().gt(count(skip));
                match fetch {
                    Some(fetch) => behind.and(number.lt_eq(count(skip.saturating_add(fetch)))),
                    None => behind,
                }
            }
            Self::Computed { skip, fetch } => {
                let behind = cast(number, DataType::Int64) - skip;
                let is_behind = behind.clone().gt(lit(0_i64));
                match fetch {
                    Some(fetch) => is_behind.and(fetch.clone().is_null().or(behind.lt_eq(fetch))),
                    None => is_behind,
                }
            }
        }
    }
}

/// Distinct values of outer columns, each under its own name.
pub(super) struct Domain {
    plan: LogicalPlan,
    columns: Vec<(Column, String)>,
    kind: Kind,
}

/// The rows whose values a domain contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All rows.
    All,
    /// Only the rows that reach the subquery; nothing may be computed for others.
    Reached,
    /// Each row separately, so that functions such as random() are called for each.
    Each,
}

impl Domain {
    /// Collects the values of these columns from the rows of a plan that satisfy the condition.
    pub(super) fn try_new(
        outer: &LogicalPlan,
        refs: Vec<(Column, Expr)>,
        reached: Option<Expr>,
    ) -> Result<Self> {
        let kind = if reached.is_some() { Kind::Reached } else { Kind::All };
        let refs = refs.into_iter().map(|(column, _)| column);
        let (plan, columns) = Self::named(outer, refs, reached)?;
        Ok(Self { plan: LogicalPlanBuilder::from(plan).distinct()?.build()?, columns, kind })
    }

    /// Like `try_new` for each row separately; also returns the plan with a row number for joining the two. Rows with
    /// equal values are numbered, and it does not matter which of them gets which number.
    pub(super) fn of_each(
        outer: LogicalPlan,
        refs: Vec<(Column, Expr)>,
        reached: Option<Expr>,
    ) -> Result<(LogicalPlan, Self)> {
        let (flag, number) = (unused("reached"), unused("number"));
        let mut columns: Vec<Expr> =
            outer.schema().columns().into_iter().map(Expr::Column).collect();
        let mut outer = LogicalPlanBuilder::from(outer);
        let mut refs: Vec<Column> = refs.into_iter().map(|(column, _)| column).collect();
        let reached = match reached {
            Some(reached) => {
                let reached = reached.is_true().alias(&flag);
                outer = outer.project(columns.iter().cloned().chain([reached]))?;
                columns.push(ident(&flag));
                refs.push(Column::from_name(&flag));
                Some(ident(&flag))
            }
            None => None,
        };
        let same = refs.iter().cloned().map(Expr::Column).collect();
        let count = row_number().partition_by(same).build()?;
        let numbered = ident(count.schema_name().to_string()).alias(&number);
        let outer =
            outer.window([count])?.project(columns.into_iter().chain([numbered]))?.build()?;
        refs.push(Column::from_name(&number));
        let (plan, columns) = Self::named(&outer, refs.into_iter(), reached)?;
        Ok((outer, Self { plan, columns, kind: Kind::Each }))
    }

    /// Returns columns of a plan under names of their own.
    fn named(
        outer: &LogicalPlan,
        refs: impl Iterator<Item = Column>,
        reached: Option<Expr>,
    ) -> Result<(LogicalPlan, Vec<(Column, String)>)> {
        let columns: Vec<(Column, String)> = refs.map(|column| (column, unused("outer"))).collect();
        let named = columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let named: Vec<Expr> = named.collect();
        let plan = LogicalPlanBuilder::from(outer.clone());
        let plan = match reached {
            Some(reached) => plan.filter(reached)?,
            None => plan,
        };
        Ok((plan.project(named)?.build()?, columns))
    }

    /// Returns all columns and rows of a plan.
    pub(super) fn rows(plan: &LogicalPlan) -> Result<Self> {
        let (plan, columns) = Self::named(plan, plan.schema().columns().into_iter(), None)?;
        Ok(Self { plan, columns, kind: Kind::All })
    }

    /// Renames its columns to their names in the outer plan.
    pub(super) fn restored(&self) -> impl Iterator<Item = Expr> {
        self.columns.iter().map(|(column, name)| {
            ident(name).alias_qualified(column.relation.clone(), &column.name)
        })
    }

    /// Returns the join keys with the plan that the values come from: that plan's columns, and its own.
    pub(super) fn keys(&self) -> (Vec<Column>, Vec<Column>) {
        let own = self.columns.iter().map(|(_, name)| Column::from_name(name));
        (self.columns.iter().map(|(column, _)| column.clone()).collect(), own.collect())
    }

    fn own(&self) -> Vec<Expr> {
        self.columns.iter().map(|(_, name)| ident(name)).collect()
    }

    /// Renames the columns.
    fn again(&self) -> Result<Self> {
        let columns: Vec<(Column, String)> =
            self.columns.iter().map(|(column, _)| (column.clone(), unused("outer"))).collect();
        let renamed = self.columns.iter().zip(&columns);
        let renamed: Vec<Expr> =
            renamed.map(|((_, old), (_, new))| ident(old).alias(new)).collect();
        let plan = LogicalPlanBuilder::from(self.plan.clone()).project(renamed)?.build()?;
        Ok(Self { plan, columns, kind: self.kind })
    }

    /// Replaces outer columns by its own.
    fn bound(&self, expr: Expr) -> Result<Expr> {
        expr.transform_up(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            Ok(match self.columns.iter().find(|(outer, _)| outer == column) {
                Some((_, name)) => Transformed::yes(ident(name)),
                None => Transformed::no(expr),
            })
        })
        .data()
    }

    fn all_bound(&self, exprs: Vec<Expr>) -> Result<Vec<Expr>> {
        exprs
            .into_iter()
            .map(|expr| {
                let name = expr.qualified_name();
                let bound = self.bound(expr.clone())?;
                Ok(if bound == expr { expr } else { bound.alias_qualified(name.0, name.1) })
            })
            .collect()
    }

    /// Whether a plan's rows depend on the values.
    fn is_named_in(&self, plan: &LogicalPlan) -> Result<bool> {
        let refs = outer_columns(plan, None)?;
        Ok(refs.iter().any(|(column, _)| self.columns.iter().any(|(own, _)| own == column))
            || (self.kind == Kind::Each && is_volatile(plan)?))
    }

    /// Whether to push the values below a plan that does not reference them: fallible expressions are then evaluated
    /// only for rows that the enclosing filters keep.
    fn goes_below(&self, plan: &LogicalPlan) -> Result<bool> {
        let is_row_by_row = matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_)
        );
        Ok(self.is_named_in(plan)?
            || (is_row_by_row && failure_of(plan)? == Failure::Any && !is_volatile(plan)?))
    }

    /// Cross joins the domain with a plan whose rows are the same for all values.
    fn beside(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let is_kept =
            self.kind != Kind::All && (failure_of(&plan)? != Failure::Never || is_volatile(&plan)?);
        let plan = if is_kept { gated(plan, &gate(self.plan.clone(), None)?)? } else { plan };
        LogicalPlanBuilder::from(plan).cross_join(self.plan.clone())?.build()
    }

    /// Evaluates the plan for all values: its columns, then the domain's.
    pub(super) fn push(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if let LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema }) = &plan
            && schema.fields().is_empty()
        {
            return Ok(self.plan.clone());
        }
        if !self.goes_below(&plan)? {
            return self.beside(plan);
        }
        match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let exprs = self.all_bound(expr)?;
                self.over(input)?.project(exprs.into_iter().chain(self.own()))?.build()
            }
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                self.over(input)?.filter(self.bound(predicate)?)?.build()
            }
            LogicalPlan::SubqueryAlias(alias) => self.alias(alias),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(Window { input, window_expr, .. }) => {
                let columns = input.schema().columns().into_iter().map(Expr::Column);
                let results: Vec<Expr> =
                    window_expr.iter().map(|expr| ident(expr.schema_name().to_string())).collect();
                let names: Vec<String> =
                    window_expr.iter().map(|expr| expr.schema_name().to_string()).collect();
                let of_each = window_expr.into_iter().map(|expr| self.window(expr));
                let of_each = of_each.collect::<Result<Vec<_>>>()?;
                let named = of_each.iter().zip(&names).zip(results);
                let named: Vec<Expr> = named
                    .map(|((expr, name), _)| ident(expr.schema_name().to_string()).alias(name))
                    .collect();
                let columns: Vec<Expr> = columns.chain(named).chain(self.own()).collect();
                self.over(input)?.window(of_each)?.project(columns)?.build()
            }
            LogicalPlan::Sort(Sort { expr, input, fetch }) => {
                let plan = self.sorted(expr, Arc::clone(&input))?;
                match fetch {
                    Some(fetch) => {
                        self.cut(plan, &input, Cut::Known { skip: 0, fetch: Some(fetch) })
                    }
                    None => Ok(plan.0.build()?),
                }
            }
            LogicalPlan::Limit(limit) => {
                let cut = self.cut_of(&limit)?;
                match limit.input.as_ref() {
                    LogicalPlan::Sort(Sort { expr, input, .. }) => {
                        let sorted = self.sorted(expr.clone(), Arc::clone(input))?;
                        self.cut(sorted, input, cut)
                    }
                    // Keeps the order of a projection over a sorted plan.
                    LogicalPlan::Projection(Projection { expr, input, .. })
                        if matches!(input.as_ref(), LogicalPlan::Sort(_)) =>
                    {
                        let limit = Limit { input: Arc::clone(input), ..limit.clone() };
                        let below = LogicalPlan::Limit(limit);
                        let exprs = self.all_bound(expr.clone())?;
                        LogicalPlanBuilder::from(self.push(below)?)
                            .project(exprs.into_iter().chain(self.own()))?
                            .build()
                    }
                    input => {
                        let plan = LogicalPlanBuilder::from(self.push(input.clone())?);
                        self.cut((plan, vec![]), input, cut)
                    }
                }
            }
            LogicalPlan::Distinct(Distinct::All(input)) => self.over(input)?.distinct()?.build(),
            LogicalPlan::Distinct(Distinct::On(on)) => self.distinct_on(on),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Values(values) => self.push(rows_of(values)?),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::Subquery(subquery) => self.push(Arc::unwrap_or_clone(subquery.subquery)),
            LogicalPlan::Repartition(repartition) => {
                self.push(Arc::unwrap_or_clone(repartition.input))
            }
            other => not_impl_err!(
                "a correlated subquery refers to outer columns within {}; write it as a join",
                other.display()
            ),
        }
    }

    fn over(&self, input: Arc<LogicalPlan>) -> Result<LogicalPlanBuilder> {
        self.push(Arc::unwrap_or_clone(input)).map(LogicalPlanBuilder::from)
    }

    fn alias(&self, alias: SubqueryAlias) -> Result<LogicalPlan> {
        let inner = alias.input.schema().columns().into_iter();
        let named = inner
            .zip(alias.schema.columns())
            .map(|(inner, outer)| Expr::Column(inner).alias_qualified(outer.relation, outer.name));
        let named: Vec<Expr> = named.chain(self.own()).collect();
        self.over(alias.input)?.project(named)?.build()
    }

    /// Adds the domain to the grouping keys. Without keys, values without rows still get a group.
    fn aggregate(&self, aggregate: Aggregate) -> Result<LogicalPlan> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let (groups, values) = (self.all_bound(group_expr)?, self.all_bound(aggr_expr.clone())?);
        if groups.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return not_impl_err!("GROUPING SETS over outer columns in a correlated subquery");
        }
        let is_single = groups.is_empty();
        let of_each = |domain: &Self| {
            domain.over(input)?.aggregate(groups.into_iter().chain(domain.own()), values)
        };
        if !is_single {
            let columns = schema.columns().into_iter().map(Expr::Column);
            let columns: Vec<Expr> = columns.chain(self.own()).collect();
            return of_each(self)?.project(columns)?.build();
        }
        let grouped = of_each(self)?.build()?;
        let again = self.again()?;
        let own = self.columns.iter().map(|(_, name)| Column::from_name(name));
        let others = again.columns.iter().map(|(_, name)| Column::from_name(name));
        let keys = (others.collect::<Vec<_>>(), own.collect::<Vec<_>>());
        let nulls = NullEquality::NullEqualsNull;
        let mut columns = Vec::new();
        for (at, column) in schema.columns().into_iter().enumerate() {
            let value = Expr::Column(column.clone());
            columns.push(match default_of(&aggr_expr[at], schema.field(at).data_type())? {
                Some(default) => when(value.clone().is_null(), default)
                    .otherwise(value)?
                    .alias_qualified(column.relation, column.name),
                None => value,
            });
        }
        for ((_, own), (_, other)) in self.columns.iter().zip(&again.columns) {
            columns.push(ident(other).alias(own));
        }
        LogicalPlanBuilder::from(again.plan)
            .join_detailed(grouped, JoinType::Left, keys, None, nulls)?
            .project(columns)?
            .build()
    }

    fn window(&self, expr: Expr) -> Result<Expr> {
        match self.bound(expr)?.unalias_nested().data {
            Expr::WindowFunction(mut function) => {
                function.params.partition_by.extend(self.own());
                Ok(Expr::WindowFunction(function))
            }
            other => internal_err!("{other} among the functions of a window"),
        }
    }

    fn sorted(
        &self,
        order: Vec<SortExpr>,
        input: Arc<LogicalPlan>,
    ) -> Result<(LogicalPlanBuilder, Vec<SortExpr>)> {
        let order = order.into_iter().map(|sort| {
            let expr = self.bound(sort.expr)?;
            Ok(SortExpr { expr, ..sort })
        });
        Ok((self.over(input)?, order.collect::<Result<_>>()?))
    }

    /// Applies a LIMIT to the rows of each value.
    fn cut_of(&self, limit: &Limit) -> Result<Cut> {
        if let Ok((skip, fetch)) = fetched(limit) {
            return Ok(Cut::Known { skip, fetch });
        }
        let bound = |count: &Option<Box<Expr>>| {
            count.as_ref().map(|count| self.bound(count.as_ref().clone())).transpose()
        };
        let skip = match bound(&limit.skip)? {
            Some(skip) => when(skip.clone().is_null(), lit(0_i64)).otherwise(skip)?,
            None => lit(0_i64),
        };
        Ok(Cut::Computed { skip, fetch: bound(&limit.fetch)? })
    }

    /// Returns the first rows of each value.
    fn cut(
        &self,
        (plan, order): (LogicalPlanBuilder, Vec<SortExpr>),
        input: &LogicalPlan,
        cut: Cut,
    ) -> Result<LogicalPlan> {
        let number = row_number().partition_by(self.own());
        let number = match order.is_empty() {
            true => number.build()?,
            false => number.order_by(order).build()?,
        };
        let wanted = cut.leaves(ident(number.schema_name().to_string()));
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let columns: Vec<Expr> = columns.chain(self.own()).collect();
        plan.window([number])?.filter(wanted)?.project(columns)?.build()
    }

    fn distinct_on(&self, on: DistinctOn) -> Result<LogicalPlan> {
        let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = on;
        let mut keys = self.own();
        keys.extend(self.all_bound(on_expr)?);
        let mut select = self.all_bound(select_expr)?;
        select.extend(self.own());
        let sort = sort_expr.map(|sort| {
            let own = self.own().into_iter().map(|key| SortExpr::new(key, true, false));
            let bound = sort.into_iter().map(|sort| {
                let expr = self.bound(sort.expr)?;
                Ok(SortExpr { expr, ..sort })
            });
            own.map(Ok).chain(bound).collect::<Result<Vec<_>>>()
        });
        self.over(input)?.distinct_on(keys, select, sort.transpose()?)?.build()
    }

    fn union(&self, union: Union) -> Result<LogicalPlan> {
        let schema = union.schema;
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in union.inputs {
            let own = input.schema().columns().into_iter().zip(schema.columns());
            let named = own.map(|(own, wanted)| {
                Expr::Column(own).alias_qualified(wanted.relation, wanted.name)
            });
            let named: Vec<Expr> = named.chain(self.own()).collect();
            inputs.push(Arc::new(self.over(input)?.project(named)?.build()?));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let named = plan.schema().columns().into_iter().zip(schema.columns());
        let named = named
            .map(|(own, wanted)| Expr::Column(own).alias_qualified(wanted.relation, wanted.name));
        let named: Vec<Expr> = named.chain(self.own()).collect();
        LogicalPlanBuilder::from(plan).project(named)?.build()
    }

    /// Pushes the domain to each side that references outer columns; if both do, their values are joined.
    fn join(&self, join: Join) -> Result<LogicalPlan> {
        let in_condition = join.filter.as_ref().is_some_and(Expr::contains_outer)
            || join.on.iter().any(|(left, right)| left.contains_outer() || right.contains_outer());
        let (mut of_left, mut of_right) =
            (self.is_named_in(&join.left)?, self.is_named_in(&join.right)?);
        match join.join_type {
            JoinType::Inner => of_left |= in_condition && !of_right,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                of_left = true;
            }
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                of_right = true;
            }
            JoinType::Full => (of_left, of_right) = (true, true),
        }
        let columns = join.schema.columns().into_iter().map(Expr::Column);
        let mut columns: Vec<Expr> = columns.collect();
        let again = self.again()?;
        let left = match of_left {
            true => self.push(Arc::unwrap_or_clone(join.left))?,
            false => Arc::unwrap_or_clone(join.left),
        };
        let (right, right_domain) = match (of_left, of_right) {
            (_, false) => (Arc::unwrap_or_clone(join.right), None),
            (false, true) => (self.push(Arc::unwrap_or_clone(join.right))?, None),
            (true, true) => (again.push(Arc::unwrap_or_clone(join.right))?, Some(&again)),
        };
        let mut filter = join.filter.map(|filter| self.bound(filter)).transpose()?;
        let mut on = Vec::new();
        for (left, right) in join.on {
            on.push((self.bound(left)?, self.bound(right)?));
        }
        if let Some(again) = right_domain {
            for (own, other) in self.own().into_iter().zip(again.own()) {
                let equal = datafusion::logical_expr::binary_expr(
                    own.clone(),
                    datafusion::logical_expr::Operator::IsNotDistinctFrom,
                    other.clone(),
                );
                filter = Some(filter.map_or(equal.clone(), |filter| filter.and(equal)));
            }
        }
        let own = match (join.join_type, right_domain) {
            (JoinType::Right | JoinType::RightSemi | JoinType::RightAnti, Some(again)) => {
                self.renamed(again)
            }
            (JoinType::Full, Some(again)) => {
                let pairs = self.columns.iter().zip(&again.columns);
                let either = pairs.map(|((_, own), (_, other))| {
                    let value = when(ident(own).is_null(), ident(other)).otherwise(ident(own))?;
                    Ok(value.alias(own))
                });
                either.collect::<Result<_>>()?
            }
            _ => self.own(),
        };
        let joined = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        columns.extend(own);
        LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns)?.build()
    }

    fn renamed(&self, again: &Self) -> Vec<Expr> {
        let pairs = self.columns.iter().zip(&again.columns);
        pairs.map(|((_, own), (_, other))| ident(other).alias(own)).collect()
    }

    fn unnest(&self, unnest: Unnest) -> Result<LogicalPlan> {
        let columns = unnest.schema.columns().into_iter().map(Expr::Column);
        let columns: Vec<Expr> = columns.chain(self.own()).collect();
        let input = self.push(Arc::unwrap_or_clone(unnest.input))?;
        let plan = unnest_with_options(input, unnest.exec_columns, unnest.options)?;
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    }
}

/// Returns an aggregate's result over no rows, unless it is NULL.
fn default_of(expr: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    match expr.clone().unalias() {
        Expr::AggregateFunction(function) => {
            let default: ScalarValue = function.func.default_value(data_type)?;
            Ok((!default.is_null()).then(|| lit(default)))
        }
        _ => Ok(None),
    }
}

/// Converts VALUES to a union of rows.
pub(super) fn rows_of(values: Values) -> Result<LogicalPlan> {
    let names: Vec<Column> = values.schema.columns();
    let mut plan: Option<LogicalPlanBuilder> = None;
    for row in values.values {
        let named = row.into_iter().zip(&names).zip(values.schema.fields());
        let named = named.map(|((value, column), field)| {
            let value = value.cast_to(field.data_type(), &DFSchema::empty())?;
            Ok(value.alias_qualified(column.relation.clone(), &column.name))
        });
        let named: Vec<Expr> = named.collect::<Result<_>>()?;
        let row = LogicalPlanBuilder::empty(true).project(named)?;
        plan = Some(match plan {
            Some(plan) => plan.union(row.build()?)?,
            None => row,
        });
    }
    match plan {
        Some(plan) => plan.build(),
        None => internal_err!("VALUES without rows"),
    }
}
