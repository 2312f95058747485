//! Operators that compare a value with list elements, and lists with one another.
//!
//! ```text
//! x = ANY (l), x <> ALL (l)    NULL where no element decides and one is NULL
//! a && b, a @> b, a <@ b       NULL is in no list
//! ```
//!
//! DataFusion treats a NULL element as not equal in the first two, and as equal to other NULLs in the
//! last (`plan_any_op`, `array_has_all`, 55.2; apache/datafusion#19288).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_nested::expr_fn::flatten;
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, in_list, lit,
};
use datafusion::physical_expr_common::datum::apply_cmp;

use crate::common_type::common;
use crate::failure::FunctionFailure;
use crate::scalar::UUID_MARK;
use crate::sql_name;
use crate::temporal::{measured, measured_type};

/// Creates the call that compares a value with list elements, by an operator in the dialect's form: `= ANY`.
pub(crate) fn quantified(
    op: &str,
    value: &Expr,
    list: &Expr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let Some(function) = Quantified::named(op) else { return Ok(None) };
    let (mut value, mut list) = (value.clone(), list.clone());
    // The other side determines the type of a parameter.
    match (&mut value, &mut list) {
        (known, Expr::Placeholder(Placeholder { field: unknown @ None, .. })) => {
            let (_, item) = known.to_field(schema)?;
            let list = Field::new("", DataType::new_list(item.data_type().clone(), true), true);
            // A list compared with UUIDs is marked as a list of UUIDs.
            let mark = item.metadata().get_key_value(UUID_MARK.0);
            let mark = mark.filter(|(_, mark)| *mark == UUID_MARK.1);
            let metadata = mark.map(|(key, mark)| (key.clone(), mark.clone()));
            *unknown = Some(Arc::new(list.with_metadata(metadata.into_iter().collect())));
        }
        (Expr::Placeholder(Placeholder { field: unknown @ None, .. }), known) => {
            if let DataType::List(item) = known.get_type(schema)? {
                *unknown = Some(Arc::new(Field::new("", item.data_type().clone(), true)));
            }
        }
        _ => {}
    }
    let is_unknown = matches!(list, Expr::Placeholder(Placeholder { field: None, .. }));
    match list.get_type(schema) {
        Ok(DataType::Null) => {}
        Ok(of) if !is_unknown => {
            item_of(&of)?;
        }
        _ => {}
    }
    let [value, list] = match value.get_type(schema) {
        Ok(DataType::List(_)) => [value, list],
        _ => [value, of_one_dimension(list, schema)],
    };
    let call =
        ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![value, list]);
    Ok(Some(Expr::ScalarFunction(call)))
}

