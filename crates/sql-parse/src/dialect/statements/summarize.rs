//! SUMMARIZE and DESCRIBE: a row for each column of a table or query.
//!
//! ```text
//! SUMMARIZE t                column_name, column_type, min, max, approx_unique, avg, std, q25, q50, q75, count, null_percentage
//! DESCRIBE SELECT 1 AS a     column_name, column_type, null, key, default, extra
//! ```

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::datasource::{TableProvider, source_as_provider};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::prelude::ident;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::dialect::expressions::types::type_name;

/// The columns of a summary after the name and the type, with their expressions.
const STATISTICS: [(&str, &str, Of); 10] = [
    ("min", "CAST(min({}) AS VARCHAR)", Of::Ordered),
    ("max", "CAST(max({}) AS VARCHAR)", Of::Ordered),
    // Some types are counted only as texts.
    ("approx_unique", "CAST(approx_distinct({}) AS BIGINT)", Of::Ordered),
    ("avg", "CAST(avg(CAST({} AS DOUBLE)) AS VARCHAR)", Of::Numbers),
    ("std", "CAST(stddev(CAST({} AS DOUBLE)) AS VARCHAR)", Of::Numbers),
    ("q25", "CAST(approx_percentile_cont({}, 0.25) AS VARCHAR)", Of::Numbers),
    ("q50", "CAST(approx_percentile_cont({}, 0.5) AS VARCHAR)", Of::Numbers),
    ("q75", "CAST(approx_percentile_cont({}, 0.75) AS VARCHAR)", Of::Numbers),
    ("count", "count(*)", Of::All),
    (
        "null_percentage",
        "CAST(CASE WHEN count(*) = 0 THEN 0 ELSE 100.0 * (count(*) - count({})) / count(*) END AS DECIMAL(9, 2))",
        Of::All,
    ),
];

/// The columns that a statistic applies to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    All,
    Ordered,
    Numbers,
}

impl Of {
    fn has(self, data_type: &DataType) -> bool {
        match self {
            Self::All => true,
            Self::Numbers => data_type.is_numeric(),
            Self::Ordered => !data_type.is_nested() && *data_type != DataType::Null,
        }
    }
}

pub(in crate::dialect) fn summary(
    input: LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let schema = input.schema().clone();
    let mut names = Vec::new();
    let mut types = Vec::new();
    let mut lists: Vec<Vec<Expr>> = vec![Vec::new(); STATISTICS.len()];
    let mut aggregates: HashMap<Expr, usize> = HashMap::new();
    for (column, field) in schema.columns().into_iter().zip(schema.fields()) {
        names.push(lit(field.name().clone()));
        types.push(lit(type_name(field.data_type())));
        let quoted = column.quoted_flat_name();
        for ((name, text, of), list) in STATISTICS.iter().zip(&mut lists) {
            if !of.has(field.data_type()) {
                list.push(lit(ScalarValue::Null));
                continue;
            }
            let text = match *name {
                "approx_unique" if !is_counted(field.data_type()) => {
                    text.replace("{}", &format!("CAST({quoted} AS VARCHAR)"))
                }
                _ => text.replace("{}", &quoted),
            };
            let parsed = Parser::new(&GenericDialect {}).try_with_sql(&text)?.parse_expr()?;
            list.push(over(context.sql_to_expr(parsed, &schema)?, &mut aggregates)?);
        }
    }
    let mut projected =
        vec![make_array(names).alias("column_name"), make_array(types).alias("column_type")];
    for ((name, _, _), list) in STATISTICS.iter().zip(lists) {
        projected.push(make_array(list).alias(*name));
    }
    let mut aggregates: Vec<(Expr, usize)> = aggregates.into_iter().collect();
    aggregates.sort_unstable_by_key(|(_, at)| *at);
    let named = aggregates.into_iter().map(|(expr, at)| expr.alias(aggregate_name(at)));
    let named: Vec<Expr> = named.collect();
    let columns = ["column_name", "column_type"].into_iter();
    let columns = columns.chain(STATISTICS.iter().map(|(name, _, _)| *name));
    let columns: Vec<Column> = columns.map(Column::from_name).collect();
    LogicalPlanBuilder::from(input)
        .aggregate(Vec::<Expr>::new(), named)?
        .project(projected)?
        .unnest_columns_with_options(columns, Default::default())?
        .build()
}

/// Whether `approx_distinct` takes values of a type (DataFusion 55.2).
fn is_counted(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_string()
}

fn aggregate_name(at: usize) -> String {
    format!("$aggregate{at}")
}

/// An expression over the results of its aggregates, which are added to the others with their numbers.
fn over(expr: Expr, aggregates: &mut HashMap<Expr, usize>) -> Result<Expr> {
    expr.transform_up(|expr| {
        let Expr::AggregateFunction(_) = &expr else { return Ok(Transformed::no(expr)) };
        let next = aggregates.len();
        let at = *aggregates.entry(expr).or_insert(next);
        Ok(Transformed::yes(ident(aggregate_name(at))))
    })
    .data()
}

/// A column's declaration in its table, as DESCRIBE shows it.
#[derive(Default)]
pub struct ColumnNotes {
    /// `PRI` or `UNI`.
    pub key: Option<&'static str>,
    /// Its DEFAULT.
    pub default: Option<String>,
    /// How values are generated.
    pub extra: Option<String>,
}

/// The declarations of a table's columns; `None` for a source without any.
pub(crate) type DeclaredColumns = fn(&dyn TableProvider) -> Option<Vec<ColumnNotes>>;

/// The declared columns of the table that a plan scans.
fn scanned(plan: &LogicalPlan, declared: DeclaredColumns) -> Option<Vec<ColumnNotes>> {
    match plan {
        LogicalPlan::TableScan(scan) => declared(source_as_provider(&scan.source).ok()?.as_ref()),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            scanned(plan.inputs().first()?, declared)
        }
        _ => None,
    }
}

/// A row for each column; `declared` if the plan returns all columns of a table.
pub(in crate::dialect) fn description(
    input: &LogicalPlan,
    declared: Option<DeclaredColumns>,
) -> Result<LogicalPlan> {
    let fields = input.schema().fields();
    let notes = declared.and_then(|declared| scanned(input, declared)).unwrap_or_default();
    let mut notes = Some(notes).filter(|it| it.len() == fields.len()).into_iter().flatten();
    let text = |text: Option<&str>| lit(ScalarValue::Utf8(text.map(str::to_owned)));
    let rows = fields.iter().map(|field| {
        let ColumnNotes { key, default, extra } = notes.next().unwrap_or_default();
        let nullable = if field.is_nullable() { "YES" } else { "NO" };
        let (name, of_type) = (lit(field.name().clone()), lit(type_name(field.data_type())));
        let notes = [key, default.as_deref(), extra.as_deref()].map(text);
        [name, of_type, lit(nullable)].into_iter().chain(notes).collect()
    });
    let rows: Vec<Vec<Expr>> = rows.collect();
    let names = ["column_name", "column_type", "null", "key", "default", "extra"];
    let plan = LogicalPlanBuilder::values(rows)?;
    let columns = plan.schema().columns().into_iter().zip(names);
    let named: Vec<Expr> = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    plan.project(named)?.build()
}
