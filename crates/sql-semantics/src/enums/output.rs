//! Labels instead of codes in the rows that leave the database.

use std::sync::Arc;

use atoll_sql_common::user_type::{UserTypes, as_texts, enum_within};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::labels::{LabelCast, labels_of, missing};

/// Returns a query whose columns have the labels of ENUMs instead of codes, as texts that are marked with their type.
///
/// # Errors
/// If a type no longer exists.
pub fn labelled(plan: LogicalPlan, types: Option<&UserTypes>) -> Result<LogicalPlan> {
    let fields = plan.schema().fields();
    if !fields.iter().any(|field| enum_within(field.data_type()).is_some()) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        let Some(oid) = enum_within(field.data_type()) else { return Ok(column) };
        let Some(of) = types.and_then(|types| types.numbered(oid)) else {
            return Err(missing(oid));
        };
        let labels = LabelCast::new(of, as_texts(field.data_type()), false).call(vec![column]);
        let mark = FieldMetadata::from(labels_of(field, oid).metadata());
        Ok(labels.alias_qualified_with_metadata(table.cloned(), field.name(), Some(mark)))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Returns rows with the labels of ENUMs instead of codes.
///
/// # Errors
/// If a type no longer exists.
pub fn labelled_rows(
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
    types: Option<&UserTypes>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    if !schema.fields().iter().any(|field| enum_within(field.data_type()).is_some()) {
        return Ok((Arc::clone(schema), batches));
    }
    let shown = labelled_schema(schema);
    let column = |(values, field): (&ArrayRef, &FieldRef)| {
        let Some(oid) = enum_within(values.data_type()) else { return Ok(Arc::clone(values)) };
        let Some(of) = types.and_then(|types| types.numbered(oid)) else {
            return Err(missing(oid));
        };
        let to = field.data_type();
        LabelCast::new(of, to.clone(), false).cast(values, to)
    };
    let batch = |batch: RecordBatch| {
        let columns = batch.columns().iter().zip(shown.fields()).map(column);
        Ok(RecordBatch::try_new(Arc::clone(&shown), columns.collect::<Result<_>>()?)?)
    };
    let batches = batches.into_iter().map(batch).collect::<Result<_>>()?;
    Ok((shown, batches))
}

/// Returns the columns of rows from outside, which have labels instead of codes.
pub fn labelled_schema(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &FieldRef| match enum_within(field.data_type()) {
        Some(oid) => Arc::new(labels_of(field, oid)),
        None => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
