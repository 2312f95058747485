//! The results of functions for all rows in order.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, new_empty_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use datafusion::error::Result;
use datafusion::physical_expr::window::WindowExpr;

use super::frame::{Frame, Frames};
use super::function::{Computed, WindowFunction};
use super::key::{is_text, ordered_values};
use super::order::KeyOrder;
use super::rows::{KeptRows, OrderedRows, RowNumber};

/// Whole numbers up to this are exact as floats.
const EXACT_FLOAT: u128 = 1 << 53;

/// The results of a function.
#[derive(Debug)]
pub(super) enum ResultColumn {
    /// An array for each output batch.
    Batches(Vec<ArrayRef>),
    /// For each row the row whose argument is the result; no row stands for `default`, of one value.
    Rows { rows: Vec<RowNumber>, default: ArrayRef },
}

/// All that is needed to compute a function.
pub(super) struct Evaluation<'a> {
    pub(super) kept: &'a KeptRows,
    pub(super) ordered: &'a OrderedRows,
    pub(super) order: &'a KeyOrder,
    /// The rows of each output batch.
    pub(super) batches: &'a [Range<usize>],
}

impl Evaluation<'_> {
    /// The results of the function with this number.
    pub(super) fn evaluate(
        &self,
        at: usize,
        function: &WindowFunction,
        expr: &dyn WindowExpr,
    ) -> Result<ResultColumn> {
        let result = &function.data_type;
        let frames = match function.computed.frame().map(|frame| self.frames(frame)) {
            Some(Some(frames)) => frames,
            Some(None) => return self.by_partition(expr),
            None => Frames { starts: vec![], ends: vec![] },
        };
        let frames = &frames;
        let column = match &function.computed {
            Computed::RowNumber => Some(self.numbers(result, |row, from, _| row - from + 1)?),
            Computed::Rank => Some(self.numbers(result, |_, from, peer| peer - from + 1)?),
            Computed::DenseRank => {
                Some(self.batches_of::<Int64Type>(result, self.dense_ranks(), None)?)
            }
            Computed::PercentRank => {
                Some(self.batches_of::<Float64Type>(result, self.percents(), None)?)
            }
            Computed::CumeDist => {
                Some(self.batches_of::<Float64Type>(result, self.shares(), None)?)
            }
            Computed::Ntile(buckets) => {
                Some(self.batches_of::<Int64Type>(result, self.buckets(*buckets), None)?)
            }
            Computed::Shift(ahead, default) => Some(ResultColumn::Rows {
                rows: self.shifted(*ahead),
                default: default.to_array()?,
            }),
            Computed::Nth(_, at) => {
                let place = |frame: Range<usize>| {
                    frame.start.checked_add(*at).filter(|place| *place < frame.end)
                };
                Some(self.rows_of_frames(frames, result, place))
            }
            Computed::Last(_) => {
                let place =
                    |frame: Range<usize>| frame.end.checked_sub(1).filter(|at| *at >= frame.start);
                Some(self.rows_of_frames(frames, result, place))
            }
            Computed::Count(_) => Some(self.counts(at, frames, result)?),
            Computed::Sum(_) => self.sums(at, frames, result)?,
            Computed::Average(_) => self.averages(at, frames, result)?,
            Computed::Smallest(_) => self.extremes(at, frames, result, Ordering::is_le),
            Computed::Largest(_) => self.extremes(at, frames, result, Ordering::is_ge),
        };
        match column {
            Some(column) => Ok(column),
            None => self.by_partition(expr),
        }
    }

    /// The frames of all rows; `None` if they depend on values that are not ordered as whole numbers.
    fn frames(&self, frame: Frame) -> Option<Frames> {
        if !frame.reads_keys() {
            return Some(frame.frames(self.ordered, None));
        }
        // A key that is one of the partition's too is not there a second time.
        let key = self.order.partition;
        let is_descending = self.order.options.get(key)?.descending;
        let keys = self.kept.row_keys(key, is_descending, &self.ordered.rows)?;
        Some(frame.frames(self.ordered, Some(&keys)))
    }

    /// Results as arrays of the output batches.
    fn batches_of<T: ArrowPrimitiveType>(
        &self,
        data_type: &DataType,
        values: Vec<T::Native>,
        valid: Option<Vec<bool>>,
    ) -> Result<ResultColumn> {
        let of = |rows: &Range<usize>| {
            let nulls = valid.as_ref().map(|valid| NullBuffer::from(&valid[rows.clone()]));
            let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
            let array = PrimitiveArray::<T>::new(values[rows.clone()].to_vec().into(), nulls);
            // Types with parameters, such as decimals, have the same values.
            match array.data_type() == data_type {
                true => Ok(Arc::new(array) as ArrayRef),
                false if T::DATA_TYPE == Decimal128Type::DATA_TYPE => {
                    Ok(Arc::new(array.with_data_type(data_type.clone())) as ArrayRef)
                }
                false => Ok(cast(&array, data_type)?),
            }
        };
        Ok(ResultColumn::Batches(self.batches.iter().map(of).collect::<Result<_>>()?))
    }

    /// Numbers out of a row, the first of its partition and the first of its peers.
    fn numbers(
        &self,
        data_type: &DataType,
        number: impl Fn(usize, usize, usize) -> usize,
    ) -> Result<ResultColumn> {
        let mut numbers = Vec::with_capacity(self.ordered.len());
        for partition in self.ordered.partitions() {
            let mut peer = partition.start;
            for row in partition.clone() {
                if !self.ordered.peers[row] {
                    peer = row;
                }
                numbers.push(number(row, partition.start, peer) as i64);
            }
        }
        self.batches_of::<Int64Type>(data_type, numbers, None)
    }

    fn dense_ranks(&self) -> Vec<i64> {
        let mut ranks = Vec::with_capacity(self.ordered.len());
        for partition in self.ordered.partitions() {
            let mut rank = 0;
            for row in partition {
                rank += i64::from(!self.ordered.peers[row]);
                ranks.push(rank);
            }
        }
        ranks
    }

    fn percents(&self) -> Vec<f64> {
        let mut percents = Vec::with_capacity(self.ordered.len());
        for partition in self.ordered.partitions() {
            let others = (partition.len() as f64 - 1.0).max(1.0);
            let mut before = 0;
            for row in partition.clone() {
                if !self.ordered.peers[row] {
                    before = row - partition.start;
                }
                percents.push(before as f64 / others);
            }
        }
        percents
    }

    fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.ordered.len()];
        for partition in self.ordered.partitions() {
            let mut through = partition.len();
            for row in partition.clone().rev() {
                shares[row] = through as f64 / partition.len() as f64;
                if !self.ordered.peers[row] {
                    through = row - partition.start;
                }
            }
        }
        shares
    }

    fn buckets(&self, buckets: u64) -> Vec<i64> {
        let mut numbers = Vec::with_capacity(self.ordered.len());
        for partition in self.ordered.partitions() {
            let rows = partition.len() as u64;
            let (each, larger) = (rows / buckets, rows % buckets);
            let in_larger = larger * (each + 1);
            let bucket = |row| match row < in_larger {
                true => row / (each + 1),
                false => larger + (row - in_larger) / each,
            };
            numbers.extend((0..rows).map(|row| bucket(row) as i64 + 1));
        }
        numbers
    }

    fn shifted(&self, ahead: i64) -> Vec<RowNumber> {
        let mut rows = Vec::with_capacity(self.ordered.len());
        for partition in self.ordered.partitions() {
            let place = |row: usize| {
                let place = (row as i64).checked_add(ahead).and_then(|at| usize::try_from(at).ok());
                place.filter(|place| partition.contains(place))
            };
            let found = |row| place(row).map_or(RowNumber::NONE, |place| self.ordered.rows[place]);
            rows.extend(partition.clone().map(found));
        }
        rows
    }

    fn rows_of_frames(
        &self,
        frames: &Frames,
        data_type: &DataType,
        place: impl Fn(Range<usize>) -> Option<usize>,
    ) -> ResultColumn {
        let found = |row| place(frames.of(row)).map_or(RowNumber::NONE, |at| self.ordered.rows[at]);
        let rows = (0..self.ordered.len()).map(found).collect();
        ResultColumn::Rows { rows, default: null_of(data_type) }
    }

    /// The argument of each batch.
    fn arguments(&self, at: usize) -> impl Iterator<Item = Option<&ArrayRef>> {
        self.kept.batches.iter().map(move |kept| kept.arguments[at].as_ref())
    }

    /// How many rows before each row, and before the end, have a value; `None` if all have.
    fn valid_before(&self, at: usize) -> Option<Vec<u32>> {
        let is_boolean = |column: &ArrayRef| *column.data_type() == DataType::Boolean;
        let columns: Vec<Option<&ArrayRef>> = self.arguments(at).collect();
        let all = columns.iter().flatten().all(|column| match is_boolean(column) {
            true => column.as_boolean().true_count() == column.len(),
            false => column.null_count() == 0,
        });
        if all {
            return None;
        }
        let is_valid = |number: &RowNumber| {
            let Some(column) = columns[number.batch()] else { return true };
            match is_boolean(column) {
                true => column.as_boolean().value(number.row()),
                false => column.is_valid(number.row()),
            }
        };
        let mut before = Vec::with_capacity(self.ordered.len() + 1);
        let mut count = 0;
        before.push(count);
        for number in &self.ordered.rows {
            count += u32::from(is_valid(number));
            before.push(count);
        }
        Some(before)
    }

    fn counts(&self, at: usize, frames: &Frames, data_type: &DataType) -> Result<ResultColumn> {
        let before = self.valid_before(at);
        let counts = (0..self.ordered.len()).map(|row| i64::from(count(frames, &before, row)));
        self.batches_of::<Int64Type>(data_type, counts.collect(), None)
    }

    /// The arguments of the rows in order as whole numbers, 0 for null; `None` if they are none.
    fn wholes(&self, at: usize) -> Option<Vec<i128>> {
        let columns = self.arguments(at).map(|column| whole_values(column?));
        let columns: Vec<Vec<i128>> = columns.collect::<Option<_>>()?;
        let rows = self.ordered.rows.iter();
        Some(rows.map(|number| columns[number.batch()][number.row()]).collect())
    }

    /// The sum of the values before each row, and before the end; `None` if such sums may not be exact.
    fn sums_before(&self, at: usize, data_type: &DataType) -> Option<Vec<i128>> {
        let mut values = self.wholes(at)?;
        let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        let bound = largest.checked_mul(values.len() as u128)?;
        let most = match data_type {
            DataType::Float64 => EXACT_FLOAT,
            _ => i128::MAX as u128,
        };
        if bound > most {
            return None;
        }
        let mut sum = 0;
        for value in &mut values {
            sum += std::mem::replace(value, sum);
        }
        values.push(sum);
        Some(values)
    }

    fn sums(
        &self,
        at: usize,
        frames: &Frames,
        data_type: &DataType,
    ) -> Result<Option<ResultColumn>> {
        let Some(before) = self.sums_before(at, data_type) else { return Ok(None) };
        let valid_before = self.valid_before(at);
        let rows = 0..self.ordered.len();
        let valid = rows.clone().map(|row| count(frames, &valid_before, row) > 0).collect();
        let sums = rows.map(|row| {
            let frame = frames.of(row);
            before[frame.end] - before[frame.start]
        });
        let valid = Some(valid);
        Ok(Some(match data_type {
            DataType::Int64 => {
                let sums: Option<Vec<i64>> = sums.map(|sum| i64::try_from(sum).ok()).collect();
                let Some(sums) = sums else { return Ok(None) };
                self.batches_of::<Int64Type>(data_type, sums, valid)?
            }
            DataType::UInt64 => {
                let sums: Option<Vec<u64>> = sums.map(|sum| u64::try_from(sum).ok()).collect();
                let Some(sums) = sums else { return Ok(None) };
                self.batches_of::<UInt64Type>(data_type, sums, valid)?
            }
            DataType::Decimal128(precision, _) => {
                let limit = 10_u128.pow(u32::from(*precision));
                let fits = |sum: i128| (sum.unsigned_abs() < limit).then_some(sum);
                let Some(sums) = sums.map(fits).collect() else { return Ok(None) };
                self.batches_of::<Decimal128Type>(data_type, sums, valid)?
            }
            _ => {
                let sums = sums.map(|sum| sum as f64).collect();
                self.batches_of::<Float64Type>(data_type, sums, valid)?
            }
        }))
    }

    fn averages(
        &self,
        at: usize,
        frames: &Frames,
        data_type: &DataType,
    ) -> Result<Option<ResultColumn>> {
        let Some(before) = self.sums_before(at, data_type) else { return Ok(None) };
        let valid_before = self.valid_before(at);
        let rows = 0..self.ordered.len();
        let counts: Vec<u32> = rows.clone().map(|row| count(frames, &valid_before, row)).collect();
        let valid = Some(counts.iter().map(|count| *count > 0).collect());
        let sums = rows.map(|row| {
            let frame = frames.of(row);
            before[frame.end] - before[frame.start]
        });
        let counted = sums.zip(counts.iter().map(|count| (*count).max(1)));
        if *data_type == DataType::Float64 {
            let averages = counted.map(|(sum, count)| sum as f64 / f64::from(count)).collect();
            return self.batches_of::<Float64Type>(data_type, averages, valid).map(Some);
        }
        let Some(scale) = self.added_digits(at, data_type) else { return Ok(None) };
        let averages = counted.map(|(sum, count)| decimal_average(sum, count, scale));
        let Some(averages) = averages.collect() else { return Ok(None) };
        self.batches_of::<Decimal128Type>(data_type, averages, valid).map(Some)
    }

    /// Ten to the power of the fraction digits that averages of decimals have and the values lack; `None` if an
    /// average may have more digits than its type.
    fn added_digits(&self, at: usize, result: &DataType) -> Option<i128> {
        let argument = self.arguments(at).flatten().next();
        match (argument.map(|column| column.data_type()), result) {
            (Some(DataType::Decimal128(wide, of)), DataType::Decimal128(precision, scale)) => {
                let more = u8::try_from(scale.checked_sub(*of)?).ok()?;
                (wide.checked_add(more)? <= *precision).then(|| 10_i128.pow(u32::from(more)))
            }
            (None, _) => Some(1),
            _ => None,
        }
    }

    /// The first row of each frame whose value compares as `is_better` to those of all others.
    fn extremes(
        &self,
        at: usize,
        frames: &Frames,
        data_type: &DataType,
        is_better: impl Fn(Ordering) -> bool,
    ) -> Option<ResultColumn> {
        let columns: Vec<&ArrayRef> = self.arguments(at).collect::<Option<_>>()?;
        let rows = match is_text(data_type) {
            true => {
                let texts = columns.iter().map(|column| texts(column));
                let texts = texts.collect::<Option<Vec<_>>>()?;
                let value = |number: RowNumber| texts[number.batch()](number.row());
                self.best_rows(frames, value, is_better)
            }
            false => {
                let values = columns.iter().map(|column| ordered_values(column));
                let values = values.collect::<Option<Vec<_>>>()?;
                let value = |number: RowNumber| {
                    let is_valid = columns[number.batch()].is_valid(number.row());
                    is_valid.then(|| values[number.batch()][number.row()])
                };
                self.best_rows(frames, value, is_better)
            }
        };
        Some(ResultColumn::Rows { rows, default: null_of(data_type) })
    }

    /// The rows with the best values of frames whose ends only move forwards.
    fn best_rows<T: Ord + Copy>(
        &self,
        frames: &Frames,
        value: impl Fn(RowNumber) -> Option<T>,
        is_better: impl Fn(Ordering) -> bool,
    ) -> Vec<RowNumber> {
        let mut rows = Vec::with_capacity(self.ordered.len());
        // Candidates with their values: each is better than those after it.
        let mut best: VecDeque<(usize, T)> = VecDeque::new();
        for partition in self.ordered.partitions() {
            let first = partition.start;
            if frames.of(first) == partition && frames.of(partition.end - 1) == partition {
                let best = self.best_row(partition.clone(), &value, &is_better);
                rows.extend(std::iter::repeat_n(best, partition.len()));
                continue;
            }
            best.clear();
            let mut seen = first;
            for row in partition {
                let frame = frames.of(row);
                for next in seen..frame.end {
                    let Some(value) = value(self.ordered.rows[next]) else { continue };
                    while best.back().is_some_and(|(_, last)| is_better(value.cmp(last))) {
                        best.pop_back();
                    }
                    best.push_back((next, value));
                }
                seen = seen.max(frame.end);
                while best.front().is_some_and(|(first, _)| *first < frame.start) {
                    best.pop_front();
                }
                let first = best.front().filter(|(first, _)| *first < frame.end);
                rows.push(first.map_or(RowNumber::NONE, |(first, _)| self.ordered.rows[*first]));
            }
        }
        rows
    }

    /// The row with the best value of a range, the last of several.
    fn best_row<T: Ord + Copy>(
        &self,
        range: Range<usize>,
        value: impl Fn(RowNumber) -> Option<T>,
        is_better: impl Fn(Ordering) -> bool,
    ) -> RowNumber {
        let mut best: Option<(T, RowNumber)> = None;
        for number in &self.ordered.rows[range] {
            let Some(value) = value(*number) else { continue };
            if best.is_none_or(|(last, _)| is_better(value.cmp(&last))) {
                best = Some((value, *number));
            }
        }
        best.map_or(RowNumber::NONE, |(_, number)| number)
    }

    /// The results of DataFusion's function, one partition after the other.
    fn by_partition(&self, expr: &dyn WindowExpr) -> Result<ResultColumn> {
        let mut results = Vec::new();
        for partition in self.ordered.partitions() {
            results.push(expr.evaluate(&self.kept.batch(&self.ordered.rows[partition])?)?);
        }
        let results: Vec<&dyn Array> = results.iter().map(|result| result.as_ref()).collect();
        let all = match results.is_empty() {
            true => new_empty_array(expr.field()?.data_type()),
            false => concat(&results)?,
        };
        // Copies, so that a batch does not keep the results of all.
        let of = |rows: &Range<usize>| {
            let places: Vec<_> = rows.clone().map(|row| (0, row)).collect();
            datafusion::arrow::compute::interleave(&[all.as_ref()], &places)
        };
        let batches = self.batches.iter().map(of).collect::<std::result::Result<_, _>>()?;
        Ok(ResultColumn::Batches(batches))
    }
}

