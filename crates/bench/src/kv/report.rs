//! The results: every column of the report and ours, beside its rows, and its findings.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use atoll_tools::bench::{Manifest, Measurement, Summary};
use atoll_topology::Machine;
use serde::Serialize;
use serde_json::json;

use super::arms;
use super::case::{KvAnswer, KvCase, KvRate, KvWork};
use super::engine::EngineName;
use super::findings::{Finding, findings};
use super::plan::KvPlan;
use super::plot;
use super::published::{self, Published, PublishedUsage};
use super::records::Contents;
use super::rounds::{KvResult, KvRun};
use crate::table::table;
use crate::trials::TrialReport;

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct KvReport {
    pub(super) plan: KvPlan,
    /// Cpus of this machine.
    pub(super) cpus: usize,
    /// Times are those of the lab's emulator.
    pub(super) is_lab: bool,
    pub(super) notes: Vec<String>,
    pub(super) results: Vec<KvResult>,
    /// Engines that could not take part, and why.
    pub(super) missing: BTreeMap<&'static str, String>,
    pub(super) findings: Vec<Finding>,
    pub(super) published: Published,
    pub(super) problems: Vec<String>,
}

/// The usage of a row, of ours or of the report's.
struct UsageRow {
    wall_s: f64,
    user_s: f64,
    system_s: f64,
    cpu_percent: f64,
    kb: [u64; 3],
    switches: [u64; 2],
}

const USAGE: [&str; 9] = [
    "wall s",
    "user s",
    "system s",
    "CPU %",
    "database KB",
    "process KB",
    "total KB",
    "voluntary switches",
    "involuntary switches",
];

impl TrialReport for KvReport {
    const NAME: &'static str = "kv";

    fn measurements(&self) -> Vec<Measurement> {
        let mut all = Vec::new();
        for (engine, arm, work) in self.cases() {
            let answers = self.answers(engine, arm, work);
            let case = |what: &str| json!({ "work": work.to_string(), "arm": arm, "what": what });
            let rates = |of: fn(&KvAnswer) -> Option<KvRate>| -> Vec<f64> {
                answers.iter().filter_map(|it| Some(of(it)?.per_s)).collect()
            };
            let sides = [("writes", rates(|it| it.writes)), ("reads", rates(|it| it.reads))];
            for (what, samples) in sides.into_iter().filter(|(_, samples)| !samples.is_empty()) {
                all.push(Measurement::rates(&case(what), engine.name(), "1/s", samples));
            }
        }
        all
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let mut text = format!("# Key-value engines\n\n{manifest}");
        self.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        for (engine, why) in &self.missing {
            let _ = writeln!(text, "- without {engine}: {why}");
        }
        text.push_str("\n## Placement achieved\n\n");
        text.push_str(&self.placements());
        text.push_str("\n## Load by one thread\n\n");
        text.push_str(&self.loads());
        for engine in self.engines() {
            let _ = writeln!(text, "\n## {} with one writer\n", engine.name());
            text.push_str(&self.mixed(engine));
        }
        let _ = writeln!(text, "\n## Published only: {}\n", published::LOST);
        let rows = self.published_mixed(published::LOST);
        text.push_str(&table(&self.mixed_head(), &rows));
        text.push_str("\n## The report's findings\n\n");
        text.push_str(&self.statements());
        text.push_str(&self.equality());
        text
    }

