//! The paper's figures, as data with their source (`data/kiefer-2013.toml`).

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// All figures.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) figure: Vec<PublishedFigure>,
}

/// A figure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFigure {
    #[serde(rename = "where")]
    pub(super) place: String,
    /// The machine, by its name in `machines/`.
    pub(super) machine: String,
    pub(super) quantity: String,
    pub(super) value: f64,
}

impl Published {
    /// Reads them.
    pub(super) fn read() -> Result<Self> {
        toml::from_str(include_str!("../../data/kiefer-2013.toml")).context("the published figures")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_section_4_is_there() {
        let published = Published::read().expect("the file is valid");
        let of = |place: &str| published.figure.iter().filter(|it| it.place == place).count();
        let counts = ["figure 5", "figure 6", "figure 7a", "figure 7b"].map(of);
        assert_eq!(counts, [3, 1, 2, 4]);
    }
}
