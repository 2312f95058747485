//! Exact sums of integers by group.
//!
//! Sums are kept in 64 bits as long as no order of the rows could overflow them: a bound on their absolute values grows
//! with every block. Before the bound exceeds 63 bits they are moved to 128 bits, and before it exceeds 127 bits, which
//! takes decimals of many digits, to 256 bits. So a sum costs as little as a plain addition, and none ever wraps.

use arrow_buffer::i256;
use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use super::lane::LaneValues;
use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::PlacedVec;

/// Blocks with a larger bound are added to the 128-bit sums directly: moving the 64-bit sums is worth it only if many
/// blocks fit between two moves.
const BLOCK_BOUND_MAX: u64 = 1 << 55;
/// The same for 128-bit sums and 256 bits.
const WIDE_BOUND_MAX: u128 = 1 << 119;
/// Several 64-bit sums for each group while they all fit this size in bytes: half a first-level cache.
const COPIES_BYTES: usize = 16 << 10;

/// A sum for each group.
#[derive(Debug)]
pub(super) struct Totals {
    /// 64-bit sums, `2^copies` for each group; they add to `wide`.
    narrow: PlacedVec<i64>,
    copies: u32,
    /// Upper bound for the absolute value of every 64-bit sum.
    bound: u64,
    /// 128-bit sums; they add to `huge`.
    wide: Option<PlacedVec<i128>>,
    /// Upper bound for the absolute value of every 128-bit sum.
    wide_bound: u128,
    huge: Option<PlacedVec<i256>>,
    groups: usize,
}

impl Totals {
    /// No groups yet, with room for about `expected`.
    pub(super) fn new(arena: &Arena, home: Option<NodeId>, expected: usize) -> Self {
        let fit = COPIES_BYTES / 8 / expected.max(1);
        let copies = fit.max(1).ilog2().min(2);
        let narrow = PlacedVec::new(arena, home);
        Self { narrow, copies, bound: 0, wide: None, wide_bound: 0, huge: None, groups: 0 }
    }

    pub(super) fn grow(&mut self, groups: usize) -> Result<(), PlacementError> {
        if groups > self.groups {
            self.narrow.grow(groups << self.copies, 0)?;
            if let Some(wide) = &mut self.wide {
                wide.grow(groups, 0)?;
            }
            if let Some(huge) = &mut self.huge {
                huge.grow(groups, i256::ZERO)?;
            }
            self.groups = groups;
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.narrow.clear();
        (self.wide, self.huge) = (None, None);
        (self.bound, self.wide_bound) = (0, 0);
        self.groups = 0;
    }

    /// Adds a block's values; there is a sum for every group of `ids`.
    pub(super) fn add(
        &mut self,
        ids: &GroupIds,
        values: LaneValues<'_>,
        prefetch: usize,
    ) -> Result<(), PlacementError> {
        match values {
            LaneValues::Int(values) => {
                let bound = bound(values);
                if bound > BLOCK_BOUND_MAX {
                    let wide = self.wide_within(bound.into())?;
                    ids.fold(wide, values, prefetch, |sum, value| sum + i128::from(value));
                    return Ok(());
                }
                if self.bound + bound > i64::MAX as u64 {
                    self.widen()?;
                }
                self.bound += bound;
                match self.copies {
                    0 => {
                        let narrow = self.narrow.as_mut_slice();
                        ids.fold(narrow, values, prefetch, i64::wrapping_add);
                    }
                    copies => ids.add_in_turn(self.narrow.as_mut_slice(), values, copies),
                }
            }
            LaneValues::Wide(values) => match wide_bound(values) {
                bound if bound > WIDE_BOUND_MAX => {
                    let huge = self.huge()?.as_mut_slice();
                    ids.fold(huge, values, prefetch, |sum, value| {
                        sum.wrapping_add(i256::from_i128(value))
                    });
                }
                bound => {
                    let wide = self.wide_within(bound)?;
                    ids.fold(wide, values, prefetch, i128::wrapping_add);
                }
            },
            LaneValues::Float(_) => unreachable!("floats have sums of their own"),
        }
        Ok(())
    }

    /// Adds another table's sums: those of its groups `from`, one for each of `ids`.
    pub(super) fn merge(
        &mut self,
        ids: &GroupIds,
        other: &Totals,
        from: &[u32],
    ) -> Result<(), PlacementError> {
        let fits = other.bound.checked_add(self.bound).is_some_and(|sum| sum <= i64::MAX as u64);
        if fits && other.wide.is_none() && other.copies == 0 && self.copies == 0 {
            self.bound += other.bound;
            let narrow = self.narrow.as_mut_slice();
            ids.fold_from(narrow, other.narrow.as_slice(), from, i64::wrapping_add);
            return Ok(());
        }
        let bound = other.wide_bound.saturating_add(other.bound.into());
        if other.huge.is_none() && bound <= WIDE_BOUND_MAX {
            let sums: Vec<i128> = from.iter().map(|group| other.wide_of(*group as usize)).collect();
            ids.fold(self.wide_within(bound)?, &sums, 0, i128::wrapping_add);
            return Ok(());
        }
        let sums: Vec<i256> = from.iter().map(|group| other.exact(*group as usize)).collect();
        ids.fold(self.huge()?.as_mut_slice(), &sums, 0, i256::wrapping_add);
        Ok(())
    }

    /// Copies it into memory of another node.
    pub(super) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.narrow.move_to(home)?;
        self.wide.as_mut().map_or(Ok(()), |wide| wide.move_to(home))?;
        self.huge.as_mut().map_or(Ok(()), |huge| huge.move_to(home))
    }

