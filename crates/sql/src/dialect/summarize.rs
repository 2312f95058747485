//! SUMMARIZE and DESCRIBE: a row for each column of a table or query.
//!
//! ```text
//! SUMMARIZE t                column_name, column_type, min, max, approx_unique, avg, std, q25, q50, q75, count, null_percentage
//! DESCRIBE SELECT 1 AS a     column_name, column_type, null, key, default, extra
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::prelude::ident;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::types::type_name;

/// The columns of a summary after the name and the type, with what computes them.
const STATISTICS: [(&str, &str, Of); 10] = [
    ("min", "CAST(min({}) AS VARCHAR)", Of::Ordered),
    ("max", "CAST(max({}) AS VARCHAR)", Of::Ordered),
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

/// Which columns a statistic is of.
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

pub(super) fn summary(
    input: LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let schema = input.schema().clone();
    let mut names = Vec::new();
    let mut types = Vec::new();
    let mut lists: Vec<Vec<Expr>> = vec![Vec::new(); STATISTICS.len()];
    let mut aggregates: Vec<Expr> = Vec::new();
    for (column, field) in schema.columns().into_iter().zip(schema.fields()) {
        names.push(lit(field.name().clone()));
        types.push(lit(type_name(field.data_type())));
        let quoted = column.quoted_flat_name();
        for ((_, text, of), list) in STATISTICS.iter().zip(&mut lists) {
            if !of.has(field.data_type()) {
                list.push(lit(ScalarValue::Null));
                continue;
            }
            let text = text.replace("{}", &quoted);
            let parsed = Parser::new(&GenericDialect {}).try_with_sql(&text)?.parse_expr()?;
            list.push(over(context.sql_to_expr(parsed, &schema)?, &mut aggregates)?);
        }
    }
    let mut projected =
        vec![make_array(names).alias("column_name"), make_array(types).alias("column_type")];
    for ((name, _, _), list) in STATISTICS.iter().zip(lists) {
        projected.push(make_array(list).alias(*name));
    }
    let named = aggregates.into_iter().enumerate();
    let named: Vec<Expr> = named.map(|(at, expr)| expr.alias(aggregate_name(at))).collect();
    let columns = ["column_name", "column_type"].into_iter();
    let columns = columns.chain(STATISTICS.iter().map(|(name, _, _)| *name));
    let columns: Vec<Column> = columns.map(Column::from_name).collect();
    LogicalPlanBuilder::from(input)
        .aggregate(Vec::<Expr>::new(), named)?
        .project(projected)?
        .unnest_columns_with_options(columns, Default::default())?
        .build()
}

fn aggregate_name(at: usize) -> String {
    format!("$aggregate{at}")
}

/// An expression over the results of its aggregates, which are added to the others.
fn over(expr: Expr, aggregates: &mut Vec<Expr>) -> Result<Expr> {
    expr.transform_up(|expr| {
        let Expr::AggregateFunction(_) = &expr else { return Ok(Transformed::no(expr)) };
        let at = match aggregates.iter().position(|known| *known == expr) {
            Some(at) => at,
            None => {
                aggregates.push(expr);
                aggregates.len() - 1
            }
        };
        Ok(Transformed::yes(ident(aggregate_name(at))))
    })
    .data()
}

pub(super) fn description(input: &LogicalPlan) -> Result<LogicalPlan> {
    let null = || lit(ScalarValue::Utf8(None));
    let rows = input.schema().fields().iter().map(|field| {
        let nullable = if field.is_nullable() { "YES" } else { "NO" };
        let (name, of_type) = (lit(field.name().clone()), lit(type_name(field.data_type())));
        vec![name, of_type, lit(nullable), null(), null(), null()]
    });
    let rows: Vec<Vec<Expr>> = rows.collect();
    let names = ["column_name", "column_type", "null", "key", "default", "extra"];
    let plan = LogicalPlanBuilder::values(rows)?;
    let columns = plan.schema().columns().into_iter().zip(names);
    let named: Vec<Expr> = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    plan.project(named)?.build()
}
