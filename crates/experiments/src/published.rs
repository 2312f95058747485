//! The paper's own figures, from a data file.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Operation;

const FILE: &str = include_str!("../data/kiefer-2013.toml");

/// All figures of Kiefer 2013, section 3.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Table 1.
    #[serde(rename = "row")]
    pub rows: Vec<PublishedRow>,
    /// Figures named in the text and in figure 2.
    #[serde(rename = "figure")]
    pub figures: Vec<PublishedFigure>,
    /// How long a run was.
    pub run: PublishedRun,
}

/// A row of table 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// Number of the experiment.
    pub experiment: u8,
    /// The work of the threads.
    pub operation: Operation,
    /// Size of the array: `16MB`.
    pub size: String,
    /// The baseline.
    pub baseline: PublishedTime,
    /// The other.
    pub contrast: PublishedTime,
    /// Where it stands.
    pub origin: String,
}

/// A time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTime {
    /// The title of the run: `local`, `100 migrations`.
    pub setting: String,
    /// ns per access.
    pub ns: f64,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Its name.
    pub name: String,
    /// Its value.
    pub percent: f64,
    /// Where it stands.
    pub origin: String,
}

/// The length of the paper's runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRun {
    /// Accesses of all threads together.
    pub accesses: u64,
    /// Where it stands.
    pub origin: String,
}

impl Published {
    /// The figures.
    ///
    /// # Panics
    /// Never: the file is part of the program, and a test reads it.
    pub fn kiefer_2013() -> &'static Self {
        static READ: LazyLock<Published> =
            LazyLock::new(|| toml::from_str(FILE).expect("the data file is read by a test"));
        &READ
    }

    /// A figure in percent.
    pub fn percent(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.percent)
    }
}

impl PublishedRow {
    /// Size in MB, which for arrays is MiB.
    pub fn mb(&self) -> u64 {
        self.size.trim_end_matches("MB").parse().unwrap_or(0)
    }

    /// Contrast by baseline.
    pub fn ratio(&self) -> f64 {
        self.contrast.ns / self.baseline.ns
    }
}
