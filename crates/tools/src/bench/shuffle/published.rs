//! The paper's own figures, from a data file.

use std::sync::LazyLock;

use atoll_model::simulate::Observed;
use serde::Deserialize;

const FILE: &str = include_str!("../../../data/li-2013.toml");

/// All figures of Li 2013 that are compared with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) calibration: Calibration,
    #[serde(rename = "bar")]
    pub(super) bars: Vec<Bar>,
    #[serde(rename = "limit")]
    pub(super) limits: Vec<Limits>,
    #[serde(rename = "scaling")]
    pub(super) scalings: Vec<Scaling>,
    #[serde(rename = "statement")]
    pub(super) statements: Vec<Statement>,
    pub(super) workload: Workload,
    #[serde(rename = "crossover")]
    pub(super) crossovers: Vec<Crossover>,
}

/// Section 2.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calibration {
    /// Where it was measured.
    pub(super) machine: String,
    /// Machines of the same processors and links.
    pub(super) holds_for: Vec<String>,
    pub(super) origin: String,
    link_raw: f64,
    link: f64,
    link_shared: f64,
    threads: u32,
    all_remote: f64,
    all_local: f64,
}

/// A bar of figure 6.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bar {
    pub(super) machine: String,
    pub(super) order: String,
    pub(super) moved: String,
    pub(super) coordination: String,
    pub(super) gbps: f64,
    pub(super) origin: String,
}

/// Sums of all controllers and of all links.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) machine: String,
    pub(super) memory: f64,
    pub(super) links: f64,
    pub(super) origin: String,
}

/// Threads up to which an order scales.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scaling {
    pub(super) machine: String,
    pub(super) order: String,
    pub(super) threads: usize,
    pub(super) origin: String,
}

/// A bar of figure 6 whose height is given in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Statement {
    pub(super) machine: String,
    pub(super) order: String,
    pub(super) moved: String,
    pub(super) says: Says,
    pub(super) gbps: f64,
    pub(super) origin: String,
}

/// Stated relation of a bar to a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Says {
    /// Near it.
    About,
    /// Less than it.
    Below,
}

/// The variant that was run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    pub(super) rows: f64,
    pub(super) integer_bytes: f64,
    pub(super) row_bytes: f64,
    pub(super) group_bytes: f64,
}

/// Groups of a partition from which on shuffling is ahead of migration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crossover {
    pub(super) machine: String,
    pub(super) groups: f64,
    pub(super) ahead_below: f64,
    pub(super) origin: String,
}

impl Published {
    /// Li 2013.
    pub(super) fn li_2013() -> &'static Self {
        static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
            toml::from_str(FILE).expect("the file that ships is checked by a test")
        });
        &PUBLISHED
    }
}

impl Calibration {
    /// The figures as input of the simulation.
    pub(super) fn observed(&self) -> Observed {
        Observed {
            link_raw: self.link_raw,
            link: self.link,
            link_shared: self.link_shared,
            threads: self.threads,
            all_remote: self.all_remote,
            all_local: self.all_local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_ships_can_be_read() {
        let published = Published::li_2013();
        assert_eq!((published.bars.len(), published.crossovers.len()), (3, 1));
    }
}
