//! Exact sums of integers by group.
//!
//! Sums are kept in 64 bits as long as no order of the rows could overflow them: a bound on their
//! absolute values grows with every block. Before it leaves 63 bits they are moved to 128 bits, so
//! a sum costs what a plain addition costs, and none ever wraps.

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use super::lane::Values;
use crate::kernel::groups::GroupIds;
use crate::kernel::room::Room;

/// Blocks whose bound is above this go to 128 bits at once: moving the 64-bit sums is worth it only
/// when many blocks fit between two moves.
const BLOCK_BOUND_MAX: u64 = 1 << 55;
/// Several 64-bit sums for each group while they all fit this, bytes: half a first-level cache.
const COPIES_BYTES: usize = 16 << 10;

/// A sum for each group.
#[derive(Debug)]
pub(super) struct Totals {
    /// Sums of 64 bits, `2^copies` for each group; what a group's sum is beyond `wide`.
    narrow: Room<i64>,
    copies: u32,
    /// No 64-bit sum has a larger absolute value.
    bound: u64,
    wide: Option<Room<i128>>,
    groups: usize,
}

impl Totals {
    /// No groups yet, and not many more than `expected` later.
    pub(super) fn new(arena: &Arena, home: Option<NodeId>, expected: usize) -> Self {
        let fit = COPIES_BYTES / 8 / expected.max(1);
        let copies = fit.max(1).ilog2().min(2);
        Self { narrow: Room::new(arena, home), copies, bound: 0, wide: None, groups: 0 }
    }

    pub(super) fn grow(&mut self, groups: usize) -> Result<(), PlacementError> {
        if groups > self.groups {
            self.narrow.grow(groups << self.copies, 0)?;
            if let Some(wide) = &mut self.wide {
                wide.grow(groups, 0)?;
            }
            self.groups = groups;
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.narrow.clear();
        self.wide = None;
        self.bound = 0;
        self.groups = 0;
    }

    /// Adds a block's values; there is a sum for every group of `ids`.
    pub(super) fn add(
        &mut self,
        ids: &GroupIds,
        values: Values<'_>,
        prefetch: usize,
    ) -> Result<(), PlacementError> {
        match values {
            Values::Int(values) => {
                let bound = bound(values);
                if bound > BLOCK_BOUND_MAX {
                    let wide = self.wide()?.as_mut_slice();
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
            Values::Wide(values) => {
                let wide = self.wide()?.as_mut_slice();
                ids.fold(wide, values, prefetch, i128::wrapping_add);
            }
            Values::Float(_) => unreachable!("floats have sums of their own"),
        }
        Ok(())
    }

    /// Adds another's sums: those of its groups `from`, one for each of `ids`.
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
        let sums: Vec<i128> = from.iter().map(|group| other.of(*group as usize)).collect();
        ids.fold(self.wide()?.as_mut_slice(), &sums, 0, i128::wrapping_add);
        Ok(())
    }

    /// Copies it into memory of another node.
    pub(super) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.narrow.move_to(home)?;
        self.wide.as_mut().map_or(Ok(()), |wide| wide.move_to(home))
    }

    /// Sum of a group.
    pub(super) fn of(&self, group: usize) -> i128 {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.as_slice()[group]);
        wide + i128::from(self.narrow_of(group))
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.narrow.memory_bytes() + self.wide.as_ref().map_or(0, Room::memory_bytes)
    }

    /// The sums of 64 bits where there are no others: one for each group.
    pub(super) fn narrow(&self) -> Option<&[i64]> {
        (self.wide.is_none() && self.copies == 0).then(|| self.narrow.as_slice())
    }

    fn narrow_of(&self, group: usize) -> i64 {
        let copies = &self.narrow.as_slice()[group << self.copies..][..1 << self.copies];
        copies.iter().fold(0, |sum, copy| sum.wrapping_add(*copy))
    }

    fn wide(&mut self) -> Result<&mut Room<i128>, PlacementError> {
        if self.wide.is_none() {
            let mut wide = self.narrow.beside();
            wide.grow(self.groups, 0)?;
            self.wide = Some(wide);
        }
        Ok(self.wide.as_mut().expect("made above"))
    }

    /// Moves the 64-bit sums to the 128-bit ones.
    fn widen(&mut self) -> Result<(), PlacementError> {
        let sums: Vec<i64> = (0..self.groups).map(|group| self.narrow_of(group)).collect();
        let wide = self.wide()?.as_mut_slice();
        for (wide, sum) in wide.iter_mut().zip(sums) {
            *wide += i128::from(sum);
        }
        self.narrow.as_mut_slice().fill(0);
        self.bound = 0;
        Ok(())
    }
}

/// What a group's sum can change by with these values, in either direction, at most.
fn bound(values: &[i64]) -> u64 {
    let mut bits = 0;
    for value in values {
        bits |= *value ^ (*value >> 63);
    }
    // Absolute values are at most 2^n, n the number of bits in use.
    let each = 1_u64 << (u64::BITS - bits.leading_zeros()).min(63);
    each.saturating_mul(values.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn the_bound_is_above_every_sum_of_the_values() {
        for values in [&[][..], &[0], &[1, -1], &[-8, 7, -8], &[i64::MIN], &[i64::MAX, 1]] {
            let most: u128 = values.iter().map(|value| u128::from(value.unsigned_abs())).sum();
            assert!(u128::from(bound(values)) >= most || bound(values) == u64::MAX, "{values:?}");
        }
    }
}
