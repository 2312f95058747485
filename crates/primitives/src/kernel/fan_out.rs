//! Number of pieces of a partitioning.

/// A power of two of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOut {
    bits: u32,
}

impl FanOut {
    /// The largest fan-out of one pass: beyond it a pass's buffers exceed the second-level cache.
    pub const BITS_MAX: u32 = 14;

    /// 2^`bits` pieces, at most 2^[`BITS_MAX`](Self::BITS_MAX).
    pub fn of_bits(bits: u32) -> Self {
        Self { bits: bits.min(Self::BITS_MAX) }
    }

    /// At least this many pieces, up to the largest fan-out.
    pub fn at_least(pieces: usize) -> Self {
        Self::of_bits(pieces.max(1).next_power_of_two().ilog2())
    }

    /// Bits of a piece's number.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Number of pieces.
    pub fn partitions(self) -> usize {
        1 << self.bits
    }

    /// Piece of a hash: its highest bits.
    #[inline(always)]
    pub fn digit(self, hash: u64) -> usize {
        hash.rotate_left(self.bits) as usize & (self.partitions() - 1)
    }
}
