//! Window frames without the current row or its peers: `… ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW`.
//!
//! DataFusion does not support EXCLUDE. Before parsing, it is replaced by a constant ([`EXCLUDE`]) among the partition
//! keys. A function over such a frame is a window function here: a count, a sum of integers, and a sum
//! or an average of decimals follow the frames (`running`); other aggregates are recomputed over the rows of
//! each frame, so their time grows with its length.

mod running;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::function::{
    AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::planner::RawWindowExpr;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::COUNT_STAR_EXPANSION;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, Expr, PartitionEvaluator, Signature, Volatility,
    WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

use crate::failure::FunctionFailure;
use running::{PartitionRows, Running, goes_along};

/// The prefix of a constant that represents EXCLUDE; its words follow.
pub const EXCLUDE: &str = "$exclude ";

/// The rows that a frame excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Without {
    Current,
    Group,
    Ties,
}

impl Without {
    fn words(self) -> &'static str {
        match self {
            Self::Current => "CURRENT ROW",
            Self::Group => "GROUP",
            Self::Ties => "TIES",
        }
    }
}

/// What is computed over the rows of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Computed {
    Aggregate(Arc<AggregateUDF>),
    First,
    Last,
    Nth,
}

/// Rewrites the call of a window function whose frame has an EXCLUDE.
pub(crate) fn excluded(mut call: RawWindowExpr) -> Result<RawWindowExpr> {
    let Some(at) = call.partition_by.iter().position(|key| without_of(key).is_some()) else {
        return Ok(call);
    };
    let Some(without) = without_of(&call.partition_by.remove(at)) else { return Ok(call) };
    let computed = match &call.func_def {
        WindowFunctionDefinition::AggregateUDF(function) => {
            Computed::Aggregate(Arc::clone(function))
        }
        WindowFunctionDefinition::WindowUDF(function) => match function.name() {
            "first_value" => Computed::First,
            "last_value" => Computed::Last,
            "nth_value" => Computed::Nth,
            // These use the whole partition.
            _ => return Ok(call),
        },
    };
    if call.null_treatment == Some(NullTreatment::IgnoreNulls) {
        return not_impl_err!("IGNORE NULLS over a frame with EXCLUDE");
    }
    if is_everything(&call.args) {
        call.args = vec![Expr::Literal(COUNT_STAR_EXPANSION, None)];
    }
    let has_filter = call.filter.is_some();
    let arguments = call.args.len();
    call.args.extend(call.filter.take().map(|filter| *filter));
    let is_distinct = std::mem::take(&mut call.distinct);
    // Function names must be unique because they name plan columns.
    let distinct = if is_distinct { " DISTINCT" } else { "" };
    let filter = if has_filter { " FILTER" } else { "" };
    let (name, words) = (call.func_def.name(), without.words());
    let function = Excluded {
        name: format!("{name}{distinct}{filter} EXCLUDE {words}"),
        computed,
        without,
        arguments,
        has_filter,
        is_distinct,
        signature: Signature::user_defined(Volatility::Immutable),
    };
    let function = Arc::new(WindowUDF::new_from_impl(function));
    call.func_def = WindowFunctionDefinition::WindowUDF(function);
    Ok(call)
}

/// Whether these are the arguments of `count(*)`, which DataFusion replaces only if they are alone.
fn is_everything(args: &[Expr]) -> bool {
    #[expect(deprecated, reason = "DataFusion marks it so and still plans it")]
    let is_star = matches!(args, [Expr::Wildcard { .. }]);
    is_star || args.is_empty()
}

