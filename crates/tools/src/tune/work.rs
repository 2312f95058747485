//! The workload of tuning: primitives over random rows.

use anyhow::Result;
use atoll_primitives::Tuning;
use atoll_primitives::aggregate::Variant;
use atoll_primitives::partition::FanOut;

use crate::bench::Summary;
use crate::workload::{
    ColumnTable, Draw, Permutation, Rig, join_sums, partition, scramble, sums, timed,
};

/// Groups of the aggregations: tables near the workers, and far too many for that.
const GROUPS: [u64; 2] = [1 << 12, 1 << 20];
/// Partitions, as a power of two: more would take fewer passes later, which partitioning alone does not
/// see.
const PARTITIONS_BITS: u32 = 10;
/// Rows of the larger table of the join for each of the smaller.
const PROBES: u64 = 16;

/// A primitive over prepared rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuneWork {
    /// To 1024 partitions.
    Partition,
    /// Sums of few groups.
    FewGroups,
    /// Sums of many groups.
    ManyGroups,
    /// Join of a table with one sixteen times as large.
    Join,
}

impl TuneWork {
    /// All of them.
    pub(super) const ALL: [Self; 4] =
        [Self::Partition, Self::FewGroups, Self::ManyGroups, Self::Join];

    /// Name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::FewGroups => "aggregate, few groups",
            Self::ManyGroups => "aggregate, many groups",
            Self::Join => "join",
        }
    }
}

/// How much faster one tuning is than another in a work.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    pub(super) work: TuneWork,
    pub(super) before: Summary,
    pub(super) after: Summary,
    /// Time before by time after, pair by pair.
    pub(super) ratio: Summary,
}

/// The rows, ready.
#[derive(Debug)]
pub(super) struct Works<'a> {
    rig: &'a Rig,
    /// Sparse keys in few and in many groups.
    grouped: [ColumnTable; 2],
    build: ColumnTable,
}

impl<'a> Works<'a> {
    /// Makes the rows.
    ///
    /// # Errors
    /// When memory is out.
    pub(super) fn prepare(rig: &'a Rig, rows: u64, seed: u64) -> Result<Self> {
        let key = move |number: u64| scramble(number ^ scramble(seed)) as i64;
        let grouped = |groups: u64| {
            ColumnTable::make(rig, rows, move |row| {
                let mut draw = Draw::for_row(seed, 0, row);
                (key(draw.below(groups)), draw.value())
            })
        };
        let build = (rows / PROBES).clamp(1, GROUPS[1]);
        let order = Permutation::new(seed, build);
        let build = ColumnTable::make(rig, build, move |row| {
            (key(order.at(row)), Draw::for_row(seed, 1, row).value())
        })?;
        Ok(Self { rig, grouped: [grouped(GROUPS[0])?, grouped(GROUPS[1])?], build })
    }

    /// Seconds of one run.
    fn run(&self, work: TuneWork, tuning: &Tuning) -> Result<f64> {
        let rig = self.rig.tuned(tuning);
        let [few, many] = &self.grouped;
        let fan_out = FanOut::of_bits(PARTITIONS_BITS);
        match work {
            TuneWork::Partition => timed(|| partition(&rig, many, fan_out)).map(|it| it.0),
            TuneWork::FewGroups => timed(|| sums(&rig, few, Variant::Auto)).map(|it| it.0),
            TuneWork::ManyGroups => timed(|| sums(&rig, many, Variant::Auto)).map(|it| it.0),
            TuneWork::Join => timed(|| join_sums(&rig, &self.build, many)).map(|it| it.0),
        }
    }

    /// Runs each work with both, in turn.
    ///
    /// # Errors
    /// Those of the primitives.
    pub(super) fn compare(&self, before: &Tuning, after: &Tuning, runs: u32) -> Result<Vec<Gain>> {
        let gain = |work: &TuneWork| self.gain(*work, before, after, runs);
        TuneWork::ALL.iter().map(gain).collect()
    }

    fn gain(&self, work: TuneWork, before: &Tuning, after: &Tuning, runs: u32) -> Result<Gain> {
        self.run(work, after)?;
        let (mut befores, mut afters) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            befores.push(self.run(work, before)?);
            afters.push(self.run(work, after)?);
        }
        let summary = |seconds: &[f64]| {
            let summary = Summary::from_values(seconds.iter().copied());
            summary.ok_or_else(|| anyhow::anyhow!("nothing was run"))
        };
        let ratios: Vec<f64> =
            befores.iter().zip(&afters).map(|(before, after)| before / after).collect();
        Ok(Gain {
            work,
            before: summary(&befores)?,
            after: summary(&afters)?,
            ratio: summary(&ratios)?,
        })
    }
}

/// The gains as one: their geometric mean.
pub(super) fn overall(gains: &[Gain]) -> f64 {
    let logs: f64 = gains.iter().map(|gain| gain.ratio.median.ln()).sum();
    (logs / gains.len().max(1) as f64).exp()
}
