//! Positions drawn at random but spread evenly.

use atoll_sys::SplitMix64;

/// Draws one position from each of the requested number of equal strips of a range, in rising
/// order. With as many strips as positions, it returns every position.
pub(in crate::inspect) struct StripSample {
    pages: u64,
    strips: u64,
    strip: u64,
}

impl StripSample {
    pub(in crate::inspect) fn new(pages: u64, strips: u64) -> Self {
        Self { pages, strips: strips.min(pages), strip: 0 }
    }

    pub(in crate::inspect) fn next(&mut self, random: &mut SplitMix64) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strip_gives_one_and_as_many_strips_as_positions_give_all() {
        let drawn = |pages, strips| {
            let (mut draw, mut random) = (StripSample::new(pages, strips), SplitMix64::new(7));
            std::iter::from_fn(|| draw.next(&mut random)).collect::<Vec<u64>>()
        };
        let some = drawn(1000, 10);
        assert!(some.iter().enumerate().all(|(i, at)| at / 100 == i as u64), "{some:?}");
        assert_eq!(drawn(100, 1 << 40), (0..100).collect::<Vec<u64>>());
        assert_eq!((drawn(0, 5), drawn(5, 0)), (vec![], vec![]));
    }
}
