//! Predicates that a scan evaluates on columns as they are stored, a whole block at a time.
//!
//! A [`StoredPredicate`] is the part of a predicate that needs no decoding: whole numbers against a constant
//! or against each other in their stored width, anything about one string column on the chunk's
//! dictionary, and AND and OR over these. Everything else is evaluated on decoded rows
//! (`filter.rs`). Constants are compared in the stored width of each chunk, hence not as `condition.rs` has them. A
//! mask is true where the predicate is true; false and unknown are the same to a filter, and AND and OR keep it so.

use std::sync::Arc;

use atoll_store::table::{Selection, StoredColumn, Zone, is_whole_number, whole_numbers};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNumericType, AsArray, BooleanArray, PrimitiveArray, RecordBatch, Scalar,
    new_null_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{
    DataType, Field, Int8Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef, UInt8Type,
    UInt16Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column as ColumnExpr, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
    NotExpr,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::utils::reassign_expr_columns;

use super::condition::{ColumnCondition, ConditionKind, column_of, is_comparison};

/// Maximum number of members of an IN list that are compared one by one.
const IN_LIST_MAX: usize = 8;

/// A predicate on stored columns; see the module.
#[derive(Debug)]
pub(crate) enum StoredPredicate {
    /// All of them.
    And(Vec<StoredPredicate>),
    /// Any of them.
    Or(Vec<StoredPredicate>),
    /// A whole-number column (or date, time, decimal) against a constant in its unit.
    Compare { column: usize, op: Operator, value: i64, otherwise: DictionaryPredicate },
    /// Two such columns of one type.
    CompareColumns { left: usize, op: Operator, right: usize },
    /// Any predicate on one string column.
    Strings { expr: DictionaryPredicate, seen: Option<Verdicts> },
    /// IS NULL (or, negated, IS NOT NULL).
    IsNull { column: usize, negated: bool },
}

/// A predicate on one column in its logical type.
#[derive(Debug)]
pub(crate) struct DictionaryPredicate {
    column: usize,
    schema: SchemaRef,
    /// Over `schema`, whose only column is the tested one.
    expr: Arc<dyn PhysicalExpr>,
}

/// The verdict for each code of a dictionary, and for null.
#[derive(Debug)]
pub(crate) struct Verdicts {
    dictionary: ArrayRef,
    by_code: BooleanBuffer,
    null: bool,
}

/// The verdict of the zones on a whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneVerdict {
    /// Every row passes.
    All,
    /// No row passes.
    None,
    /// The rows must be tested.
    Some,
}

impl StoredPredicate {
    /// The predicate as a test; `None` if it needs decoded rows. `expr` is over `schema`, the
    /// table's.
    pub(crate) fn new(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let of_two = expr.downcast_ref::<BinaryExpr>().and_then(|it| Self::of_two(it, schema));
        of_two.or_else(|| Self::of_constants(expr, schema)).or_else(|| Self::strings(expr, schema))
    }

    /// Two predicates, or two columns.
    fn of_two(binary: &BinaryExpr, schema: &Schema) -> Option<Self> {
        let sides = [binary.left(), binary.right()];
        match *binary.op() {
            Operator::And | Operator::Or => {
                let sides = sides.map(|side| Self::new(side, schema));
                let sides = sides.into_iter().collect::<Option<_>>()?;
                Some(match *binary.op() {
                    Operator::And => Self::And(sides),
                    _ => Self::Or(sides),
                })
            }
            op if is_comparison(op) => {
                let [Some(left), Some(right)] = sides.map(column_of) else { return None };
                let types = [left, right].map(|column| schema.field(column).data_type());
                (types[0] == types[1] && is_whole_number(types[0]))
                    .then_some(Self::CompareColumns { left, op, right })
            }
            _ => None,
        }
    }

    fn of_constants(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let ColumnCondition { column, kind } = ColumnCondition::from_physical(expr)?;
        match kind {
            ConditionKind::Compare(op, value) => Self::compare(column, op, value, schema),
            ConditionKind::In { values, negated: false } if values.len() <= IN_LIST_MAX => {
                let equal = |value| Self::compare(column, Operator::Eq, value, schema);
                values.into_iter().map(equal).collect::<Option<_>>().map(Self::Or)
            }
            ConditionKind::Null(wanted) => Some(Self::IsNull { column, negated: !wanted }),
            ConditionKind::In { .. } | ConditionKind::Like(_) => None,
        }
    }

