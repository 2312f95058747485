//! Seeded numbers: each row's come from its number alone, so that any worker can make any row.

use std::fmt;

use clap::ValueEnum;

/// How the keys of a table are spread over its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// Whole numbers from 0 on, all as likely
    Dense,
    /// Random 64-bit numbers, all as likely
    Sparse,
    /// The i-th most frequent is 1/i as frequent as the first
    Zipf,
    /// Nine rows in ten have the same key
    Hot,
    /// Rising from row to row
    Sorted,
    /// Falling from row to row
    Reversed,
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A bijection of 64-bit words whose results look random (SplitMix64's finalizer).
pub fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Random numbers of one row.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// Random numbers for a row of a stream; streams of different numbers have nothing in common.
    pub fn for_row(seed: u64, stream: u64, row: u64) -> Self {
        Self(scramble(scramble(seed ^ (stream << 56)) ^ row))
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// Below `end`, all as likely up to a 2^-32nd.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A value as the benchmarks have them: 32 bits, either sign.
    pub fn value(&mut self) -> i64 {
        i64::from(self.word() as i32)
    }
}

/// Ranks 1 to n, rank i in proportion to 1/i: rejection-inversion (Hörmann and Derflinger 1996) at
/// exponent 1.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    ranks: f64,
    area_first: f64,
    area_last: f64,
    always: f64,
}

impl Zipf {
    /// A distribution over this many ranks.
    pub fn new(ranks: u64) -> Self {
        let ranks = ranks.max(1) as f64;
        let always = 2.0 - (2.5_f64.ln() - 0.5).exp();
        Self { ranks, area_first: 1.5_f64.ln() - 1.0, area_last: (ranks + 0.5).ln(), always }
    }

    /// A rank, from 0.
    pub fn draw(self, draw: &mut Draw) -> u64 {
        loop {
            let area = self.area_last + draw.unit() * (self.area_first - self.area_last);
            let place = area.exp();
            let rank = place.round().clamp(1.0, self.ranks);
            if rank - place <= self.always || area >= (rank + 0.5).ln() - 1.0 / rank {
                return rank as u64 - 1;
            }
        }
    }
}

/// A permutation of 0 to n - 1 that can be turned back: steps that are bijections of the next power
/// of two, repeated until the result is below n.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    factor: u64,
    inverse: u64,
}

/// Multiplications, each followed by a shift.
const ROUNDS: u32 = 3;

impl Permutation {
    /// A permutation of `len` numbers.
    pub fn new(seed: u64, len: u64) -> Self {
        let len = len.max(1);
        let bits = len.next_power_of_two().ilog2().max(2);
        let factor = scramble(seed) | 1;
        // Newton's iteration: each step doubles the bits that are right.
        let inverse = (0..6).fold(factor, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)))
        });
        Self { len, mask: (1 << bits) - 1, shift: bits.div_ceil(2), factor, inverse }
    }

    /// Where a number below n goes.
    pub fn at(self, number: u64) -> u64 {
        let mut number = number;
        loop {
            for _ in 0..ROUNDS {
                number = number.wrapping_mul(self.factor) & self.mask;
                number ^= number >> self.shift;
            }
            if number < self.len {
                return number;
            }
        }
    }

    /// The number that goes there.
    pub fn back(self, place: u64) -> u64 {
        let mut number = place;
        loop {
            for _ in 0..ROUNDS {
                // The shift is at least half of the bits: it undoes itself.
                number ^= number >> self.shift;
                number = number.wrapping_mul(self.inverse) & self.mask;
            }
            if number < self.len {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_reaches_every_number_once_and_turns_back() {
        for len in [1, 2, 3, 5, 64, 1000, 4097] {
            let permutation = Permutation::new(7, len);
            let mut seen = vec![false; len as usize];
            for number in 0..len {
                let place = permutation.at(number);
                assert!(!std::mem::replace(&mut seen[place as usize], true), "{len}: {place}");
                assert_eq!(permutation.back(place), number, "{len}");
            }
        }
    }

    #[test]
    fn the_first_zipf_ranks_are_as_frequent_as_the_law_says() {
        let (ranks, rows) = (1000, 400_000);
        let zipf = Zipf::new(ranks);
        let mut counts = vec![0_u64; ranks as usize];
        for row in 0..rows {
            counts[zipf.draw(&mut Draw::for_row(1, 0, row)) as usize] += 1;
        }
        let all: f64 = (1..=ranks).map(|rank| 1.0 / rank as f64).sum();
        for rank in 1..=5_u64 {
            let share = counts[rank as usize - 1] as f64 / rows as f64;
            let expected = 1.0 / rank as f64 / all;
            assert!((share / expected - 1.0).abs() < 0.03, "{rank}: {share} for {expected}");
        }
        assert_eq!(Zipf::new(1).draw(&mut Draw::for_row(1, 0, 0)), 0);
    }

    #[test]
    fn rows_and_streams_draw_numbers_of_their_own() {
        let first = |seed, stream, row| Draw::for_row(seed, stream, row).below(1 << 40);
        assert_eq!(first(1, 0, 5), first(1, 0, 5));
        for other in [first(2, 0, 5), first(1, 1, 5), first(1, 0, 6)] {
            assert_ne!(first(1, 0, 5), other);
        }
        assert!((0..1000).all(|row| Draw::for_row(1, 0, row).below(3) < 3));
    }
}
