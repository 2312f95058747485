//! Seeded rows, and primitives over them: what `tune` and the benchmarks run.
//!
//! | File | Owns |
//! |---|---|
//! | `rig` | workers, memory and tuning under which a primitive runs |
//! | `draw` | seeded numbers, permutations, and how keys are spread |
//! | `columns` | tables of two columns of 64-bit integers |
//! | `primitive` | partitioning, sums by key and the join of such tables |

mod columns;
mod draw;
mod primitive;
mod rig;

use std::time::Instant;

pub use columns::{COLUMN_NAMES, ColumnTable, PART_ROWS, ROW_BYTES, rows_of, values};
pub use draw::{Draw, Keys, Permutation, Zipf, scramble};
pub use primitive::{JoinSums, join_input, join_sums, partition, sums};
pub use rig::Rig;

/// Most rows of a table.
pub const ROWS_MAX: u64 = 1 << 32;

/// Times a run; drops its result after the clock has stopped.
///
/// # Errors
/// Those of the run.
pub fn timed<T>(run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let start = Instant::now();
    let result = run()?;
    Ok((start.elapsed().as_secs_f64(), result))
}

/// Reads `2^26`, or a number of rows or groups.
///
/// # Errors
/// For any other text, and beyond [`ROWS_MAX`].
pub fn count(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("invalid number of rows or groups '{text}'; write it as 2^20 or 1000000");
    let number = match text.split_once('^') {
        Some(("2", power)) => {
            let power = power.parse().map_err(|_| wrong())?;
            1_u64.checked_shl(power).ok_or_else(wrong)?
        }
        _ => text.parse().map_err(|_| wrong())?,
    };
    match number {
        1..=ROWS_MAX => Ok(number),
        _ => Err(format!("choose 1 to 2^{}", ROWS_MAX.ilog2())),
    }
}

/// Writes a count as it is typed: `2^20` where it is a power of two above 1000.
pub fn shown(count: u64) -> String {
    match count.is_power_of_two() && count > 1000 {
        true => format!("2^{}", count.ilog2()),
        false => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_powers_of_two_or_numbers() {
        for (text, number) in [("2^0", 1), ("2^26", 1 << 26), ("1000", 1000), ("2^32", ROWS_MAX)] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "0", "2^33", "2^99", "3^2", "-1", "2^", "1e6", "99999999999999999999"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(
            (shown(1 << 20), shown(1000), shown(8)),
            ("2^20".into(), "1000".into(), "8".into())
        );
    }
}
