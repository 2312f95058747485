//! Coordinate descent: one size after the other, a few values each, as long as something is faster.

use anyhow::Result;
use atoll_primitives::Tuning;

use super::work::{Gain, Works, overall};

/// A value has to be this much faster to be taken: less is noise.
const WORTH: f64 = 1.02;
/// Most rounds over all sizes.
const ROUNDS_MAX: usize = 2;

/// One of the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunedSize {
    BufferRows,
    FanOutBits,
    BlockRows,
    PrefetchRows,
    TableBytes,
}

impl TunedSize {
    /// In the order in which they are fitted: what others build on comes first.
    const ALL: [Self; 5] =
        [Self::BufferRows, Self::FanOutBits, Self::BlockRows, Self::PrefetchRows, Self::TableBytes];

    fn name(self) -> &'static str {
        match self {
            Self::BufferRows => "buffer_rows",
            Self::FanOutBits => "fan_out_bits_max",
            Self::BlockRows => "block_rows",
            Self::PrefetchRows => "prefetch_rows",
            Self::TableBytes => "table_bytes",
        }
    }

    fn values(self) -> &'static [usize] {
        match self {
            Self::BufferRows => &[8, 16, 32, 64],
            Self::FanOutBits => &[8, 9, 10, 11, 12],
            Self::BlockRows => &[1024, 2048, 4096, 8192],
            Self::PrefetchRows => &[8, 16, 32, 64],
            Self::TableBytes => &[128 << 10, 256 << 10, 512 << 10, 1 << 20],
        }
    }

    fn get(self, tuning: &Tuning) -> usize {
        match self {
            Self::BufferRows => tuning.buffer_rows,
            Self::FanOutBits => tuning.fan_out_bits_max as usize,
            Self::BlockRows => tuning.block_rows,
            Self::PrefetchRows => tuning.prefetch_rows,
            Self::TableBytes => tuning.table_bytes,
        }
    }

    fn with(self, tuning: &Tuning, value: usize) -> Tuning {
        let tuning = tuning.clone();
        match self {
            Self::BufferRows => Tuning { buffer_rows: value, ..tuning },
            Self::FanOutBits => Tuning { fan_out_bits_max: value as u32, ..tuning },
            Self::BlockRows => Tuning { block_rows: value, ..tuning },
            Self::PrefetchRows => Tuning { prefetch_rows: value, ..tuning },
            Self::TableBytes => Tuning { table_bytes: value, ..tuning },
        }
    }
}

/// The best tuning and its gain; the untuned one if none is better. `say` receives what was
/// tried.
///
/// # Errors
/// Those of the primitives.
pub(super) fn tune(
    works: &Works<'_>,
    untuned: &Tuning,
    runs: u32,
    say: &mut dyn FnMut(String),
) -> Result<(Tuning, Vec<Gain>)> {
    let tuned = descend(untuned, say, |best, other| {
        // A chance gain does not come twice.
        let first = overall(&works.compare(best, other, runs)?);
        match first > WORTH {
            true => Ok(first.min(overall(&works.compare(best, other, runs)?))),
            false => Ok(first),
        }
    })?;
    let gains = works.compare(untuned, &tuned, 2 * runs)?;
    if overall(&gains) > 1.0 {
        return Ok((tuned, gains));
    }
    Ok((untuned.clone(), works.compare(untuned, untuned, runs)?))
}

fn descend(
    untuned: &Tuning,
    say: &mut dyn FnMut(String),
    mut gain: impl FnMut(&Tuning, &Tuning) -> Result<f64>,
) -> Result<Tuning> {
    let mut best = untuned.clone();
    for _ in 0..ROUNDS_MAX {
        let before = best.clone();
        for size in TunedSize::ALL {
            best = fitted(size, &best, say, &mut gain)?;
        }
        if best == before {
            break;
        }
    }
    Ok(best)
}

/// The best tuning with another value of one size.
fn fitted(
    size: TunedSize,
    best: &Tuning,
    say: &mut dyn FnMut(String),
    gain: &mut impl FnMut(&Tuning, &Tuning) -> Result<f64>,
) -> Result<Tuning> {
    let now = size.get(best);
    let mut fastest = (WORTH, now);
    for value in size.values().iter().copied().filter(|value| *value != now) {
        let gain = gain(best, &size.with(best, value))?;
        say(format!("{} {value} instead of {now}: {gain:.3} times as fast", size.name()));
        if gain > fastest.0 {
            fastest = (gain, value);
        }
    }
    Ok(size.with(best, fastest.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds that a made-up machine takes: least at these sizes.
    fn seconds(tuning: &Tuning) -> f64 {
        let away = |value: usize, best: usize| (value as f64 / best as f64).log2().abs();
        1.0 + away(tuning.buffer_rows, 64)
            + away(tuning.prefetch_rows, 8)
            + away(tuning.table_bytes, 1 << 20)
            + away(tuning.block_rows, 2048)
            + away(tuning.fan_out_bits_max as usize, 12)
    }

    #[test]
    fn descent_finds_the_best_of_the_values() {
        let gain = |best: &Tuning, other: &Tuning| Ok(seconds(best) / seconds(other));
        let tuned = descend(&Tuning::default(), &mut |_| {}, gain).unwrap();
        let expected = Tuning {
            buffer_rows: 64,
            prefetch_rows: 8,
            table_bytes: 1 << 20,
            block_rows: 2048,
            fan_out_bits_max: 12,
        };
        assert_eq!(tuned, expected);
    }

    #[test]
    fn noise_changes_nothing() {
        let tuned = descend(&Tuning::default(), &mut |_| {}, |_, _| Ok(1.01)).unwrap();
        assert_eq!(tuned, Tuning::default());
    }
}
