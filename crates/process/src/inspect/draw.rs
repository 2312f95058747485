//! Positions drawn at random and yet spread evenly.

/// Positions out of so many laid end to end: one of each of as many strips as are wanted, in rising
/// order. As many strips as positions give every one of them.
pub(super) struct Draw {
    pages: u64,
    strips: u64,
    strip: u64,
}

impl Draw {
    pub(super) fn new(pages: u64, strips: u64) -> Self {
        Self { pages, strips: strips.min(pages), strip: 0 }
    }

    pub(super) fn next(&mut self, random: &mut Random) -> Option<u64> {
        let bound = |strip: u64| {
            (u128::from(strip) * u128::from(self.pages) / u128::from(self.strips.max(1))) as u64
        };
        let drawn = (self.strip < self.strips).then(|| {
            let (first, end) = (bound(self.strip), bound(self.strip + 1));
            first + random.below(end - first)
        });
        self.strip += 1;
        drawn
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): a sample needs no better.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Evenly from 0 up to and without `bound`; 0 where that is 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let random = z ^ (z >> 31);
        ((u128::from(random) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strip_gives_one_and_as_many_strips_as_positions_give_all() {
        let drawn = |pages, strips| {
            let (mut draw, mut random) = (Draw::new(pages, strips), Random(7));
            std::iter::from_fn(|| draw.next(&mut random)).collect::<Vec<u64>>()
        };
        let some = drawn(1000, 10);
        assert!(some.iter().enumerate().all(|(i, at)| at / 100 == i as u64), "{some:?}");
        assert_eq!(drawn(100, 1 << 40), (0..100).collect::<Vec<u64>>());
        assert_eq!((drawn(0, 5), drawn(5, 0)), (vec![], vec![]));
    }
}
