//! Our figures next to the published ones.

use serde::Serialize;

use super::Counted;
use super::arms::Arms;
use super::calibration::{Calibration, CalibrationError, Time};
use super::figures::{Figures, figures};
use crate::Operation;
use crate::published::{Published, PublishedRow};

/// All of table 1, figure 2 and the figures of the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedComparison {
    /// The solved parameters.
    pub calibration: Calibration,
    /// Table 1.
    pub rows: Vec<ComparedRow>,
    /// Hit rates and line states.
    pub rates: Vec<Rate>,
    /// Figure 2.
    pub figures: Figures,
}

/// A row of table 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRow {
    /// Number of the experiment.
    pub experiment: u8,
    /// The work of the threads.
    pub name: String,
    /// Settings of baseline and contrast.
    pub settings: [String; 2],
    /// Published times, ns.
    pub published: [f64; 2],
    /// Ours.
    pub ours: [Time; 2],
    /// Hit rates of last-level caches.
    pub hit_rates: [Option<f64>; 2],
    /// Contrast by baseline, published.
    pub ratio_published: f64,
    /// Ours.
    pub ratio: f64,
    /// Ours from the lower times.
    pub ratio_lower: f64,
    /// (ours − 1) / (published − 1) − 1: how far the effect is from the published one.
    pub residual: f64,
    /// Whether the baseline was used for the calibration.
    pub is_calibrated: bool,
}

/// A share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// What it is.
    pub name: String,
    /// Published, percent.
    pub published: f64,
    /// Ours, percent; None if nothing was counted.
    pub ours: Option<f64>,
    /// Where the published one stands.
    pub origin: String,
}

impl PublishedComparison {
    /// Compares counts with the published figures.
    ///
    /// # Errors
    /// [`CalibrationError`] where the two parameters cannot be solved, also for want of the two arms.
    pub fn try_from_counts(
        arms: &[Counted],
        published: &Published,
    ) -> Result<Self, CalibrationError> {
        let arms = Arms(arms);
        let calibration = calibrate(arms, published)?;
        let rows = published.rows.iter().filter_map(|row| compare(row, arms, &calibration));
        Ok(Self {
            calibration,
            rows: rows.collect(),
            rates: rates(arms, published),
            figures: figures(arms, published, &calibration),
        })
    }
}

/// Reads of experiment 2 without migrations.
fn is_calibrated(row: &PublishedRow) -> bool {
    row.experiment == 2 && row.operation == Operation::Read
}

fn calibrate(arms: Arms<'_>, published: &Published) -> Result<Calibration, CalibrationError> {
    let rows = published.rows.iter().filter(|row| is_calibrated(row));
    let mut known: Vec<(&PublishedRow, &Counted)> = rows
        .filter_map(|row| {
            Some((row, arms.find((2, row.operation, row.mb()), &row.baseline.setting)?))
        })
        .collect();
    known.sort_by_key(|(row, _)| row.mb());
    match known[..] {
        [(small, few), (large, many)] => {
            Calibration::solve((few, small.baseline.ns), (many, large.baseline.ns))
        }
        _ => Err(CalibrationError::without_arms()),
    }
}

fn compare(row: &PublishedRow, arms: Arms<'_>, calibration: &Calibration) -> Option<ComparedRow> {
    let key = (row.experiment, row.operation, row.mb());
    let pair = [arms.find(key, &row.baseline.setting)?, arms.find(key, &row.contrast.setting)?];
    let ours = pair.map(|counted| calibration.time(counted));
    let ratio = ours[1].upper / ours[0].upper;
    let ratio_published = row.ratio();
    Some(ComparedRow {
        experiment: row.experiment,
        name: format!("{} {}", row.operation, row.size),
        settings: [row.baseline.setting.clone(), row.contrast.setting.clone()],
        published: [row.baseline.ns, row.contrast.ns],
        hit_rates: pair.map(Counted::hit_rate),
        ours,
        ratio_published,
        ratio,
        ratio_lower: ours[1].lower / ours[0].lower,
        residual: (ratio - 1.0) / (ratio_published - 1.0) - 1.0,
        is_calibrated: is_calibrated(row),
    })
}

fn rates(arms: Arms<'_>, published: &Published) -> Vec<Rate> {
    let of = |experiment, setting: &str| arms.find((experiment, Operation::Read, 16), setting);
    let ours = |name: &str| match name {
        "hit_rate_without_migrations" => of(3, "no migrations")?.hit_rate(),
        "hit_rate_with_200_migrations" => of(3, "200 migrations")?.hit_rate(),
        "hit_rate_co_located" => of(4, "co-located")?.hit_rate(),
        "hit_rate_round_robin" => of(4, "round-robin")?.hit_rate(),
        "hits_unshared_co_located" => of(4, "co-located")?.unshared(),
        "hits_shared_round_robin" => Some(1.0 - of(4, "round-robin")?.unshared()?),
        _ => None,
    };
    let rate = |figure: &crate::published::PublishedFigure| Rate {
        name: figure.name.replace('_', " "),
        published: figure.percent,
        ours: ours(&figure.name).map(|share| share * 100.0),
        origin: figure.origin.clone(),
    };
    published.figures.iter().map(rate).collect()
}
