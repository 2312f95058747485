//! Radix partitioning: splits rows of 64-bit words into pieces by some bits of a hash, or of the key itself.
//!
//! One worker partitions with a [`Partitioner`]. Rows keep their order inside a piece. The rows of a piece are not
//! counted in advance: pieces are chains of blocks.

mod partitioner;

pub use partitioner::Partitioner;

pub use crate::kernel::fan_out::FanOut;
pub use crate::kernel::pieces::Pieces;