/// Creates the call for an operator between lists; None if one of the operands is not a list.
pub(crate) fn of_lists(
    relation: Relation,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
) -> Option<Expr> {
    let is_list = |side: &Expr| {
        side.get_type(schema)
            .is_ok_and(|of| matches!(of, DataType::List(_) | DataType::LargeList(_)))
    };
    if !is_list(left) && !is_list(right) {
        return None;
    }
    let function = Related { relation, signature: Signature::user_defined(Volatility::Immutable) };
    let args = match dimensions(left, schema) == dimensions(right, schema) {
        true => vec![left.clone(), right.clone()],
        false => [left, right].map(|side| of_one_dimension(side.clone(), schema)).into(),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// The number of dimensions of arrays.
fn dimensions(array: &Expr, schema: &DFSchema) -> usize {
    fn of_type(of: &DataType) -> usize {
        match of {
            DataType::List(item) | DataType::LargeList(item) => 1 + of_type(item.data_type()),
            _ => 0,
        }
    }
    array.get_type(schema).map_or(0, |of| of_type(&of))
}

/// An array of the values in one of several dimensions: PostgreSQL compares these.
fn of_one_dimension(array: Expr, schema: &DFSchema) -> Expr {
    match dimensions(&array, schema) {
        0 | 1 => array,
        _ => flatten(array),
    }
}

/// `value op ANY (list)` and `value op ALL (list)`
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    name: &'static str,
    op: Operator,
    /// Whether it is ALL instead of ANY.
    all: bool,
    signature: Signature,
}

impl Quantified {
    fn named(op: &str) -> Option<Self> {
        let (name, op, all) = match op {
            "= ANY" => ("equals_any", Operator::Eq, false),
            "<> ANY" => ("differs_from_any", Operator::NotEq, false),
            "< ANY" => ("less_than_any", Operator::Lt, false),
            "<= ANY" => ("at_most_any", Operator::LtEq, false),
            "> ANY" => ("greater_than_any", Operator::Gt, false),
            ">= ANY" => ("at_least_any", Operator::GtEq, false),
            "LIKE ANY" => ("like_any", Operator::LikeMatch, false),
            "NOT LIKE ANY" => ("not_like_any", Operator::NotLikeMatch, false),
            "ILIKE ANY" => ("ilike_any", Operator::ILikeMatch, false),
            "NOT ILIKE ANY" => ("not_ilike_any", Operator::NotILikeMatch, false),
            "LIKE ALL" => ("like_all", Operator::LikeMatch, true),
            "NOT LIKE ALL" => ("not_like_all", Operator::NotLikeMatch, true),
            "ILIKE ALL" => ("ilike_all", Operator::ILikeMatch, true),
            "NOT ILIKE ALL" => ("not_ilike_all", Operator::NotILikeMatch, true),
            "= ALL" => ("equals_all", Operator::Eq, true),
            "<> ALL" => ("differs_from_all", Operator::NotEq, true),
            "< ALL" => ("less_than_all", Operator::Lt, true),
            "<= ALL" => ("at_most_all", Operator::LtEq, true),
            "> ALL" => ("greater_than_all", Operator::Gt, true),
            ">= ALL" => ("at_least_all", Operator::GtEq, true),
            _ => return None,
        };
        Some(Self { name, op, all, signature: Signature::user_defined(Volatility::Immutable) })
    }

    /// Combines the results of the comparisons with all elements, each true, false or NULL.
    fn decided(&self, each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
        let mut unknown = false;
        for one in each {
            match one {
                Some(holds) if holds != self.all => return Some(holds),
                Some(_) => {}
                None => unknown = true,
            }
        }
        (!unknown).then_some(self.all)
    }
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [value, list] = take_function_args(self.name, given)?;
        let item = match list {
            DataType::Null => value,
            _ => item_of(list)?,
        };
        let common = common(value, item)?;
        Ok(vec![common.clone(), DataType::new_list(common, true)])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    /// A constant list becomes an IN list, which scans use to find rows.
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_in = (self.op, self.all) == (Operator::Eq, false);
        if !is_in && (self.op, self.all) != (Operator::NotEq, true) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let [value, list] = take_function_args(self.name, args)?;
        // At this stage IN would compare intervals part by part.
        if measured_type(&context.get_data_type(&value)?).is_some() {
            return Ok(ExprSimplifyResult::Original(vec![value, list]));
        }
        let items = match &list {
            Expr::Literal(ScalarValue::List(of_one_row), _) if of_one_row.is_valid(0) => {
                let items = of_one_row.value(0);
                let items = (0..items.len()).map(|at| ScalarValue::try_from_array(&items, at));
                Some(items.map(|item| item.map(lit)).collect::<Result<Vec<_>>>()?)
            }
            Expr::ScalarFunction(call) if call.func == make_array_udf() => Some(call.args.clone()),
            _ => None,
        };
        Ok(match items {
            Some(items) if items.is_empty() => ExprSimplifyResult::Simplified(lit(!is_in)),
            Some(items) => ExprSimplifyResult::Simplified(in_list(value, items, !is_in)),
            None => ExprSimplifyResult::Original(vec![value, list]),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [values, lists] = take_function_args(self.name, args.args)?;
        let (values, lists) = (values.to_array(rows)?, lists.to_array(rows)?);
        let lists = lists.as_list::<i32>();
        let of_rows = (0..rows).flat_map(|row| range(lists, row).map(move |_| row as u32));
        let beside = take(&values, &UInt32Array::from_iter_values(of_rows), None)?;
        let first = lists.value_offsets().first().map_or(0, |first| *first as usize);
        let items = lists.values().slice(first, beside.len());
        let (beside, items) = (measured(&beside)?, measured(&items)?);
        let (beside, items) = (ColumnarValue::Array(beside), ColumnarValue::Array(items));
        let compared = apply_cmp(self.op, &beside, &items)?.into_array(rows)?;
        let compared = compared.as_boolean();
        let answers = (0..rows).map(|row| {
            let each = range(lists, row).map(|at| at - first);
            let each = each.map(|at| compared.is_valid(at).then(|| compared.value(at)));
            lists.is_valid(row).then(|| self.decided(each)).flatten()
        });
        Ok(ColumnarValue::Array(Arc::new(answers.collect::<BooleanArray>())))
    }
}

/// A relation between lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    /// `a && b`: they share an element.
    Overlap,
    /// `a @> b`: the first contains all elements of the second.
    Contain,
}

/// An operator between lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Related {
    relation: Relation,
    signature: Signature,
}

impl ScalarUDFImpl for Related {
    fn name(&self) -> &str {
        match self.relation {
            Relation::Overlap => "lists_overlap",
            Relation::Contain => "list_contains_list",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = take_function_args(self.name(), given)?;
        let item = match (left, right) {
            (DataType::Null, list) | (list, DataType::Null) => item_of(list)?.clone(),
            (left, right) => common(item_of(left)?, item_of(right)?)?,
        };
        Ok(vec![DataType::new_list(item, true); 2])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [left, right] = take_function_args(self.name(), args.args)?;
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let (left, right) = (left.as_list::<i32>(), right.as_list::<i32>());
        let item = left.value_type();
        let item = measured_type(&item).unwrap_or(item);
        let converter = RowConverter::new(vec![SortField::new(item)])?;
        let keys = |values: &ArrayRef| converter.convert_columns(&[measured(values)?]);
        let (own, others) = (keys(left.values())?, keys(right.values())?);
        let answers = (0..rows).map(|row| {
            if left.is_null(row) || right.is_null(row) {
                return None;
            }
            let there: HashSet<_> = range(left, row)
                .filter(|at| left.values().is_valid(*at))
                .map(|at| own.row(at))
                .collect();
            let mut wanted = range(right, row);
            let is_there =
                |at: usize| right.values().is_valid(at) && there.contains(&others.row(at));
            Some(match self.relation {
                Relation::Overlap => wanted.any(is_there),
                Relation::Contain => wanted.all(is_there),
            })
        });
        Ok(ColumnarValue::Array(Arc::new(answers.collect::<BooleanArray>())))
    }
}

fn range(lists: &ListArray, row: usize) -> Range<usize> {
    lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize
}

fn item_of(list: &DataType) -> Result<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Ok(item.data_type())
        }
        other => {
            let message = format!("expected a list, found {}", sql_name(other));
            Err(FunctionFailure::error("42809", message))
        }
    }
}
