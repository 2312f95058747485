//! Keys and rows of statements about one row whose values are parameters, constants, and columns of the existing row:
//! built from their bytes, without arrays. Anything else, and every error, is left to the expressions, which report it
//! in full.

use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::table::{Key, KeyBuilder, Row, RowBuilder, TableVersion};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr};
use datafusion::physical_expr::PhysicalExpr;

use crate::compiled::Parameters;
use atoll_sql_semantics::arithmetic::sum_of;

/// A value of a row.
#[derive(Debug)]
pub(super) enum ScalarExpr {
    /// The value of a parameter.
    Parameter(usize),
    /// A constant.
    Literal(ScalarValue),
    /// A column of the existing row.
    Column(usize),
    /// A column plus or minus a whole number of its type.
    Sum { column: usize, by: Box<ScalarExpr>, is_less: bool },
}

/// The values of a statement, if all of them are scalar.
#[derive(Debug)]
pub(super) struct ScalarPlan {
    /// The key of its row, in the order of the constraint's columns.
    key: Vec<ScalarExpr>,
    /// The rows that it writes.
    rows: Vec<Vec<ScalarExpr>>,
    /// Whether each column of the table is nullable.
    nullable: Vec<bool>,
}

/// The columns that a statement's expressions refer to.
pub(super) struct ScalarScope<'a> {
    pub(super) parameters: &'a Parameters,
    /// The type of a column of the table.
    pub(super) type_of: &'a dyn Fn(usize) -> DataType,
    /// The number of a column of the table.
    pub(super) column: &'a dyn Fn(&Column) -> Option<usize>,
}

impl ScalarScope<'_> {
    /// An expression for a value of a column, and its compiled form.
    pub(super) fn value(
        &self,
        expr: &Expr,
        physical: &dyn PhysicalExpr,
        of_column: usize,
    ) -> Option<ScalarExpr> {
        if let Expr::Alias(alias) = expr {
            return self.value(&alias.expr, physical, of_column);
        }
        let wanted = (self.type_of)(of_column);
        if !is_simple(&wanted) {
            return None;
        }
        if let Expr::Literal(..) = expr {
            let no_row = RecordBatch::new_empty(self.parameters.schema());
            let ColumnarValue::Scalar(value) = physical.evaluate(&no_row).ok()? else {
                return None;
            };
            return (value.data_type() == wanted).then_some(ScalarExpr::Literal(value));
        }
        self.plain(expr, &wanted).or_else(|| self.sum(expr, &wanted))
    }

    /// The values of a row of the table.
    pub(super) fn row(
        &self,
        exprs: &[Expr],
        physical: &[Arc<dyn PhysicalExpr>],
    ) -> Option<Vec<ScalarExpr>> {
        let each = exprs.iter().zip(physical).enumerate();
        each.map(|(at, (expr, physical))| self.value(expr, &**physical, at)).collect()
    }

    fn plain(&self, expr: &Expr, wanted: &DataType) -> Option<ScalarExpr> {
        match expr {
            Expr::Literal(value, _) => {
                (value.data_type() == *wanted).then(|| ScalarExpr::Literal(value.clone()))
            }
            Expr::Placeholder(placeholder) => {
                let (at, given) = self.parameters.find(&placeholder.id)?;
                (given == *wanted).then_some(ScalarExpr::Parameter(at))
            }
            Expr::Column(column) => {
                let at = (self.column)(column)?;
                ((self.type_of)(at) == *wanted).then_some(ScalarExpr::Column(at))
            }
            _ => None,
        }
    }

    fn sum(&self, expr: &Expr, wanted: &DataType) -> Option<ScalarExpr> {
        let (left, right, is_less) = sum_of(expr).filter(|_| wanted.is_signed_integer())?;
        let ScalarExpr::Column(column) = self.plain(left, wanted)? else { return None };
        match self.plain(right, wanted)? {
            ScalarExpr::Column(_) => None,
            by => Some(ScalarExpr::Sum { column, by: Box::new(by), is_less }),
        }
    }
}

/// Whether values of a type are supported here.
fn is_simple(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Boolean, LargeBinary, LargeUtf8, Utf8, Utf8View};
    match data_type {
        Boolean | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        DataType::Float16 | DataType::Interval(_) => false,
        other => other.is_primitive(),
    }
}

impl ScalarPlan {
    /// A plan over a table with these nullable columns; `None` if a value is not scalar.
    pub(super) fn new(
        key: Option<Vec<ScalarExpr>>,
        rows: Option<Vec<Vec<ScalarExpr>>>,
        nullable: Vec<bool>,
    ) -> Option<Self> {
        let (key, rows) = (key?, rows?);
        let is_whole = rows.iter().all(|row| row.len() == nullable.len());
        is_whole.then_some(Self { key, rows, nullable })
    }

    /// The key of the row; `None` if one of its values is NULL.
    pub(super) fn key(&self, parameters: &[ScalarValue]) -> Option<Option<Key>> {
        let mut key = KeyBuilder::default();
        for expr in &self.key {
            let value = expr.constant(parameters)?;
            if value.is_null() {
                return Some(None);
            }
            write(value, &mut key)?;
        }
        Some(Some(key.finish()))
    }

