//! What some runs come to.

use std::fmt;

use atoll_topology::quantile;
use serde::Serialize;

/// Median, quartiles, least and most of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Half is below.
    pub median: f64,
    /// A quarter is below.
    pub quartile_low: f64,
    /// A quarter is above.
    pub quartile_high: f64,
    /// The least.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// How many there are.
    pub runs: usize,
}

impl Summary {
    /// Summarises the values; None if there are none.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self {
            median: quantile(&values, 0.5)?,
            quartile_low: quantile(&values, 0.25)?,
            quartile_high: quantile(&values, 0.75)?,
            least,
            most,
            runs: values.len(),
        })
    }
}

impl fmt::Display for Summary {
    /// `2.0 (1.0–4.0)`: median, least and most, with as many decimals as the format's precision (2
    /// unless given).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(2);
        let Self { median, least, most, .. } = self;
        let text = format!("{median:.decimals$} ({least:.decimals$}–{most:.decimals$})");
        f.width().map_or(f.write_str(&text), |width| write!(f, "{text:>width$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn half_of_the_values_lie_between_the_quartiles() {
        let summary = Summary::from_values([4.0, 1.0, 3.0, 2.0, 5.0]).unwrap();
        assert_eq!((summary.quartile_low, summary.median, summary.quartile_high), (2.0, 3.0, 4.0));
        assert_eq!((summary.least, summary.most, summary.runs), (1.0, 5.0, 5));
        assert_eq!(format!("{summary:.1}"), "3.0 (1.0–5.0)");
    }

    #[test]
    fn between_two_middle_values_the_median_is_their_mean() {
        assert_eq!(Summary::from_values([4.0, 1.0, 2.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Summary::from_values([7.0]).unwrap().quartile_high, 7.0);
        assert!(Summary::from_values([]).is_none());
    }
}
