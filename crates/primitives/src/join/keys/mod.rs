//! Keys of a side as 64-bit words: the key itself if its columns fit 64 bits, otherwise a hash of its encoded bytes,
//! which are compared if hashes are equal.

mod encoded;
mod side;
mod words;

pub(super) use encoded::{EncodedKeys, encode};
pub(super) use side::{BlockScratch, SideBlock, SideColumns};
pub(super) use words::WordKeys;
