//! Radix partitioning: rows of 64-bit words dealt to pieces by some bits of a hash, or of the key
//! itself.
//!
//! One worker partitions with a [`Partitioner`]. Rows keep their order inside a piece. The rows of a
//! piece are not counted beforehand: pieces are chains of blocks.

mod fan_out;
mod partitioner;
mod pieces;

pub use fan_out::FanOut;
pub use partitioner::Partitioner;
pub(crate) use pieces::PieceBlock;
pub use pieces::Pieces;
