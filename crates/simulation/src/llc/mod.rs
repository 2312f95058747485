//! The last-level caches of all domains, in stripes.
//!
//! Each lock guards a stripe: all sets, of every domain, in which some lines may be. With `common` the
//! greatest common divisor of the domains' numbers of sets, the sets of a line are the same modulo
//! `common` in every domain, and so are those of the line it displaces. A stripe has a run of
//! neighbouring numbers, because lines that follow each other are used after each other; it has them
//! domain by domain, because a miss seldom needs more than its own domain's set: for each line of RAM
//! the stripe knows where it may be ([`Sharers`]), and other domains are searched only there.
//!
//! A set's tags lie apart from the holders that follow them: sixteen ways are searched in one line of
//! the host's caches.

mod set;
mod whereabouts;

use parking_lot::{Mutex, MutexGuard};

pub(crate) use set::Set;
pub(crate) use whereabouts::Sharers;

use crate::lru::Modulus;
use crate::ram::LineNumber;
use crate::{CacheShape, Setup};

/// Stripes at most: far more than threads, so that two rarely meet.
const STRIPES: u64 = 1024;

/// Maximum number of lines whose sharers are tracked, one byte for each: those of 16 GiB. Later lines
/// are searched everywhere.
const KNOWN: u64 = 1 << 28;

/// State of a line in a domain, as in the MESIF protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineState {
    /// Written, in no other domain.
    Modified,
    /// Clean, in no other domain.
    Exclusive,
    /// Clean, perhaps in other domains.
    Shared,
    /// Clean, perhaps in other domains; this one forwards it.
    Forward,
}

/// Cores of a domain that may hold a line: bit i for cores i, i + 32, … of the domain. Cores give
/// lines up silently, so some of them may no longer have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holders(u32);

impl Holders {
    pub(crate) const BITS: usize = 32;
    pub(crate) const NONE: Self = Self(0);

    /// The core with this number in its domain.
    pub(crate) fn for_core(core: usize) -> Self {
        Self(1 << (core % Self::BITS))
    }

    pub(crate) fn has(self, core: usize) -> bool {
        self.0 & Self::for_core(core).0 != 0
    }

    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Identifies a line within its set: the line's number divided by the number of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetTag(u32);

/// A line in a domain's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldLine {
    pub(crate) tag: SetTag,
    pub(crate) state: LineState,
    pub(crate) holders: Holders,
}

/// A line, split for finding its sets: its number modulo and divided by `common`.
#[derive(Clone, Copy)]
pub(crate) struct CutLine {
    low: u64,
    high: u64,
}

/// Sets of one stripe: those of one domain after those of another, each in rows of one number; empty
/// until the first line arrives.
#[derive(Default)]
pub(crate) struct Stripe {
    /// For each set its words, then its holders.
    ways: Vec<u32>,
    /// By the line's number in the stripe, up to the highest line used.
    whereabouts: Vec<Sharers>,
}

/// The distribution of a domain's sets.
struct SetMapping {
    ways: usize,
    /// The number of sets divided by `common`.
    folds: Modulus,
    /// Where the domain's sets begin in each stripe.
    start: usize,
}

/// The caches of all domains.
pub(crate) struct Llc {
    domains: Vec<SetMapping>,
    stripes: Vec<Mutex<Stripe>>,
    common: Modulus,
    /// Rows of a stripe, as a power of two.
    row_bits: u32,
    /// Words of a stripe, two for each way.
    words: usize,
    /// Maximum number of lines of a stripe whose sharers are tracked.
    known: usize,
}

impl Llc {
    pub(crate) fn new(setup: &Setup) -> Self {
        let common = setup.llc.iter().fold(0, |common, shape| gcd(common, shape.sets.into()));
        let rows = common.div_ceil(STRIPES).next_power_of_two();
        let mut words = 0;
        let spread = |shape: &CacheShape| {
            let (start, folds) = (words, u64::from(shape.sets) / common);
            let ways = shape.ways as usize;
            words += (folds * rows) as usize * 2 * ways;
            SetMapping { ways, folds: Modulus::new(folds), start }
        };
        Self {
            domains: setup.llc.iter().map(spread).collect(),
            stripes: (0..common.div_ceil(rows)).map(|_| Mutex::default()).collect(),
            common: Modulus::new(common),
            row_bits: rows.trailing_zeros(),
            words,
            known: (KNOWN / common.div_ceil(rows)) as usize,
        }
    }

    pub(crate) fn cut(&self, line: LineNumber) -> CutLine {
        let (high, low) = self.common.divide(line.0);
        CutLine { low, high }
    }

    /// Locks the sets of a line.
    #[inline]
    pub(crate) fn lock(&self, line: CutLine) -> MutexGuard<'_, Stripe> {
        self.stripes[(line.low >> self.row_bits) as usize].lock()
    }

    /// The set of a domain in which a line may be, and its tag there. Returns None if there are no lines.
    #[inline]
    pub(crate) fn set<'a>(
        &self,
        stripe: &'a mut Stripe,
        domain: usize,
        line: CutLine,
    ) -> Option<(Set<'a>, SetTag)> {
        let spread = &self.domains[domain];
        let (tag, fold) = spread.folds.divide(line.high);
        let set = self.row(line) * spread.folds.divisor() as usize + fold as usize;
        let start = spread.start + set * 2 * spread.ways;
        let ways = stripe.ways.get_mut(start..start + 2 * spread.ways)?;
        let (words, holders) = ways.split_at_mut(spread.ways);
        Some((Set { words, holders }, SetTag(tag as u32)))
    }

    /// Where a line may be.
    #[inline]
    pub(crate) fn whereabouts(&self, stripe: &Stripe, line: CutLine) -> Sharers {
        let at = self.number(line);
        let unknown = if at < self.known { Sharers::NOWHERE } else { Sharers::ANYWHERE };
        stripe.whereabouts.get(at).copied().unwrap_or(unknown)
    }

    #[inline]
    pub(crate) fn set_whereabouts(&self, stripe: &mut Stripe, line: CutLine, now: Sharers) {
        let at = self.number(line);
        if at >= stripe.whereabouts.len() && at < self.known {
            stripe.whereabouts.resize(at + 1, Sharers::NOWHERE);
        }
        if let Some(whereabouts) = stripe.whereabouts.get_mut(at) {
            *whereabouts = now;
        }
    }

    /// Makes room for lines.
    #[inline]
    pub(crate) fn prepare(&self, stripe: &mut Stripe) {
        if stripe.ways.is_empty() {
            stripe.ways = vec![0; self.words];
        }
    }

    /// A line's number in its stripe.
    #[inline]
    fn number(&self, line: CutLine) -> usize {
        (line.high as usize) << self.row_bits | self.row(line)
    }

    /// Row of a line in its stripe.
    #[inline]
    fn row(&self, line: CutLine) -> usize {
        line.low as usize & ((1 << self.row_bits) - 1)
    }

    /// The line with a tag in the set of another line.
    pub(crate) fn line(&self, domain: usize, tag: SetTag, beside: CutLine) -> LineNumber {
        let folds = self.domains[domain].folds;
        let high = u64::from(tag.0) * folds.divisor() + folds.divide(beside.high).1;
        LineNumber(high * self.common.divisor() + beside.low)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
