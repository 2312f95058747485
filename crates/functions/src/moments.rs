//! Float aggregates that keep a few numbers per group: `product`, `fsum`, `skewness`, `sem`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use crate::listing::{Listing, told_apart_by_listing};

/// State of a group: the number of values, then numbers specific to the aggregate.
const KEPT: usize = 5;

/// The numbers of a group.
type Numbers = [f64; KEPT];

/// An aggregate with its documentation and computation.
pub(super) struct MomentsEntry {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
    pub(super) example: &'static str,
    /// The initial state.
    none: Numbers,
    /// One or two arguments.
    arguments_count: usize,
    add: fn(&mut Numbers, f64, f64),
    merge: fn(&mut Numbers, &Numbers),
    /// The result; None if the values are too few.
    finish: fn(&Numbers) -> Option<f64>,
}

fn sums(numbers: &mut Numbers, others: &Numbers) {
    for (number, other) in numbers.iter_mut().zip(others) {
        *number += other;
    }
}

/// Adds to a sum (1) and its error (2), by Neumaier.
fn kahan(numbers: &mut Numbers, value: f64) {
    let sum = numbers[1] + value;
    numbers[2] += match numbers[1].abs() >= value.abs() {
        true => (numbers[1] - sum) + value,
        false => (value - sum) + numbers[1],
    };
    numbers[1] = sum;
}

fn kahan_total(numbers: &Numbers) -> f64 {
    let total = numbers[1] + numbers[2];
    // Infinities have no error.
    if total.is_nan() { numbers[1] } else { total }
}

fn add_exactly(numbers: &mut Numbers, value: f64, _: f64) {
    numbers[0] += 1.0;
    kahan(numbers, value);
}

fn merge_exactly(numbers: &mut Numbers, others: &Numbers) {
    numbers[0] += others[0];
    kahan(numbers, others[1]);
    numbers[2] += others[2];
}

fn add_powers(numbers: &mut Numbers, value: f64, _: f64) {
    numbers[0] += 1.0;
    for (at, number) in numbers.iter_mut().enumerate().skip(1) {
        *number += value.powi(at as i32);
    }
}

fn skewness(numbers: &Numbers) -> Option<f64> {
    let [count, sum, squares, cubes, _] = *numbers;
    if count <= 2.0 {
        return None;
    }
    let part = 1.0 / count;
    let variance = (part * (squares - sum * sum * part)).powi(3);
    if variance <= 0.0 {
        return Some(f64::NAN);
    }
    let factor = (count * (count - 1.0)).sqrt() / (count - 2.0);
    let third = cubes - 3.0 * squares * (sum * part) + 3.0 * sum * (sum * part).powi(2)
        - count * (sum * part).powi(3);
    Some(factor * part * third / variance.sqrt())
}

fn kurtosis(numbers: &Numbers, of_sample: bool) -> Option<f64> {
    let [count, sum, squares, cubes, fourths] = *numbers;
    if count <= if of_sample { 3.0 } else { 1.0 } {
        return None;
    }
    let part = 1.0 / count;
    let second = part * (squares - sum * sum * part);
    if second <= 0.0 {
        return None;
    }
    let fourth = part
        * (fourths - 4.0 * cubes * sum * part + 6.0 * squares * (sum * part).powi(2)
            - 3.0 * count * (sum * part).powi(4));
    let of_all = fourth / (second * second) - 3.0;
    Some(match of_sample {
        true => (count - 1.0) * ((count + 1.0) * of_all + 6.0) / ((count - 2.0) * (count - 3.0)),
        false => of_all,
    })
}

/// Updates the mean (1) and the sum of squared differences from it (2), by Welford.
fn add_squares(numbers: &mut Numbers, value: f64, _: f64) {
    numbers[0] += 1.0;
    let distance = value - numbers[1];
    numbers[1] += distance / numbers[0];
    numbers[2] += distance * (value - numbers[1]);
}

fn merge_squares(numbers: &mut Numbers, others: &Numbers) {
    let count = numbers[0] + others[0];
    if others[0] == 0.0 || count == 0.0 {
        return;
    }
    let distance = others[1] - numbers[1];
    numbers[2] += others[2] + distance * distance * numbers[0] * others[0] / count;
    numbers[1] += distance * others[0] / count;
    numbers[0] = count;
}

