//! Rows as bytes: the encoding in the delta of a table and in the log.
//!
//! | type | what |
//! |---|---|
//! | [`Row`] | one row, all columns |
//! | [`Key`] | the values of some columns of a row, none of them NULL |
//! | [`RowCodec`] | converts between Arrow and these, for the columns of one table |
//!
//! A row is its null bits, then the values that are not NULL, one after another:
//!
//! | part | bytes |
//! |---|---|
//! | null bits | one bit for each column, the lowest bit of the first byte first; 1 is a value, 0 is NULL |
//! | boolean | 1: 0 or 1 |
//! | number, date, time, duration, interval, decimal | its width in Arrow, the lowest byte first |
//! | string, bytes | length (LEB128), then the bytes |
//! | bytes of fixed size | the bytes |
//! | list, map | number of items (LEB128), then the items as below |
//! | list of fixed size, struct, items | their null bits, then the values that are not NULL |
//! | dictionary, run-end encoded | the value |
//!
//! A key is the values of its columns in its order. Floats are in their canonical form in both, so equal
//! keys are equal bytes and the other way round.

mod codec;
mod compare;
mod computed;
mod condition;
mod read;
mod shape;
mod write;

use std::borrow::Borrow;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;

pub use codec::{KeyBuilder, RowBuilder, RowCodec};
pub use compare::is_comparable;
pub(crate) use computed::ComputedKey;
pub use computed::{KeyFunction, TextFunction};
pub use condition::{CONDITION_DEPTH_MAX, ComparisonOperator, RowCondition};

/// One row of a table, as bytes that its [`RowCodec`] made.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Row(Arc<[u8]>);

impl Row {
    /// The row with these bytes, as returned by [`as_bytes`](Self::as_bytes); it is checked when it is decoded.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are the same row in memory; other rows may still be equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        // The two counters of the pointer precede the bytes.
        self.0.len() + 2 * size_of::<usize>()
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({})", Hex(&self.0))
    }
}

/// The values of some columns of a row: keys with equal values are equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<[u8]>);

/// Sets of keys are queried with bytes; both have the same hash.
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Key {
    /// The key with these bytes.
    pub(in crate::table) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A hash that is equal for equal keys while the process runs.
    pub fn hash64(&self) -> u64 {
        hash_of(&self.0)
    }
}

/// The hash of a key with these bytes.
pub(super) fn hash_of(key: &[u8]) -> u64 {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    HASHER.hash_one(key)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", Hex(&self.0))
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