    fn compare(column: usize, op: Operator, value: &ScalarValue, schema: &Schema) -> Option<Self> {
        let field = schema.field(column);
        let number = whole_number(value).filter(|_| value.data_type() == *field.data_type())?;
        let left = Arc::new(ColumnExpr::new(field.name(), column));
        let right = Arc::new(Literal::new(value.clone()));
        let expr: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(left, op, right));
        let otherwise = DictionaryPredicate::new(column, &expr, schema)?;
        Some(Self::Compare { column, op, value: number, otherwise })
    }

    fn strings(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let mut columns = collect_columns(expr).into_iter();
        let (column, None) = (columns.next()?, columns.next()) else { return None };
        if *schema.field(column.index()).data_type() != DataType::Utf8View || may_fail(expr) {
            return None;
        }
        Some(Self::Strings {
            expr: DictionaryPredicate::new(column.index(), expr, schema)?,
            seen: None,
        })
    }

    /// Adds the columns that the test reads.
    pub(crate) fn columns(&self, into: &mut Vec<usize>) {
        match self {
            Self::And(tests) | Self::Or(tests) => tests.iter().for_each(|t| t.columns(into)),
            Self::Compare { column, .. } | Self::IsNull { column, .. } => into.push(*column),
            Self::CompareColumns { left, right, .. } => into.extend([*left, *right]),
            Self::Strings { expr, .. } => into.push(expr.column),
        }
    }

    /// The verdict of the zones on a block.
    pub(crate) fn verdict(&self, zones: &[Option<Zone>]) -> ZoneVerdict {
        match self {
            Self::And(tests) => tests.iter().fold(ZoneVerdict::All, |sofar, test| {
                match (sofar, test.verdict(zones)) {
                    (ZoneVerdict::None, _) | (_, ZoneVerdict::None) => ZoneVerdict::None,
                    (ZoneVerdict::All, ZoneVerdict::All) => ZoneVerdict::All,
                    _ => ZoneVerdict::Some,
                }
            }),
            Self::Or(tests) => tests.iter().fold(ZoneVerdict::None, |sofar, test| {
                match (sofar, test.verdict(zones)) {
                    (ZoneVerdict::All, _) | (_, ZoneVerdict::All) => ZoneVerdict::All,
                    (ZoneVerdict::None, ZoneVerdict::None) => ZoneVerdict::None,
                    _ => ZoneVerdict::Some,
                }
            }),
            Self::Compare { column, op, value, .. } => match zones[*column] {
                Some(zone) => compare_zone(zone, *op, *value),
                None => ZoneVerdict::Some,
            },
            Self::CompareColumns { .. } | Self::Strings { .. } | Self::IsNull { .. } => {
                ZoneVerdict::Some
            }
        }
    }

    /// One bit per row of the block: whether the predicate is true.
    pub(crate) fn mask(&mut self, block: &[StoredColumn]) -> Result<BooleanBuffer> {
        match self {
            Self::And(tests) => {
                let mut mask = BooleanBuffer::new_set(block_rows(block));
                for test in tests {
                    mask = &mask & &test.mask(block)?;
                }
                Ok(mask)
            }
            Self::Or(tests) => {
                let mut mask = BooleanBuffer::new_unset(block_rows(block));
                for test in tests {
                    mask = &mask | &test.mask(block)?;
                }
                Ok(mask)
            }
            Self::Compare { column, op, value, otherwise } => {
                match compare_column(&block[*column], *op, *value)? {
                    Some(mask) => Ok(true_bits(&mask)),
                    None => otherwise.mask(&block[*column]),
                }
            }
            Self::CompareColumns { left, op, right } => {
                compare_columns(&block[*left], *op, &block[*right])
            }
            Self::Strings { expr, seen } => strings_mask(expr, seen, &block[expr.column]),
            Self::IsNull { column, negated } => Ok(null_mask(&block[*column], *negated)),
        }
    }
}

impl DictionaryPredicate {
    fn new(column: usize, expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let schema = Arc::new(Schema::new(vec![schema.field(column).clone()]));
        let expr = reassign_expr_columns(Arc::clone(expr), &schema).ok()?;
        Some(Self { column, schema, expr })
    }

    fn mask(&self, column: &StoredColumn) -> Result<BooleanBuffer> {
        let all = Selection::Range { offset: 0, len: column.rows().len() };
        self.true_rows(column.decode(self.schema.field(0).data_type(), &all)?)
    }

    fn true_rows(&self, values: ArrayRef) -> Result<BooleanBuffer> {
        let rows = values.len();
        let schema = nullable(&self.schema);
        let batch = RecordBatch::try_new(schema, vec![values])?;
        let result = self.expr.evaluate(&batch)?.into_array(rows)?;
        Ok(true_bits(result.as_boolean()))
    }
}