/// The values in the frame of a row.
#[inline]
fn count(frames: &Frames, valid_before: &Option<Vec<u32>>, row: usize) -> u32 {
    let frame = frames.of(row);
    match valid_before {
        Some(before) => before[frame.end] - before[frame.start],
        None => frame.len() as u32,
    }
}

/// The sum, scaled, by the count; `None` if it does not fit.
#[inline]
fn decimal_average(sum: i128, count: u32, scale: i128) -> Option<i128> {
    // Most sums fit 64 bits, in which division is several times faster.
    let narrow = i64::try_from(sum).ok().zip(i64::try_from(scale).ok());
    if let Some(scaled) = narrow.and_then(|(sum, scale)| sum.checked_mul(scale)) {
        let count = i64::from(count);
        let (whole, rest) = (scaled / count, scaled % count);
        let up = if 2 * rest.abs() >= count { rest.signum() } else { 0 };
        return Some(i128::from(whole + up));
    }
    atoll_functions::decimal_average(sum, i128::from(count), scale)
}

/// The text of a row; `None` for NULL.
type TextOf<'a> = Box<dyn Fn(usize) -> Option<&'a [u8]> + 'a>;

/// The text of a row, if it has one.
fn texts(column: &ArrayRef) -> Option<TextOf<'_>> {
    macro_rules! rows {
        ($texts:expr) => {{
            let texts = $texts;
            Box::new(move |row| texts.is_valid(row).then(|| texts.value(row).as_bytes()))
        }};
    }
    Some(match column.data_type() {
        DataType::Utf8View => rows!(column.as_string_view()),
        DataType::Utf8 => rows!(column.as_string::<i32>()),
        DataType::LargeUtf8 => rows!(column.as_string::<i64>()),
        _ => return None,
    })
}

fn null_of(data_type: &DataType) -> ArrayRef {
    datafusion::arrow::array::new_null_array(data_type, 1)
}

/// Values as whole numbers, 0 for null; `None` if a value is none.
fn whole_values(column: &ArrayRef) -> Option<Vec<i128>> {
    let mut values = match column.data_type() {
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>();
            let exact = EXACT_FLOAT as f64;
            let whole = |row: usize| {
                let value = if floats.is_null(row) { 0.0 } else { floats.value(row) };
                // The sum of -0.0 alone is -0.0.
                let is_whole = value.trunc() == value && value.to_bits() != (-0.0_f64).to_bits();
                (is_whole && value.abs() <= exact).then_some(value as i128)
            };
            return (0..floats.len()).map(whole).collect();
        }
        _ => ordered_values(column)?,
    };
    if let Some(nulls) = column.nulls() {
        for (value, is_valid) in values.iter_mut().zip(nulls) {
            if !is_valid {
                *value = 0;
            }
        }
    }
    Some(values)
}
