//! The states that a table keeps for each group and aggregate.

use std::borrow::Cow;

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use super::lane::{LaneValues, ValueBlock};
use super::total::Totals;
use crate::PrimitiveError;
use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::{PlacedVec, Plain};

/// Kind of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StateKind {
    /// Rows.
    Rows,
    /// Values that are not null.
    Count,
    /// Exact sum of integers.
    Sum,
    /// Sum of doubles.
    FloatSum,
    /// Least or largest value: 64-bit integers, and floats as integers of the same order.
    Extreme { largest: bool },
    /// The same of 128-bit integers.
    WideExtreme { largest: bool },
}

/// A state for each group.
#[derive(Debug)]
pub(super) struct GroupStates {
    kept: Kept,
    seen: Seen,
}

#[derive(Debug)]
enum Kept {
    Rows(PlacedVec<i64>),
    Count(PlacedVec<i64>),
    Sum(Box<Totals>),
    FloatSum(PlacedVec<f64>),
    Extreme { values: PlacedVec<i64>, largest: bool },
    WideExtreme { values: PlacedVec<i128>, largest: bool },
}

/// Which groups have had a value: all of them until the first null.
#[derive(Debug)]
struct Seen {
    flags: Option<PlacedVec<u8>>,
    /// Never filled: its home is where flags go at the first null.
    spare: PlacedVec<u8>,
    groups: usize,
}

/// Which groups had rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Touched<'a> {
    /// The groups with a 1.
    Flags(&'a [u8]),
    /// The groups below.
    Below(usize),
}

impl Touched<'_> {
    fn has(self, group: usize) -> bool {
        match self {
            Self::Flags(flags) => flags.get(group).is_some_and(|flag| *flag == 1),
            Self::Below(groups) => group < groups,
        }
    }
}

impl GroupStates {
    pub(super) fn new(
        kind: StateKind,
        arena: &Arena,
        home: Option<NodeId>,
        expected: usize,
    ) -> Self {
        let kept = match kind {
            StateKind::Rows => Kept::Rows(PlacedVec::new(arena, home)),
            StateKind::Count => Kept::Count(PlacedVec::new(arena, home)),
            StateKind::Sum => Kept::Sum(Box::new(Totals::new(arena, home, expected))),
            StateKind::FloatSum => Kept::FloatSum(PlacedVec::new(arena, home)),
            StateKind::Extreme { largest } => {
                Kept::Extreme { values: PlacedVec::new(arena, home), largest }
            }
            StateKind::WideExtreme { largest } => {
                Kept::WideExtreme { values: PlacedVec::new(arena, home), largest }
            }
        };
        let seen = Seen { flags: None, spare: PlacedVec::new(arena, home), groups: 0 };
        Self { kept, seen }
    }

    /// Adds room for groups.
    pub(super) fn grow(&mut self, groups: usize) -> Result<(), PlacementError> {
        match &mut self.kept {
            Kept::Rows(counts) | Kept::Count(counts) => counts.grow(groups, 0)?,
            Kept::Sum(totals) => totals.grow(groups)?,
            Kept::FloatSum(sums) => sums.grow(groups, 0.0)?,
            Kept::Extreme { values, largest } => values.grow(groups, least(*largest))?,
            Kept::WideExtreme { values, largest } => values.grow(groups, wide_least(*largest))?,
        }
        self.seen.grow(groups)
    }

    /// Removes all groups; keeps the memory.
    pub(super) fn clear(&mut self) {
        match &mut self.kept {
            Kept::Rows(values) | Kept::Count(values) | Kept::Extreme { values, .. } => {
                values.clear()
            }
            Kept::Sum(totals) => totals.clear(),
            Kept::FloatSum(sums) => sums.clear(),
            Kept::WideExtreme { values, .. } => values.clear(),
        }
        self.seen.flags = None;
        self.seen.groups = 0;
    }

