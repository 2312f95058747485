//! A prepared query: which columns it reads, which states it keeps, what it returns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_placement::Arena;
use atoll_topology::NodeId;

use super::function::column;
use super::lane::{self, Lane};
use super::state::{self, GroupStates, StateKind};
use super::{Aggregate, Function, Query};
use crate::PrimitiveError;

/// A query over input of one schema.
#[derive(Clone, Debug)]
pub(super) struct AggregatePlan {
    pub(super) query: Query,
    pub(super) key_types: Vec<DataType>,
    /// Columns read as values, and their types.
    pub(super) values: Vec<(usize, DataType)>,
    /// The states, and the position in `values` of each.
    pub(super) states: Vec<(StateKind, usize)>,
    outputs: Vec<Output>,
    schema: SchemaRef,
}

/// A result column computed from states (by position).
#[derive(Clone, Debug)]
struct Output {
    aggregate: Aggregate,
    data_type: DataType,
    state: usize,
    /// Average: the number of values.
    count: Option<usize>,
    /// Average of decimals: the factor that gives a sum the result's scale.
    factor: i128,
    what: String,
}

impl AggregatePlan {
    /// Prepares a query for input of this schema.
    ///
    /// # Errors
    /// [`PrimitiveError::Shape`] for a missing column, [`PrimitiveError::Type`].
    pub(super) fn new(query: &Query, schema: &Schema) -> Result<Self, PrimitiveError> {
        let key_types: Result<Vec<DataType>, _> =
            query.keys.iter().map(|at| column(schema, *at).cloned()).collect();
        let mut plan = Self {
            query: query.clone(),
            key_types: key_types?,
            values: Vec::new(),
            states: Vec::new(),
            outputs: Vec::new(),
            schema: Arc::new(Schema::empty()),
        };
        let keys = query.keys.iter().map(|at| key(schema.field(*at)));
        let mut fields: Vec<Field> = keys.collect();
        for aggregate in &query.aggregates {
            let output = plan.output(*aggregate, schema)?;
            let nullable = !matches!(aggregate.function, Function::CountRows | Function::Count);
            fields.push(Field::new(&output.what, output.data_type.clone(), nullable));
            plan.outputs.push(output);
        }
        plan.schema = Arc::new(Schema::new(fields));
        Ok(plan)
    }

    fn output(&mut self, aggregate: Aggregate, schema: &Schema) -> Result<Output, PrimitiveError> {
        let data_type = aggregate.result_type(schema)?;
        if aggregate.function == Function::CountRows {
            let state = self.state(StateKind::Rows, usize::MAX);
            let what = aggregate.name(schema);
            return Ok(Output { aggregate, data_type, state, count: None, factor: 1, what });
        }
        let field = schema.field(aggregate.column);
        let of = field.data_type();
        if !lane::is_fixed(of) {
            return Err(PrimitiveError::Type {
                what: aggregate.function.name(),
                data_type: of.clone(),
                supported: "numbers, dates and times; count of others is count(*) less their nulls",
            });
        }
        let value = self.value(aggregate.column, of);
        let sum = if lane::is_float(of) { StateKind::FloatSum } else { StateKind::Sum };
        let kind = match aggregate.function {
            Function::Count | Function::CountRows => StateKind::Count,
            Function::Sum | Function::Avg => sum,
            Function::Min | Function::Max => {
                let largest = aggregate.function == Function::Max;
                match lane::may_be_wide(of) {
                    true => StateKind::WideExtreme { largest },
                    false => StateKind::Extreme { largest },
                }
            }
        };
        let state = self.state(kind, value);
        let count =
            (aggregate.function == Function::Avg).then(|| self.state(StateKind::Count, value));
        let what = aggregate.name(schema);
        let factor = factor(of, &data_type);
        Ok(Output { aggregate, data_type, state, count, factor, what })
    }

    /// Position of a column among the values.
    fn value(&mut self, column: usize, data_type: &DataType) -> usize {
        let known = self.values.iter().position(|(at, _)| *at == column);
        known.unwrap_or_else(|| {
            self.values.push((column, data_type.clone()));
            self.values.len() - 1
        })
    }

    fn state(&mut self, kind: StateKind, value: usize) -> usize {
        let known = self.states.iter().position(|state| *state == (kind, value));
        known.unwrap_or_else(|| {
            self.states.push((kind, value));
            self.states.len() - 1
        })
    }

    /// Schema of the result: keys, then aggregates.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The value columns of a batch.
    pub(super) fn lanes(&self, rows: &RecordBatch) -> Result<Vec<Lane>, PrimitiveError> {
        self.values.iter().map(|(at, data_type)| lane(rows.column(*at), data_type)).collect()
    }

