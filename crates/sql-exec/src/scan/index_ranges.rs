//! The ranges of an ordered index that hold the rows which conjuncts select.

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::table::{Index, KeyFunction, OrderWords, TableVersion, order_words};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};

use super::condition::{ColumnCondition, ConditionKind};
use super::row_condition::key_function;

/// Ranges of one index, at most: an IN list with more values is scanned for.
const RANGES_MAX: usize = 1000;

/// Above all values and below NULL, in the order of an index.
const LAST_VALUE: OrderWords = [u64::MAX - 1, u64::MAX];

/// Words from the first to the second.
type WordRange = (OrderWords, OrderWords);

/// The rows that the best index finds for conjuncts, with some others, and its name; `None` if none finds few rows.
pub(super) fn indexed_rows(
    version: &TableVersion,
    conjuncts: &[Arc<dyn PhysicalExpr>],
) -> Result<Option<(Arc<str>, Vec<RowId>)>> {
    let mut best: Option<(Arc<str>, Vec<RowId>)> = None;
    let mut max = candidates_max(version.rows());
    for (at, index) in version.definition().indexes.iter().enumerate() {
        let ranges = index_ranges(version, index, conjuncts)?;
        let Some(ranges) = ranges else { continue };
        let found = ranges.iter().flat_map(|(low, high)| version.rows_between(at, *low, *high));
        let mut rows: Vec<RowId> = found.take(max + 1).collect();
        if rows.len() <= max {
            // Values with the same words are in several ranges.
            rows.sort_unstable();
            rows.dedup();
            max = rows.len();
            best = Some((Arc::clone(&index.name), rows));
        }
    }
    Ok(best)
}

/// The most rows that are read one by one: each takes as long as some thousand rows of a scan.
pub(super) fn candidates_max(rows: usize) -> usize {
    64 + rows / 4096
}

/// The ranges that hold all selected rows; `None` if conjuncts do not limit the first column.
fn index_ranges(
    version: &TableVersion,
    index: &Index,
    conjuncts: &[Arc<dyn PhysicalExpr>],
) -> Result<Option<Vec<WordRange>>> {
    let ranges = |at: usize| {
        let column = index.keys[at].column;
        let data_type = version.definition().columns.field(column).data_type();
        let Some(function) = index.function(at) else {
            return column_ranges(column, data_type, conjuncts);
        };
        // Behind the columns, so that conditions on the column itself are others.
        let place = version.definition().columns.fields().len();
        let of_function = conjuncts.iter();
        let of_function = of_function.map(|it| with_column(version, it, (column, function), place));
        column_ranges(place, data_type, &of_function.collect::<Result<Vec<_>>>()?)
    };
    let Some(first) = ranges(0)? else { return Ok(None) };
    if index.keys.len() == 1 {
        return Ok(Some(first));
    }
    let second = ranges(1)?.filter(|second| first.len() * second.len() <= RANGES_MAX);
    let both = first.iter().flat_map(|(low, high)| match &second {
        Some(second) if low[0] == high[0] => {
            second.iter().map(|range| ([low[0], range.0[0]], [low[0], range.1[0]])).collect()
        }
        _ => vec![([low[0], 0], [high[0], u64::MAX])],
    });
    Ok(Some(both.collect()))
}

/// A conjunct with a column of this number in place of a function of a column.
fn with_column(
    version: &TableVersion,
    conjunct: &Arc<dyn PhysicalExpr>,
    (column, function): (usize, &KeyFunction),
    place: usize,
) -> Result<Arc<dyn PhysicalExpr>> {
    let changed = Arc::clone(conjunct).transform_down(|expr| {
        Ok(match key_function(version.codec(), &expr)? {
            Some((own, of)) if own == column && of == *function => {
                let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("", place));
                Transformed::new(column, true, TreeNodeRecursion::Jump)
            }
            _ => Transformed::no(expr),
        })
    })?;
    Ok(changed.data)
}

/// The ranges of one column; `None` if conjuncts do not limit it.
fn column_ranges(
    column: usize,
    data_type: &DataType,
    conjuncts: &[Arc<dyn PhysicalExpr>],
) -> Result<Option<Vec<WordRange>>> {
    let limits = conjuncts.iter().filter_map(|conjunct| limit(conjunct, column, data_type));
    let mut interval: Option<WordRange> = None;
    for limit in limits {
        let (low, high) = match limit {
            Limit::Points(values) if values.len() > RANGES_MAX => continue,
            Limit::Points(values) => {
                let points = values.iter().map(|value| words(value).map(|words| (words, words)));
                return points.collect::<Result<_>>().map(Some);
            }
            Limit::From(value) => (words(&value)?, LAST_VALUE),
            Limit::To(value) => ([0; 2], words(&value)?),
        };
        let (lowest, highest) = interval.unwrap_or(([0; 2], LAST_VALUE));
        interval = Some((lowest.max(low), highest.min(high)));
    }
    Ok(interval.map(|interval| vec![interval]))
}

/// What a conjunct says of a column.
enum Limit {
    /// It has one of these values.
    Points(Vec<ScalarValue>),
    From(ScalarValue),
    To(ScalarValue),
}

fn limit(conjunct: &Arc<dyn PhysicalExpr>, column: usize, data_type: &DataType) -> Option<Limit> {
    if let Some(either) = conjunct.downcast_ref::<BinaryExpr>()
        && *either.op() == Operator::Or
    {
        let sides = [either.left(), either.right()].map(|side| limit(side, column, data_type));
        return match sides {
            [Some(Limit::Points(mut values)), Some(Limit::Points(others))] => {
                values.extend(others);
                Some(Limit::Points(values))
            }
            _ => None,
        };
    }
    let condition = ColumnCondition::from_physical(conjunct).filter(|it| it.column == column)?;
    let is_same = |value: &ScalarValue| {
        let own = value.data_type();
        own == *data_type || (own.is_string() && data_type.is_string())
    };
    let points = |values: &[&ScalarValue]| {
        let points = values.iter().filter(|value| !value.is_null());
        let points = points.map(|value| (*value).clone()).collect();
        values.iter().all(|value| is_same(value)).then_some(Limit::Points(points))
    };
    match condition.kind {
        ConditionKind::Compare(Operator::Eq, value) => points(&[value]),
        // Nothing compares with NULL.
        ConditionKind::Compare(op, value) if is_same(value) && !value.is_null() => match op {
            Operator::Gt | Operator::GtEq => Some(Limit::From(value.clone())),
            Operator::Lt | Operator::LtEq => Some(Limit::To(value.clone())),
            _ => None,
        },
        ConditionKind::In { values, negated: false } => points(&values),
        ConditionKind::Null(true) => {
            Some(Limit::Points(vec![ScalarValue::try_from(data_type).ok()?]))
        }
        _ => None,
    }
}

fn words(value: &ScalarValue) -> Result<OrderWords> {
    Ok(order_words(&[value.to_array()?])?.first().copied().unwrap_or_default())
}
