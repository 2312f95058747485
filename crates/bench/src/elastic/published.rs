//! The paper's figures, as data with its source (`data/dominico-2018.toml`).

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// All that is compared with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// The machine, by its name in `machines/`.
    pub(super) machine: String,
    #[serde(rename = "figure")]
    pub(super) figures: Vec<PublishedFigure>,
    pub(super) speedup: PublishedSpeedup,
    #[serde(rename = "contradiction")]
    pub(super) contradictions: Vec<PublishedContradiction>,
}

/// A ratio.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFigure {
    pub(super) what: String,
    pub(super) origin: String,
    pub(super) times: f64,
}

/// Speed-ups by query, from the first on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedSpeedup {
    pub(super) origin: String,
    pub(super) adaptive: Vec<f64>,
}

/// Where the paper says two things.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedContradiction {
    pub(super) says: String,
}

impl Published {
    /// Reads it.
    pub(super) fn read() -> Result<Self> {
        toml::from_str(include_str!("../../data/dominico-2018.toml"))
            .context("the published figures")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_speed_up_for_each_query_and_both_gains_of_throughput() {
        let published = Published::read().unwrap();
        assert_eq!(published.speedup.adaptive.len(), 22);
        let mean = published.speedup.adaptive.iter().sum::<f64>() / 22.0;
        assert!((1.29..1.31).contains(&mean), "{mean}");
        let gains = published.figures.iter().filter(|it| it.what.starts_with("memory throughput"));
        assert_eq!(gains.map(|it| it.times).collect::<Vec<_>>(), [1.41, 1.27]);
        assert_eq!(published.contradictions.len(), 1);
    }
}