/// Whether evaluating the predicate on a value may fail. Such a predicate is not tried on
/// values whose rows another predicate may have excluded.
fn may_fail(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let own = if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        !(binary.op().supports_propagation() || binary.op().is_logic_operator() || is_match(binary))
    } else {
        !(expr.is::<ColumnExpr>()
            || expr.is::<Literal>()
            || expr.is::<LikeExpr>()
            || expr.is::<InListExpr>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsNotNullExpr>()
            || expr.is::<NotExpr>())
    };
    own || expr.children().into_iter().any(may_fail)
}

fn is_match(binary: &BinaryExpr) -> bool {
    matches!(
        binary.op(),
        Operator::LikeMatch
            | Operator::NotLikeMatch
            | Operator::ILikeMatch
            | Operator::NotILikeMatch
            | Operator::NotEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// A dictionary is tested for null too, whether or not the table's column allows it.
fn nullable(schema: &SchemaRef) -> SchemaRef {
    let field = schema.field(0);
    Arc::new(Schema::new(vec![Field::new(field.name(), field.data_type().clone(), true)]))
}

fn block_rows(block: &[StoredColumn]) -> usize {
    block.first().map_or(0, |column| column.rows().len())
}

/// A constant as a whole number in the unit of its type; `None` for other types.
pub fn whole_number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(v) => v.map(i64::from),
        ScalarValue::Int16(v) => v.map(i64::from),
        ScalarValue::Int32(v) | ScalarValue::Date32(v) => v.map(i64::from),
        ScalarValue::UInt16(v) => v.map(i64::from),
        ScalarValue::UInt32(v) => v.map(i64::from),
        ScalarValue::UInt64(v) => v.and_then(|v| i64::try_from(v).ok()),
        ScalarValue::Int64(v)
        | ScalarValue::Date64(v)
        | ScalarValue::TimestampSecond(v, _)
        | ScalarValue::TimestampMillisecond(v, _)
        | ScalarValue::TimestampMicrosecond(v, _)
        | ScalarValue::TimestampNanosecond(v, _) => *v,
        ScalarValue::Decimal128(v, _, _) => v.and_then(|v| i64::try_from(v).ok()),
        _ => None,
    }
}

fn compare_zone(zone: Zone, op: Operator, value: i64) -> ZoneVerdict {
    let Zone { min, max, nulls } = zone;
    let (all, none) = match op {
        Operator::Eq => (min == value && max == value, value < min || value > max),
        Operator::NotEq => (value < min || value > max, min == value && max == value),
        Operator::Lt => (max < value, min >= value),
        Operator::LtEq => (max <= value, min > value),
        Operator::Gt => (min > value, max <= value),
        Operator::GtEq => (min >= value, max < value),
        _ => (false, false),
    };
    match (none, all && !nulls) {
        (true, _) => ZoneVerdict::None,
        (_, true) => ZoneVerdict::All,
        _ => ZoneVerdict::Some,
    }
}

/// The comparison in the stored width; `None` if the column is not stored as whole numbers.
fn compare_column(column: &StoredColumn, op: Operator, value: i64) -> Result<Option<BooleanArray>> {
    let Some(array) = whole_numbers(column) else { return Ok(None) };
    Ok(Some(match array.data_type() {
        DataType::Int8 => compare_in(array.as_primitive::<Int8Type>(), op, value)?,
        DataType::Int16 => compare_in(array.as_primitive::<Int16Type>(), op, value)?,
        DataType::Int32 => compare_in(array.as_primitive::<Int32Type>(), op, value)?,
        _ => compare_in(array.as_primitive::<Int64Type>(), op, value)?,
    }))
}

fn compare_in<T: ArrowNumericType>(
    array: &PrimitiveArray<T>,
    op: Operator,
    value: i64,
) -> Result<BooleanArray>
where
    T::Native: TryFrom<i64>,
{
    let Ok(constant) = T::Native::try_from(value) else {
        // Beyond the stored width every value lies on one side of the constant.
        let passes = match op {
            Operator::NotEq => true,
            Operator::Lt | Operator::LtEq => value > 0,
            Operator::Gt | Operator::GtEq => value < 0,
            _ => false,
        };
        let bits = if passes {
            BooleanBuffer::new_set(array.len())
        } else {
            BooleanBuffer::new_unset(array.len())
        };
        return Ok(BooleanArray::new(bits, array.nulls().cloned()));
    };
    let constant = Scalar::new(PrimitiveArray::<T>::from_value(constant, 1));
    Ok(match op {
        Operator::Eq => cmp::eq(array, &constant)?,
        Operator::NotEq => cmp::neq(array, &constant)?,
        Operator::Lt => cmp::lt(array, &constant)?,
        Operator::LtEq => cmp::lt_eq(array, &constant)?,
        Operator::Gt => cmp::gt(array, &constant)?,
        _ => cmp::gt_eq(array, &constant)?,
    })
}

