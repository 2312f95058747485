//! Reads columns of bytes and converts them to the table's values: intervals and UUIDs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use super::bytes::{value_type, values_of};
use crate::nested::with_leaves;

/// Adapts expressions over the table to files: these columns are made of their bytes, all else is left to the factory
/// below.
#[derive(Debug)]
pub(super) struct ByteAdapterFactory(Arc<dyn PhysicalExprAdapterFactory>);

impl ByteAdapterFactory {
    pub(super) fn over(below: Option<Arc<dyn PhysicalExprAdapterFactory>>) -> Self {
        Self(below.unwrap_or_else(|| Arc::new(DefaultPhysicalExprAdapterFactory)))
    }
}

impl PhysicalExprAdapterFactory for ByteAdapterFactory {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        // For the adapter below the columns have their types already.
        let fields = with_values(file.fields(), table.fields());
        if fields == *file.fields() {
            return self.0.create(table, file);
        }
        let typed = Arc::new(Schema::new_with_metadata(fields, file.metadata().clone()));
        let below = self.0.create(table, Arc::clone(&typed))?;
        Ok(Arc::new(ByteAdapter { below, file, typed }))
    }
}

/// The fields of a file with the types of values where the table's fields of the same names have them.
fn with_values(file: &Fields, table: &Fields) -> Fields {
    let field = |field: &FieldRef| match table.find(field.name()) {
        Some((_, wanted)) => field_with_values(field, wanted),
        None => Arc::clone(field),
    };
    file.iter().map(field).collect()
}

fn field_with_values(file: &FieldRef, table: &FieldRef) -> FieldRef {
    let made = match (file.data_type(), table.data_type()) {
        (DataType::List(item), DataType::List(wanted)) => {
            DataType::List(field_with_values(item, wanted))
        }
        (DataType::LargeList(item), DataType::LargeList(wanted)) => {
            DataType::LargeList(field_with_values(item, wanted))
        }
        (DataType::FixedSizeList(item, size), DataType::FixedSizeList(wanted, _)) => {
            DataType::FixedSizeList(field_with_values(item, wanted), *size)
        }
        (DataType::Map(entries, sorted), DataType::Map(wanted, _)) => {
            DataType::Map(field_with_values(entries, wanted), *sorted)
        }
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            DataType::Struct(with_values(fields, wanted))
        }
        (bytes, wanted) => match value_type(bytes, wanted) {
            Some(made) => made,
            None => return Arc::clone(file),
        },
    };
    Arc::new(Field::clone(file).with_data_type(made))
}

#[derive(Debug)]
struct ByteAdapter {
    below: Arc<dyn PhysicalExprAdapter>,
    file: SchemaRef,
    /// The file's schema with the types of the values.
    typed: SchemaRef,
}

impl PhysicalExprAdapter for ByteAdapter {
    fn rewrite(&self, expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let adapted = self.below.rewrite(expression)?;
        let made = adapted.transform_up(|node| {
            let column = node.downcast_ref::<Column>().map(Column::index);
            let of = |schema: &SchemaRef| Some(schema.fields().get(column?)?.data_type().clone());
            Ok(match of(&self.typed) {
                Some(to) if of(&self.file).as_ref() != Some(&to) => {
                    Transformed::yes(Arc::new(ValuesOf { bytes: node, to }) as _)
                }
                _ => Transformed::no(node),
            })
        });
        made.data()
    }
}

/// Converts bytes to values.
#[derive(Debug, Eq)]
struct ValuesOf {
    bytes: Arc<dyn PhysicalExpr>,
    to: DataType,
}

impl PartialEq for ValuesOf {
    fn eq(&self, other: &Self) -> bool {
        self.bytes.eq(&other.bytes) && self.to == other.to
    }
}

impl Hash for ValuesOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
        self.to.hash(state);
    }
}

impl fmt::Display for ValuesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes)
    }
}

impl PhysicalExpr for ValuesOf {
    fn data_type(&self, _input: &Schema) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.bytes.nullable(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let bytes = self.bytes.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(with_leaves(&bytes, &self.to, &values_of)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.bytes]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(bytes), true) => Ok(Arc::new(Self { bytes, to: self.to.clone() })),
            _ => internal_err!("ValuesOf has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt_sql(f)
    }
}
