//! Sorting and partitioning into the caller's buffers.

use std::ptr::{null, null_mut};

use atoll::{atoll_partition_u64, atoll_piece_u64, atoll_sort_f64, atoll_sort_i64, atoll_sort_u64};

use crate::lent::{Open, done};

const DESCENDING: u32 = 1;
const STABLE: u32 = 2;

fn keys(rows: usize) -> Vec<u64> {
    let mut key = 7_u64;
    let mut next = || {
        key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((key >> 33) % 5000) | (key << 63)
    };
    (0..rows).map(|_| next()).collect()
}

#[test]
fn rows_come_out_by_key_and_equal_ones_in_their_order() {
    let context = Open::new(3);
    for rows in [0, 1, 2, 1000, 200_000] {
        let keys = keys(rows);
        let payloads: Vec<u64> = (0..rows as u64).map(|row| row * 3).collect();
        let mut expected: Vec<(u64, u64)> = keys.iter().copied().zip(payloads.clone()).collect();
        expected.sort_by_key(|(key, _)| *key);
        let (mut to, mut with) = (vec![0; rows], vec![0; rows]);
        let (from, of) = (keys.as_ptr(), payloads.as_ptr());
        let (to_keys, to_payloads) = (to.as_mut_ptr(), with.as_mut_ptr());
        // SAFETY: all have so many values.
        done(unsafe { atoll_sort_u64(context.0, from, of, rows, STABLE, to_keys, to_payloads) })
            .unwrap();
        assert_eq!(to.into_iter().zip(with).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn integers_with_a_sign_and_floats_are_ordered_as_such_in_both_directions() {
    let context = Open::new(2);
    let integers = [3_i64, i64::MIN, -1, 0, i64::MAX, -1];
    let floats = [0.0, f64::NAN, -2.5, f64::INFINITY, -0.0, f64::NEG_INFINITY];
    for flags in [0, DESCENDING, DESCENDING | STABLE] {
        let (mut to, mut rows) = ([0_i64; 6], [9_u64; 6]);
        let (to_keys, to_rows) = (to.as_mut_ptr(), rows.as_mut_ptr());
        let from = integers.as_ptr();
        // SAFETY: all have six values.
        done(unsafe { atoll_sort_i64(context.0, from, null(), 6, flags, to_keys, to_rows) })
            .unwrap();
        let mut expected = integers;
        expected.sort_unstable();
        if flags & DESCENDING != 0 {
            expected.reverse();
        }
        assert_eq!(to, expected);
        assert_eq!(rows.map(|row| integers[row as usize]), expected, "row numbers");

        let mut to = [0.0; 6];
        let (from, to_keys) = (floats.as_ptr(), to.as_mut_ptr());
        // SAFETY: the same.
        done(unsafe { atoll_sort_f64(context.0, from, null(), 6, flags, to_keys, null_mut()) })
            .unwrap();
        let mut expected = floats;
        expected.sort_unstable_by(f64::total_cmp);
        if flags & DESCENDING != 0 {
            expected.reverse();
        }
        assert_eq!(to.map(f64::to_bits), expected.map(f64::to_bits));
    }
}

#[test]
fn payloads_alone_may_be_asked_for() {
    let context = Open::new(2);
    let (keys, payloads) = ([2_u64, 1, 3], [20_u64, 10, 30]);
    let mut to = [0; 3];
    let (from, of, to_payloads) = (keys.as_ptr(), payloads.as_ptr(), to.as_mut_ptr());
    // SAFETY: all have three values.
    done(unsafe { atoll_sort_u64(context.0, from, of, 3, 0, null_mut(), to_payloads) }).unwrap();
    assert_eq!(to, [10, 20, 30]);
}

#[test]
fn pieces_hold_every_row_once_in_its_order() {
    let context = Open::new(3);
    for (rows, bits) in [(0, 3), (1, 0), (1000, 14), (100_000, 0), (100_000, 6)] {
        let keys = keys(rows);
        let payloads: Vec<u64> = (0..rows as u64).rev().collect();
        let (mut to, mut with) = (vec![0; rows], vec![0; rows]);
        let mut starts = vec![usize::MAX; (1 << bits) + 1];
        for payloads in [Some(&payloads), None] {
            let (to_keys, to_payloads) = (to.as_mut_ptr(), with.as_mut_ptr());
            let of = payloads.map_or(null(), |payloads| payloads.as_ptr());
            let (from, to_starts) = (keys.as_ptr(), starts.as_mut_ptr());
            // SAFETY: as many values, and places, as the header asks for.
            let code = unsafe {
                atoll_partition_u64(
                    context.0,
                    from,
                    of,
                    rows,
                    bits,
                    to_keys,
                    to_payloads,
                    to_starts,
                )
            };
            done(code).unwrap();
            assert_eq!((starts[0], starts[1 << bits]), (0, rows));
            for piece in 0..1 << bits {
                let in_piece = |row: &usize| atoll_piece_u64(keys[*row], bits) as usize == piece;
                let expected = (0..rows)
                    .filter(in_piece)
                    .map(|row| (keys[row], payloads.map_or(row as u64, |payloads| payloads[row])));
                let range = starts[piece]..starts[piece + 1];
                let found = to[range.clone()].iter().copied().zip(with[range].iter().copied());
                // Looking for all rows of each of many pieces would take long.
                if bits < 10 || piece % 999 == 0 {
                    assert!(found.eq(expected), "piece {piece} of 2^{bits}");
                }
            }
        }
    }
}
