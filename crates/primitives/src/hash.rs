//! The hash of a 64-bit word that all primitives share: partitions use its high bits, slots of a table inside a
//! partition its low bits.

/// Odd and random, from wyhash.
const MULTIPLIER: u64 = 0xa076_1d64_78bd_642f;
/// Prevents multiplying zero and small numbers unchanged.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of a word: a folded 128-bit product; every bit depends on all bits of the word.
#[inline(always)]
pub fn word(word: u64) -> u64 {
    let product = u128::from(word ^ SALT) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

/// Hash of a word, given the hash of the preceding words.
#[inline(always)]
pub fn then(before: u64, next: u64) -> u64 {
    word(before.rotate_left(23) ^ next)
}

/// Hash of two words, given the hash of the preceding words, at the price of one.
#[inline(always)]
pub fn then_pair(before: u64, first: u64, second: u64) -> u64 {
    let product = u128::from(first ^ MULTIPLIER) * u128::from(second ^ SALT ^ before);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratio of the largest of 1024 partitions of `keys` to an even share.
    fn unevenness(keys: impl Iterator<Item = u64>, digit: impl Fn(u64) -> usize) -> f64 {
        let mut counts = [0_u32; 1024];
        let mut all = 0;
        for key in keys {
            counts[digit(word(key))] += 1;
            all += 1;
        }
        f64::from(counts.into_iter().max().unwrap()) * 1024.0 / f64::from(all)
    }

    #[test]
    fn high_and_low_bits_spread_regular_keys_evenly() {
        let steps = [1, 2, 1000, 1024, 1 << 20, 1 << 32, (1 << 44) + (1 << 12)];
        for step in steps {
            let keys = || (0..1_u64 << 18).map(|at| at.wrapping_mul(step));
            assert!(unevenness(keys(), |hash| (hash >> 54) as usize) < 1.4, "high, {step}");
            assert!(unevenness(keys(), |hash| hash as usize % 1024) < 1.4, "low, {step}");
        }
    }

    #[test]
    fn order_of_words_matters() {
        assert_ne!(then(word(1), 2), then(word(2), 1));
        assert_ne!(then_pair(0, 1, 2), then_pair(0, 2, 1));
        assert_ne!(then_pair(word(1), 3, 4), then_pair(word(2), 3, 4));
    }

    #[test]
    fn pairs_of_regular_words_spread_evenly() {
        let digits = |at: u64| u64::from_le_bytes(*b"00000000") + (at % 10) + ((at / 10 % 10) << 8);
        let hashes = || {
            let pair =
                |at: u64| then_pair(word(24), digits(at), (digits(at / 100) << 16) | (at / 10_000));
            (0..1_u64 << 18).map(pair)
        };
        for shift in [54, 0] {
            let mut counts = [0_u32; 1024];
            hashes().for_each(|hash| counts[(hash >> shift) as usize % 1024] += 1);
            assert!(counts.into_iter().max().unwrap() < 256 * 14 / 10, "shift {shift}");
        }
    }
}
