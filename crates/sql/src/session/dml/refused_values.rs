//! Values whose types columns do not accept: `INSERT INTO t(flag) VALUES (1)`.
//!
//! DataFusion casts whatever Arrow can cast, so that 1 would be a date. As in PostgreSQL, a literal of a type without
//! an assignment cast to that of the column is refused; text literals have no type yet, and a cast is explicit. The
//! same holds for the columns of a query: `INSERT INTO t(flag) SELECT number …`.

use std::fmt::Display;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{
    DmlStatement, Expr as PlannedExpr, LogicalPlan, Projection, WriteOp,
};
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};

use atoll_functions::sql_name;
use atoll_store::table::TableDefinition;

use atoll_sql_common::error::stated_err;

/// Refuses a literal that a column does not accept.
///
/// # Errors
/// For such literals.
pub(in crate::session) fn check_literal(
    value: &Expr,
    column: usize,
    definition: &TableDefinition,
) -> Result<()> {
    let field = definition.columns.field(column);
    let Some(given) = literal_type(value) else { return Ok(()) };
    let of_column = field.data_type();
    if is_taken(&given, of_column) {
        return Ok(());
    }
    mismatch(field, &given, value)
}

fn mismatch(column: &Field, given: &DataType, value: &dyn Display) -> Result<()> {
    stated_err!(
        DATATYPE_MISMATCH,
        "column '{name}' is of type {wanted} but the value is of type {given}; a cast says what is meant: \
         CAST({value} AS {wanted})",
        name = column.name(),
        wanted = sql_name(column.data_type()),
        given = sql_name(given)
    )
}

/// Refuses a computed number or truth value that a column does not accept.
///
/// # Errors
/// For such values.
pub(in crate::session) fn check_value(
    given: &DataType,
    column: &Field,
    value: &dyn Display,
) -> Result<()> {
    let is_known = given.is_numeric() || *given == DataType::Boolean;
    match !is_known || is_taken(given, column.data_type()) {
        true => Ok(()),
        false => mismatch(column, given, value),
    }
}

/// Refuses values that an INSERT, also within EXPLAIN and PREPARE, selects for columns that do not accept them.
///
/// # Errors
/// As [`check_value`].
pub(in crate::session) fn check_inserted(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        let LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(_), input, target, .. }) = node
        else {
            return Ok(TreeNodeRecursion::Continue);
        };
        if let LogicalPlan::Projection(Projection { expr, input, .. }) = input.as_ref() {
            for (expr, column) in expr.iter().zip(target.schema().fields()) {
                if let PlannedExpr::Cast(Cast { expr, .. }) = expr.clone().unalias()
                    && let PlannedExpr::Column(given) = expr.as_ref()
                {
                    let given_type = input.schema().data_type(given)?;
                    check_value(given_type, column, &given.name)?;
                }
            }
        }
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(())
}

/// The type of a literal number or truth value.
fn literal_type(value: &Expr) -> Option<DataType> {
    match value {
        Expr::Nested(inner) => literal_type(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            literal_type(expr).filter(|of| *of != DataType::Boolean)
        }
        Expr::Value(value) => match &value.value {
            Value::Boolean(_) => Some(DataType::Boolean),
            Value::Number(digits, _) if digits.contains(['.', 'e', 'E']) => Some(DataType::Float64),
            Value::Number(..) => Some(DataType::Int64),
            _ => None,
        },
        _ => None,
    }
}

fn is_taken(given: &DataType, column: &DataType) -> bool {
    match column {
        DataType::Boolean => *given == DataType::Boolean,
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time32(_)
        | DataType::Time64(_) => false,
        number if number.is_numeric() => *given != DataType::Boolean,
        _ => true,
    }
}
