//! `<`, `<=`, `>` and `>=` on lists, structs and maps, consistent with ORDER BY.
//!
//! NULL inside a value is the largest element, as in PostgreSQL and DuckDB, and as DataFusion
//! sorts it; but DataFusion compares NULL as the smallest (55.2, `compare_op_for_nested`,
//! apache/datafusion#21226).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, make_comparator};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, exec_err};
use datafusion::logical_expr::expr::{Between, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, not,
};
use datafusion::optimizer::OptimizerConfig;

use atoll_sql_common::logical::map_named;

/// Replaces comparisons of nested values; see the module.
pub(super) fn nested_order(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let inputs = plan.inputs();
    let has_nested = |input: &&LogicalPlan| {
        let fields = input.schema().fields();
        fields.is_empty() || fields.iter().any(|field| field.data_type().is_nested())
    };
    // A row value is compared where it is built.
    let makes = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.name().contains("struct"));
    let makes_nested = || {
        let exprs = plan.expressions();
        exprs.iter().any(|expr| expr.exists(|expr| Ok(makes(expr))).unwrap_or(true))
    };
    if !inputs.iter().any(has_nested) && !makes_nested() {
        return Ok(Transformed::no(plan));
    }
    let schema = merge_schema(&inputs);
    map_named(plan, |expr| expr.transform_up(|expr| replace(expr, &schema)))
}

fn replace(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_ordering(op) && left.get_type(schema)?.is_nested() =>
        {
            Transformed::yes(compared(*left, op, *right))
        }
        Expr::Between(Between { expr, negated, low, high })
            if expr.get_type(schema)?.is_nested() =>
        {
            let from = compared(expr.as_ref().clone(), Operator::GtEq, *low);
            let between = from.and(compared(*expr, Operator::LtEq, *high));
            Transformed::yes(if negated { not(between) } else { between })
        }
        expr => Transformed::no(expr),
    })
}

fn is_ordering(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn compared(left: Expr, op: Operator, right: Expr) -> Expr {
    let function = Arc::new(ScalarUDF::from(NestedComparison::new(op)));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![left, right]))
}

/// A comparison of nested values of one type, as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedComparison {
    op: Operator,
    signature: Signature,
}

impl NestedComparison {
    fn new(op: Operator) -> Self {
        Self { op, signature: Signature::any(2, Volatility::Immutable) }
    }

    fn compare(&self, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
        let options = SortOptions { descending: false, nulls_first: false };
        let compare = make_comparator(left, right, options)?;
        let holds = |row: usize| {
            let order = compare(row, row);
            match self.op {
                Operator::Lt => order.is_lt(),
                Operator::LtEq => order.is_le(),
                Operator::Gt => order.is_gt(),
                _ => order.is_ge(),
            }
        };
        let nulls =
            NullBuffer::union(left.logical_nulls().as_ref(), right.logical_nulls().as_ref());
        Ok(BooleanArray::new(BooleanBuffer::collect_bool(left.len(), holds), nulls))
    }
}

impl ScalarUDFImpl for NestedComparison {
    fn name(&self) -> &str {
        match self.op {
            Operator::Lt => "nested_less",
            Operator::LtEq => "nested_less_or_equal",
            Operator::Gt => "nested_greater",
            _ => "nested_greater_or_equal",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [left, right] = &arrays[..] else {
            return exec_err!("{} takes two arguments", self.name());
        };
        Ok(ColumnarValue::Array(Arc::new(self.compare(left, right)?)))
    }
}
