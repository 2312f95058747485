//! Probes tables with blocks of rows, as the kind of join requires.

use std::sync::Arc;

use super::hand::Hand;
use crate::PrimitiveError;
use crate::join::Matches;
use crate::join::keys::SideColumns;
use crate::join::kind::UnmatchedRows;
use crate::kernel::direct::Direct;
use crate::kernel::table::{JoinTable, PROBE_ROWS, ProbeRows, ProbeScratch};

/// Whether rows with equal words have equal keys.
pub(super) trait Same: Clone + Send + Sync + 'static {
    /// Payloads of a row of the build side and of one of the probe side.
    fn same(&self, build: u64, probe: u64) -> bool;
}

/// The words are the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByWord;

impl Same for ByWord {
    #[inline(always)]
    fn same(&self, _: u64, _: u64) -> bool {
        true
    }
}

/// The words are hashes; the payloads are the rows' numbers.
#[derive(Clone, Debug)]
pub(super) struct ByBytes {
    pub(super) build: Arc<SideColumns>,
    pub(super) probe: Arc<SideColumns>,
}

impl Same for ByBytes {
    #[inline]
    fn same(&self, build: u64, probe: u64) -> bool {
        self.build.same_key(build, &self.probe, probe)
    }
}

/// A table to probe.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probed<'a> {
    /// An array by key, with its prefetch distance in rows.
    Direct(&'a Direct, usize),
    /// A hash table in a second-level cache.
    Near(&'a JoinTable),
    /// A larger hash table.
    Far(&'a JoinTable),
}

/// Probes with a column of keys and one of payloads.
pub(super) fn probe_columns<C: Matches>(
    probed: Probed<'_>,
    keys: &[u64],
    payloads: &[u64],
    scratch: &mut ProbeScratch,
    same: &impl Same,
    hand: &mut Hand<'_, C>,
) -> Result<(), PrimitiveError> {
    for start in (0..keys.len()).step_by(PROBE_ROWS) {
        probe_block(probed, (keys, payloads), start, scratch, same, hand)?;
    }
    Ok(())
}

/// Probes with the rows from `start` on, up to [`PROBE_ROWS`] of them.
#[inline]
pub(super) fn probe_block<C: Matches, R: ProbeRows>(
    probed: Probed<'_>,
    rows: R,
    start: usize,
    scratch: &mut ProbeScratch,
    same: &impl Same,
    hand: &mut Hand<'_, C>,
) -> Result<(), PrimitiveError> {
    match (hand.has_pairs(), hand.probe_alone() != UnmatchedRows::None) {
        (true, false) => probe_as::<true, false, _, _>(probed, rows, start, scratch, same, hand),
        (true, true) => probe_as::<true, true, _, _>(probed, rows, start, scratch, same, hand),
        (false, true) => probe_as::<false, true, _, _>(probed, rows, start, scratch, same, hand),
        (false, false) => probe_as::<false, false, _, _>(probed, rows, start, scratch, same, hand),
    }
}

#[inline]
fn probe_as<const PAIRS: bool, const FOUND: bool, C: Matches, R: ProbeRows>(
    probed: Probed<'_>,
    rows: R,
    start: usize,
    scratch: &mut ProbeScratch,
    same: &impl Same,
    hand: &mut Hand<'_, C>,
) -> Result<(), PrimitiveError> {
    let block = rows.cut(start);
    let equal = |build, probe| same.same(build, probe);
    let pairs = |build: &[u64], probe: &[u64]| hand.pairs(build, probe);
    match probed {
        Probed::Direct(table, ahead) => {
            table.probe::<PAIRS, FOUND, _, _>(rows, (start, ahead), scratch, pairs)?;
        }
        Probed::Near(table) => {
            table.probe::<PAIRS, FOUND, _, _>(block, false, scratch, equal, pairs)?;
        }
        Probed::Far(table) => {
            table.probe::<PAIRS, FOUND, _, _>(block, true, scratch, equal, pairs)?;
        }
    }
    if FOUND {
        let found = &scratch.found()[..block.len()];
        let marked = |(row, found): (usize, &u8)| (block.payload(row), *found != 0);
        hand.probe_rows(found.iter().enumerate().map(marked))?;
    }
    Ok(())
}
