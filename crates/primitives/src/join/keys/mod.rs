//! Keys of a side as 64-bit words: the key itself where its columns fit 64 bits, otherwise a hash of
//! its encoded bytes, which are compared when hashes agree.

mod encoded;
mod side;
mod words;

pub(super) use encoded::{Encoded, encode};
pub(super) use side::{Block, BlockScratch, Side};
pub(super) use words::WordKeys;
