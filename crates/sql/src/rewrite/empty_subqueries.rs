//! Scalar subqueries that may have no row.
//!
//! They are NULL then, whatever their column is declared as. DataFusion 55.2 takes the column's word for it
//! (`Expr::nullable`): `(SELECT id FROM t WHERE …) IS NULL` is false before the subquery has run, and a result in
//! which it is NULL is refused.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Values, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

/// Name of the function that returns its argument and may be NULL, as plans show it. It is not registered: SQL cannot
/// call it.
const NAME: &str = "nullable";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Nullable::new())));

/// Declares scalar subqueries nullable that may have no row, and what hangs on them where the coercion of types, before
/// which it stands, does not declare it anew; see the module.
#[derive(Debug, Default)]
pub(crate) struct EmptySubqueries;

impl AnalyzerRule for EmptySubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            let marked = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(expr.transform_down(marked)?.update_data(|expr| name.restore(expr)))
            })?;
            match marked {
                Transformed { data: LogicalPlan::Values(values), transformed: true, .. } => {
                    Ok(Transformed::yes(LogicalPlan::Values(declared(values)?)))
                }
                other => Ok(other),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "empty_subqueries"
    }
}

/// The expression with its subqueries under the function, outside of which nothing is made of their columns: what an
/// optimizer finds inside may be a constant. Columns of plans around are nullable as far as is known here.
fn marked(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ref call) if call.func.name() == NAME => {
            Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump))
        }
        Expr::ScalarSubquery(ref subquery) if !has_a_row(&subquery.subquery) => {
            let call = ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![expr]);
            Ok(Transformed::new(Expr::ScalarFunction(call), true, TreeNodeRecursion::Jump))
        }
        Expr::OuterReferenceColumn(field, column) if !field.is_nullable() => {
            let field = Arc::new(Field::clone(&field).with_nullable(true));
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The rows with columns that may be NULL where a value of theirs may: the coercion of types leaves them as they are.
fn declared(values: Values) -> Result<Values> {
    let none = DFSchema::empty();
    let may_be_null = |at: usize| {
        let mut column = values.values.iter().filter_map(|row| row.get(at));
        column.any(|value| value.nullable(&none).unwrap_or(true))
    };
    let fields = values.schema.iter().enumerate().map(|(at, (table, field))| {
        let is_nullable = field.is_nullable() || may_be_null(at);
        (table.cloned(), Arc::new(Field::clone(field).with_nullable(is_nullable)))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), values.schema.metadata().clone())?;
    Ok(Values { schema: Arc::new(schema), values: values.values })
}

/// Whether a plan has a row whatever the tables hold.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Values(values) => !values.values.is_empty(),
        LogicalPlan::Projection(projection) => has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_a_row(&alias.input),
        LogicalPlan::Window(window) => has_a_row(&window.input),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable {
    signature: Signature,
}

impl Nullable {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Nullable {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field is returned, not only its type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let [argument] = take_function_args(NAME, arguments.arg_fields)?;
        Ok(Arc::new(Field::clone(argument).with_nullable(true)))
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        let [argument] = take_function_args(NAME, input)?;
        Ok((*argument).clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = take_function_args(NAME, arguments.args)?;
        Ok(argument)
    }
}
