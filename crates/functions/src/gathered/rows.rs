//! The rows of all groups, in their original order.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, concat, filter, take};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::EmitTo;

/// The type in which values are kept: texts without views, which would keep whole batches alive, and
/// with room for more than 2 GiB.
pub(crate) fn kept(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// The rows of groups.
#[derive(Debug)]
pub(crate) struct GroupRows {
    /// Types of the stored columns.
    types: Vec<DataType>,
    batches: Vec<Vec<ArrayRef>>,
    /// The group of each row of all batches.
    groups: Vec<u32>,
    count: usize,
    bytes: usize,
}

/// Rows grouped together: columns, the start of each group and the end of the last one.
pub(crate) struct Arranged {
    pub(crate) columns: Vec<ArrayRef>,
    pub(crate) offsets: Vec<i32>,
}

impl GroupRows {
    pub(crate) fn new(types: Vec<DataType>) -> Self {
        Self { types, batches: vec![], groups: vec![], count: 0, bytes: 0 }
    }

    /// No rows, of the same types.
    pub(crate) fn none(&self) -> Self {
        Self::new(self.types.clone())
    }

    pub(crate) fn bytes(&self) -> usize {
        // A second copy while the rows of a group are collected.
        2 * self.bytes + self.groups.capacity() * size_of::<u32>()
    }

    /// Adds the rows that `wanted` selects.
    pub(crate) fn add(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        wanted: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.count = count;
        let mut kept = Vec::with_capacity(columns.len());
        for (column, data_type) in columns.iter().zip(&self.types) {
            let column = match wanted {
                Some(wanted) => filter(column, wanted)?,
                None => Arc::clone(column),
            };
            kept.push(cast(&column, data_type)?);
        }
        let group = |group: usize| {
            u32::try_from(group).map_err(|_| exec_datafusion_err!("more than 4294967295 groups"))
        };
        for (row, &of) in groups.iter().enumerate() {
            if wanted.is_none_or(|wanted| wanted.is_valid(row) && wanted.value(row)) {
                self.groups.push(group(of)?);
            }
        }
        self.bytes += kept.iter().map(|array| array.get_array_memory_size()).sum::<usize>();
        self.batches.push(kept);
        Ok(())
    }

    /// Adds the rows of states, which are lists.
    pub(crate) fn merge(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        count: usize,
    ) -> Result<()> {
        let mut columns = Vec::with_capacity(states.len());
        let mut rows_of = Vec::new();
        for (at, state) in states.iter().enumerate() {
            let lists: &ListArray = state.as_list();
            let mut places: Vec<u32> = Vec::new();
            for (row, &group) in groups.iter().enumerate() {
                if lists.is_valid(row) {
                    let (from, to) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
                    places.extend(from as u32..to as u32);
                    if at == 0 {
                        rows_of.extend(std::iter::repeat_n(group, (to - from) as usize));
                    }
                }
            }
            columns.push(take(lists.values(), &UInt32Array::from(places), None)?);
        }
        self.add(&columns, &rows_of, None, count)
    }

    /// Collects the rows of each group, in their original order; they stay here too.
    pub(crate) fn arranged(&self) -> Result<Arranged> {
        let columns = self.columns()?;
        arranged(&columns, &self.groups, self.count)
    }

    /// The same for groups that are removed.
    pub(crate) fn take(&mut self, emit_to: EmitTo) -> Result<Arranged> {
        let columns = self.columns()?;
        let (groups, count) = (std::mem::take(&mut self.groups), self.count);
        (self.batches, self.bytes, self.count) = (vec![], 0, 0);
        let EmitTo::First(first) = emit_to else { return arranged(&columns, &groups, count) };
        let leaves: BooleanArray =
            groups.iter().map(|&group| Some((group as usize) < first)).collect();
        let stays: BooleanArray =
            groups.iter().map(|&group| Some(group as usize >= first)).collect();
        let stay: Vec<usize> = groups
            .iter()
            .filter(|&&group| group as usize >= first)
            .map(|&group| group as usize - first)
            .collect();
        let leave: Vec<u32> =
            groups.iter().copied().filter(|&group| (group as usize) < first).collect();
        let filtered = |mask: &BooleanArray| -> Result<Vec<ArrayRef>> {
            columns.iter().map(|column| Ok(filter(column, mask)?)).collect()
        };
        self.add(&filtered(&stays)?, &stay, None, count - first)?;
        arranged(&filtered(&leaves)?, &leave, first)
    }

    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let column = |at: usize| -> Result<ArrayRef> {
            let pieces: Vec<&dyn Array> =
                self.batches.iter().map(|batch| batch[at].as_ref()).collect();
            match pieces.is_empty() {
                true => Ok(datafusion::arrow::array::new_empty_array(&self.types[at])),
                false => Ok(concat(&pieces)?),
            }
        };
        (0..self.types.len()).map(column).collect()
    }
}

fn arranged(columns: &[ArrayRef], groups: &[u32], count: usize) -> Result<Arranged> {
    let mut offsets = vec![0_i32; count + 1];
    for &group in groups {
        offsets[group as usize + 1] += 1;
    }
    for at in 0..count {
        offsets[at + 1] = offsets[at]
            .checked_add(offsets[at + 1])
            .ok_or_else(|| exec_datafusion_err!("more than 2147483647 rows in an aggregate"))?;
    }
    let mut next = offsets.clone();
    let mut order = vec![0_u32; groups.len()];
    for (row, &group) in groups.iter().enumerate() {
        order[next[group as usize] as usize] = row as u32;
        next[group as usize] += 1;
    }
    let order = UInt32Array::from(order);
    let columns: Result<Vec<ArrayRef>> =
        columns.iter().map(|column| Ok(take(column, &order, None)?)).collect();
    Ok(Arranged { columns: columns?, offsets })
}

impl Arranged {
    /// Builds a list per group and column.
    pub(crate) fn into_lists(self) -> Result<Vec<ArrayRef>> {
        let offsets = OffsetBuffer::new(self.offsets.into());
        let list = |values: ArrayRef| -> Result<ArrayRef> {
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            Ok(Arc::new(ListArray::try_new(field, offsets.clone(), values, None::<NullBuffer>)?))
        };
        self.columns.into_iter().map(list).collect()
    }
}