const ZEROS: Numbers = [0.0; KEPT];

pub(super) static ENTRIES: &[MomentsEntry] = &[
    MomentsEntry {
        name: "product",
        aliases: &[],
        arguments: "number",
        about: "The product, as DOUBLE.",
        example: "product(factor)",
        none: [0.0, 1.0, 0.0, 0.0, 0.0],
        arguments_count: 1,
        add: |numbers, value, _| {
            numbers[0] += 1.0;
            numbers[1] *= value;
        },
        merge: |numbers, others| {
            numbers[0] += others[0];
            numbers[1] *= others[1];
        },
        finish: |numbers| Some(numbers[1]),
    },
    MomentsEntry {
        name: "fsum",
        aliases: &["kahan_sum", "sumkahan"],
        arguments: "number",
        about: "The sum as DOUBLE, with compensation for rounding errors (Kahan, Neumaier).",
        example: "fsum(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_exactly,
        merge: merge_exactly,
        finish: |numbers| Some(kahan_total(numbers)),
    },
    MomentsEntry {
        name: "favg",
        aliases: &[],
        arguments: "number",
        about: "The average as DOUBLE, of the sum that fsum makes.",
        example: "favg(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_exactly,
        merge: merge_exactly,
        finish: |numbers| Some(kahan_total(numbers) / numbers[0]),
    },
    MomentsEntry {
        name: "skewness",
        aliases: &[],
        arguments: "number",
        about: "The skewness; NULL of fewer than three values.",
        example: "skewness(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_powers,
        merge: sums,
        finish: skewness,
    },
    MomentsEntry {
        name: "kurtosis",
        aliases: &[],
        arguments: "number",
        about: "The excess kurtosis of a sample; NULL of fewer than four values.",
        example: "kurtosis(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_powers,
        merge: sums,
        finish: |numbers| kurtosis(numbers, true),
    },
    MomentsEntry {
        name: "kurtosis_pop",
        aliases: &[],
        arguments: "number",
        about: "The excess kurtosis of all values.",
        example: "kurtosis_pop(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_powers,
        merge: sums,
        finish: |numbers| kurtosis(numbers, false),
    },
    MomentsEntry {
        name: "sem",
        aliases: &[],
        arguments: "number",
        about: "The standard error of the mean.",
        example: "sem(price)",
        none: ZEROS,
        arguments_count: 1,
        add: add_squares,
        merge: merge_squares,
        finish: |numbers| Some((numbers[2] / numbers[0]).sqrt() / numbers[0].sqrt()),
    },
    MomentsEntry {
        name: "geometric_mean",
        aliases: &["geomean"],
        arguments: "number",
        about: "The geometric mean.",
        example: "geomean(factor)",
        none: ZEROS,
        arguments_count: 1,
        add: |numbers, value, _| add_exactly(numbers, value.ln(), 0.0),
        merge: merge_exactly,
        finish: |numbers| Some((kahan_total(numbers) / numbers[0]).exp()),
    },
    MomentsEntry {
        name: "weighted_avg",
        aliases: &["wavg"],
        arguments: "number, weight",
        about: "The average with weights.",
        example: "weighted_avg(price, amount)",
        none: ZEROS,
        arguments_count: 2,
        add: |numbers, value, weight| {
            numbers[0] += 1.0;
            numbers[1] += value * weight;
            numbers[2] += weight;
        },
        merge: sums,
        finish: |numbers| (numbers[2] != 0.0).then(|| numbers[1] / numbers[2]),
    },
];

/// Converts an entry to a DataFusion function.
pub(super) struct Moments {
    entry: &'static MomentsEntry,
    listing: Listing,
    signature: Signature,
}

