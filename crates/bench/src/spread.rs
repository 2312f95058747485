//! Median and quartiles: what a row of samples comes to.

use std::fmt;

use serde::Serialize;

/// Median and quartiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// A quarter is below.
    pub quartile_low: f64,
    /// Half is below.
    pub median: f64,
    /// A quarter is above.
    pub quartile_high: f64,
}

impl Spread {
    /// Of these values; zeros when there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            quartile_low: quantile(&values, 0.25),
            median: quantile(&values, 0.5),
            quartile_high: quantile(&values, 0.75),
        }
    }
}

/// The value below which this share of the sorted values lies, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = last as f64 * share;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

impl fmt::Display for Spread {
    /// Median and quartiles, with as many decimals as the format's precision (1 unless given).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(1);
        let Self { quartile_low, median, quartile_high } = self;
        write!(f, "{median:.decimals$} ({quartile_low:.decimals$}-{quartile_high:.decimals$})")
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn half_of_the_values_lie_between_the_quartiles() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((spread.quartile_low, spread.median, spread.quartile_high), (2.0, 3.0, 4.0));
    }

    #[test]
    fn between_two_middle_values_the_median_is_their_mean() {
        assert_eq!(Spread::of(vec![1.0, 2.0, 4.0, 9.0]).median, 3.0);
        assert_eq!(Spread::of(vec![7.0]).quartile_high, 7.0);
        assert_eq!(Spread::of(vec![]), Spread::default());
    }
}
