//! An aggregation in the primitives' terms.

use std::sync::Arc;

use atoll_primitives::PrimitiveError;
use atoll_primitives::aggregate::{Aggregate, Expected, Function, KeyRange, Query};
use atoll_store::table::is_text;
use datafusion::arrow::array::{Array, ArrayRef, Int8Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::error::to_datafusion;
use super::groups;
use crate::scan::whole;

/// The keys and arguments of an aggregation, and the query over them.
#[derive(Clone, Debug)]
pub(super) struct GroupQuery {
    /// The source of each column of the primitives' input, keys first.
    columns: Vec<InputColumn>,
    /// The primitives' input.
    pub(super) input: SchemaRef,
    pub(super) query: Query,
    /// Names of the aggregates: the primitives', and SQL's.
    names: Vec<(String, String)>,
}

/// The source of a column of the primitives' input.
#[derive(Clone, Debug)]
enum InputColumn {
    /// The values of an expression.
    Values(Arc<dyn PhysicalExpr>),
    /// Zeros where an expression has values, which are only counted.
    Presence(Arc<dyn PhysicalExpr>),
}

impl InputColumn {
    /// The expression whose values it has.
    fn expr(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        match self {
            Self::Values(expr) => Some(expr),
            Self::Presence(_) => None,
        }
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let (Self::Values(expr) | Self::Presence(expr)) = self;
        let values = expr.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(match self {
            Self::Values(_) => values,
            Self::Presence(_) => {
                Arc::new(Int8Array::new(vec![0; values.len()].into(), values.logical_nulls()))
            }
        })
    }
}

impl GroupQuery {
    /// The query of an aggregation; `None` if the primitives do not support it.
    pub(super) fn from_aggregate(aggregate: &AggregateExec) -> Option<Self> {
        let group_by = aggregate.group_expr();
        let plain = !group_by.has_grouping_set()
            && !group_by.expr().is_empty()
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none);
        if !plain {
            return None;
        }
        let schema = aggregate.input().schema();
        let mut columns = QueryColumns { schema: &schema, columns: Vec::new(), fields: Vec::new() };
        for (key, _) in group_by.expr() {
            columns.push(key)?;
        }
        // A repeated key has a column in the result each time.
        if columns.columns.len() < group_by.expr().len() {
            return None;
        }
        let keys = (0..columns.columns.len()).collect();
        let functions = aggregate.aggr_expr().iter();
        let aggregates: Option<Vec<Aggregate>> =
            functions.map(|function| columns.aggregate(function)).collect();
        let input = Arc::new(Schema::new(columns.fields));
        let query = Query { keys, aggregates: aggregates? };
        let results = query.aggregates.iter().map(|of| of.result_type(&input).ok());
        let wanted = aggregate.aggr_expr().iter().map(|function| function.field());
        let same =
            results.zip(wanted).all(|(result, wanted)| result.as_ref() == Some(wanted.data_type()));
        let name = |(of, function): (&Aggregate, &Arc<AggregateFunctionExpr>)| {
            (of.name(&input), function.name().to_owned())
        };
        let names = query.aggregates.iter().zip(aggregate.aggr_expr()).map(name).collect();
        same.then_some(Self { columns: columns.columns, input, query, names })
    }

    /// Whether all keys are numbers, dates and times, booleans or strings: keys of other types are for
    /// DataFusion's operator.
    pub(super) fn has_keys_of_known_types(&self) -> bool {
        let mut keys = self.query.keys.iter().map(|at| self.input.field(*at).data_type());
        keys.all(|data_type| {
            is_number(data_type) || is_text(data_type) || *data_type == DataType::Boolean
        })
    }

    /// Groups in the rows of `input`, as estimated on samples of the tables; `None` if unknown.
    pub(super) fn expected_groups(&self, input: &Arc<dyn ExecutionPlan>) -> Option<usize> {
        let keys = &self.columns[..self.query.keys.len()];
        groups::expected(keys.iter().filter_map(InputColumn::expr), input)
    }

    /// Converts errors of the primitives to DataFusion's, with SQL's names.
    pub(super) fn error(&self, error: PrimitiveError) -> DataFusionError {
        match error {
            PrimitiveError::Overflow { what, data_type } => {
                let named = self.names.iter().find(|(own, _)| *own == what);
                let what = named.map_or(what, |(_, name)| name.clone());
                to_datafusion(PrimitiveError::Overflow { what, data_type })
            }
            other => to_datafusion(other),
        }
    }

    /// The primitives' input out of the operator's.
    pub(super) fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns: Result<Vec<ArrayRef>> =
            self.columns.iter().map(|column| column.evaluate(batch)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.input), columns?, &options)?)
    }

    /// Statistics of the input rows, estimates included.
    pub(super) fn expected(&self, statistics: &Statistics) -> Expected {
        let keys = &self.columns[..self.query.keys.len()];
        let known = keys.iter().zip(self.input.fields()).map(|(key, field)| {
            let column = key.expr().and_then(|expr| expr.downcast_ref::<Column>());
            let of = column.and_then(|column| statistics.column_statistics.get(column.index()));
            let bound = |value: Option<&ScalarValue>| value.and_then(whole);
            let range = of.and_then(|of| {
                let min = bound(of.min_value.get_value())?;
                Some(KeyRange { min, max: bound(of.max_value.get_value())? })
            });
            (field.is_nullable(), range)
        });
        Expected {
            rows: statistics.num_rows.get_value().copied(),
            counted: matches!(statistics.num_rows, Precision::Exact(_)),
            keys: known.collect(),
        }
    }
}

