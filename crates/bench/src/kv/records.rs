//! The records: keys of 16 digits, and values that tell which key they belong to and which write they are of.

use std::ops::Range;

use anyhow::{Result, ensure};
use atoll_sys::SplitMix64;
use serde::{Deserialize, Serialize};

/// Bytes of a key: as many decimal digits, as `db_bench` writes them.
pub(super) const KEY_BYTES: usize = 16;
/// Bytes of a value that mean something: the mark of its key, and the number of its write.
pub(super) const VALUE_BYTES_MIN: usize = 16;
/// Odd multiplier of the permutation by which records are loaded in random order.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// A key.
pub(super) type Key = [u8; KEY_BYTES];

/// The records of a benchmark, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) count: u64,
    pub(super) value_bytes: usize,
    pub(super) seed: u64,
}

/// What a database holds: equal for all engines after the same work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub(super) records: u64,
    /// Of keys and values, the numbers of writes left out.
    pub(super) sum: u64,
    /// Number of the newest write; 0 if all are of the load.
    pub(super) newest: u64,
}

impl Records {
    /// Bytes of all keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.count.saturating_mul((KEY_BYTES + self.value_bytes) as u64)
    }

    /// Records in the order in which they are loaded: by rising key, or each once in an order without pattern.
    pub(super) fn run(&self, places: Range<u64>, is_random: bool) -> RecordRun {
        let stride = if is_random { coprime(self.count) } else { 1 };
        let mut run = RecordRun::new(self.value_bytes, !is_random);
        for place in places {
            let number = (u128::from(place) * u128::from(stride) % u128::from(self.count)) as u64;
            run.add(number, |value| self.fill(number, 0, value));
        }
        run
    }

    /// Writes the value of a record as of a write; 0 stands for the load.
    pub(super) fn fill(&self, number: u64, write: u64, value: &mut [u8]) {
        let mut random = self.random(number);
        let (head, rest) = value.split_at_mut(VALUE_BYTES_MIN);
        head[..8].copy_from_slice(&random.next().to_le_bytes());
        head[8..].copy_from_slice(&write.to_le_bytes());
        for part in rest.chunks_mut(8) {
            part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]);
        }
    }

    /// The write that a value is of.
    ///
    /// # Errors
    /// When it is not a value of this record.
    pub(super) fn write_of(&self, number: u64, value: &[u8]) -> Result<u64> {
        let mark = self.random(number).next().to_le_bytes();
        let is_whole = value.len() == self.value_bytes && value.starts_with(&mark);
        ensure!(is_whole, "record {number} has a value that was never written to it");
        let mut write = [0; 8];
        write.copy_from_slice(&value[8..VALUE_BYTES_MIN]);
        Ok(u64::from_le_bytes(write))
    }

    fn random(&self, number: u64) -> SplitMix64 {
        SplitMix64::new(self.seed ^ number.wrapping_mul(STRIDE))
    }
}

/// A number near the golden section of `count` that shares no divisor with it.
fn coprime(count: u64) -> u64 {
    let near = (count as f64 * 0.618_033_988) as u64 | 1;
    (near..).find(|stride| divisor(*stride, count) == 1).unwrap_or(1)
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The key of a record.
pub(super) fn key(number: u64) -> Key {
    let mut key = [b'0'; KEY_BYTES];
    let mut rest = number;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Some records in the order of the load.
#[derive(Debug)]
pub(super) struct RecordRun {
    keys: Vec<Key>,
    values: Vec<u8>,
    value_bytes: usize,
    is_ascending: bool,
}

impl RecordRun {
    fn new(value_bytes: usize, is_ascending: bool) -> Self {
        Self { keys: Vec::new(), values: Vec::new(), value_bytes, is_ascending }
    }

    fn add(&mut self, number: u64, fill: impl FnOnce(&mut [u8])) {
        self.keys.push(key(number));
        let start = self.values.len();
        self.values.resize(start + self.value_bytes, 0);
        fill(&mut self.values[start..]);
    }

    /// Keys and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let keys = self.keys.iter().map(<[u8; KEY_BYTES]>::as_slice);
        keys.zip(self.values.chunks_exact(self.value_bytes))
    }

    /// Whether every key is above those of this and all earlier runs.
    pub(super) fn is_ascending(&self) -> bool {
        self.is_ascending
    }
}

impl Contents {
    /// Counts a record.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let write = value.get(8..VALUE_BYTES_MIN).and_then(|it| it.try_into().ok());
        self.newest = self.newest.max(write.map_or(0, u64::from_le_bytes));
        let (mark, rest) = (value.get(..8), value.get(VALUE_BYTES_MIN..));
        let parts = [Some(key), mark, rest].into_iter().flatten().flatten();
        let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.sum = self.sum.wrapping_add(hash);
        self.records += 1;
    }

    /// The same without the number of the newest write, which depends on the time.
    pub(super) fn without_writes(self) -> Self {
        Self { newest: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: Records = Records { count: 1000, value_bytes: 100, seed: 7 };

    fn contents(run: &RecordRun) -> Contents {
        let mut contents = Contents::default();
        run.iter().for_each(|(key, value)| contents.add(key, value));
        contents
    }

    #[test]
    fn both_orders_load_each_record_once() {
        let (ascending, random) = (RECORDS.run(0..1000, false), RECORDS.run(0..1000, true));
        assert_eq!(contents(&ascending), contents(&random));
        assert_ne!(ascending.keys, random.keys);
        assert_eq!(contents(&ascending).records, 1000);
        let mut keys = random.keys;
        keys.sort_unstable();
        assert_eq!(keys, ascending.keys);
    }

    #[test]
    fn a_value_tells_its_key_and_its_write() {
        let mut value = vec![0; 100];
        RECORDS.fill(42, 9, &mut value);
        assert_eq!(RECORDS.write_of(42, &value).unwrap(), 9);
        assert!(RECORDS.write_of(43, &value).is_err());
        assert!(RECORDS.write_of(42, &value[..99]).is_err());
        let mut other = Contents::default();
        other.add(&key(42), &value);
        RECORDS.fill(42, 0, &mut value);
        let mut loaded = Contents::default();
        loaded.add(&key(42), &value);
        assert_eq!((other.newest, other.without_writes()), (9, loaded));
    }

    #[test]
    fn keys_are_digits_that_sort_as_their_numbers() {
        assert_eq!(&key(42), b"0000000000000042");
        assert!(key(99) < key(100) && key(u64::MAX) > key(0));
    }
}