    /// The key columns of a batch.
    pub(super) fn keys(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.query.keys.iter().map(|at| Arc::clone(rows.column(*at))).collect()
    }

    /// Empty states.
    pub(super) fn empty_states(
        &self,
        arena: &Arena,
        home: Option<NodeId>,
        expected: usize,
    ) -> Vec<GroupStates> {
        self.states.iter().map(|(kind, _)| GroupStates::new(*kind, arena, home, expected)).collect()
    }

    /// The result rows of the chosen groups.
    pub(super) fn batch(
        &self,
        keys: Vec<ArrayRef>,
        states: &[GroupStates],
        chosen: &[u32],
        (arena, home): (&Arena, Option<NodeId>),
    ) -> Result<RecordBatch, PrimitiveError> {
        let mut columns = keys;
        for output in &self.outputs {
            columns.push(output.column(states, chosen, arena, home)?);
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(chosen.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// A key column of the result: dictionaries are returned as their values.
fn key(field: &Field) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, values) => field.clone().with_data_type(values.as_ref().clone()),
        _ => field.clone(),
    }
}

/// An array's numbers.
fn lane(array: &ArrayRef, data_type: &DataType) -> Result<Lane, PrimitiveError> {
    let lane = Lane::new(array).filter(|_| array.data_type() == data_type);
    lane.ok_or_else(|| PrimitiveError::Shape {
        what: "type of a column".into(),
        found: array.data_type().to_string(),
        expected: data_type.to_string(),
    })
}

impl Output {
    fn column(
        &self,
        states: &[GroupStates],
        chosen: &[u32],
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<ArrayRef, PrimitiveError> {
        let state = &states[self.state];
        match self.aggregate.function {
            Function::CountRows | Function::Count => {
                Ok(Arc::new(Int64Array::from(state.counts(chosen))))
            }
            Function::Avg => self.average(state, states, chosen, arena, home),
            _ => state.column(chosen, &self.data_type, &self.what, arena, home),
        }
    }

    fn average(
        &self,
        state: &GroupStates,
        states: &[GroupStates],
        chosen: &[u32],
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<ArrayRef, PrimitiveError> {
        let counts = states[self.count.expect("an average has a count")].counts(chosen);
        let nulls = state.nulls(chosen);
        if let DataType::Decimal128(..) = self.data_type {
            let of = |(group, count): (&u32, &i64)| {
                mean(state.sum(*group as usize), *count, self.factor)
            };
            let means: Vec<Option<i128>> = chosen.iter().zip(&counts).map(of).collect();
            let all: Vec<u32> = (0..chosen.len() as u32).collect();
            let values = state::cast(&all, &self.data_type, arena, home, |row| means[row])?;
            let values = values.ok_or_else(|| PrimitiveError::Overflow {
                what: self.what.clone(),
                data_type: self.data_type.clone(),
            })?;
            return state::array(&self.data_type, chosen.len(), values, nulls);
        }
        let means = chosen.iter().zip(counts).map(|(group, count)| {
            if count == 0 { 0.0 } else { state.float_sum(*group as usize) / count as f64 }
        });
        Ok(Arc::new(Float64Array::new(means.collect::<Vec<f64>>().into(), nulls)))
    }
}

/// Ten to the power of the difference in scale of two decimal types.
fn factor(of: &DataType, result: &DataType) -> i128 {
    match (of, result) {
        (DataType::Decimal128(_, scale), DataType::Decimal128(_, more)) => {
            10_i128.pow(u32::from((more - scale).unsigned_abs()))
        }
        _ => 1,
    }
}

/// `sum · factor / count`, rounded half away from zero; None if it does not fit. Quotient and remainder are scaled
/// separately, so that only the result needs to fit.
fn mean(sum: i256, count: i64, factor: i128) -> Option<i128> {
    match sum.to_i128() {
        Some(sum) => short_mean(sum, count.max(1).into(), factor),
        None => {
            let [count, factor] = [count.max(1).into(), factor].map(i256::from_i128);
            let whole = sum.checked_div(count)?.checked_mul(factor)?;
            let rest = sum.checked_rem(count)?.checked_mul(factor)?;
            let twice = rest.checked_rem(count)?.wrapping_abs().wrapping_mul(i256::from_i128(2));
            let up = if twice >= count { rest.signum() } else { i256::ZERO };
            whole.checked_add(rest.checked_div(count)?)?.checked_add(up)?.to_i128()
        }
    }
}

fn short_mean(sum: i128, count: i128, factor: i128) -> Option<i128> {
    let whole = (sum / count).checked_mul(factor)?;
    let rest = (sum % count).checked_mul(factor)?;
    let up = if 2 * (rest % count).abs() >= count { rest.signum() } else { 0 };
    whole.checked_add(rest / count)?.checked_add(up)
}