/// The primitives' groups under the names of SQL.
pub(super) fn named(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec())?)
}

/// Columns of the primitives' input while they are found.
struct QueryColumns<'a> {
    schema: &'a Schema,
    columns: Vec<InputColumn>,
    fields: Vec<Field>,
}

impl QueryColumns<'_> {
    /// Position of an expression among the columns.
    fn push(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let is_known = |own: &InputColumn| own.expr().is_some_and(|own| own.eq(expr));
        if let Some(known) = self.columns.iter().position(is_known) {
            return Some(known);
        }
        let data_type = expr.data_type(self.schema).ok()?;
        let nullable = expr.nullable(self.schema).ok()?;
        self.fields.push(Field::new(expr.to_string(), data_type, nullable));
        self.columns.push(InputColumn::Values(Arc::clone(expr)));
        Some(self.columns.len() - 1)
    }

    /// Position of a column that marks where an expression is not null.
    fn push_presence(&mut self, expr: &Arc<dyn PhysicalExpr>) -> usize {
        self.fields.push(Field::new(format!("{expr} IS NOT NULL"), DataType::Int8, true));
        self.columns.push(InputColumn::Presence(Arc::clone(expr)));
        self.columns.len() - 1
    }

    fn aggregate(&mut self, function: &AggregateFunctionExpr) -> Option<Aggregate> {
        if function.is_distinct() || !function.order_bys().is_empty() || function.ignore_nulls() {
            return None;
        }
        let arguments = function.expressions();
        let [argument] = &arguments[..] else { return None };
        let kind = match function.fun().name() {
            "sum" => Function::Sum,
            "avg" => Function::Avg,
            "count" => return self.count(argument),
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return None,
        };
        Some(Aggregate { function: kind, column: self.push(argument)? })
    }

    /// `count(x)` is `count(*)` where x is never null.
    fn count(&mut self, argument: &Arc<dyn PhysicalExpr>) -> Option<Aggregate> {
        let literal = argument.downcast_ref::<Literal>();
        let never_null = match literal {
            Some(literal) => !literal.value().is_null(),
            None => !argument.nullable(self.schema).ok()?,
        };
        if never_null {
            return Some(Aggregate { function: Function::CountRows, column: 0 });
        }
        let column = match is_number(&argument.data_type(self.schema).ok()?) {
            true => self.push(argument)?,
            false => self.push_presence(argument),
        };
        Some(Aggregate { function: Function::Count, column })
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() && !matches!(data_type, DataType::Decimal256(..) | DataType::Float16)
        || data_type.is_temporal() && !matches!(data_type, DataType::Interval(_))
}
