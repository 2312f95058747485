//! What the report found, and whether ours confirms it, contradicts it, or cannot decide.

use atoll_tools::bench::Summary;
use serde::Serialize;

use super::case::KvWork;
use super::engine::EngineName;
use super::published;
use super::report::KvReport;
use crate::trials::{Decision, Verdict};

/// The arm that the report calls interleaved, and the one that it calls local.
const SPREAD: &str = "spread";
const LOCAL: &str = "default";

/// Runs of each arm that a difference of a few percent needs.
const RUNS_MIN: usize = 3;

/// A statement of the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) says: String,
    pub(super) verdict: Verdict,
    pub(super) because: String,
}

/// All statements.
pub(super) fn findings(report: &KvReport) -> Vec<Finding> {
    let view = View { report, arm: arm(report) };
    let all: [(&str, Decision); 9] = [
        ("LMDB's load takes 6 % longer interleaved (65.73 to 69.76 s)", view.load_slower()),
        (
            "LMDB's reads scale with the cores: 245,876 a second with 1 reader, 8,544,139 with 64 (34.8 times)",
            view.lmdb_scales(),
        ),
        (
            "RocksDBpfx is almost as fast as LMDB: 8,487,500 reads a second with 64",
            view.prefixes_follow(),
        ),
        ("LMDB writes fastest with 1 to 16 readers", view.fastest_writer()),
        ("LMDB keeps the cpus busy: near 100 · (readers + 1) %", view.cpus_busy()),
        (
            "LMDB Update: writes +17.6 % with 1 reader and +9.8 % with 64, reads +3.7 and +0.9 %",
            Err(format!(
                "every LMDB that is packaged today has the changes of '{}'; the one before is not",
                published::UPDATE
            )),
        ),
        (
            "scaling turns negative above 32 readers for LevelDB (162,455 to 86,666)",
            view.negative(),
        ),
        (
            "interleaved, system time vanishes for LMDB, RocksDBpfx and WiredTiger's B-tree",
            view.system_time(
                &[EngineName::Lmdb, EngineName::Rocksdbpfx, EngineName::WiredtigerBtree],
                true,
            ),
        ),
        (
            "it does not for LevelDB, BerkeleyDB, HyperLevelDB and TokuDB",
            view.system_time(
                &[EngineName::Leveldb, EngineName::Berkeleydb, EngineName::Hyperleveldb],
                false,
            ),
        ),
    ];
    let finding = |(says, decision): (&str, Decision)| {
        let decision = match report.is_lab {
            true => Err("times in the lab are the emulator's".to_owned()),
            false => decision,
        };
        let (verdict, because) = Verdict::from_decision(decision);
        Finding { says: says.to_owned(), verdict, because }
    };
    all.into_iter().map(finding).collect()
}

/// The arm that stands beside the report's: its own if it was measured.
fn arm(report: &KvReport) -> String {
    let arms = &report.plan.arms;
    let own = arms.iter().find(|arm| *arm == SPREAD).or(arms.first());
    own.cloned().unwrap_or_default()
}

/// The results as the statements need them.
struct View<'a> {
    report: &'a KvReport,
    arm: String,
}