    fn plot(&self) -> String {
        plot::plot(self)
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl KvReport {
    pub(super) fn new(plan: KvPlan, run: KvRun, machine: &Machine, is_lab: bool) -> Result<Self> {
        let missing = run.missing.iter().map(|(engine, why)| (engine.name(), why.clone()));
        let mut report = Self {
            cpus: machine.cpus.len(),
            is_lab,
            notes: Vec::new(),
            missing: missing.collect(),
            findings: Vec::new(),
            published: Published::read()?,
            problems: problems(&run.results),
            results: run.results,
            plan,
        };
        report.notes = report.noted();
        report.findings = findings(&report);
        Ok(report)
    }

    fn noted(&self) -> Vec<String> {
        let mut notes = self.plan.lines();
        if self.plan.nodes < 2 {
            notes.push(
                "this machine has one node: all arms place pages and threads alike, and differ by noise only. \
                 `atoll lab run -m symas-8` has the report's eight nodes (docs/key-value.md)"
                    .to_owned(),
            );
        }
        if !self.plan.arms.iter().any(|arm| arm == "spread") {
            notes.push(
                "without the arm `spread`, the report's, ours stands under `default`".to_owned(),
            );
        }
        notes.push(format!(
            "{} cannot be had today: its published rows stand alone. LMDB since 0.9.14 has the changes of \
             '{}'; both of its published rows stand beside ours",
            published::LOST,
            published::UPDATE
        ));
        notes
    }

    /// Answers of all runs of a case.
    pub(super) fn answers(&self, engine: EngineName, arm: &str, work: KvWork) -> Vec<&KvAnswer> {
        let is_it =
            |case: &KvCase| (case.engine, case.arm.as_str(), case.work) == (engine, arm, work);
        let results = self.results.iter().filter(|result| is_it(&result.case));
        results.filter_map(|result| result.answer.as_ref()).collect()
    }

    /// The median of a figure over the runs of a case.
    pub(super) fn median(
        &self,
        engine: EngineName,
        arm: &str,
        work: KvWork,
        of: impl Fn(&KvAnswer) -> f64,
    ) -> Option<f64> {
        let answers = self.answers(engine, arm, work);
        Some(Summary::from_values(answers.into_iter().map(of))?.median)
    }

    /// Reads a second.
    pub(super) fn reads(&self, engine: EngineName, arm: &str, readers: u32) -> Option<f64> {
        let work = KvWork::ReadWhileWriting { readers };
        self.median(engine, arm, work, |it| it.reads.map_or(0.0, |rate| rate.per_s))
    }

    /// Writes a second.
    pub(super) fn writes(&self, engine: EngineName, arm: &str, readers: u32) -> Option<f64> {
        let work = KvWork::ReadWhileWriting { readers };
        self.median(engine, arm, work, |it| it.writes.map_or(0.0, |rate| rate.per_s))
    }

    /// Engines with results.
    pub(super) fn engines(&self) -> Vec<EngineName> {
        let has = |engine: &&EngineName| self.results.iter().any(|it| it.case.engine == **engine);
        self.plan.engines.iter().filter(has).copied().collect()
    }

    /// All settings that have a result, each once.
    fn cases(&self) -> Vec<(EngineName, &str, KvWork)> {
        let mut cases: Vec<_> = Vec::new();
        for KvResult { case, .. } in self.results.iter().filter(|it| it.answer.is_some()) {
            let setting = (case.engine, case.arm.as_str(), case.work);
            if !cases.contains(&setting) {
                cases.push(setting);
            }
        }
        cases
    }

    fn placements(&self) -> String {
        let mut text = String::new();
        for arm in &self.plan.arms {
            let meaning = arm.parse().map(arms::meaning).unwrap_or_default();
            let _ = writeln!(text, "- `{arm}`: {meaning}");
        }
        text.push('\n');
        let head = [
            "engine",
            "arm",
            "work",
            "asked",
            "cpus",
            "pages by node",
            "policy in force",
            "readers by node",
            "balancing",
            "pages migrated",
            "refused",
        ];
        let mut rows = Vec::new();
        // The last case of each engine and arm: the one with the most readers.
        let mut last: Vec<(EngineName, &str, KvWork)> = Vec::new();
        for case in self.cases() {
            match last.iter_mut().find(|it| (it.0, it.1) == (case.0, case.1)) {
                Some(found) => *found = case,
                None => last.push(case),
            }
        }
        for (engine, arm, work) in last {
            let answers = self.answers(engine, arm, work);
            let Some(KvAnswer { placement: seen, .. }) = answers.last() else { continue };
            let policies = seen.policies.keys().cloned().collect::<Vec<_>>().join(", ");
            let readers = seen.threads.iter().map(|(node, count)| format!("{node}: {count}"));
            rows.push(vec![
                engine.name().to_owned(),
                arm.to_owned(),
                work.to_string(),
                seen.asked.clone(),
                seen.cpus.clone(),
                seen.shares(),
                policies,
                readers.collect::<Vec<_>>().join(", "),
                seen.balancing.map_or("not in this kernel".to_owned(), |mode| mode.to_string()),
                seen.pages_migrated.map_or(String::new(), |pages| pages.to_string()),
                seen.obstacles.join("; "),
            ]);
        }
        text.push_str(&table(&head.map(str::to_owned), &rows));
        text
    }

    fn loads(&self) -> String {
        let mut head = vec!["engine".to_owned(), "order, allocation".to_owned()];
        head.extend(USAGE.map(str::to_owned));
        head.push("records/s".to_owned());
        let mut rows = Vec::new();
        for engine in self.engines() {
            for arm in &self.plan.arms {
                for random in [false, true] {
                    let work = KvWork::Load { random };
                    let Some(usage) = self.usage(engine, arm, work) else { continue };
                    let order = if random { "random" } else { "sequential" };
                    let mut row = vec![engine.name().to_owned(), format!("{order}, {arm}")];
                    row.extend(usage.cells());
                    let rate =
                        self.median(engine, arm, work, |it| it.writes.map_or(0.0, |it| it.per_s));
                    row.push(rate.map_or_else(String::new, |rate| format!("{rate:.0}")));
                    rows.push(row);
                }
            }
        }
        for row in &self.published.load {
            let allocation = format!("published, {}", row.allocation);
            let mut cells = vec![row.engine.clone(), allocation];
            cells.extend(UsageRow::published(&row.usage).cells());
            cells.push(String::new());
            rows.push(cells);
        }
        table(&head, &rows)
    }

    fn mixed_head(&self) -> Vec<String> {
        let mut head = vec!["arm".to_owned(), "readers".to_owned()];
        head.extend(USAGE.map(str::to_owned));
        let ours = [
            "writes/s",
            "reads/s",
            "scaling %",
            "read p50 ms",
            "read p99 ms",
            "read p99 corrected",
            "write p50 ms",
            "write p99 ms",
            "write p99 corrected",
        ];
        head.extend(ours.map(str::to_owned));
        head
    }

    fn mixed(&self, engine: EngineName) -> String {
        let mut rows = Vec::new();
        for arm in &self.plan.arms {
            for readers in &self.plan.readers {
                rows.extend(self.mixed_row(engine, arm, *readers));
            }
        }
        if let Some((_, name)) = published::names(engine) {
            rows.extend(self.published_mixed(name));
        }
        if engine == EngineName::Lmdb {
            rows.extend(self.published_mixed(published::UPDATE));
        }
        table(&self.mixed_head(), &rows)
    }

    fn mixed_row(&self, engine: EngineName, arm: &str, readers: u32) -> Option<Vec<String>> {
        let work = KvWork::ReadWhileWriting { readers };
        let mut row = vec![arm.to_owned(), readers.to_string()];
        row.extend(self.usage(engine, arm, work)?.cells());
        let (writes, reads) =
            (self.writes(engine, arm, readers)?, self.reads(engine, arm, readers)?);
        row.push(format!("{writes:.0}"));
        row.push(format!("{reads:.0}"));
        let least = self.plan.readers.iter().copied().min()?;
        let single = self.reads(engine, arm, least)? / f64::from(least);
        row.push(format!("{:.0}", reads / f64::from(readers) / single * 100.0));
        let latencies: [fn(&KvAnswer) -> Option<f64>; 6] = [
            |it| Some(it.reads?.latency?.p50),
            |it| Some(it.reads?.latency?.p99),
            |it| Some(it.reads?.corrected?.p99),
            |it| Some(it.writes?.latency?.p50),
            |it| Some(it.writes?.latency?.p99),
            |it| Some(it.writes?.corrected?.p99),
        ];
        for of in latencies {
            let values = self.answers(engine, arm, work);
            let median = Summary::from_values(values.into_iter().filter_map(of));
            row.push(median.map_or_else(String::new, |it| format!("{:.4}", it.median)));
        }
        Some(row)
    }

    fn published_mixed(&self, name: &str) -> Vec<Vec<String>> {
        let rows = self.published.mixed.iter().filter(|row| row.engine == name);
        let one = self.published.mixed(name, 1).map_or(1, |row| row.reads_per_s.max(1));
        rows.map(|row| {
            let mut cells = vec![format!("published {name}"), row.readers.to_string()];
            cells.extend(UsageRow::published(&row.usage).cells());
            cells.push(row.writes_per_s.to_string());
            cells.push(row.reads_per_s.to_string());
            let scaling = row.reads_per_s as f64 / f64::from(row.readers) / one as f64 * 100.0;
            cells.push(format!("{scaling:.0}"));
            cells.extend((0..6).map(|_| String::new()));
            cells
        })
        .collect()
    }

    fn usage(&self, engine: EngineName, arm: &str, work: KvWork) -> Option<UsageRow> {
        let figure = |of: &dyn Fn(&KvAnswer) -> f64| self.median(engine, arm, work, of);
        let count = |of: &dyn Fn(&KvAnswer) -> u64| Some(figure(&|it| of(it) as f64)? as u64);
        Some(UsageRow {
            wall_s: figure(&|it| it.usage.wall_s)?,
            user_s: figure(&|it| it.usage.user_s)?,
            system_s: figure(&|it| it.usage.system_s)?,
            cpu_percent: figure(&|it| it.usage.cpu_percent())?,
            kb: [
                count(&|it| it.usage.database_kb)?,
                count(&|it| it.usage.process_kb)?,
                count(&|it| it.usage.total_kb(engine))?,
            ],
            switches: [
                count(&|it| it.usage.voluntary_switches)?,
                count(&|it| it.usage.involuntary_switches)?,
            ],
        })
    }

    fn statements(&self) -> String {
        let head = ["the report", "ours", "because"].map(str::to_owned);
        let row = |it: &Finding| vec![it.says.clone(), it.verdict.to_string(), it.because.clone()];
        let rows: Vec<Vec<String>> = self.findings.iter().map(row).collect();
        table(&head, &rows)
    }

    /// Whether all databases had the same records.
    fn equality(&self) -> String {
        let answers = self.results.iter().filter_map(|result| result.answer.as_ref());
        let contents: Vec<Contents> = answers.filter_map(|answer| answer.contents).collect();
        let Some(first) = contents.first() else { return String::new() };
        match self.problems.is_empty() {
            true => format!(
                "\nAfter {} cases all records were read: each time {} with the same keys and values, and the last \
                 acknowledged write among them.\n",
                contents.len(),
                first.records
            ),
            false => String::new(),
        }
    }
}

impl UsageRow {
    fn published(usage: &PublishedUsage) -> Self {
        Self {
            wall_s: usage.wall_s,
            user_s: usage.user_s,
            system_s: usage.system_s,
            cpu_percent: usage.cpu_percent as f64,
            kb: [usage.db_kb, usage.process_kb, usage.total_kb],
            switches: [usage.voluntary_switches, usage.involuntary_switches],
        }
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![
            format!("{:.2}", self.wall_s),
            format!("{:.2}", self.user_s),
            format!("{:.2}", self.system_s),
            format!("{:.0}", self.cpu_percent),
        ];
        cells.extend(self.kb.iter().chain(&self.switches).map(u64::to_string));
        cells
    }
}

/// Cases that failed, and databases that differ from the first.
fn problems(results: &[KvResult]) -> Vec<String> {
    let failed = results.iter().filter_map(|result| {
        let error = result.error.as_ref()?;
        Some(format!("{}: {error}", result.case))
    });
    let mut problems: Vec<String> = failed.collect();
    let read = results.iter().filter_map(|result| {
        let contents = result.answer.as_ref()?.contents?;
        Some((&result.case, contents.without_writes()))
    });
    let read: Vec<(&KvCase, Contents)> = read.collect();
    if let Some((first, wanted)) = read.first() {
        let others = read.iter().filter(|(_, contents)| contents != wanted);
        problems.extend(others.map(|(case, contents)| {
            format!(
                "{case}: {} records with the sum {}, where {first} had {} with {}",
                contents.records, contents.sum, wanted.records, wanted.sum
            )
        }));
    }
    problems
}