fn without_of(key: &Expr) -> Option<Without> {
    let Expr::Literal(value, _) = key else { return None };
    let words = value.try_as_str()??.strip_prefix(EXCLUDE)?;
    [Without::Current, Without::Group, Without::Ties].into_iter().find(|it| it.words() == words)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Excluded {
    name: String,
    computed: Computed,
    without: Without,
    /// Returns the number of arguments, without the FILTER condition that follows them.
    arguments: usize,
    has_filter: bool,
    is_distinct: bool,
    signature: Signature,
}

impl WindowUDFImpl for Excluded {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let (arguments, filter) = given.split_at(self.arguments);
        let mut types = match &self.computed {
            Computed::Aggregate(function) => {
                let fields: Vec<FieldRef> = arguments
                    .iter()
                    .map(|of| Arc::new(Field::new("", of.clone(), true)) as FieldRef)
                    .collect();
                let fields = fields_with_udf(&fields, function.as_ref())?;
                fields.iter().map(|field| field.data_type().clone()).collect()
            }
            Computed::First | Computed::Last => arguments.to_vec(),
            Computed::Nth => vec![arguments[0].clone(), DataType::Int64],
        };
        types.extend(filter.iter().map(|_| DataType::Boolean));
        Ok(types)
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let fields = &args.input_fields()[..self.arguments];
        let data_type = match &self.computed {
            Computed::Aggregate(function) => function.return_field(fields)?.data_type().clone(),
            _ => fields[0].data_type().clone(),
        };
        Ok(Arc::new(Field::new(args.name(), data_type, true)))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields()[..self.arguments].to_vec();
        let return_field = match &self.computed {
            Computed::Aggregate(function) => function.return_field(&fields)?,
            _ => Arc::clone(&fields[0]),
        };
        let types = fields.iter().map(|field| field.data_type());
        let goes_along = match &self.computed {
            Computed::Aggregate(function) => goes_along(function, self.is_distinct, types),
            _ => false,
        };
        Ok(Box::new(Frames {
            computed: self.computed.clone(),
            goes_along,
            running: None,
            without: self.without,
            is_distinct: self.is_distinct,
            has_filter: self.has_filter,
            exprs: args.input_exprs()[..self.arguments].to_vec(),
            fields,
            return_field,
            peers: None,
            row: 0,
        }))
    }
}

/// The frames of a partition, whose rows come one after another.
#[derive(Debug)]
struct Frames {
    computed: Computed,
    without: Without,
    is_distinct: bool,
    has_filter: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    return_field: FieldRef,
    /// Whether the aggregate follows the frames.
    goes_along: bool,
    running: Option<Running>,
    /// The peers of each row, including itself.
    peers: Option<Vec<Range<usize>>>,
    row: usize,
}

impl Frames {
    /// Returns the ranges that the frame of the next row excludes.
    fn left_out(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<[Range<usize>; 2]> {
        let row = self.row;
        if self.without == Without::Current {
            return Ok([within(row..row + 1, frame), 0..0]);
        }
        let behind = self.exprs.len() + usize::from(self.has_filter);
        let all = values.first().map_or(frame.end, |values| values.len());
        let peers = match &self.peers {
            Some(peers) => peers,
            None => self.peers.insert(peers_of(&values[behind..], all)?),
        };
        let peers = peers[row].clone();
        Ok(match self.without {
            Without::Ties => [within(peers.start..row, frame), within(row + 1..peers.end, frame)],
            _ => [within(peers, frame), 0..0],
        })
    }

    /// Returns the remaining rows of a frame.
    fn rows(&self, values: &[ArrayRef], frame: &Range<usize>, out: &[Range<usize>]) -> Vec<u32> {
        let is_left = |at: &usize| !out.iter().any(|out| out.contains(at));
        let passes = |at: &usize| {
            let filter = self.has_filter.then(|| values[self.exprs.len()].as_boolean());
            filter.is_none_or(|filter| filter.is_valid(*at) && filter.value(*at))
        };
        let left = frame.clone().filter(is_left).filter(passes);
        left.map(|at| at as u32).collect()
    }

    fn accumulator(&self, function: &AggregateUDF) -> Result<Box<dyn Accumulator>> {
        let schema = Schema::empty();
        let args = AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.return_field.name(),
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        };
        match self.goes_along {
            true => function.create_sliding_accumulator(args),
            false => function.accumulator(args),
        }
    }

