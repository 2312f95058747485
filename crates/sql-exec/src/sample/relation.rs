//! Plans the TABLESAMPLE clause.

use std::sync::Arc;

use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::functions::expr_fn::random;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, col};
use datafusion::sql::sqlparser::ast::{
    Expr as Ast, TableFactor, TableSample, TableSampleKind, TableSampleMethod, TableSampleQuantity,
    TableSampleUnit, Value, ValueWithSpan,
};

use super::node::{Sample, SampleUnit};
use atoll_sql_parse::dialect::share;

/// Plans tables and sub-queries in FROM that have a TABLESAMPLE.
#[derive(Debug)]
pub struct SampledRelations;

impl RelationPlanner for SampledRelations {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let sample = match &mut relation {
            TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => {
                sample.take()
            }
            _ => None,
        };
        let Some(sample) = sample else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample;
        let size = SampleSize::from_clause(&sample)?;
        let plan = size.apply(context.plan(relation)?)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// The size that a clause requests.
enum SampleSize {
    Share {
        unit: SampleUnit,
        percent: f64,
        seed: Option<u64>,
    },
    Rows(usize),
    /// Exactly this percentage.
    Exact(f64),
}

impl SampleSize {
    fn from_clause(sample: &TableSample) -> Result<Self> {
        if sample.bucket.is_some() {
            return plan_err!("TABLESAMPLE (BUCKET …) is not supported; give a percentage");
        }
        if sample.offset.is_some() {
            return plan_err!("OFFSET in TABLESAMPLE is not supported");
        }
        let Some(quantity) = &sample.quantity else {
            return plan_err!(
                "TABLESAMPLE needs a size, such as TABLESAMPLE BERNOULLI (5 PERCENT)"
            );
        };
        let seed = sample.seed.as_ref().map(|seed| number::<u64>(&seed.value)).transpose()?;
        if matches!(quantity.unit, Some(TableSampleUnit::Rows)) {
            if seed.is_some() {
                return plan_err!("REPEATABLE needs a percentage, not a number of rows");
            }
            return Ok(Self::Rows(size(quantity)?));
        }
        let percent: f64 = size(quantity)?;
        if !(0.0..=100.0).contains(&percent) {
            return plan_err!("invalid sample size of {percent} percent; expected 0 to 100");
        }
        let unit = match sample.name {
            Some(TableSampleMethod::System | TableSampleMethod::Block) => SampleUnit::Batch,
            Some(TableSampleMethod::Bernoulli) | None => SampleUnit::Row,
            Some(TableSampleMethod::Row) if seed.is_some() => {
                return plan_err!("REPEATABLE needs BERNOULLI or SYSTEM");
            }
            Some(TableSampleMethod::Row) => return Ok(Self::Exact(percent)),
        };
        Ok(Self::Share { unit, percent, seed })
    }

    fn apply(self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            Self::Share { unit, percent, seed } => {
                let node = Arc::new(Sample::new(input, unit, percent, seed));
                Ok(LogicalPlan::Extension(Extension { node }))
            }
            Self::Rows(rows) => by_chance(input, |drawn| {
                LogicalPlanBuilder::from(drawn).limit(0, Some(rows))?.build()
            }),
            Self::Exact(percent) => by_chance(input, |drawn| share(drawn, percent, 0.0)),
        }
    }
}

/// The first rows in random order, so that all sets of rows are equally likely.
fn by_chance(
    input: LogicalPlan,
    first: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    const CHANCE: &str = "__chance";
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    // A separate column, so that no operator draws again.
    let drawn = columns.iter().cloned().chain([random().alias(CHANCE)]);
    let ordered =
        LogicalPlanBuilder::from(input).project(drawn)?.sort([col(CHANCE).sort(true, true)])?;
    LogicalPlanBuilder::from(first(ordered.build()?)?).project(columns)?.build()
}

fn size<T: std::str::FromStr>(quantity: &TableSampleQuantity) -> Result<T> {
    match &quantity.value {
        Ast::Value(value) => number(value),
        other => plan_err!("invalid sample size {other}; expected a number"),
    }
}

fn number<T: std::str::FromStr>(value: &ValueWithSpan) -> Result<T> {
    let text = match &value.value {
        Value::Number(text, _) => text.as_str(),
        _ => "",
    };
    text.parse().map_err(|_| {
        plan_datafusion_err!("invalid size or seed of a sample {value}; expected a number")
    })
}
