//! An aggregation in the primitives' terms.

use std::sync::Arc;

use atoll_primitives::PrimitiveError;
use atoll_primitives::aggregate::{Aggregate, Expected, Function, KeyRange, Query};
use atoll_store::table::is_text;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::error::to_datafusion;
use super::texts;
use crate::scan::whole;

/// The keys and arguments of an aggregation, and the query over them.
#[derive(Clone, Debug)]
pub(super) struct GroupQuery {
    /// What each column of the primitives' input is evaluated from: keys first.
    columns: Vec<Arc<dyn PhysicalExpr>>,
    /// The primitives' input.
    pub(super) input: SchemaRef,
    pub(super) query: Query,
    /// Names of the aggregates: the primitives', and SQL's.
    names: Vec<(String, String)>,
}

impl GroupQuery {
    /// The query of an aggregation; none where the primitives do not have it.
    pub(super) fn of(aggregate: &AggregateExec) -> Option<Self> {
        let group_by = aggregate.group_expr();
        let plain = !group_by.has_grouping_set()
            && !group_by.expr().is_empty()
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none);
        if !plain {
            return None;
        }
        let schema = aggregate.input().schema();
        let mut columns = QueryColumns { schema: &schema, exprs: Vec::new(), fields: Vec::new() };
        for (key, _) in group_by.expr() {
            columns.push(key)?;
        }
        let keys = (0..columns.exprs.len()).collect();
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
        same.then_some(Self { columns: columns.exprs, input, query, names })
    }

    /// Whether all keys are numbers, dates and times, booleans or strings: keys of other types are for
    /// DataFusion's operator.
    pub(super) fn has_keys_of_known_types(&self) -> bool {
        let mut keys = self.query.keys.iter().map(|at| self.input.field(*at).data_type());
        keys.all(|data_type| {
            is_number(data_type) || is_text(data_type) || *data_type == DataType::Boolean
        })
    }

    /// Whether a key is a column of strings few of which are there often, in what `input` reads.
    pub(super) fn has_rare_strings(&self, input: &Arc<dyn ExecutionPlan>) -> bool {
        texts::has_rare(self.columns[..self.query.keys.len()].iter(), input)
    }

    /// The primitives' errors as DataFusion's, with SQL's names.
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
        let columns: Result<Vec<ArrayRef>> = self
            .columns
            .iter()
            .map(|expr| {
                expr.evaluate(batch).and_then(|value: ColumnarValue| value.into_array(rows))
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.input), columns?, &options)?)
    }

    /// What statistics tell of the rows to come, estimates included.
    pub(super) fn expected(&self, statistics: &Statistics) -> Expected {
        let keys = &self.columns[..self.query.keys.len()];
        let known = keys.iter().zip(self.input.fields()).map(|(expr, field)| {
            let column = expr.downcast_ref::<Column>();
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
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<Field>,
}

impl QueryColumns<'_> {
    /// Position of an expression among the columns.
    fn push(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        if let Some(known) = self.exprs.iter().position(|own| own.eq(expr)) {
            return Some(known);
        }
        let data_type = expr.data_type(self.schema).ok()?;
        let nullable = expr.nullable(self.schema).ok()?;
        self.exprs.push(Arc::clone(expr));
        self.fields.push(Field::new(expr.to_string(), data_type, nullable));
        Some(self.exprs.len() - 1)
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
            "count" => self.count(argument)?,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return None,
        };
        let column = match kind {
            Function::CountRows => 0,
            _ => self.push(argument)?,
        };
        Some(Aggregate { function: kind, column })
    }

    /// `count(x)` is `count(*)` where x is never null.
    fn count(&self, argument: &Arc<dyn PhysicalExpr>) -> Option<Function> {
        let literal = argument.downcast_ref::<Literal>();
        let never_null = match literal {
            Some(literal) => !literal.value().is_null(),
            None => !argument.nullable(self.schema).ok()?,
        };
        let fixed = literal.is_none() && is_number(&argument.data_type(self.schema).ok()?);
        match (never_null, fixed) {
            (true, _) => Some(Function::CountRows),
            (false, true) => Some(Function::Count),
            (false, false) => None,
        }
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() && !matches!(data_type, DataType::Decimal256(..) | DataType::Float16)
        || data_type.is_temporal() && !matches!(data_type, DataType::Interval(_))
}
