//! What is fitted to a machine.

use std::ops::RangeInclusive;

use atoll_topology::{Conditions, Fact, Knowledge, Quantity, Source, Subject};

use crate::kernel::fan_out::FanOut;

/// Sizes that the fast loops take. [`Tuning::default`] fits no machine in particular; `atoll tune`
/// measures what fits this one and keeps it with the machine's facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Rows that are worked on at a time, between two looks at the cancel token; they stay in the
    /// first- and second-level caches between the passes over them.
    pub block_rows: usize,
    /// Most partitions (log2) of one pass of radix partitioning.
    pub fan_out_bits_max: u32,
    /// Rows that a partition's write-combining buffer holds: 8, 16, 32 or 64.
    pub buffer_rows: usize,
    /// How many rows ahead a probe that misses the caches is prefetched.
    pub prefetch_rows: usize,
    /// Size up to which a worker's own table is kept near it, bytes: about its second-level cache.
    pub table_bytes: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block_rows: 4096,
            fan_out_bits_max: 10,
            buffer_rows: 32,
            prefetch_rows: 16,
            table_bytes: 256 << 10,
        }
    }
}

/// What facts of `atoll tune` name as their origin.
const ORIGIN: &str = "atoll tune";
/// Sizes of write-combining buffers that there are loops for, rows.
const BUFFER_ROWS: [usize; 4] = [8, 16, 32, 64];
/// What a fact may say; what is beyond does not count.
const BLOCK_ROWS: RangeInclusive<usize> = 64..=1 << 20;
const PREFETCH_ROWS: RangeInclusive<usize> = 0..=1024;
const TABLE_BYTES: RangeInclusive<usize> = 4 << 10..=1 << 30;

impl Tuning {
    /// What `atoll tune` found on the machine, as far as it is known and makes sense; for the rest what
    /// fits no machine in particular.
    ///
    /// ```
    /// use atoll_primitives::Tuning;
    /// use atoll_topology::{Knowledge, Machine};
    ///
    /// let mut known = Knowledge::of(Machine::synthetic("node:2 core:4 pu:1")?);
    /// assert_eq!(Tuning::of(&known), Tuning::default());
    /// let tuned = Tuning { prefetch_rows: 24, ..Tuning::default() };
    /// known.merge(tuned.facts());
    /// assert_eq!(Tuning::of(&known), tuned);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(known: &Knowledge) -> Self {
        let default = Self::default();
        let said = |quantity, otherwise, makes_sense: &dyn Fn(&usize) -> bool| {
            let fact = known.best(Subject::Machine, quantity, Conditions::default());
            let number = fact.map(|fact| fact.value as usize).filter(makes_sense);
            number.unwrap_or(otherwise)
        };
        let bits = default.fan_out_bits_max as usize;
        let bits_make_sense = |bits: &usize| (1..=FanOut::BITS_MAX as usize).contains(bits);
        Self {
            block_rows: said(Quantity::BlockRows, default.block_rows, &|it| {
                BLOCK_ROWS.contains(it)
            }),
            fan_out_bits_max: said(Quantity::FanOutBits, bits, &bits_make_sense) as u32,
            buffer_rows: said(Quantity::BufferRows, default.buffer_rows, &|it| {
                BUFFER_ROWS.contains(it)
            }),
            prefetch_rows: said(Quantity::PrefetchRows, default.prefetch_rows, &|it| {
                PREFETCH_ROWS.contains(it)
            }),
            table_bytes: said(Quantity::TableBytes, default.table_bytes, &|it| {
                TABLE_BYTES.contains(it)
            }),
        }
    }

    /// It as facts of the machine as a whole, without a time: it is known to the store.
    pub fn facts(&self) -> Vec<Fact> {
        let figures = [
            (Quantity::BlockRows, self.block_rows),
            (Quantity::FanOutBits, self.fan_out_bits_max as usize),
            (Quantity::BufferRows, self.buffer_rows),
            (Quantity::PrefetchRows, self.prefetch_rows),
            (Quantity::TableBytes, self.table_bytes),
        ];
        let fact = |(quantity, value)| {
            Fact::new(Subject::Machine, quantity, value as f64, Source::Measured, ORIGIN)
        };
        figures.into_iter().map(fact).collect()
    }
}

#[cfg(test)]
mod tests {
    use atoll_topology::Machine;

    use super::*;

    #[test]
    fn facts_that_make_no_sense_do_not_count() {
        let mut known = Knowledge::of(Machine::synthetic("node:1 core:1 pu:1").unwrap());
        let wild = Tuning {
            block_rows: 0,
            fan_out_bits_max: 60,
            buffer_rows: 33,
            prefetch_rows: 1 << 40,
            table_bytes: 64 << 10,
        };
        known.merge(wild.facts());
        let expected = Tuning { table_bytes: 64 << 10, ..Tuning::default() };
        assert_eq!(Tuning::of(&known), expected);
    }
}
