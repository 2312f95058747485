//! The results on which all engines must agree: the number of rows, and a checksum that does not depend on
//! their order.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// Rows of a result and their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// Rows of the result; of a join the matches.
    pub(crate) rows: u64,
    /// Checksum of keys and values, modulo 2^64.
    pub(crate) checksum: u64,
}

/// The weight of a key: `mixed` of `engines.py` is the same function.
pub(crate) fn mixed(key: i64) -> u64 {
    let key = key as u64;
    (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Check {
    /// The check of rows with keys and sums or values. A group returned twice has another checksum than one
    /// returned once, although its sums add up.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = (i64, i64)>) -> Self {
        rows.into_iter().fold(Self::default(), |check, (key, value)| {
            check.and(Self {
                rows: 1,
                checksum: mixed(key).wrapping_mul((value as u64).wrapping_add(1)),
            })
        })
    }

    /// The check of a join: matches, and the sums of the payloads of both sides.
    pub(crate) fn of_join(matches: u64, build: i64, probe: i64) -> Self {
        let checksum = (build as u64).wrapping_mul(3).wrapping_add(probe as u64);
        Self { rows: matches, checksum }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let checksum = self.checksum.wrapping_add(other.checksum);
        Self { rows: self.rows + other.rows, checksum }
    }

    /// Whether an engine found what there is.
    ///
    /// # Errors
    /// When it did not, with both.
    pub(crate) fn expect(self, expected: Self, who: &str, case: &str) -> Result<()> {
        if self == expected {
            return Ok(());
        }
        bail!(
            "{who} is wrong in {case}: {} rows with checksum {:016x}, and {} rows with checksum {:016x} \
             are right",
            self.rows,
            self.checksum,
            expected.rows,
            expected.checksum
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_rows_does_not_matter_and_their_pairing_does() {
        let check = Check::of_rows([(1, 10), (2, 20), (-3, -30)]);
        assert_eq!(check, Check::of_rows([(-3, -30), (1, 10), (2, 20)]));
        assert_ne!(check, Check::of_rows([(1, 20), (2, 10), (-3, -30)]));
    }

    #[test]
    fn a_group_in_two_halves_is_seen() {
        let whole = Check::of_rows([(1, 30)]);
        let halves = Check::of_rows([(1, 10), (1, 20)]);
        assert_ne!(whole.checksum, halves.checksum);
    }

    #[test]
    fn a_wrong_result_is_reported_with_engine_and_case() {
        let right = Check { rows: 3, checksum: 7 };
        right.expect(right, "polars", "x").unwrap();
        let error = Check { rows: 2, checksum: 7 }.expect(right, "polars", "2^4 rows").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("polars is wrong in 2^4 rows: 2 rows"), "{error}");
    }
}
