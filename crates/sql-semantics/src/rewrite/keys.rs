//! Sort keys that are computed, as columns.
//!
//! Where rows have to come in an order, DataFusion 55.2 looks at how its keys are computed. Of a negation,
//! an absolute value or a comparison it wants bounds, and where it knows none for what is inside, such
//! as a product, the look fails (`update_properties` in physical-expr/equivalence/properties): `ORDER
//! BY -(a * b)` is refused, because the plan "does not satisfy order requirements". Here the keys of
//! sorts, windows and ordered aggregates are computed by a projection below, once, and are columns.
//!
//! NULL inside of a list, struct or map is the largest element there is, wherever NULL itself is put; arrow puts both
//! where the key's option says. So `ORDER BY list DESC NULLS LAST` becomes `ORDER BY list IS NULL, list DESC NULLS
//! FIRST`, and `ASC NULLS FIRST` likewise.

use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, Sort, Window,
};
use datafusion::optimizer::OptimizerConfig;

/// Computes sort keys below; see the module.
pub(super) fn computed_keys(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let keys = |input: &LogicalPlan| KeyColumns::new(config, input);
    match plan {
        LogicalPlan::Sort(sort) => keys(&sort.input).of_sort(sort),
        LogicalPlan::Window(window) => keys(&window.input).of_window(window),
        LogicalPlan::Aggregate(aggregate) => keys(&aggregate.input).of_aggregate(aggregate),
        plan => Ok(Transformed::no(plan)),
    }
}

/// Computed keys and the names of their columns.
struct KeyColumns<'a> {
    names: &'a AliasGenerator,
    schema: DFSchemaRef,
    found: Vec<(Expr, String)>,
    /// Whether a key was there twice.
    dropped: bool,
}

impl<'a> KeyColumns<'a> {
    fn new(config: &'a dyn OptimizerConfig, input: &LogicalPlan) -> Self {
        let names = config.alias_generator();
        Self { names, schema: Arc::clone(input.schema()), found: Vec::new(), dropped: false }
    }

    fn of_sort(mut self, mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
        sort.expr = self.sort_columns(sort.expr);
        if self.found.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Sort(sort)));
        }
        let columns = columns(&sort.input);
        sort.input = self.computed_over(sort.input)?;
        Ok(Transformed::yes(project(columns, Arc::new(LogicalPlan::Sort(sort)))?))
    }

    fn of_window(mut self, mut window: Window) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new_for_projection();
        let by_columns = |function: Expr| {
            let name = names.save(&function);
            name.restore(self.window_by_columns(function))
        };
        window.window_expr = window.window_expr.into_iter().map(by_columns).collect();
        if self.found.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        }
        let columns = window.schema.columns().into_iter().map(Expr::Column).collect();
        let input = self.computed_over(window.input)?;
        let window = Window::try_new(window.window_expr, input)?;
        Ok(Transformed::yes(project(columns, Arc::new(LogicalPlan::Window(window)))?))
    }

    fn of_aggregate(mut self, mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new_for_projection();
        let by_columns = |function: Expr| {
            let name = names.save(&function);
            name.restore(self.aggregate_by_columns(function))
        };
        aggregate.aggr_expr = aggregate.aggr_expr.into_iter().map(by_columns).collect();
        if self.found.is_empty() {
            let changed = self.dropped;
            return Ok(Transformed::new_transformed(LogicalPlan::Aggregate(aggregate), changed));
        }
        aggregate.input = self.computed_over(aggregate.input)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
    }

    fn window_by_columns(&mut self, function: Expr) -> Expr {
        match function {
            Expr::Alias(mut alias) => {
                *alias.expr = self.window_by_columns(*alias.expr);
                Expr::Alias(alias)
            }
            Expr::WindowFunction(mut function) => {
                let params = &mut function.params;
                let parts = std::mem::take(&mut params.partition_by);
                params.partition_by = parts.into_iter().map(|key| self.column(key)).collect();
                params.order_by = self.sort_columns(std::mem::take(&mut params.order_by));
                Expr::WindowFunction(function)
            }
            other => other,
        }
    }

    /// Arguments that are keys too become the same columns: with DISTINCT they have to be equal.
    fn aggregate_by_columns(&mut self, function: Expr) -> Expr {
        match function {
            Expr::Alias(mut alias) => {
                *alias.expr = self.aggregate_by_columns(*alias.expr);
                Expr::Alias(alias)
            }
            Expr::AggregateFunction(mut function) => {
                let params = &mut function.params;
                let keys = std::mem::take(&mut params.order_by);
                params.order_by =
                    match params.distinct || function.func.supports_within_group_clause() {
                        // The key is an argument too, and stays one key.
                        true => keys.into_iter().map(|key| self.sort_column(key)).collect(),
                        false => self.sort_columns(keys),
                    };
                self.drop_repeated(&mut params.order_by);
                for argument in &mut params.args {
                    if let Some(column) = self.known(argument) {
                        *argument = column;
                    }
                }
                Expr::AggregateFunction(function)
            }
            other => other,
        }
    }

    /// What is a key already decides nothing more, and DataFusion counts it once in some places and twice in others.
    fn drop_repeated(&mut self, keys: &mut Vec<SortKey>) {
        let mut at = 1;
        while at < keys.len() {
            if keys[..at].iter().any(|before| before.expr == keys[at].expr) {
                keys.remove(at);
                self.dropped = true;
            } else {
                at += 1;
            }
        }
    }

    fn sort_columns(&mut self, keys: Vec<SortKey>) -> Vec<SortKey> {
        let mut columns = Vec::with_capacity(keys.len());
        for mut key in keys {
            if key.asc == key.nulls_first && self.is_nested(&key.expr) {
                let is_null = key.expr.clone().unalias().is_null().sort(!key.nulls_first, false);
                columns.push(self.sort_column(is_null));
                key.nulls_first = !key.nulls_first;
            }
            columns.push(self.sort_column(key));
        }
        columns
    }

    fn sort_column(&mut self, key: SortKey) -> SortKey {
        SortKey { expr: self.column(key.expr), ..key }
    }

    fn is_nested(&self, key: &Expr) -> bool {
        key.get_type(&self.schema).is_ok_and(|data_type| data_type.is_nested())
    }

    /// What a key is to be replaced by: itself, or the column that holds it.
    fn column(&mut self, key: Expr) -> Expr {
        let key = key.unalias();
        if matches!(key, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Literal(..)) {
            return key;
        }
        if let Some(column) = self.known(&key) {
            return column;
        }
        let name = self.names.next("__key");
        self.found.push((key, name.clone()));
        Expr::Column(Column::from_name(name))
    }

    fn known(&self, key: &Expr) -> Option<Expr> {
        let (_, name) = self.found.iter().find(|(found, _)| found == key)?;
        Some(Expr::Column(Column::from_name(name)))
    }

    /// The input with one more column for each key.
    fn computed_over(self, input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let mut all = columns(&input);
        all.extend(self.found.into_iter().map(|(key, name)| key.alias(name)));
        project(all, input).map(Arc::new)
    }
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

fn project(columns: Vec<Expr>, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    Projection::try_new(columns, input).map(LogicalPlan::Projection)
}
