//! The origins of result columns: which of them are plain columns of tables, as drivers request it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, TableScan};

use crate::pg_catalog::table_oid;
use crate::table::PlacedTable;

/// A column of a table, by the numbers that `pg_attribute` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// `attrelid`.
    pub table: u32,
    /// `attnum`, from 1.
    pub column: i16,
}

/// The origin of each result column; computed ones have none.
pub type ColumnOrigins = Arc<[Option<ColumnOrigin>]>;

/// The origins of a plan's columns. A view's columns have the origins of its query.
pub(in crate::session) fn origins_of(plan: &LogicalPlan) -> ColumnOrigins {
    traced(plan).into()
}

fn traced(plan: &LogicalPlan) -> Vec<Option<ColumnOrigin>> {
    let count = plan.schema().fields().len();
    let mut origins = match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan),
        LogicalPlan::SubqueryAlias(alias) => traced(&alias.input),
        LogicalPlan::Filter(filter) => traced(&filter.input),
        LogicalPlan::Sort(sort) => traced(&sort.input),
        LogicalPlan::Limit(limit) => traced(&limit.input),
        LogicalPlan::Window(window) => traced(&window.input),
        LogicalPlan::Distinct(Distinct::All(input)) => traced(input),
        LogicalPlan::Distinct(Distinct::On(on)) => of_exprs(&on.select_expr, &on.input),
        LogicalPlan::Projection(projection) => of_exprs(&projection.expr, &projection.input),
        // Grouping sets replace some keys with NULL.
        LogicalPlan::Aggregate(aggregate)
            if !matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)]) =>
        {
            of_exprs(&aggregate.group_expr, &aggregate.input)
        }
        LogicalPlan::Join(join) => of_join(join),
        _ => Vec::new(),
    };
    origins.resize(count, None);
    origins
}

fn of_scan(scan: &TableScan) -> Vec<Option<ColumnOrigin>> {
    let Ok(provider) = source_as_provider(&scan.source) else { return Vec::new() };
    let Some(table) = provider.downcast_ref::<PlacedTable>() else { return Vec::new() };
    let (oid, all) = (table_oid(table.id()), table.columns().fields().len());
    let origin = |at: usize| {
        let column = i16::try_from(at + 1).ok().filter(|_| at < all)?;
        Some(ColumnOrigin { table: oid, column })
    };
    match &scan.projection {
        Some(columns) => columns.iter().map(|at| origin(*at)).collect(),
        None => (0..all).map(origin).collect(),
    }
}

fn of_join(join: &Join) -> Vec<Option<ColumnOrigin>> {
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => traced(&join.left),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => traced(&join.right),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            [traced(&join.left), traced(&join.right)].concat()
        }
    }
}

/// The origins of expressions over a plan, for those that are plain columns.
fn of_exprs(exprs: &[Expr], input: &LogicalPlan) -> Vec<Option<ColumnOrigin>> {
    let below = traced(input);
    if below.iter().all(Option::is_none) {
        return Vec::new();
    }
    let places = ColumnPlaces::from_schema(input.schema());
    let origin = |expr: &Expr| places.place(column_of(expr)?).and_then(|at| below[at]);
    exprs.iter().map(origin).collect()
}

fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => column_of(&alias.expr),
        _ => None,
    }
}

/// The columns of a schema by name: there may be thousands.
struct ColumnPlaces<'s>(HashMap<(Option<&'s TableReference>, &'s str), usize>);

impl<'s> ColumnPlaces<'s> {
    fn from_schema(schema: &'s DFSchema) -> Self {
        let columns = schema.iter().enumerate();
        Self(columns.map(|(at, (table, field))| ((table, field.name().as_str()), at)).collect())
    }

    fn place(&self, column: &Column) -> Option<usize> {
        self.0.get(&(column.relation.as_ref(), column.name.as_str())).copied()
    }
}
