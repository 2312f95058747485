//! Parameters tuned for a machine.

use std::ops::RangeInclusive;

use atoll_topology::{Conditions, Fact, Knowledge, Quantity, Source, Subject};

use crate::kernel::fan_out::FanOut;

/// Sizes for the fast loops. [`Tuning::default`] fits no machine in particular; `atoll tune` measures the best sizes
/// for this one and stores them with the machine's facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Rows processed at a time, between two cancellation checks; they stay in the first- and second-level caches
    /// between the passes over them.
    pub block_rows: usize,
    /// Maximum number of partitions (log2) of one pass of radix partitioning.
    pub fan_out_bits_max: u32,
    /// Rows that a partition's write-combining buffer holds: 8, 16, 32 or 64.
    pub buffer_rows: usize,
    /// Prefetch distance in rows of a probe that misses the caches.
    pub prefetch_rows: usize,
    /// Maximum size of a worker's own table, bytes: about its second-level cache.
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

/// The origin in facts of `atoll tune`.
const ORIGIN: &str = "atoll tune";
/// Sizes of write-combining buffers with compiled loops, rows.
const BUFFER_ROWS: [usize; 4] = [8, 16, 32, 64];
/// Valid values of facts; others are ignored.
const BLOCK_ROWS: RangeInclusive<usize> = 64..=1 << 20;
const PREFETCH_ROWS: RangeInclusive<usize> = 0..=1024;
const TABLE_BYTES: RangeInclusive<usize> = 4 << 10..=1 << 30;

impl Tuning {
    /// The values that `atoll tune` found on the machine, where they are known and valid; defaults for the rest.
    ///
    /// ```
    /// use atoll_primitives::Tuning;
    /// use atoll_topology::{Knowledge, Machine};
    ///
    /// let mut known = Knowledge::from_machine(Machine::synthetic("node:2 core:4 pu:1")?);
    /// assert_eq!(Tuning::from_knowledge(&known), Tuning::default());
    /// let tuned = Tuning { prefetch_rows: 24, ..Tuning::default() };
    /// known.merge(tuned.facts());
    /// assert_eq!(Tuning::from_knowledge(&known), tuned);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_knowledge(known: &Knowledge) -> Self {
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

    /// The values as facts about the whole machine, without a time, which the store adds.
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
    fn invalid_facts_are_ignored() {
        let mut known = Knowledge::from_machine(Machine::synthetic("node:1 core:1 pu:1").unwrap());
        let wild = Tuning {
            block_rows: 0,
            fan_out_bits_max: 60,
            buffer_rows: 33,
            prefetch_rows: 1 << 40,
            table_bytes: 64 << 10,
        };
        known.merge(wild.facts());
        let expected = Tuning { table_bytes: 64 << 10, ..Tuning::default() };
        assert_eq!(Tuning::from_knowledge(&known), expected);
    }
}
