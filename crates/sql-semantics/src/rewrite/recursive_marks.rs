//! Recursive queries in which only one term has a marked type that Arrow lacks, such as UUID: the mark is removed.
//! DataFusion (55.2) rejects terms whose columns differ in their metadata.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

/// Gives the terms of recursive queries the same marks.
#[derive(Debug)]
pub struct RecursiveMarks;

impl AnalyzerRule for RecursiveMarks {
    fn name(&self) -> &str {
        "recursive_marks"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let is_recursive = |plan: &LogicalPlan| Ok(matches!(plan, LogicalPlan::RecursiveQuery(_)));
        if !plan.exists(is_recursive)? {
            return Ok(plan);
        }
        let plain = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::RecursiveQuery(query) => alike(query),
            plan => Ok(Transformed::no(plan)),
        })?;
        if !plain.transformed {
            return Ok(plain.data);
        }
        // The nodes above have the same marks from then on.
        let anew = |plan: LogicalPlan| plan.recompute_schema().map(Transformed::yes);
        plain.data.transform_up_with_subqueries(anew).data()
    }
}

fn alike(mut query: RecursiveQuery) -> Result<Transformed<LogicalPlan>> {
    let fields = |term: &LogicalPlan| term.schema().fields().clone();
    let (first, next) = (fields(&query.static_term), fields(&query.recursive_term));
    let pairs = first.iter().zip(next.iter());
    let differ: Vec<bool> =
        pairs.map(|(first, next)| first.metadata() != next.metadata()).collect();
    if !differ.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::RecursiveQuery(query)));
    }
    query.static_term = Arc::new(plain(&query.static_term, &differ)?);
    query.recursive_term = Arc::new(plain(&query.recursive_term, &differ)?);
    Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)))
}

/// Removes the marks of these columns from the term.
fn plain(term: &LogicalPlan, at: &[bool]) -> Result<LogicalPlan> {
    static PLAIN: LazyLock<ScalarUDF> = LazyLock::new(|| ScalarUDF::from(Plain::default()));
    let column = |((qualifier, field), at): ((_, &FieldRef), &bool)| {
        let column = Expr::from((qualifier, field));
        match *at && !field.metadata().is_empty() {
            true => PLAIN.call(vec![column]).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    };
    let columns = term.schema().iter().zip(at).map(column).collect::<Vec<_>>();
    LogicalPlanBuilder::from(term.clone()).project(columns)?.build()
}

/// The value itself, of which only the type is known.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Plain {
    signature: Signature,
}

impl Default for Plain {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Plain {
    fn name(&self) -> &str {
        "plain_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] => Ok(one.clone()),
            other => internal_err!("the value of {} values", other.len()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        match arguments.arg_fields {
            [one] => {
                let (of, nullable) = (one.data_type().clone(), one.is_nullable());
                Ok(Arc::new(Field::new(one.name(), of, nullable)))
            }
            other => internal_err!("the value of {} values", other.len()),
        }
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.pop() {
            Some(value) => Ok(value),
            None => internal_err!("the value of no value"),
        }
    }
}
