//! Joins by nested loops.

use atoll_primitives::join::JoinKind;

use super::Found;

/// What a join of these keys finds; nulls match nothing.
pub(super) fn nested_loops<K: PartialEq>(
    left: &[Option<K>],
    right: &[Option<K>],
    kind: JoinKind,
) -> Found {
    let mut pairs = Vec::new();
    let (mut left_matched, mut right_matched) = (vec![false; left.len()], vec![false; right.len()]);
    for (row, key) in left.iter().enumerate() {
        for (other_row, other) in right.iter().enumerate() {
            if key.is_some() && key == other {
                pairs.push((row as u64, other_row as u64));
                left_matched[row] = true;
                right_matched[other_row] = true;
            }
        }
    }
    let rows = |matched: &[bool], wanted: bool| -> Vec<u64> {
        (0..).zip(matched).filter(|(_, matched)| **matched == wanted).map(|(row, _)| row).collect()
    };
    let left_rows = |wanted| rows(&left_matched, wanted);
    let right_rows = |wanted| rows(&right_matched, wanted);
    let none: fn() -> Vec<u64> = Vec::new;
    match kind {
        JoinKind::Inner => (pairs, none(), none()),
        JoinKind::Left => (pairs, left_rows(false), none()),
        JoinKind::Right => (pairs, none(), right_rows(false)),
        JoinKind::Full => (pairs, left_rows(false), right_rows(false)),
        JoinKind::LeftSemi => (Vec::new(), left_rows(true), none()),
        JoinKind::RightSemi => (Vec::new(), none(), right_rows(true)),
        JoinKind::LeftAnti => (Vec::new(), left_rows(false), none()),
        JoinKind::RightAnti => (Vec::new(), none(), right_rows(false)),
    }
}