impl Moments {
    pub(super) fn new(entry: &'static MomentsEntry) -> Self {
        let MomentsEntry { name, aliases, arguments, about, example, .. } = *entry;
        Self {
            entry,
            listing: Listing::new(name, aliases, arguments, about, example),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

told_apart_by_listing!(Moments);

fn distinct_refused<T>(name: &str) -> Result<T> {
    plan_err!(
        "DISTINCT in {name} is not supported; select the distinct values in a query of their own"
    )
}

impl AggregateUDFImpl for Moments {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn aliases(&self) -> &[String] {
        &self.listing.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let fits = given.len() == self.entry.arguments_count
            && given.iter().all(|one| one.is_numeric() || one.is_null());
        if !fits {
            let MomentsEntry { name, arguments, .. } = self.entry;
            return plan_err!("{name} takes {arguments}");
        }
        Ok(vec![DataType::Float64; given.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |at: usize| {
            Arc::new(Field::new(format!("{}[{at}]", args.name), DataType::Float64, true))
        };
        Ok((0..KEPT).map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return distinct_refused(self.entry.name);
        }
        Ok(Box::new(GroupMoments(GroupsMoments { entry: self.entry, groups: vec![] })))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupsMoments { entry: self.entry, groups: vec![] }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.listing.documentation)
    }
}

/// The numbers of many groups.
struct GroupsMoments {
    entry: &'static MomentsEntry,
    groups: Vec<Numbers>,
}

impl GroupsMoments {
    fn result(&self, numbers: &Numbers) -> Result<Option<f64>> {
        if numbers[0] == 0.0 {
            return Ok(None);
        }
        let result = (self.entry.finish)(numbers);
        let is_number = numbers[1..].iter().all(|number| number.is_finite());
        match result {
            // As in DuckDB: the result is out of range although all values were in range.
            Some(value) if !value.is_finite() && !is_number && self.entry.name != "product" => {
                match self.entry.name {
                    "fsum" | "favg" | "geometric_mean" | "weighted_avg" => Ok(Some(value)),
                    name => exec_err!("{name} is out of range"),
                }
            }
            other => Ok(other),
        }
    }
}

impl GroupsAccumulator for GroupsMoments {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize(total_num_groups, self.entry.none);
        // The keys of an ORDER BY follow the arguments.
        let arguments = &values[..self.entry.arguments_count];
        let columns: Vec<&Float64Array> =
            arguments.iter().map(|value| value.as_primitive::<Float64Type>()).collect();
        let second = columns.last().map_or(columns[0], |last| last);
        for (row, &group) in group_indices.iter().enumerate() {
            let is_there = columns.iter().all(|column| column.is_valid(row))
                && opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if is_there {
                let (first, second) = (columns[0].value(row), second.value(row));
                (self.entry.add)(&mut self.groups[group], first, second);
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize(total_num_groups, self.entry.none);
        for (row, &group) in group_indices.iter().enumerate() {
            let mut numbers = ZEROS;
            for (number, column) in numbers.iter_mut().zip(values) {
                *number = column.as_primitive::<Float64Type>().value(row);
            }
            (self.entry.merge)(&mut self.groups[group], &numbers);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        let results: Result<Float64Array> =
            groups.iter().map(|numbers| self.result(numbers)).collect();
        Ok(Arc::new(results?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emit_to.take_needed(&mut self.groups);
        let column = |at: usize| -> ArrayRef {
            Arc::new(groups.iter().map(|numbers| Some(numbers[at])).collect::<Float64Array>())
        };
        Ok((0..KEPT).map(column).collect())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let count = values[0].len();
        let mut each = Self { entry: self.entry, groups: vec![] };
        each.update_batch(values, &(0..count).collect::<Vec<_>>(), opt_filter, count)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Numbers>()
    }
}

/// The numbers of one group.
struct GroupMoments(GroupsMoments);

impl std::fmt::Debug for GroupMoments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GroupMoments({})", self.0.entry.name)
    }
}

impl GroupMoments {
    fn numbers(&self) -> Numbers {
        self.0.groups.first().copied().unwrap_or(self.0.entry.none)
    }
}

impl Accumulator for GroupMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values, &vec![0; values[0].len()], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states, &vec![0; states[0].len()], 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.0.result(&self.numbers())?))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.numbers().iter().map(|number| ScalarValue::Float64(Some(*number))).collect())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}