impl View<'_> {
    fn load_slower(&self) -> Decision {
        self.needs_nodes()?;
        let work = KvWork::Load { random: false };
        let times = |arm| {
            let answers = self.report.answers(EngineName::Lmdb, arm, work).into_iter();
            Summary::from_values(answers.map(|it| it.usage.wall_s))
        };
        let Some((local, spread)) = times(LOCAL).zip(times(SPREAD)) else {
            return Err("LMDB was not loaded under both default and spread".to_owned());
        };
        if local.runs.min(spread.runs) < RUNS_MIN {
            return Err(format!("fewer than {RUNS_MIN} runs do not tell a few percent from noise"));
        }
        let more = (spread.median / local.median - 1.0) * 100.0;
        let text = format!("{more:+.1} % here, {local} to {spread} s");
        match local.most < spread.least || spread.most < local.least {
            true => Ok((more > 0.0, text)),
            false => Err(format!("within noise: {text}")),
        }
    }

    fn lmdb_scales(&self) -> Decision {
        let (least, most) = self.range(EngineName::Lmdb, 64)?;
        let rate = |readers| self.report.reads(EngineName::Lmdb, &self.arm, readers);
        let (Some(one), Some(all)) = (rate(least), rate(most)) else {
            return Err(missing(EngineName::Lmdb));
        };
        let (times, wanted) = (all / one, f64::from(most) / f64::from(least));
        let text = format!("{times:.1} times from {least} to {most} readers");
        Ok((times > wanted * 34.8 / 64.0 * 0.8, text))
    }

    fn prefixes_follow(&self) -> Decision {
        let (_, most) = self.range(EngineName::Rocksdbpfx, 64)?;
        let rate = |engine| self.report.reads(engine, &self.arm, most);
        let (Some(lmdb), Some(prefixes)) = (rate(EngineName::Lmdb), rate(EngineName::Rocksdbpfx))
        else {
            return Err(missing(EngineName::Lmdb));
        };
        let share = prefixes / lmdb * 100.0;
        Ok((share > 80.0, format!("{share:.0} % of LMDB's reads with {most} readers")))
    }

    fn fastest_writer(&self) -> Decision {
        let others = || {
            let engines = self.report.engines().into_iter();
            engines.filter(|it| *it != EngineName::Lmdb && published::names(*it).is_some())
        };
        if others().next().is_none() {
            return Err("no other engine of the report was measured".to_owned());
        }
        let counts = self.busy(16);
        if counts.is_empty() {
            return Err(self.too_few(2));
        }
        let mut faster = Vec::new();
        for readers in &counts {
            let rate = |engine| self.report.writes(engine, &self.arm, *readers);
            let own = rate(EngineName::Lmdb).ok_or_else(|| missing(EngineName::Lmdb))?;
            let best = others().filter_map(|it| Some((it, rate(it)?)));
            let best = best.max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((engine, rate)) = best.filter(|(_, rate)| *rate > own) {
                let name = engine.name();
                faster
                    .push(format!("{name} writes {:.1} times as fast with {readers}", rate / own));
            }
        }
        let counts = counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match faster.is_empty() {
            true => {
                Ok((true, format!("with {counts} readers, as many as this machine's cpus serve")))
            }
            false => Ok((false, faster.join("; "))),
        }
    }

    fn cpus_busy(&self) -> Decision {
        let counts = self.busy(64);
        let Some(most) = counts.last() else { return Err(self.too_few(2)) };
        let work = KvWork::ReadWhileWriting { readers: *most };
        let cpu =
            self.report.median(EngineName::Lmdb, &self.arm, work, |it| it.usage.cpu_percent());
        let cpu = cpu.ok_or_else(|| missing(EngineName::Lmdb))?;
        let ideal = f64::from(most + 1) * 100.0;
        Ok((
            (cpu / ideal - 1.0).abs() < 0.1,
            format!("{cpu:.0} % of {ideal:.0} with {most} readers"),
        ))
    }

    fn negative(&self) -> Decision {
        if self.report.cpus < 65 {
            return Err(self.too_few(65));
        }
        let rate = |readers| self.report.reads(EngineName::Leveldb, &self.arm, readers);
        let (Some(middle), Some(most)) = (rate(32), rate(64)) else {
            return Err("LevelDB was not measured with 32 and 64 readers".to_owned());
        };
        Ok((most < middle, format!("{middle:.0} to {most:.0} reads a second")))
    }

    fn system_time(&self, engines: &[EngineName], vanishes: bool) -> Decision {
        self.needs_nodes()?;
        let most = self.busy(64).last().copied().ok_or_else(|| self.too_few(2))?;
        let work = KvWork::ReadWhileWriting { readers: most };
        let mut parts = Vec::new();
        let mut is_so = true;
        for engine in engines {
            let share = |arm| {
                let time = |it: &super::case::KvAnswer| {
                    it.usage.system_s / (it.usage.user_s + it.usage.system_s).max(1e-9) * 100.0
                };
                self.report.median(*engine, arm, work, time)
            };
            let Some((local, spread)) = share(LOCAL).zip(share(SPREAD)) else { continue };
            is_so &= (spread < 5.0) == vanishes;
            parts.push(format!("{} {local:.1} to {spread:.1} %", engine.name()));
        }
        match parts.is_empty() {
            true => Err("none of them was measured under both default and spread".to_owned()),
            false => Ok((
                is_so,
                format!("share of system time, default to spread: {}", parts.join(", ")),
            )),
        }
    }

    fn needs_nodes(&self) -> Result<(), String> {
        match self.report.plan.nodes {
            0 | 1 => Err("this machine has one node; symas-8 in the lab has eight".to_owned()),
            _ => Ok(()),
        }
    }

    /// Numbers of readers that were measured, up to `most`, and have a cpu each beside the writer's.
    fn busy(&self, most: u32) -> Vec<u32> {
        let mut counts = self.report.plan.readers.clone();
        counts.retain(|readers| *readers <= most && (*readers as usize) < self.report.cpus);
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The least and the most of them, which must differ.
    fn range(&self, engine: EngineName, most: u32) -> Result<(u32, u32), String> {
        let counts = self.busy(most);
        match (counts.first(), counts.last()) {
            (Some(least), Some(most)) if least < most => Ok((*least, *most)),
            _ if self.report.engines().contains(&engine) => Err(format!(
                "it needs two numbers of readers with a cpu for each thread; this machine has {} cpus",
                self.report.cpus
            )),
            _ => Err(missing(engine)),
        }
    }

    fn too_few(&self, cpus: usize) -> String {
        format!(
            "it needs {cpus} cpus and as many threads measured; this machine has {}",
            self.report.cpus
        )
    }
}