fn compare_columns(
    left: &StoredColumn,
    op: Operator,
    right: &StoredColumn,
) -> Result<BooleanBuffer> {
    let (mut left, mut right) = (Arc::clone(left.rows()), Arc::clone(right.rows()));
    if left.data_type() != right.data_type() {
        left = as_wide(&left)?;
        right = as_wide(&right)?;
    }
    let result = match op {
        Operator::Eq => cmp::eq(&left, &right)?,
        Operator::NotEq => cmp::neq(&left, &right)?,
        Operator::Lt => cmp::lt(&left, &right)?,
        Operator::LtEq => cmp::lt_eq(&left, &right)?,
        Operator::Gt => cmp::gt(&left, &right)?,
        _ => cmp::gt_eq(&left, &right)?,
    };
    Ok(true_bits(&result))
}

/// Two columns of one logical type may be stored in different widths; 128 bits hold both.
fn as_wide(array: &ArrayRef) -> Result<ArrayRef> {
    let unscaled = match array.data_type() {
        DataType::Decimal128(precision, _) => {
            let plain = array.as_primitive::<datafusion::arrow::datatypes::Decimal128Type>();
            return Ok(Arc::new(plain.clone().with_precision_and_scale(*precision, 0)?));
        }
        DataType::Date32 => cast(array, &DataType::Int32)?,
        DataType::Date64 | DataType::Timestamp(_, _) => cast(array, &DataType::Int64)?,
        _ => Arc::clone(array),
    };
    Ok(cast(&unscaled, &DataType::Decimal128(38, 0))?)
}

fn strings_mask(
    test: &DictionaryPredicate,
    seen: &mut Option<Verdicts>,
    column: &StoredColumn,
) -> Result<BooleanBuffer> {
    let StoredColumn::Dictionary { codes, values } = column else { return test.mask(column) };
    let verdicts = match seen.take() {
        Some(verdicts) if Arc::ptr_eq(&verdicts.dictionary, values) => verdicts,
        _ => judge(test, values)?,
    };
    let bits = match codes.data_type() {
        DataType::UInt8 => look_up(codes.as_primitive::<UInt8Type>(), &verdicts),
        _ => look_up(codes.as_primitive::<UInt16Type>(), &verdicts),
    };
    *seen = Some(verdicts);
    Ok(bits)
}

/// Evaluates the predicate once for each value of the dictionary, and once for null.
fn judge(test: &DictionaryPredicate, values: &ArrayRef) -> Result<Verdicts> {
    let null = new_null_array(values.data_type(), 1);
    let bits = test.true_rows(concat(&[values.as_ref(), null.as_ref()])?)?;
    Ok(Verdicts {
        dictionary: Arc::clone(values),
        by_code: bits.slice(0, values.len()),
        null: bits.value(values.len()),
    })
}

fn look_up<T: ArrowNumericType>(codes: &PrimitiveArray<T>, verdicts: &Verdicts) -> BooleanBuffer
where
    T::Native: Into<u64>,
{
    let table: Vec<bool> = verdicts.by_code.iter().collect();
    let verdict = |code: T::Native| {
        let code: u64 = code.into();
        // A null row's code may be anything.
        table.get(code as usize).copied().unwrap_or(false)
    };
    let values = codes.values();
    match codes.nulls() {
        None => BooleanBuffer::collect_bool(codes.len(), |row| verdict(values[row])),
        Some(nulls) => BooleanBuffer::collect_bool(codes.len(), |row| {
            if nulls.is_valid(row) { verdict(values[row]) } else { verdicts.null }
        }),
    }
}

fn null_mask(column: &StoredColumn, negated: bool) -> BooleanBuffer {
    let rows = column.rows();
    match (rows.logical_nulls(), negated) {
        (None, true) => BooleanBuffer::new_set(rows.len()),
        (None, false) => BooleanBuffer::new_unset(rows.len()),
        (Some(nulls), true) => nulls.into_inner(),
        (Some(nulls), false) => !nulls.inner(),
    }
}

/// True and not null.
pub(crate) fn true_bits(array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        Some(nulls) => array.values() & nulls.inner(),
        None => array.values().clone(),
    }
}
