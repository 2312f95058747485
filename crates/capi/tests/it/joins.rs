//! Joins.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use atoll::{RowsPart, Side, atoll_cancel, atoll_join, atoll_join_blocks};

use crate::lent::{INT64, Open, UINT64, done, fixed, found, part};

/// A pair of payloads, or one alone.
type Match = (Option<u64>, Option<u64>);

pub(crate) fn side(parts: &[RowsPart], keys: &[u32], payload: i32) -> Side {
    Side {
        parts: parts.as_ptr(),
        part_count: parts.len(),
        keys: keys.as_ptr(),
        key_count: keys.len(),
        payload,
    }
}

/// Kinds in the header's order, by nested loops.
fn expected(left: &[i64], right: &[i64], kind: u32) -> Vec<Match> {
    let mut pairs: Vec<Match> = Vec::new();
    let (mut left_met, mut right_met) = (vec![false; left.len()], vec![false; right.len()]);
    for (at, key) in left.iter().enumerate() {
        for (other, _) in right.iter().enumerate().filter(|(_, found)| *found == key) {
            (left_met[at], right_met[other]) = (true, true);
            pairs.push((Some(at as u64), Some(other as u64)));
        }
    }
    let alone = |met: &[bool], wanted: bool| -> Vec<u64> {
        (0..met.len()).filter(|at| met[*at] == wanted).map(|at| at as u64).collect()
    };
    let left_alone = |wanted| alone(&left_met, wanted).into_iter().map(|at| (Some(at), None));
    let right_alone = |wanted| alone(&right_met, wanted).into_iter().map(|at| (None, Some(at)));
    let mut all = if kind < 4 { pairs } else { Vec::new() };
    match kind {
        1 | 6 => all.extend(left_alone(false)),
        2 | 7 => all.extend(right_alone(false)),
        3 => all.extend(left_alone(false).chain(right_alone(false))),
        4 => all.extend(left_alone(true)),
        5 => all.extend(right_alone(true)),
        _ => (),
    }
    all.sort_unstable();
    all
}

unsafe extern "C" fn keep(
    user: *mut c_void,
    worker: u32,
    left: *const u64,
    right: *const u64,
    rows: usize,
) -> c_int {
    assert!(worker < 2);
    // SAFETY: what the test gave.
    let kept = unsafe { &*user.cast::<Mutex<Vec<Match>>>() };
    // SAFETY: null, or so many payloads.
    let at = |side: *const u64, row| (!side.is_null()).then(|| unsafe { *side.add(row) });
    kept.lock().unwrap().extend((0..rows).map(|row| (at(left, row), at(right, row))));
    0
}

#[test]
fn every_kind_of_join_is_that_of_nested_loops_kept_and_block_by_block() {
    let context = Open::new(2);
    let left: Vec<i64> = (0..600).map(|row| row * row % 251).collect();
    let right: Vec<i64> = (0..900).map(|row| row * 3 % 401 + 20).collect();
    let (left_columns, right_columns) = ([fixed(INT64, &left)], [fixed(INT64, &right)]);
    let (left_parts, right_parts) = ([part(&left_columns)], [part(&right_columns)]);
    let (left_side, right_side) = (side(&left_parts, &[0], -1), side(&right_parts, &[0], -1));
    for kind in 0..8 {
        let expected = expected(&left, &right, kind);
        // SAFETY: made of slices that live.
        let kept = found(|to| unsafe {
            atoll_join(context.0, &raw const left_side, &raw const right_side, kind, to)
        });
        let kept = kept.unwrap();
        let mut pairs: Vec<Match> =
            kept.values::<u64>(0).into_iter().zip(kept.values::<u64>(1)).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, expected, "kind {kind}: {}", kept.reason());

        let blocks = Mutex::new(Vec::<Match>::new());
        let user = (&raw const blocks).cast_mut().cast();
        let (left, right) = (&raw const left_side, &raw const right_side);
        // SAFETY: the same, and the function takes what it is given.
        done(unsafe { atoll_join_blocks(context.0, left, right, kind, Some(keep), user) }).unwrap();
        let mut pairs = blocks.into_inner().unwrap();
        pairs.sort_unstable();
        assert_eq!(pairs, expected, "kind {kind}, by blocks");
    }
}

#[test]
fn a_column_is_carried_along_as_payload_through_parts_and_many_blocks() {
    let context = Open::new(2);
    let keys: Vec<i64> = (0..50_000).collect();
    let names: Vec<u64> = keys.iter().map(|key| *key as u64 * 10).collect();
    let probes: Vec<i64> = (0..500_000).map(|row| row % 100_000).collect();
    let left_columns = [fixed(INT64, &keys), fixed(UINT64, &names)];
    let halves = probes.split_at(123_457);
    let right_columns = [[fixed(INT64, halves.0)], [fixed(INT64, halves.1)]];
    let left_parts = [part(&left_columns)];
    let right_parts = right_columns.each_ref().map(|columns| part(columns));
    let (left, right) = (side(&left_parts, &[0], 1), side(&right_parts, &[0], -1));
    // SAFETY: made of slices that live.
    let call = |to| unsafe { atoll_join(context.0, &raw const left, &raw const right, 0, to) };
    let kept = found(call).unwrap();
    let pairs = kept.values::<u64>(0).into_iter().flatten().zip(kept.values::<u64>(1));
    let mut count = 0;
    for (name, row) in pairs {
        assert_eq!(name, probes[row.unwrap() as usize] as u64 * 10);
        count += 1;
    }
    assert_eq!(count, 250_000);
}

unsafe extern "C" fn cancel(
    user: *mut c_void,
    _: u32,
    _: *const u64,
    _: *const u64,
    _: usize,
) -> c_int {
    // SAFETY: the context that the test gave.
    unsafe { atoll_cancel(user.cast()) };
    0
}

#[test]
fn a_join_that_is_cancelled_ends_with_an_error_and_the_context_goes_on() {
    let context = Open::new(2);
    let keys: Vec<i64> = (0..1 << 20).collect();
    let columns = [fixed(INT64, &keys)];
    let parts = [part(&columns)];
    let side = side(&parts, &[0], -1);
    let (both, user) = (&raw const side, context.0.cast());
    // SAFETY: made of slices that live.
    let code = unsafe { atoll_join_blocks(context.0, both, both, 0, Some(cancel), user) };
    assert_eq!(done(code), Err((5, "cancelled by atoll_cancel".into())));
    // SAFETY: the same.
    let again = found(|to| unsafe { atoll_join(context.0, both, both, 4, to) }).unwrap();
    assert_eq!(again.values::<u64>(0).len(), 1 << 20);
}
