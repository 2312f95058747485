//! Sorts rows by their first word: a radix sort from the highest digit down, whose digits follow the actual range of
//! the keys, so that close keys cost no empty passes.
//!
//! Faster than the standard library's stable and unstable sorts on rows of two words with random keys; the crates for
//! radix sorting take whole types, not rows by a word.

/// Rows up to which insertion sort is fastest.
const FEW: usize = 24;
/// Bits of one pass over rows that fit the second-level cache.
const NEAR_BITS_MAX: u32 = 11;
/// The same for more rows: every part being written takes a line of the first-level cache.
const FAR_BITS: u32 = 8;
/// Rows assumed to fit the second-level cache.
const NEAR_ROWS: usize = 1 << 14;

/// Sorts rows by their first word; rows of equal words keep their order. `scratch` must be as long as `rows`; its
/// contents are undefined afterwards. `check` is called before each pass over many rows: its error ends the sort, and
/// leaves the rows in any order, some of them twice.
///
/// # Errors
/// Those of `check`.
///
/// # Panics
/// When `scratch` is shorter than `rows`.
///
/// ```
/// use atoll_primitives::sort::sort_rows;
///
/// let mut rows = [[3, 0], [1, 1], [2, 2], [1, 3]];
/// sort_rows(&mut rows, &mut [[0; 2]; 4], &mut || Ok::<(), ()>(()))?;
/// assert_eq!(rows, [[1, 1], [1, 3], [2, 2], [3, 0]]);
/// # Ok::<(), ()>(())
/// ```
pub fn sort_rows<const W: usize, E>(
    rows: &mut [[u64; W]],
    scratch: &mut [[u64; W]],
    check: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let scratch = &mut scratch[..rows.len()];
    sort_to(rows, scratch, false, check)
}

/// Sorts rows in place or into the other buffer.
fn sort_to<const W: usize, E>(
    rows: &mut [[u64; W]],
    other: &mut [[u64; W]],
    to_other: bool,
    check: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    if rows.len() <= FEW {
        insert(rows);
    } else {
        if rows.len() > NEAR_ROWS {
            check()?;
        }
        let keys = KeyTraits::from_rows(rows);
        if !keys.sorted {
            return pass(rows, other, to_other, keys, check);
        }
    }
    if to_other {
        other.copy_from_slice(rows);
    }
    Ok(())
}

/// Properties of the keys of some rows.
struct KeyTraits {
    min: u64,
    max: u64,
    sorted: bool,
}

impl KeyTraits {
    fn from_rows<const W: usize>(rows: &[[u64; W]]) -> Self {
        let mut keys = Self { min: u64::MAX, max: 0, sorted: true };
        let mut before = 0;
        for row in rows {
            keys.min = keys.min.min(row[0]);
            keys.max = keys.max.max(row[0]);
            keys.sorted &= before <= row[0];
            before = row[0];
        }
        keys
    }
}

/// Moves rows by their highest digit to the other buffer, and sorts each part.
fn pass<const W: usize, E>(
    rows: &mut [[u64; W]],
    other: &mut [[u64; W]],
    to_other: bool,
    keys: KeyTraits,
    check: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    // Not sorted, so there are at least two keys, and one bit.
    let bits = u64::BITS - (keys.max - keys.min).leading_zeros();
    let digits = bits.min(digit_bits(rows.len()));
    let shift = bits - digits;
    let digit = |row: &[u64; W]| ((row[0] - keys.min) >> shift) as usize;
    let mut ends = vec![0_usize; 1 << digits];
    for row in rows.iter() {
        ends[digit(row)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for row in rows.iter() {
        let place = &mut ends[digit(row)];
        other[*place] = *row;
        *place += 1;
    }
    let mut start = 0;
    for end in ends {
        if start < end {
            sort_to(&mut other[start..end], &mut rows[start..end], !to_other, check)?;
        }
        start = end;
    }
    Ok(())
}

/// Bits of a pass over this many rows: each part of rows that fit a cache gets few.
fn digit_bits(rows: usize) -> u32 {
    if rows > NEAR_ROWS { FAR_BITS } else { rows.ilog2().saturating_sub(2).clamp(3, NEAR_BITS_MAX) }
}

fn insert<const W: usize>(rows: &mut [[u64; W]]) {
    for end in 1..rows.len() {
        let row = rows[end];
        let mut at = end;
        while at > 0 && rows[at - 1][0] > row[0] {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
    }
}