fn missing(engine: EngineName) -> String {
    format!("{} was not measured", engine.name())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use atoll_topology::Machine;

    use super::*;
    use crate::kv::case::{KvAnswer, KvCase, KvRate, KvUsage};
    use crate::kv::plan::KvPlan;
    use crate::kv::rounds::{KvResult, KvRun};

    /// A run of LMDB on two nodes whose reads grow with the readers, and whose load is slower when spread.
    fn run() -> KvRun {
        let mut run = KvRun::default();
        let mut add = |arm: &str, run_number, work, answer| {
            let (engine, arm) = (EngineName::Lmdb, arm.to_owned());
            let case = KvCase { engine, arm, run: run_number, work };
            run.results.push(KvResult { case, answer: Some(answer), error: None });
        };
        for (arm, wall_s) in [(LOCAL, 10.0), (SPREAD, 10.6)] {
            let usage = KvUsage { wall_s, ..KvUsage::default() };
            let answer = KvAnswer { usage, ..KvAnswer::default() };
            for run in 0..3 {
                add(arm, run, KvWork::Load { random: false }, answer.clone());
            }
            for readers in [1, 2] {
                let rate = |per_s| Some(KvRate { count: 1, per_s, latency: None, corrected: None });
                let user_s = f64::from(readers + 1);
                add(
                    arm,
                    0,
                    KvWork::ReadWhileWriting { readers },
                    KvAnswer {
                        usage: KvUsage { wall_s: 1.0, user_s, ..KvUsage::default() },
                        writes: rate(5.0),
                        reads: rate(f64::from(readers) * 100.0),
                        ..KvAnswer::default()
                    },
                );
            }
        }
        run
    }

    fn verdicts(machine: &str, is_lab: bool) -> Vec<Verdict> {
        let machine = Machine::synthetic(machine).expect("a machine");
        let plan = KvPlan {
            engines: vec![EngineName::Lmdb],
            arms: vec![LOCAL.to_owned(), SPREAD.to_owned()],
            readers: vec![1, 2],
            nodes: machine.nodes_with_memory().count(),
            ..KvPlan::small()
        };
        let report = KvReport::new(plan, run(), &machine, is_lab).expect("a report");
        assert_eq!((report.missing, report.problems.len()), (BTreeMap::new(), 0));
        report.findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn statements_are_decided_where_nodes_and_cpus_allow_it() {
        use Verdict::{CannotDecide, Confirms};
        let two_nodes = verdicts("node:2(memory=1GiB) core:2 pu:1", false);
        let expected = [Confirms, Confirms, CannotDecide, CannotDecide, Confirms, CannotDecide];
        assert_eq!(two_nodes[..6], expected);
        // Of the engines whose system time vanishes LMDB was measured; of the others none was.
        assert_eq!(two_nodes[6..], [CannotDecide, Confirms, CannotDecide]);
        for (machine, is_lab) in
            [("node:1(memory=1GiB) core:1 pu:1", false), ("node:2(memory=1GiB) core:2 pu:1", true)]
        {
            let none = verdicts(machine, is_lab);
            assert!(none.iter().all(|verdict| *verdict == CannotDecide), "{none:?}");
        }
    }
}