    /// Evaluates the aggregate over a frame, continuing from the previous one.
    fn taken_along(
        &mut self,
        function: &AggregateUDF,
        values: &[ArrayRef],
        frame: &Range<usize>,
        left_out: &[Range<usize>],
    ) -> Result<ScalarValue> {
        let running = self.running.take().filter(|running| running.reaches(frame));
        let mut running = match running {
            Some(running) => running,
            None => Running::new(self.accumulator(function)?),
        };
        let arguments = self.exprs.len();
        let filter = self.has_filter.then(|| &values[arguments]);
        let rows = PartitionRows { arguments: &values[..arguments], filter };
        running.move_to(&rows, frame)?;
        let result = running.without(&rows, left_out);
        self.running = Some(running);
        result
    }

    /// Evaluates the aggregate over the remaining rows of a frame.
    fn computed_anew(
        &self,
        function: &AggregateUDF,
        values: &[ArrayRef],
        rows: Vec<u32>,
    ) -> Result<ScalarValue> {
        let mut accumulator = self.accumulator(function)?;
        if !rows.is_empty() {
            let rows = UInt32Array::from(rows);
            let arguments = values[..self.exprs.len()].iter();
            let arguments = arguments.map(|values| take(values, &rows, None));
            accumulator.update_batch(&arguments.collect::<std::result::Result<Vec<_>, _>>()?)?;
        }
        accumulator.evaluate()
    }

    /// Returns which remaining row is wanted, counted from 1, as `nth_value` specifies for the row.
    fn nth(&self, values: &[ArrayRef], rows: &[u32]) -> Result<Option<u32>> {
        let nth = values[1].as_primitive::<Int64Type>();
        if nth.is_null(self.row) {
            return Ok(None);
        }
        match usize::try_from(nth.value(self.row)) {
            Ok(nth @ 1..) => Ok(rows.get(nth - 1).copied()),
            _ => Err(not_positive()),
        }
    }
}

/// The error of an `nth_value` whose argument is not positive.
pub(crate) fn not_positive() -> DataFusionError {
    let message = "argument of nth_value must be greater than zero".to_owned();
    FunctionFailure::error("22016", message)
}

/// Intersects two ranges.
fn within(range: Range<usize>, frame: &Range<usize>) -> Range<usize> {
    let (start, end) = (range.start.max(frame.start), range.end.min(frame.end));
    start..end.max(start)
}

/// Returns ranges of rows that are equal in the order; one range without an order.
fn peers_of(keys: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
    if keys.is_empty() {
        return Ok(vec![0..rows; rows]);
    }
    let fields = keys.iter().map(|key| SortField::new(key.data_type().clone()));
    let keys = RowConverter::new(fields.collect())?.convert_columns(keys)?;
    let mut peers = Vec::with_capacity(rows);
    let mut start = 0;
    for end in 1..=rows {
        if end == rows || keys.row(end) != keys.row(start) {
            peers.extend(std::iter::repeat_n(start..end, end - start));
            start = end;
        }
    }
    Ok(peers)
}

impl PartitionEvaluator for Frames {
    fn uses_window_frame(&self) -> bool {
        true
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let out = self.left_out(values, range)?;
        let result = match self.computed.clone() {
            Computed::Aggregate(function) if self.goes_along => {
                self.taken_along(&function, values, range, &out)
            }
            Computed::Aggregate(function) => {
                self.computed_anew(&function, values, self.rows(values, range, &out))
            }
            computed => {
                let rows = self.rows(values, range, &out);
                let picked = match computed {
                    Computed::First => rows.first().copied(),
                    Computed::Last => rows.last().copied(),
                    _ => self.nth(values, &rows)?,
                };
                match picked {
                    Some(row) => ScalarValue::try_from_array(&values[0], row as usize),
                    None => ScalarValue::try_from(self.return_field.data_type()),
                }
            }
        };
        self.row += 1;
        result
    }
}