    /// Sum of a group; None if 128 bits do not hold it.
    pub(super) fn get(&self, group: usize) -> Option<i128> {
        match self.huge {
            None if self.wide_bound <= WIDE_BOUND_MAX => Some(self.wide_of(group)),
            _ => self.exact(group).to_i128(),
        }
    }

    /// Sum of a group.
    pub(super) fn exact(&self, group: usize) -> i256 {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.as_slice()[group]);
        let huge = self.huge.as_ref().map_or(i256::ZERO, |huge| huge.as_slice()[group]);
        let narrow = i256::from_i128(self.narrow_of(group).into());
        huge.wrapping_add(i256::from_i128(wide)).wrapping_add(narrow)
    }

    /// Sum of a group that has no 256-bit part, and whose bound leaves room for the 64-bit sum.
    fn wide_of(&self, group: usize) -> i128 {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.as_slice()[group]);
        wide + i128::from(self.narrow_of(group))
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        let wide = self.wide.as_ref().map_or(0, PlacedVec::memory_bytes);
        self.narrow.memory_bytes() + wide + self.huge.as_ref().map_or(0, PlacedVec::memory_bytes)
    }

    /// The 64-bit sums if there are no others: one for each group.
    pub(super) fn narrow(&self) -> Option<&[i64]> {
        let alone = self.wide.is_none() && self.huge.is_none();
        (alone && self.copies == 0).then(|| self.narrow.as_slice())
    }

    fn narrow_of(&self, group: usize) -> i64 {
        let copies = &self.narrow.as_slice()[group << self.copies..][..1 << self.copies];
        copies.iter().fold(0, |sum, copy| sum.wrapping_add(*copy))
    }

    /// The 128-bit sums, each of which may change by up to `bound` (at most [`WIDE_BOUND_MAX`]) in either direction.
    fn wide_within(&mut self, bound: u128) -> Result<&mut [i128], PlacementError> {
        if self.wide_bound + bound > i128::MAX as u128 {
            self.widen_wide()?;
        }
        self.wide_bound += bound;
        if self.wide.is_none() {
            let mut wide = self.narrow.beside();
            wide.grow(self.groups, 0)?;
            self.wide = Some(wide);
        }
        Ok(self.wide.as_mut().expect("made above").as_mut_slice())
    }

    fn huge(&mut self) -> Result<&mut PlacedVec<i256>, PlacementError> {
        if self.huge.is_none() {
            let mut huge = self.narrow.beside();
            huge.grow(self.groups, i256::ZERO)?;
            self.huge = Some(huge);
        }
        Ok(self.huge.as_mut().expect("made above"))
    }

    /// Moves the 64-bit sums to the 128-bit ones.
    fn widen(&mut self) -> Result<(), PlacementError> {
        let sums: Vec<i64> = (0..self.groups).map(|group| self.narrow_of(group)).collect();
        let wide = self.wide_within(self.bound.into())?;
        for (wide, sum) in wide.iter_mut().zip(sums) {
            *wide += i128::from(sum);
        }
        self.narrow.as_mut_slice().fill(0);
        self.bound = 0;
        Ok(())
    }

    /// Moves the 128-bit sums to the 256-bit ones.
    fn widen_wide(&mut self) -> Result<(), PlacementError> {
        let Some(mut wide) = self.wide.take() else { return Ok(()) };
        let huge = self.huge()?.as_mut_slice();
        for (huge, sum) in huge.iter_mut().zip(wide.as_slice()) {
            *huge = huge.wrapping_add(i256::from_i128(*sum));
        }
        wide.as_mut_slice().fill(0);
        (self.wide, self.wide_bound) = (Some(wide), 0);
        Ok(())
    }
}

/// Maximum change of a group's sum by these values, in either direction.
fn bound(values: &[i64]) -> u64 {
    let mut bits = 0;
    for value in values {
        bits |= *value ^ (*value >> 63);
    }
    // Absolute values are at most 2^n, n the number of bits in use.
    let each = 1_u64 << (u64::BITS - bits.leading_zeros()).min(63);
    each.saturating_mul(values.len() as u64)
}

/// The same for 128-bit values; saturates if 127 bits do not hold it.
fn wide_bound(values: &[i128]) -> u128 {
    let mut bits = 0;
    for value in values {
        bits |= *value ^ (*value >> 127);
    }
    let each = 1_u128 << (u128::BITS - bits.leading_zeros()).min(127);
    each.saturating_mul(values.len() as u128)
}

#[cfg(test)]
mod tests {
    use super::{bound, wide_bound};

    #[test]
    fn the_bound_is_above_every_sum_of_the_values() {
        for values in [&[][..], &[0], &[1, -1], &[-8, 7, -8], &[i64::MIN], &[i64::MAX, 1]] {
            let most: u128 = values.iter().map(|value| u128::from(value.unsigned_abs())).sum();
            assert!(u128::from(bound(values)) >= most || bound(values) == u64::MAX, "{values:?}");
        }
    }

    #[test]
    fn the_bound_of_128_bit_values_is_above_every_sum_of_them() {
        let most = i128::MAX;
        for values in [&[][..], &[0], &[1, -1], &[-8, 7, -8], &[i128::MIN], &[most], &[most, 1]] {
            let sum =
                values.iter().fold(0_u128, |sum, value| sum.saturating_add(value.unsigned_abs()));
            assert!(wide_bound(values) >= sum, "{values:?}");
        }
    }
}
