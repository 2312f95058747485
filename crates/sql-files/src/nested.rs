//! Maps the innermost values and types inside lists, structs and maps of any depth.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;

/// The fields inside a type.
fn inside(data_type: &DataType) -> &[FieldRef] {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => std::slice::from_ref(item),
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

/// The type with its innermost types replaced by `leaf`, which gets them from left to right.
pub(super) fn with_leaf_types(
    data_type: &DataType,
    leaf: &mut dyn FnMut(&DataType) -> DataType,
) -> DataType {
    let mut field = |field: &FieldRef| {
        let data_type = with_leaf_types(field.data_type(), leaf);
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    match data_type {
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::ListView(item) => DataType::ListView(field(item)),
        DataType::LargeListView(item) => DataType::LargeListView(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => leaf(other),
    }
}

/// The columns with other innermost types.
pub(super) fn with_leaf_types_of(
    schema: &Schema,
    leaf: &mut dyn FnMut(&DataType) -> DataType,
) -> SchemaRef {
    let field = |field: &FieldRef| {
        let data_type = with_leaf_types(field.data_type(), leaf);
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The columns of a batch as another schema of the same shape: `leaf` makes the innermost ones whose types differ.
pub(super) fn batch_with_leaves(
    batch: &RecordBatch,
    to: &SchemaRef,
    leaf: &dyn Fn(&ArrayRef, &DataType) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(to.fields());
    let columns = columns.map(|(values, field)| with_leaves(values, field.data_type(), leaf));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(to), columns, &options)?)
}

/// The values as another type of the same shape: `leaf` makes the innermost ones whose types differ.
pub(super) fn with_leaves(
    values: &ArrayRef,
    to: &DataType,
    leaf: &dyn Fn(&ArrayRef, &DataType) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(Arc::clone(values));
    }
    let fields = inside(to);
    if fields.is_empty() {
        return leaf(values, to);
    }
    let data = values.to_data();
    let child = |(child, field): (&_, &FieldRef)| {
        let made = with_leaves(&make_array(Clone::clone(child)), field.data_type(), leaf)?;
        Ok(made.to_data())
    };
    let children = data.child_data().iter().zip(fields).map(child).collect::<Result<_>>()?;
    let builder = data.clone().into_builder().data_type(to.clone()).child_data(children);
    Ok(make_array(builder.build()?))
}
