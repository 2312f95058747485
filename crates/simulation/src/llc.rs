//! The last-level caches of all domains, in stripes.
//!
//! Each lock guards a stripe: all sets, of every domain, in which some lines may be. With `common` the
//! greatest common divisor of the domains' numbers of sets, the sets of a line are the same modulo
//! `common` in every domain, and so are those of the line it displaces. A stripe has a run of
//! neighbouring numbers, because lines that follow each other are used after each other, and what
//! belongs to one number lies side by side for all domains, because a miss looks into all of them.

use parking_lot::{Mutex, MutexGuard};

use crate::lru::{Entry, Modulus};
use crate::ram::Line;
use crate::{CacheShape, Setup};

/// Stripes at most: far more than threads, so that two rarely meet.
const STRIPES: u64 = 1024;

/// State of a line in a domain, as in the MESIF protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Written, in no other domain.
    Modified,
    /// Clean, in no other domain.
    Exclusive,
    /// Clean, perhaps in other domains.
    Shared,
    /// Clean, perhaps in other domains, and the one that hands it on.
    Forward,
}

/// Cores of a domain that may hold a line: bit i for cores i, i + 32, … of the domain. Cores give
/// lines up silently, so that some of them may not have it any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holders(u32);

impl Holders {
    pub(crate) const BITS: usize = 32;
    pub(crate) const NONE: Self = Self(0);

    /// The core of this number in its domain.
    pub(crate) fn of(core: usize) -> Self {
        Self(1 << (core % Self::BITS))
    }

    pub(crate) fn has(self, core: usize) -> bool {
        self.0 & Self::of(core).0 != 0
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Which of the lines that may be in a set; the line's number divided by the number of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetTag(u32);

/// Tags at most: two bits of a word are for the state, and one value for no line.
pub(crate) const SET_TAGS: u64 = (1 << 30) - 1;

/// A line in a domain's cache, in eight bytes: what a miss costs is reading sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Tag plus one, above two bits of state.
    word: u32,
    pub(crate) holders: Holders,
}

impl Held {
    pub(crate) fn new(tag: SetTag, state: State, holders: Holders) -> Self {
        Self { word: (tag.0 + 1) << 2 | state as u32, holders }
    }

    pub(crate) fn tag(self) -> Option<SetTag> {
        (self.word >> 2).checked_sub(1).map(SetTag)
    }

    pub(crate) fn state(self) -> State {
        match self.word & 3 {
            0 => State::Modified,
            1 => State::Exclusive,
            2 => State::Shared,
            _ => State::Forward,
        }
    }
}

impl Entry for Held {
    type Key = SetTag;

    #[inline]
    fn has(self, key: SetTag) -> bool {
        self.word >> 2 == key.0 + 1
    }
}

/// A line, cut into what tells its sets: its number modulo and divided by `common`.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    low: u64,
    high: u64,
}

/// Sets of one stripe, in rows of one number each; empty until the first line comes.
pub(crate) struct Stripe(Vec<Held>);

/// How a domain's sets are spread.
struct Spread {
    ways: usize,
    /// The number of sets divided by `common`.
    folds: Modulus,
    /// Where the domain's sets begin in each row.
    start: usize,
}

/// The caches of all domains.
pub(crate) struct Llc {
    domains: Vec<Spread>,
    stripes: Vec<Mutex<Stripe>>,
    common: Modulus,
    /// Rows of a stripe, as a power of two.
    row_bits: u32,
    /// Entries of a row.
    row: usize,
}

impl Llc {
    pub(crate) fn new(setup: &Setup) -> Self {
        let common = setup.llc.iter().fold(0, |common, shape| gcd(common, shape.sets.into()));
        let rows = common.div_ceil(STRIPES).next_power_of_two();
        let mut row = 0;
        let spread = |shape: &CacheShape| {
            let (start, folds) = (row, u64::from(shape.sets) / common);
            let ways = shape.ways as usize;
            row += folds as usize * ways;
            Spread { ways, folds: Modulus::new(folds), start }
        };
        Self {
            domains: setup.llc.iter().map(spread).collect(),
            stripes: (0..common.div_ceil(rows)).map(|_| Mutex::new(Stripe(vec![]))).collect(),
            common: Modulus::new(common),
            row_bits: rows.trailing_zeros(),
            row,
        }
    }

    pub(crate) fn cut(&self, line: Line) -> Cut {
        let (high, low) = self.common.divide(line.0);
        Cut { low, high }
    }

    /// Locks the sets of a line.
    pub(crate) fn lock(&self, line: Cut) -> MutexGuard<'_, Stripe> {
        self.stripes[(line.low >> self.row_bits) as usize].lock()
    }

    /// The set of a domain in which a line may be, and its tag there; none where there are no lines.
    pub(crate) fn set<'a>(
        &self,
        stripe: &'a mut Stripe,
        domain: usize,
        line: Cut,
    ) -> Option<(&'a mut [Held], SetTag)> {
        let spread = &self.domains[domain];
        let (tag, fold) = spread.folds.divide(line.high);
        let row = line.low as usize & ((1 << self.row_bits) - 1);
        let start = row * self.row + spread.start + fold as usize * spread.ways;
        Some((stripe.0.get_mut(start..start + spread.ways)?, SetTag(tag as u32)))
    }

    /// Makes room for lines.
    pub(crate) fn prepare(&self, stripe: &mut Stripe) {
        if stripe.0.is_empty() {
            stripe.0 = vec![Held::default(); self.row << self.row_bits];
        }
    }

    /// The line with a tag in the set of another.
    pub(crate) fn line(&self, domain: usize, tag: SetTag, beside: Cut) -> Line {
        let folds = self.domains[domain].folds;
        let high = u64::from(tag.0) * folds.divisor() + folds.divide(beside.high).1;
        Line(high * self.common.divisor() + beside.low)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
