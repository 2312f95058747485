//! Seeded data: the same seed gives the same rows, on every machine.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// An optional value.
pub type Value = Option<i64>;

/// The distribution of a table's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// This many keys, uniformly distributed.
    Uniform(i64),
    /// Nine rows in ten have the same key, the others any of this many.
    Skewed(i64),
    /// Each row has its own, ascending key.
    Unique,
}

/// Rows of (key, value): one key in twenty and one value in ten is null, and values reach both ends
/// of 32 bits.
pub fn rows(seed: u64, count: usize, keys: Keys) -> Vec<(Value, Value)> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count as i64)
        .map(|row| {
            let key = match keys {
                Keys::Uniform(distinct) => rng.random_range(0..distinct),
                Keys::Skewed(_) if rng.random_bool(0.9) => 0,
                Keys::Skewed(distinct) => rng.random_range(0..distinct),
                Keys::Unique => row,
            };
            let value = i64::from(rng.random::<i32>());
            ((!rng.random_bool(0.05)).then_some(key), (!rng.random_bool(0.1)).then_some(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_rows_again_and_another_seed_others() {
        let first = rows(1, 500, Keys::Uniform(10));
        assert_eq!(first, rows(1, 500, Keys::Uniform(10)));
        assert_ne!(first, rows(2, 500, Keys::Uniform(10)));
    }

    #[test]
    fn skewed_rows_mostly_have_one_key_and_some_are_null() {
        let rows = rows(3, 1000, Keys::Skewed(50));
        let most = rows.iter().filter(|(key, _)| *key == Some(0)).count();
        assert!(most > 700, "{most}");
        assert!(rows.iter().any(|(key, _)| key.is_none()));
        assert!(rows.iter().any(|(_, value)| value.is_none()));
    }
}