    /// Adds the values of a block, one for each of `ids`; `touched` groups had rows before.
    pub(super) fn update(
        &mut self,
        ids: &GroupIds,
        block: ValueBlock<'_>,
        touched: Touched<'_>,
        by: usize,
    ) -> Result<(), PlacementError> {
        match (&mut self.kept, block.values) {
            (Kept::Rows(counts), _) => {
                ids.touch(counts.as_mut_slice(), by, |count| count + 1);
                return Ok(());
            }
            (Kept::Count(counts), _) => {
                match block.valid {
                    None => ids.touch(counts.as_mut_slice(), by, |count| count + 1),
                    Some(valid) => ids.fold(counts.as_mut_slice(), valid, by, |count, valid| {
                        count + i64::from(valid)
                    }),
                }
                return Ok(());
            }
            (Kept::Sum(totals), values) => totals.add(ids, values, by)?,
            (Kept::FloatSum(sums), LaneValues::Float(values)) => {
                ids.fold(sums.as_mut_slice(), values, by, |sum, value| sum + value);
            }
            (Kept::Extreme { values, largest }, block_values) => {
                let ordered = ordered(block_values, block.valid, *largest);
                extreme(ids, values.as_mut_slice(), &ordered, *largest);
            }
            (Kept::WideExtreme { values, largest }, block_values) => {
                let ordered = wide_ordered(block_values, block.valid, *largest);
                extreme(ids, values.as_mut_slice(), &ordered, *largest);
            }
            (Kept::FloatSum(_), _) => unreachable!("a float column gives floats"),
        }
        self.seen.update(ids, block.valid, touched)
    }

    /// Adds another table's states: those of its groups `from`, which have rows, one for each of `ids`.
    pub(super) fn merge(
        &mut self,
        ids: &GroupIds,
        other: &GroupStates,
        from: &[u32],
        touched: Touched<'_>,
    ) -> Result<(), PlacementError> {
        match (&mut self.kept, &other.kept) {
            (Kept::Rows(own), Kept::Rows(more)) | (Kept::Count(own), Kept::Count(more)) => {
                ids.fold_from(own.as_mut_slice(), more.as_slice(), from, i64::wrapping_add);
                return Ok(());
            }
            (Kept::Sum(own), Kept::Sum(more)) => own.merge(ids, more, from)?,
            (Kept::FloatSum(own), Kept::FloatSum(more)) => {
                ids.fold_from(own.as_mut_slice(), more.as_slice(), from, |a, b| a + b);
            }
            (Kept::Extreme { values, largest }, Kept::Extreme { values: more, .. }) => {
                merge_extreme(ids, values.as_mut_slice(), more.as_slice(), from, *largest);
            }
            (Kept::WideExtreme { values, largest }, Kept::WideExtreme { values: more, .. }) => {
                merge_extreme(ids, values.as_mut_slice(), more.as_slice(), from, *largest);
            }
            _ => unreachable!("tables of one query keep the same states"),
        }
        let seen = other.seen.flags.as_ref().map(PlacedVec::as_slice);
        let seen: Option<Vec<u8>> =
            seen.map(|seen| from.iter().map(|group| seen[*group as usize]).collect());
        self.seen.update(ids, seen.as_deref(), touched)
    }

