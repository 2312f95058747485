//! Maps keys to groups: how a table finds the group of a row.
//!
//! | how | for | group |
//! |---|---|---|
//! | [`Dense`] | words in a small range | distance from the least word |
//! | [`Hashed`] | any words | found by hash, numbered as they come |
//! | [`Ordered`] | words that come grouped | one for each run |
//! | [`Encoded`] | keys that fit no word | the same, by the hash of their bytes |

mod block;
mod dense;
mod encoded;
mod encoder;
mod hashed;
mod ordered;
mod repeats;

pub(super) use block::{EncodedKeys, KeyBlock, KeyColumn, RowKeys, is_same};
pub(super) use dense::Dense;
pub(super) use encoded::Encoded;
pub(super) use encoder::Encoder;
pub(super) use hashed::Hashed;
pub(super) use ordered::Ordered;