    /// The inserted rows; `None` if the expressions have to compute them.
    pub(super) fn inserted(&self, parameters: &[ScalarValue]) -> Option<Vec<Row>> {
        self.rows.iter().map(|row| self.row(row, &[], parameters)).collect()
    }

    /// The updated row; `None` as in [`inserted`](Self::inserted).
    pub(super) fn updated(
        &self,
        table: &TableVersion,
        id: RowId,
        parameters: &[ScalarValue],
    ) -> Option<Row> {
        let before = table.row(id)?;
        let before = table.codec().values(&before)?;
        self.row(self.rows.first()?, &before, parameters)
    }

    fn row(
        &self,
        exprs: &[ScalarExpr],
        before: &[Option<&[u8]>],
        parameters: &[ScalarValue],
    ) -> Option<Row> {
        let mut row = RowBuilder::new(exprs.len());
        for (expr, nullable) in exprs.iter().zip(&self.nullable) {
            let is_there = expr.write(before, parameters, &mut row)?;
            if !is_there && !nullable {
                return None;
            }
        }
        Some(row.finish())
    }
}

impl ScalarExpr {
    /// The value, if it depends on no row.
    fn constant<'v>(&'v self, parameters: &'v [ScalarValue]) -> Option<&'v ScalarValue> {
        match self {
            Self::Parameter(at) => parameters.get(*at),
            Self::Literal(value) => Some(value),
            Self::Column(_) | Self::Sum { .. } => None,
        }
    }

    /// Writes the value of the next column; false if it is NULL.
    fn write(
        &self,
        before: &[Option<&[u8]>],
        parameters: &[ScalarValue],
        row: &mut RowBuilder,
    ) -> Option<bool> {
        match self {
            Self::Column(at) => match before.get(*at)? {
                Some(bytes) => row.value().fixed(bytes),
                None => {
                    row.null();
                    return Some(false);
                }
            },
            Self::Sum { column, by, is_less } => {
                let by = by.constant(parameters)?;
                match (before.get(*column)?, by.is_null()) {
                    (Some(bytes), false) => write_sum(bytes, by, *is_less, row.value())?,
                    _ => {
                        row.null();
                        return Some(false);
                    }
                }
            }
            constant => {
                let value = constant.constant(parameters)?;
                if value.is_null() {
                    row.null();
                    return Some(false);
                }
                write(value, row.value())?;
            }
        }
        Some(true)
    }
}

/// Writes a whole number plus or minus another one; `None` if that does not fit its type.
fn write_sum(bytes: &[u8], by: &ScalarValue, is_less: bool, out: &mut KeyBuilder) -> Option<()> {
    macro_rules! sum {
        ($by:expr, $native:ty) => {{
            let number = <$native>::from_le_bytes(bytes.try_into().ok()?);
            let sum = if is_less { number.checked_sub($by?) } else { number.checked_add($by?) };
            out.fixed(&sum?.to_le_bytes());
        }};
    }
    match by {
        ScalarValue::Int8(by) => sum!(*by, i8),
        ScalarValue::Int16(by) => sum!(*by, i16),
        ScalarValue::Int32(by) => sum!(*by, i32),
        ScalarValue::Int64(by) => sum!(*by, i64),
        _ => return None,
    }
    Some(())
}

/// Writes a value that is not NULL; `None` for unsupported types.
fn write(value: &ScalarValue, out: &mut KeyBuilder) -> Option<()> {
    use ScalarValue as V;
    match value {
        V::Boolean(value) => out.boolean((*value)?),
        V::Float32(value) => out.float32((*value)?),
        V::Float64(value) => out.float64((*value)?),
        V::Int8(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::Int16(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::Int32(value)
        | V::Date32(value)
        | V::Time32Second(value)
        | V::Time32Millisecond(value) => {
            out.fixed(&(*value)?.to_le_bytes());
        }
        V::Int64(value)
        | V::Date64(value)
        | V::Time64Microsecond(value)
        | V::Time64Nanosecond(value)
        | V::TimestampSecond(value, _)
        | V::TimestampMillisecond(value, _)
        | V::TimestampMicrosecond(value, _)
        | V::TimestampNanosecond(value, _) => out.fixed(&(*value)?.to_le_bytes()),
        V::UInt8(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::UInt16(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::UInt32(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::UInt64(value) => out.fixed(&(*value)?.to_le_bytes()),
        V::Decimal128(value, _, _) => out.fixed(&(*value)?.to_le_bytes()),
        V::Utf8(value) | V::LargeUtf8(value) | V::Utf8View(value) => {
            out.bytes(value.as_ref()?.as_bytes());
        }
        V::Binary(value) | V::LargeBinary(value) | V::BinaryView(value) => {
            out.bytes(value.as_ref()?);
        }
        _ => return None,
    }
    Some(())
}
