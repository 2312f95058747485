//! Figure 2: hit rates over time, and by the number of migrations.

use serde::Serialize;

use super::arms::Arms;
use super::calibration::Calibration;
use super::{Counted, Point};
use crate::Operation;
use crate::access::LINE;
use crate::published::Published;

/// Figure 2, for experiment 3 reading 16 MB.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Figure 2a: without migrations and with three.
    pub over_time: Vec<OverTime>,
    /// Figure 2b.
    pub by_migrations: Vec<ByMigrations>,
    /// Misses per migration; None without arms that migrate.
    pub reload: Option<Reload>,
}

/// A curve of figure 2a.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverTime {
    /// Migrations of each thread.
    pub migrations: u32,
    /// The curve.
    pub points: Vec<Point>,
}

/// A point of figure 2b.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByMigrations {
    /// Migrations of each thread.
    pub migrations: u32,
    /// Share of hits.
    pub hit_rate: Option<f64>,
    /// Time by that without migrations.
    pub time_relative: f64,
}

/// Lines that a thread reloads after a migration, from the arm with most of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reload {
    /// Migrations of that arm.
    pub migrations: u32,
    /// Misses more than without migrations, for each migration and line of the array.
    pub misses_per_line: f64,
    /// Accesses of each thread for each line of its array.
    pub accesses_per_line: f64,
    /// The same in the paper.
    pub accesses_per_line_published: f64,
    /// Share of accesses that hit, by the number of migrations in a run of the paper's length.
    pub hit_rate_at_length_published: f64,
}

pub(super) fn figures(arms: Arms<'_>, published: &Published, calibration: &Calibration) -> Figures {
    let mut reads: Vec<&Counted> = arms
        .0
        .iter()
        .filter(|it| it.arm.experiment == 3 && it.arm.operation == Operation::Read)
        .filter(|it| it.arm.size.0 == 16 << 20)
        .collect();
    reads.sort_by_key(|counted| counted.arm.migrations);
    let Some(still) = reads.first().filter(|first| first.arm.migrations == 0) else {
        return Figures::default();
    };
    let base = calibration.time(still).upper;
    let over_time = reads.iter().filter(|it| matches!(it.arm.migrations, 0 | 3));
    Figures {
        over_time: over_time
            .map(|it| OverTime { migrations: it.arm.migrations, points: it.series.clone() })
            .collect(),
        by_migrations: reads
            .iter()
            .map(|it| ByMigrations {
                migrations: it.arm.migrations,
                hit_rate: it.hit_rate(),
                time_relative: calibration.time(it).upper / base,
            })
            .collect(),
        reload: reads.last().and_then(|most| reload(still, most, published)),
    }
}

fn reload(still: &Counted, most: &Counted, published: &Published) -> Option<Reload> {
    let migrations = most.arm.migrations;
    if migrations == 0 {
        return None;
    }
    let lines = (most.arm.size_run.0 as f64 / LINE as f64).max(1.0);
    let threads = most.arm.threads().max(1) as f64;
    let rate = |counted: &Counted| counted.misses as f64 / (counted.accesses as f64).max(1.0);
    let more = (rate(most) - rate(still)).max(0.0);
    let accesses_per_line = most.accesses as f64 / threads / lines;
    let misses_per_line = more * accesses_per_line / f64::from(migrations);
    let lines_published = most.arm.size.0 as f64 / LINE as f64;
    let accesses_per_line_published = published.run.accesses as f64 / threads / lines_published;
    let misses = misses_per_line * f64::from(migrations) / accesses_per_line_published;
    Some(Reload {
        migrations,
        misses_per_line,
        accesses_per_line,
        accesses_per_line_published,
        hit_rate_at_length_published: 1.0 - rate(still) - misses,
    })
}
