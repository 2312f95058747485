//! How much larger the samples of one group are than those of another, by ranks alone (Hodges and
//! Lehmann 1963; Mann and Whitney 1947): exact for any distribution, as long as both have the same shape.

use serde::Serialize;

/// More pairs than this have the normal distribution's quantile instead of the exact one.
const EXACT_MAX: usize = 10_000;

/// How the samples of one group compare with those of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// The median of the ratios of all pairs.
    pub(crate) ratio: f64,
    /// Between these it is, with the confidence that was asked for.
    pub(crate) low: f64,
    /// The upper end.
    pub(crate) high: f64,
    /// Whether there are enough samples for that confidence.
    pub(crate) is_sure: bool,
}

impl Change {
    /// From `old` to `new`; None if one has no sample, or one that is not positive.
    pub(crate) fn from_samples(old: &[f64], new: &[f64], confidence: f64) -> Option<Self> {
        let pairs = old.iter().flat_map(|old| new.iter().map(move |new| new / old));
        let mut ratios: Vec<f64> = pairs.collect();
        if ratios.is_empty() || !old.iter().chain(new).all(|it| it.is_finite() && *it > 0.0) {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let last = ratios.len() - 1;
        let skip = skipped(old.len(), new.len(), (1.0 - confidence) / 2.0);
        let at = skip.unwrap_or(0);
        Some(Self {
            // Logarithms have their middle where the ratios have it.
            ratio: (ratios[last / 2] * ratios[ratios.len() / 2]).sqrt(),
            low: ratios[at],
            high: ratios[last - at],
            is_sure: skip.is_some(),
        })
    }
}

/// How many of the sorted ratios lie outside of the interval on either side: the largest number such
/// that the statistic U of Mann and Whitney is below it with probability `tail` at most. None if even
/// the whole range is not sure enough.
fn skipped(a: usize, b: usize, tail: f64) -> Option<usize> {
    if a * b > EXACT_MAX {
        let (mean, deviation) = (a as f64 * b as f64 / 2.0, deviation(a, b));
        return Some((mean - normal_quantile(1.0 - tail) * deviation).floor().max(0.0) as usize);
    }
    let counts = counts(a, b);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    // The interval from the k-th smallest to the k-th largest ratio misses the true one on a side with
    // the probability that U is below k.
    let misses = counts.iter().position(|count| {
        below += count;
        below / all > tail
    });
    misses.filter(|k| *k > 0).map(|k| k - 1)
}

fn deviation(a: usize, b: usize) -> f64 {
    (a as f64 * b as f64 * (a + b + 1) as f64 / 12.0).sqrt()
}

/// Orders of a and b samples for each value of U, by the recurrence of Mann and Whitney.
fn counts(a: usize, b: usize) -> Vec<f64> {
    // Partitions of U into at most a parts of at most b: the coefficients of the Gaussian binomial.
    let mut counts = vec![0.0; a * b + 1];
    counts[0] = 1.0;
    for i in 1..=a {
        for u in (b + i..counts.len()).rev() {
            counts[u] -= counts[u - b - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// Where the normal distribution is below with this probability, from one half on (Hastings 1955, to
/// 4.5e-4).
fn normal_quantile(probability: f64) -> f64 {
    let t = (-2.0 * (1.0 - probability).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_counted() {
        assert_eq!(counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(counts(5, 5).iter().sum::<f64>(), 252.0);
        assert_eq!(counts(3, 6).iter().sum::<f64>(), 84.0);
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Mann-Whitney, two-sided 5 %: reject at U <= 2 for 5 and 5, 0 for 4 and 4, never for 3 and 3.
        assert_eq!(skipped(5, 5, 0.025), Some(2));
        assert_eq!(skipped(8, 8, 0.025), Some(13));
        assert_eq!(skipped(4, 4, 0.025), Some(0));
        assert_eq!(skipped(3, 3, 0.025), None);
        // Two-sided 1 %.
        assert_eq!(skipped(5, 5, 0.005), Some(0));
        assert_eq!(skipped(6, 6, 0.005), Some(2));
    }

    #[test]
    fn many_samples_come_near_to_the_exact_interval() {
        let (a, b) = (100, 100);
        let all = counts(a, b);
        let total: f64 = all.iter().sum();
        let mut below = 0.0;
        let exact = all.iter().position(|count| {
            below += count / total;
            below > 0.025
        });
        let near = a as f64 * b as f64 / 2.0 - normal_quantile(0.975) * deviation(a, b);
        assert!((near - exact.unwrap() as f64).abs() < 10.0, "{near} {exact:?}");
    }

    #[test]
    fn the_interval_holds_as_often_as_it_says() {
        // Samples whose logarithms are shifted by a known change.
        let (rounds, runs, truth) = (2000, 5, 1.25);
        let mut held = 0;
        for round in 0..rounds {
            let draw = |group: u64, run: u64| {
                let mut draw = atoll_tools::workload::Draw::for_row(7, group, round * 64 + run);
                1.0 + draw.below(1 << 20) as f64 / (1 << 20) as f64
            };
            let old: Vec<f64> = (0..runs).map(|run| draw(0, run)).collect();
            let new: Vec<f64> = (0..runs).map(|run| truth * draw(1, run)).collect();
            let change = Change::from_samples(&old, &new, 0.95).unwrap();
            assert!(change.low <= change.ratio && change.ratio <= change.high);
            held += u64::from(change.low <= truth && truth <= change.high);
        }
        let share = held as f64 / rounds as f64;
        assert!((0.95..0.985).contains(&share), "{share}");
    }

    #[test]
    fn without_positive_samples_there_is_no_change() {
        assert_eq!(Change::from_samples(&[], &[1.0], 0.95), None);
        assert_eq!(Change::from_samples(&[1.0], &[0.0], 0.95), None);
        let alone = Change::from_samples(&[1.0], &[2.0], 0.95).unwrap();
        assert_eq!((alone.ratio, alone.is_sure), (2.0, false));
    }
}
