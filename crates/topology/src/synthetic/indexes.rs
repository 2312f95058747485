//! The numbering of a level's objects: `indexes=` and one of
//!
//! - a list: `0,2,1,3`, the numbers in the order of the objects;
//! - loops: `2*2:1*2` is two steps of two objects, and within each two steps of one: 0, 2, 1, 3;
//! - levels: `pack:core` iterates over the packages first, then over the cores of each.

use std::collections::BTreeSet;

use super::SyntheticError;
use super::cursor::TextCursor;
use super::level::{IndexesText, Level, LevelKind};
use crate::SET_NUMBER_MAX;

const EXPECTED: &str =
    "a list of numbers such as 0,2,1,3, loops such as 2*2:1*2 or levels such as pack:core";

/// `count` objects at intervals of `step`.
#[derive(Clone, Copy, Debug)]
struct IndexLoop {
    step: u64,
    count: u64,
}

/// The numbers of `total` objects in order; without `indexes=` from 0.
pub(super) fn numbers(
    description: &str,
    indexes: Option<IndexesText<'_>>,
    total: u32,
    levels: &[Level<'_>],
) -> Result<Vec<u32>, SyntheticError> {
    let Some(IndexesText { text, at }) = indexes else { return Ok((0..total).collect()) };
    let fail = |expected: String| TextCursor::new(description).error_at(at, expected);
    let is_list = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let numbers = match is_list {
        true => text.split(',').map(|number| number.parse().ok()).collect(),
        false => loops(text, total.into(), levels).and_then(|loops| interleaved(&loops, total)),
    };
    let numbers: Vec<u32> = numbers.ok_or_else(|| fail(EXPECTED.to_owned()))?;
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    let largest = distinct.last().copied().unwrap_or_default();
    if numbers.len() != total as usize
        || distinct.len() != numbers.len()
        || largest > SET_NUMBER_MAX
    {
        return Err(fail(format!("{total} different numbers up to {SET_NUMBER_MAX}")));
    }
    Ok(numbers)
}

fn interleaved(loops: &[IndexLoop], total: u32) -> Option<Vec<u32>> {
    let number = |object: u64| {
        let mut number = 0;
        let mut scale = 1u64;
        for IndexLoop { step, count } in loops {
            number += object / step % count * scale;
            scale *= count;
        }
        u32::try_from(number).ok()
    };
    (0..u64::from(total)).map(number).collect()
}

/// The loops, whose counts multiply to the total: the innermost is optional.
fn loops(text: &str, total: u64, levels: &[Level<'_>]) -> Option<Vec<IndexLoop>> {
    let mut loops = match text.starts_with(|first: char| first.is_ascii_digit()) {
        true => text.split(':').map(explicit).collect::<Option<Vec<IndexLoop>>>()?,
        false => of_levels(text, total, levels)?,
    };
    let product = loops.iter().try_fold(1u64, |product, each| product.checked_mul(each.count))?;
    let least = loops.iter().map(|each| each.step).min()?;
    if product != total {
        let left = total / product;
        if left * product != total || least != left {
            return None;
        }
        loops.push(IndexLoop { step: 1, count: left });
    }
    Some(loops)
}

fn explicit(text: &str) -> Option<IndexLoop> {
    let (step, count) = text.split_once('*')?;
    let number = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
    Some(IndexLoop { step: number(step)?.into(), count: number(count)?.into() })
}

fn of_levels(text: &str, total: u64, levels: &[Level<'_>]) -> Option<Vec<IndexLoop>> {
    let depth = |name: &str| {
        let kind = LevelKind::named(name)?;
        levels.iter().position(|level| level.kind == kind)
    };
    let depths: Vec<usize> = text.split(':').map(depth).collect::<Option<_>>()?;
    if depths.iter().collect::<BTreeSet<_>>().len() != depths.len() {
        return None;
    }
    let each = |&depth: &usize| {
        let own = u64::from(levels[depth].total);
        let outer = depths.iter().filter(|&&other| other < depth).max();
        let outer = outer.map_or(1, |&outer| u64::from(levels[outer].total));
        (total >= own).then(|| IndexLoop { step: total / own, count: own / outer })
    };
    depths.iter().map(each).collect()
}
