//! Join keys as bytes that compare as the values do.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

/// The bytes of a join key in Arrow's row format: equal where the values are equal, and in their
/// order. Null stays null.
///
/// DataFusion's sort-merge join needs them for keys of nested types, which its sorts do not know, and,
/// where it returns one side only, for all types that `compare_join_arrays` (55.2, `joins/utils.rs`)
/// refuses, and for floats, at whose NaN it panics (apache/datafusion#25133).
#[derive(Debug)]
pub(crate) struct MergeKey {
    key: Arc<dyn PhysicalExpr>,
}

impl MergeKey {
    /// A key as bytes.
    pub(crate) fn new(key: Arc<dyn PhysicalExpr>) -> Self {
        Self { key }
    }

    /// Whether values of this type can be converted to such bytes.
    pub(crate) fn is_for(data_type: &DataType) -> bool {
        RowConverter::supports_fields(&[SortField::new(data_type.clone())])
    }
}

fn bytes(values: ArrayRef) -> Result<BinaryArray> {
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let rows = converter.convert_columns(&[Arc::clone(&values)])?;
    let (offsets, bytes, _) = rows.try_into_binary()?.into_parts();
    Ok(BinaryArray::try_new(offsets, bytes, values.logical_nulls())?)
}

impl fmt::Display for MergeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes({})", self.key)
    }
}

impl PartialEq for MergeKey {
    fn eq(&self, other: &Self) -> bool {
        self.key.eq(&other.key)
    }
}

impl Eq for MergeKey {}

impl Hash for MergeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl PhysicalExpr for MergeKey {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.key.nullable(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.key.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(Arc::new(bytes(values)?)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.key]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let key = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.key));
        Ok(Arc::new(Self::new(key)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes(")?;
        self.key.fmt_sql(f)?;
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;

    #[test]
    fn bytes_compare_as_values_do() {
        let values = [
            None,
            Some(f64::NEG_INFINITY),
            Some(-1.5),
            Some(0.0),
            Some(f64::INFINITY),
            Some(f64::NAN),
        ];
        let bytes =
            bytes(Arc::new(Float64Array::from(values.to_vec()))).expect("floats convert to bytes");
        assert!(bytes.is_null(0) && bytes.null_count() == 1);
        for smaller in 1..values.len() - 1 {
            assert!(bytes.value(smaller) < bytes.value(smaller + 1), "{smaller}");
        }
    }
}