    /// Copies it into memory of another node.
    pub(super) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        match &mut self.kept {
            Kept::Rows(values) | Kept::Count(values) => values.move_to(home)?,
            Kept::Extreme { values, .. } => values.move_to(home)?,
            Kept::Sum(totals) => totals.move_to(home)?,
            Kept::FloatSum(sums) => sums.move_to(home)?,
            Kept::WideExtreme { values, .. } => values.move_to(home)?,
        }
        self.seen.spare.move_to(home)?;
        self.seen.flags.as_mut().map_or(Ok(()), |flags| flags.move_to(home))
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        let kept = match &self.kept {
            Kept::Rows(values) | Kept::Count(values) => values.memory_bytes(),
            Kept::Extreme { values, .. } => values.memory_bytes(),
            Kept::Sum(totals) => totals.memory_bytes(),
            Kept::FloatSum(sums) => sums.memory_bytes(),
            Kept::WideExtreme { values, .. } => values.memory_bytes(),
        };
        kept + self.seen.flags.as_ref().map_or(0, PlacedVec::memory_bytes)
    }

    /// Counts of the chosen groups.
    pub(super) fn counts(&self, chosen: &[u32]) -> Vec<i64> {
        match &self.kept {
            Kept::Rows(counts) | Kept::Count(counts) => {
                chosen.iter().map(|group| counts.as_slice()[*group as usize]).collect()
            }
            _ => unreachable!("counts are asked of counts"),
        }
    }

    /// Sum of a group, as a double.
    pub(super) fn float_sum(&self, group: usize) -> f64 {
        match &self.kept {
            Kept::FloatSum(sums) => sums.as_slice()[group],
            Kept::Sum(totals) => match totals.get(group) {
                Some(sum) => sum as f64,
                None => unreachable!("128 bits hold sums of integers"),
            },
            _ => unreachable!("sums are asked of sums"),
        }
    }

    /// Exact sum of a group.
    pub(super) fn sum(&self, group: usize) -> i256 {
        match &self.kept {
            Kept::Sum(totals) => totals.exact(group),
            _ => unreachable!("exact sums are asked of exact sums"),
        }
    }

    /// Sum, least or largest value of the chosen groups as a column of this type, null without a value.
    pub(super) fn column(
        &self,
        chosen: &[u32],
        data_type: &DataType,
        what: &str,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<ArrayRef, PrimitiveError> {
        let overflow =
            || PrimitiveError::Overflow { what: what.into(), data_type: data_type.clone() };
        let values = match &self.kept {
            Kept::Sum(totals) => match totals.narrow().filter(|_| *data_type == DataType::Int64) {
                Some(narrow) => gather(chosen, arena, home, |group| Some(narrow[group])),
                None => cast(chosen, data_type, arena, home, |group| totals.get(group)),
            },
            Kept::FloatSum(sums) => {
                gather(chosen, arena, home, |group| Some(sums.as_slice()[group]))
            }
            Kept::Extreme { values, .. } => {
                let value = |group: usize| Some(i128::from(values.as_slice()[group]));
                match data_type {
                    DataType::Float64 => gather(chosen, arena, home, |group| {
                        Some(from_order(values.as_slice()[group]))
                    }),
                    DataType::Float32 => {
                        let value = |group: usize| from_order(values.as_slice()[group]) as f32;
                        Ok(Some(Buffer::from_iter(
                            chosen.iter().map(|group| value(*group as usize)),
                        )))
                    }
                    _ => cast_seen(chosen, data_type, arena, home, value, |group| {
                        self.seen.is(group)
                    }),
                }
            }
            Kept::WideExtreme { values, .. } => {
                let value = |group: usize| Some(values.as_slice()[group]);
                cast_seen(chosen, data_type, arena, home, value, |group| self.seen.is(group))
            }
            Kept::Rows(_) | Kept::Count(_) => {
                let counts = self.counts(chosen);
                Ok(Some(Buffer::from_vec(counts)))
            }
        };
        array(data_type, chosen.len(), values?.ok_or_else(overflow)?, self.seen.nulls(chosen))
    }

    /// Nulls for groups without a value.
    pub(super) fn nulls(&self, chosen: &[u32]) -> Option<NullBuffer> {
        self.seen.nulls(chosen)
    }
}

