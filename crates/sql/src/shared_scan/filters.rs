//! Filters of a statement as tests of columns, whose values are known at run time.

use std::ops::Bound;
use std::sync::Arc;

use atoll_store::clock_scan::{ColumnTest, NumberTest, TextTest, float_key, is_tested};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;

use atoll_sql_exec::scan::{ColumnCondition, ConditionKind, whole_number};

/// Maximum number of members of an IN list: longer ones are left to the ordinary scan.
const LIST_MAX: usize = 1024;

/// A filter on one column.
#[derive(Debug)]
pub(super) struct ColumnFilter {
    data_type: DataType,
    condition: ColumnCondition<Arc<dyn PhysicalExpr>>,
}

impl ColumnFilter {
    /// The column of a filter by which an ordered index finds rows: an equality, a list or a range.
    pub(super) fn ranged(&self) -> Option<usize> {
        let is_ranged = match &self.condition.kind {
            ConditionKind::Compare(op, _) => *op != Operator::NotEq,
            ConditionKind::In { negated, .. } => !negated,
            ConditionKind::Like(_) | ConditionKind::Null(_) => false,
        };
        is_ranged.then_some(self.condition.column)
    }

    /// The filter; `None` if it is not on exactly one column. `value` compiles an expression that reads no column.
    pub(super) fn new(
        filter: &Expr,
        schema: &Schema,
        value: &impl Fn(&Expr) -> Result<Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<Self>> {
        let Some(condition) = ColumnCondition::from_logical(filter, schema) else {
            return Ok(None);
        };
        let data_type = schema.field(condition.column).data_type();
        let fits = match &condition.kind {
            ConditionKind::Null(_) => true,
            ConditionKind::Like(_) => *data_type == DataType::Utf8View,
            ConditionKind::Compare(..) => is_tested(data_type),
            ConditionKind::In { values, .. } => is_tested(data_type) && values.len() <= LIST_MAX,
        };
        if !fits {
            return Ok(None);
        }
        let condition = condition.try_map(|expr| value(expr))?;
        Ok(Some(Self { data_type: data_type.clone(), condition }))
    }

    /// The column and its test for these values of the parameters, one row; `None` if the values have no test.
    pub(super) fn bind(&self, parameters: &RecordBatch) -> Result<Option<(usize, ColumnTest)>> {
        let bound = self.condition.try_map(|expr| {
            ScalarValue::try_from_array(&expr.evaluate(parameters)?.into_array(1)?, 0)
        })?;
        let test = match &bound.kind {
            ConditionKind::Null(wanted) => Some(ColumnTest::Null(*wanted)),
            ConditionKind::Compare(op, value) => self.compared(*op, value),
            ConditionKind::In { values, negated } => self.listed(values, *negated),
            ConditionKind::Like(pattern) => like(pattern),
        };
        Ok(test.map(|test| (bound.column, test)))
    }

    fn compared(&self, op: Operator, value: &ScalarValue) -> Option<ColumnTest> {
        if value.is_null() {
            return Some(self.never());
        }
        if self.is_text() {
            let text: Box<str> = value.try_as_str()??.into();
            return Some(ColumnTest::Text(match op {
                Operator::Eq => TextTest::In([text].into()),
                Operator::NotEq => TextTest::NotIn([text].into()),
                Operator::Lt => TextTest::Between(Bound::Unbounded, Bound::Excluded(text)),
                Operator::LtEq => TextTest::Between(Bound::Unbounded, Bound::Included(text)),
                Operator::Gt => TextTest::Between(Bound::Excluded(text), Bound::Unbounded),
                Operator::GtEq => TextTest::Between(Bound::Included(text), Bound::Unbounded),
                _ => return None,
            }));
        }
        let key = self.key(value)?;
        Some(ColumnTest::Number(match op {
            Operator::Eq => NumberTest::In([key].into()),
            Operator::NotEq => NumberTest::NotIn([key].into()),
            Operator::Lt => NumberTest::Between(i64::MIN, key - 1),
            Operator::LtEq => NumberTest::Between(i64::MIN, key),
            Operator::Gt => NumberTest::Between(key + 1, i64::MAX),
            Operator::GtEq => NumberTest::Between(key, i64::MAX),
            _ => return None,
        }))
    }

    fn listed(&self, values: &[ScalarValue], negated: bool) -> Option<ColumnTest> {
        let has_null = values.iter().any(ScalarValue::is_null);
        if negated && has_null {
            return Some(self.never());
        }
        let values = values.iter().filter(|value| !value.is_null());
        if self.is_text() {
            let text = |value: &ScalarValue| Some(Box::<str>::from(value.try_as_str()??));
            let list = rising(values.map(text).collect::<Option<Vec<_>>>()?);
            return Some(ColumnTest::Text(match negated {
                true => TextTest::NotIn(list),
                false => TextTest::In(list),
            }));
        }
        let list = rising(values.map(|value| self.key(value)).collect::<Option<Vec<_>>>()?);
        Some(ColumnTest::Number(match negated {
            true => NumberTest::NotIn(list),
            false => NumberTest::In(list),
        }))
    }

    fn is_text(&self) -> bool {
        self.data_type == DataType::Utf8View
    }

    /// The key of a number of the column's type; `None` if it is at or beyond the limits of the keys.
    fn key(&self, value: &ScalarValue) -> Option<i64> {
        let key = match value {
            other if other.data_type() != self.data_type => return None,
            ScalarValue::Boolean(Some(value)) => i64::from(*value),
            ScalarValue::UInt8(Some(value)) => i64::from(*value),
            ScalarValue::Float32(Some(value)) => float_key(f64::from(*value)),
            ScalarValue::Float64(Some(value)) => float_key(*value),
            other => whole_number(other)?,
        };
        (key != i64::MIN && key != i64::MAX).then_some(key)
    }

    /// The test that no value passes: a comparison with NULL.
    fn never(&self) -> ColumnTest {
        match self.is_text() {
            true => ColumnTest::Text(TextTest::In([].into())),
            false => ColumnTest::Number(NumberTest::In([].into())),
        }
    }
}

/// A pattern that is only a string prefix; `None` for others.
fn like(pattern: &ScalarValue) -> Option<ColumnTest> {
    let Some(pattern) = pattern.try_as_str()? else {
        return Some(ColumnTest::Text(TextTest::In([].into())));
    };
    let plain = |text: &str| !text.contains(['%', '_', '\\']);
    let test = match pattern.strip_suffix('%') {
        Some(prefix) if plain(prefix) => TextTest::Prefix(prefix.into()),
        None if plain(pattern) => TextTest::In([pattern.into()].into()),
        _ => return None,
    };
    Some(ColumnTest::Text(test))
}

fn rising<T: Ord>(mut values: Vec<T>) -> Box<[T]> {
    values.sort_unstable();
    values.dedup();
    values.into()
}

/// The tests, with intervals of one column merged.
pub(super) fn merged(all: Vec<(usize, ColumnTest)>) -> Vec<(usize, ColumnTest)> {
    let mut tests: Vec<(usize, ColumnTest)> = Vec::with_capacity(all.len());
    for (column, test) in all {
        let same = tests.iter_mut().find_map(|(other, before)| match before {
            ColumnTest::Number(NumberTest::Between(low, high)) if *other == column => {
                Some((low, high))
            }
            _ => None,
        });
        match (same, &test) {
            (Some((low, high)), ColumnTest::Number(NumberTest::Between(from, to))) => {
                (*low, *high) = ((*low).max(*from), (*high).min(*to));
            }
            _ => tests.push((column, test)),
        }
    }
    tests
}