/// An array over one buffer.
pub(super) fn array(
    data_type: &DataType,
    len: usize,
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, PrimitiveError> {
    let builder = ArrayData::builder(data_type.clone()).len(len).add_buffer(values).nulls(nulls);
    Ok(make_array(builder.build()?))
}

/// Values of the chosen groups in placed memory; None if one does not fit.
pub(super) fn gather<T: Plain>(
    chosen: &[u32],
    arena: &Arena,
    home: Option<NodeId>,
    value: impl Fn(usize) -> Option<T>,
) -> Result<Option<Buffer>, PlacementError> {
    let mut room = PlacedVec::new(arena, home);
    room.grow(chosen.len(), T::default())?;
    for (to, group) in room.as_mut_slice().iter_mut().zip(chosen) {
        match value(*group as usize) {
            Some(value) => *to = value,
            None => return Ok(None),
        }
    }
    Ok(Some(room.into_buffer()))
}

/// Integers of the chosen groups as values of a type; None if one does not fit it.
pub(super) fn cast(
    chosen: &[u32],
    data_type: &DataType,
    arena: &Arena,
    home: Option<NodeId>,
    value: impl Fn(usize) -> Option<i128>,
) -> Result<Option<Buffer>, PlacementError> {
    cast_seen(chosen, data_type, arena, home, value, |_| true)
}

/// The same; groups without a value may hold anything and give 0.
fn cast_seen(
    chosen: &[u32],
    data_type: &DataType,
    arena: &Arena,
    home: Option<NodeId>,
    value: impl Fn(usize) -> Option<i128>,
    seen: impl Fn(usize) -> bool,
) -> Result<Option<Buffer>, PlacementError> {
    use DataType as T;
    let value = |group| if seen(group) { value(group) } else { Some(0) };
    fn narrow<N: ArrowNativeType + TryFrom<i128>>(
        chosen: &[u32],
        value: impl Fn(usize) -> Option<i128>,
    ) -> Option<Buffer> {
        let values: Option<Vec<N>> =
            chosen.iter().map(|group| N::try_from(value(*group as usize)?).ok()).collect();
        values.map(Buffer::from_vec)
    }
    Ok(match data_type {
        T::Int8 => narrow::<i8>(chosen, value),
        T::Int16 => narrow::<i16>(chosen, value),
        T::Int32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => narrow::<i32>(chosen, value),
        T::UInt8 => narrow::<u8>(chosen, value),
        T::UInt16 => narrow::<u16>(chosen, value),
        T::UInt32 => narrow::<u32>(chosen, value),
        T::UInt64 => return gather(chosen, arena, home, |group| u64::try_from(value(group)?).ok()),
        T::Decimal128(digits, _) => {
            let limit = 10_i128.pow(u32::from(*digits));
            let fits = |value: &i128| (1 - limit..limit).contains(value);
            return gather(chosen, arena, home, |group| value(group).filter(fits));
        }
        _ => return gather(chosen, arena, home, |group| i64::try_from(value(group)?).ok()),
    })
}

impl Seen {
    fn grow(&mut self, groups: usize) -> Result<(), PlacementError> {
        self.groups = self.groups.max(groups);
        match &mut self.flags {
            Some(flags) => flags.grow(groups, 0),
            None => Ok(()),
        }
    }

    fn update(
        &mut self,
        ids: &GroupIds,
        valid: Option<&[u8]>,
        touched: Touched<'_>,
    ) -> Result<(), PlacementError> {
        if self.flags.is_none() && valid.is_some() {
            let mut flags = self.spare.beside();
            flags.grow(self.groups, 0)?;
            for (group, flag) in flags.as_mut_slice().iter_mut().enumerate() {
                *flag = u8::from(touched.has(group));
            }
            self.flags = Some(flags);
        }
        if let Some(flags) = &mut self.flags {
            match valid {
                Some(valid) => ids.fold(flags.as_mut_slice(), valid, 0, |seen, valid| seen | valid),
                None => ids.touch(flags.as_mut_slice(), 0, |_| 1),
            }
        }
        Ok(())
    }

    fn is(&self, group: usize) -> bool {
        self.flags.as_ref().is_none_or(|flags| flags.as_slice()[group] == 1)
    }

    fn nulls(&self, chosen: &[u32]) -> Option<NullBuffer> {
        self.flags.as_ref()?;
        let nulls: NullBuffer = chosen.iter().map(|group| self.is(*group as usize)).collect();
        (nulls.null_count() > 0).then_some(nulls)
    }
}

/// The neutral value: larger than all values for the least, smaller for the largest.
fn least(largest: bool) -> i64 {
    if largest { i64::MIN } else { i64::MAX }
}

fn wide_least(largest: bool) -> i128 {
    if largest { i128::MIN } else { i128::MAX }
}

fn extreme<T: Copy + Ord>(ids: &GroupIds, table: &mut [T], values: &[T], largest: bool) {
    match largest {
        true => ids.fold(table, values, 0, |a, b| a.max(b)),
        false => ids.fold(table, values, 0, |a, b| a.min(b)),
    }
}

fn merge_extreme<T: Copy + Ord>(
    ids: &GroupIds,
    table: &mut [T],
    values: &[T],
    from: &[u32],
    largest: bool,
) {
    match largest {
        true => ids.fold_from(table, values, from, |a, b| a.max(b)),
        false => ids.fold_from(table, values, from, |a, b| a.min(b)),
    }
}

/// Values as integers of the same order, with the neutral value for nulls.
fn ordered<'a>(values: LaneValues<'a>, valid: Option<&[u8]>, largest: bool) -> Cow<'a, [i64]> {
    let mut ordered = match values {
        LaneValues::Int(values) => Cow::Borrowed(values),
        LaneValues::Float(values) => values.iter().map(|value| to_order(*value)).collect(),
        LaneValues::Wide(values) => values.iter().map(|value| *value as i64).collect(),
    };
    if let Some(valid) = valid {
        for (value, valid) in ordered.to_mut().iter_mut().zip(valid) {
            *value = if *valid == 1 { *value } else { least(largest) };
        }
    }
    ordered
}

fn wide_ordered(values: LaneValues<'_>, valid: Option<&[u8]>, largest: bool) -> Vec<i128> {
    let mut ordered: Vec<i128> = match values {
        LaneValues::Wide(values) => values.to_vec(),
        LaneValues::Int(values) => values.iter().copied().map(i128::from).collect(),
        LaneValues::Float(_) => unreachable!("doubles take 64 bits"),
    };
    for (value, valid) in ordered.iter_mut().zip(valid.unwrap_or_default()) {
        *value = if *valid == 1 { *value } else { wide_least(largest) };
    }
    ordered
}

/// IEEE 754's total order, as integers.
fn to_order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The inverse of [`to_order`]: the same computation with other types.
fn from_order(order: i64) -> f64 {
    f64::from_bits((order ^ ((order >> 63) as u64 >> 1) as i64) as u64)
}
