//! The results: throughput of each query under each arm, as a ratio to `default`, with its spread; the placement that
//! was achieved; and the paper's statements.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use atoll_tools::bench::{Manifest, Measurement, Summary};
use serde::Serialize;
use serde_json::json;

use super::case::{DbmsAnswer, DbmsCase, DbmsResult};
use super::clients::merge;
use super::findings::{Finding, findings};
use super::plan::DbmsPlan;
use super::plot;
use super::published::Published;
use super::query::DbmsQuery;
use super::rounds::{DbmsRun, ROWS_MAX};
use super::system::SystemName;
use super::tables::{paper, placement, throughput};
use crate::answers::{self, RowOrder};
use crate::check::Check;
use crate::trials::TrialReport;

/// The arm that others are compared with.
pub(super) const DEFAULT: &str = "default";
/// Which throughput of an answer.
type Throughput = fn(&DbmsAnswer) -> f64;
/// That of the query.
pub(super) const OWN: Throughput = |it| it.per_s;
/// That of the query beside it.
pub(super) const BESIDE: Throughput = |it| it.beside_per_s;
/// Repetitions that tell a difference from noise.
pub(super) const RUNS_MIN: usize = 3;

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct DbmsReport {
    pub(super) plan: DbmsPlan,
    /// Times are those of the lab's emulator.
    pub(super) is_lab: bool,
    pub(super) notes: Vec<String>,
    pub(super) results: Vec<DbmsResult>,
    /// Systems that could not take part, and why.
    pub(super) missing: BTreeMap<&'static str, String>,
    /// Queries that a system refused, and why; systems that gave other results.
    pub(super) refused: Vec<String>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) findings: Vec<Finding>,
    pub(super) published: Published,
    pub(super) problems: Vec<String>,
}

/// An arm beside `default`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) system: SystemName,
    pub(super) query: DbmsQuery,
    pub(super) arm: String,
    /// Median throughput by that of `default`.
    pub(super) ratio: f64,
    pub(super) verdict: NoiseVerdict,
}

/// Whether a difference is more than noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NoiseVerdict {
    Faster,
    Slower,
    WithinNoise,
    TooFewRuns,
}

impl NoiseVerdict {
    fn new(arm: &Summary, default: &Summary) -> Self {
        if arm.runs.min(default.runs) < RUNS_MIN {
            return Self::TooFewRuns;
        }
        match (arm.least > default.most, arm.most < default.least) {
            (true, _) => Self::Faster,
            (_, true) => Self::Slower,
            _ => Self::WithinNoise,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::WithinNoise => "within noise",
            Self::TooFewRuns => "too few runs",
        }
    }
}

impl TrialReport for DbmsReport {
    const NAME: &'static str = "dbms";

    fn measurements(&self) -> Vec<Measurement> {
        let mut all = Vec::new();
        for system in self.systems() {
            for (query, arm) in self.settings() {
                let samples: Vec<f64> =
                    self.answers(system, query, arm).into_iter().map(|it| it.per_s).collect();
                if !samples.is_empty() {
                    let case = json!({ "query": query, "arm": arm });
                    let unit = format!("{}/s", query.unit());
                    all.push(Measurement::rates(&case, system.name(), &unit, samples));
                }
                let Some(beside) = self.plan.beside else { continue };
                let answers = self.answers(system, query, arm).into_iter();
                let samples: Vec<f64> = answers.map(|it| it.beside_per_s).collect();
                if !samples.is_empty() {
                    let case = json!({ "query": beside, "beside": query, "arm": arm });
                    let unit = format!("{}/s", beside.unit());
                    all.push(Measurement::rates(&case, system.name(), &unit, samples));
                }
            }
        }
        all
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let mut text = format!("# Database systems under placements\n\n{manifest}");
        self.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        for (system, why) in &self.missing {
            let _ = writeln!(text, "- without {system}: {why}");
        }
        for system in self.systems() {
            let _ = writeln!(text, "\n## {}\n", system.name());
            text.push_str(&self.about(system));
            text.push_str(&throughput::throughputs(self, system));
            text.push_str(&throughput::throughputs_beside(self, system));
            text.push_str(&throughput::repeated(self, system));
            let _ = writeln!(text, "\nPlacement while clients run, read back from the kernel:\n");
            text.push_str(&placement::placements(self, system));
            text.push_str(&placement::moves(self, system));
            text.push_str(&placement::balance(self, system));
        }
        if !self.refused.is_empty() {
            text.push_str("\n## Left out, or different\n\n");
            self.refused.iter().for_each(|it| text.push_str(&format!("- {it}\n")));
        }
        text.push_str("\n## The paper's figures\n\n");
        text.push_str(&paper::figures(self));
        text.push_str("\n## The paper's statements\n\n");
        text.push_str(&paper::statements(self));
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

impl DbmsReport {
    pub(super) fn new(plan: DbmsPlan, run: DbmsRun, is_lab: bool) -> Result<Self> {
        let missing = run.missing.iter().map(|(system, why)| (system.name(), why.clone()));
        let (refused, mut problems) = failures(&run.results);
        problems.extend(unequal(&run.results));
        let mut report = Self {
            is_lab,
            notes: Vec::new(),
            missing: missing.collect(),
            refused,
            comparisons: Vec::new(),
            findings: Vec::new(),
            published: Published::read()?,
            problems,
            results: run.results,
            plan,
        };
        report.refused.extend(report.other_answers());
        report.notes = report.noted();
        report.comparisons = report.compared();
        report.findings = findings(&report);
        Ok(report)
    }

    fn noted(&self) -> Vec<String> {
        let DbmsPlan { instances, scale_factor, clients, warmup, seconds, statements, .. } =
            &self.plan;
        let work = match statements {
            Some(statements) => format!("{statements} statements of each client for each query"),
            None => format!("{seconds} s for each query after {warmup} s"),
        };
        let clients =
            clients.map_or("as many clients as cpus".to_owned(), |n| format!("{n} clients"));
        let mut notes = vec![
            format!(
                "instances: {instances}, each with TPC-H at scale factor {scale_factor} and {clients}"
            ),
            format!("{work}, without think time; throughputs are summed"),
        ];
        if self.plan.skew > 1 {
            notes.push(format!("the first instance has {} times these clients", self.plan.skew));
        }
        if let Some(beside) = self.plan.beside {
            notes
                .push(format!("half of the clients, at least one, run {beside} beside each query"));
        }
        if self.plan.has_pgbench() {
            notes.push(format!(
                "pgbench's tables have the scale {}; its transactions are not synced, and one that fails is repeated",
                self.plan.pgbench_scale
            ));
        }
        if self.plan.nodes < 2 {
            notes.push(
                "this machine has one node: all arms place pages and threads alike, and differ by noise only. \
                 `atoll lab run --machine westmere-ex-4` and `istanbul-2` have the paper's nodes (docs/dbms.md)"
                    .to_owned(),
            );
        }
        if self.is_lab {
            notes.push(
                "times are the emulator's: placement counts here, throughput does not".to_owned(),
            );
        }
        notes
    }

    /// Answers of all repetitions of a case.
    pub(super) fn answers(
        &self,
        system: SystemName,
        query: DbmsQuery,
        arm: &str,
    ) -> Vec<&DbmsAnswer> {
        let is_it =
            |case: &DbmsCase| (case.system, case.query, case.arm.as_str()) == (system, query, arm);
        let results = self.results.iter().filter(|result| is_it(&result.case));
        results.filter_map(|result| result.answer.as_ref()).collect()
    }

    /// Throughput over the repetitions.
    pub(super) fn summary(
        &self,
        system: SystemName,
        query: DbmsQuery,
        arm: &str,
        of: Throughput,
    ) -> Option<Summary> {
        Summary::from_values(self.answers(system, query, arm).into_iter().map(of))
    }

    /// Median throughput by that of `default`.
    pub(super) fn ratio(
        &self,
        system: SystemName,
        query: DbmsQuery,
        arm: &str,
        of: Throughput,
    ) -> Option<f64> {
        let default = self.summary(system, query, DEFAULT, of)?;
        Some(self.summary(system, query, arm, of)?.median / default.median.max(1e-9))
    }

    /// Systems with results.
    pub(super) fn systems(&self) -> Vec<SystemName> {
        let has = |system: &&SystemName| {
            self.results.iter().any(|it| it.case.system == **system && it.answer.is_some())
        };
        self.plan.systems.iter().filter(has).copied().collect()
    }

    fn compared(&self) -> Vec<Comparison> {
        let mut all = Vec::new();
        for system in self.systems() {
            for query in &self.plan.queries {
                let Some(default) = self.summary(system, *query, DEFAULT, OWN) else { continue };
                for arm in self.plan.arms.iter().filter(|arm| *arm != DEFAULT) {
                    let Some(summary) = self.summary(system, *query, arm, OWN) else { continue };
                    all.push(Comparison {
                        system,
                        query: *query,
                        arm: arm.clone(),
                        ratio: summary.median / default.median.max(1e-9),
                        verdict: NoiseVerdict::new(&summary, &default),
                    });
                }
            }
        }
        all
    }

    /// An arm beside `default`.
    pub(super) fn comparison(
        &self,
        system: SystemName,
        query: DbmsQuery,
        arm: &str,
    ) -> Option<&Comparison> {
        let is_it =
            |it: &&Comparison| (it.system, it.query, it.arm.as_str()) == (system, query, arm);
        self.comparisons.iter().find(is_it)
    }

    /// Results of systems that differ from those of the first system.
    fn other_answers(&self) -> Vec<String> {
        let mut others = Vec::new();
        for query in &self.plan.queries {
            let firsts = self.results.iter().filter(|it| it.case.query == *query);
            let mut firsts = firsts.filter_map(|it| {
                let first = it.answer.as_ref()?.first.as_ref()?;
                (first.values.len() <= ROWS_MAX).then_some((it.case.system.name(), first))
            });
            let Some((known, right)) = firsts.next() else { continue };
            for (name, first) in firsts {
                if let Some(difference) = answers::difference(right, first, RowOrder::Any) {
                    others.push(format!("{query}: {known} and {name} differ: {difference}"));
                }
            }
        }
        others
    }

    fn settings(&self) -> impl Iterator<Item = (DbmsQuery, &str)> {
        let arms = || self.plan.arms.iter().map(String::as_str);
        self.plan.queries.iter().flat_map(move |query| arms().map(|arm| (*query, arm)))
    }

    fn about(&self, system: SystemName) -> String {
        let of_system = self.results.iter().filter(|it| it.case.system == system);
        let mut answers = of_system.filter_map(|it| it.answer.as_ref());
        let Some(DbmsAnswer { version, settings, load_s, .. }) = answers.next() else {
            return String::new();
        };
        format!("Version {version}; {settings}; instances loaded in {load_s:.1} s.\n\n")
    }

    /// Whether all results were equal.
    fn equality(&self) -> String {
        let measured = self.results.iter().filter_map(|it| it.answer.as_ref());
        let (cases, texts) = measured.fold((0, 0), |(cases, texts), answer| {
            (cases + 1, texts + answer.checks.iter().flatten().count())
        });
        match self.problems.is_empty() {
            true => format!(
                "\nIn {cases} cases the results of {texts} texts were equal in all clients, instances, arms and \
                 repetitions of a system.\n"
            ),
            false => String::new(),
        }
    }
}

/// Queries that a system refuses under every arm, by its words, and cases that failed otherwise.
fn failures(results: &[DbmsResult]) -> (Vec<String>, Vec<String>) {
    let mut refused: BTreeMap<(SystemName, &str), Vec<DbmsQuery>> = BTreeMap::new();
    let mut problems = Vec::new();
    for DbmsResult { case, error, .. } in results {
        let Some(error) = error else { continue };
        let of_query = |it: &&DbmsResult| {
            (it.case.system, it.case.query) == (case.system, case.query) && it.answer.is_some()
        };
        if results.iter().any(|it| of_query(&it)) {
            problems.push(format!("{case}: {error}"));
            continue;
        }
        let queries = refused.entry((case.system, error)).or_default();
        if !queries.contains(&case.query) {
            queries.push(case.query);
        }
    }
    let text = |((system, error), queries): ((SystemName, &str), Vec<DbmsQuery>)| {
        let queries = queries.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("{} without {queries}: {error}", system.name())
    };
    (refused.into_iter().map(text).collect(), problems)
}

/// Cases whose results differ from those of another arm or repetition.
fn unequal(results: &[DbmsResult]) -> Vec<String> {
    let mut known = BTreeMap::new();
    let mut problems = Vec::new();
    for DbmsResult { case, answer, .. } in results {
        let Some(DbmsAnswer { checks, .. }) = answer else { continue };
        let (first, all) = known
            .entry((case.system, case.query))
            .or_insert_with(|| (case, vec![None::<Check>; checks.len()]));
        if let Err(error) = merge(all, checks) {
            problems.push(format!("{case}: not as {first}: {error}"));
        }
    }
    problems
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::InstanceSeen;
    use super::*;
    use crate::protocol::{Answer, Kind};

    /// A run of two systems with the throughputs of `default`, and those by a factor under other arms.
    pub(crate) fn report(nodes: usize, factors: &[(&str, f64)]) -> DbmsReport {
        let arms = ["default", "aligned", "ahead(1)", "interleave"].map(str::to_owned).to_vec();
        let queries = vec![DbmsQuery::NarrowScan, DbmsQuery::Tpch(6)];
        let plan = DbmsPlan {
            machine: "m".to_owned(),
            systems: vec![SystemName::Postgresql, SystemName::Atoll],
            arms,
            queries,
            instances: "nodes".to_owned(),
            scale_factor: 0.01,
            clients: None,
            skew: 1,
            beside: None,
            pgbench_scale: 1,
            samples: 0,
            warmup: 0.5,
            seconds: 1.0,
            statements: None,
            repetitions: 3,
            seed: 1,
            nodes,
        };
        let answer = |case: &DbmsCase| {
            let factor = factors.iter().find(|(arm, _)| *arm == case.arm).map_or(1.0, |it| it.1);
            DbmsAnswer {
                per_s: 100.0 * factor + f64::from(case.run),
                checks: vec![Some(Check { rows: 1, checksum: 5 })],
                first: (case.run == 0 && case.arm == "default").then(|| Answer {
                    columns: vec![Kind::Integer],
                    values: vec![vec![Some("7".to_owned())]],
                    ..Answer::default()
                }),
                instances: vec![InstanceSeen {
                    nodes: BTreeMap::from([(0, 3 << 20), (1, 1 << 20)]),
                    ..InstanceSeen::default()
                }],
                ..DbmsAnswer::default()
            }
        };
        let results = plan.cases().map(|case| DbmsResult::new(case.clone(), Ok(answer(&case))));
        let run = DbmsRun { results: results.collect(), ..DbmsRun::default() };
        DbmsReport::new(plan, run, false).expect("a report")
    }

    #[test]
    fn an_arm_is_faster_slower_or_within_noise() {
        let report = report(2, &[("aligned", 1.2), ("ahead(1)", 0.8), ("interleave", 1.01)]);
        let verdict = |arm| {
            let it = report.comparison(SystemName::Atoll, DbmsQuery::Tpch(6), arm).expect("one");
            it.verdict
        };
        assert_eq!(verdict("aligned"), NoiseVerdict::Faster);
        assert_eq!(verdict("ahead(1)"), NoiseVerdict::Slower);
        assert_eq!(verdict("interleave"), NoiseVerdict::WithinNoise);
        let one = Summary::from_values([1.0]).expect("a value");
        assert_eq!(NoiseVerdict::new(&one, &one), NoiseVerdict::TooFewRuns);
        assert!(report.problems.is_empty() && report.refused.is_empty());
    }

    #[test]
    fn results_that_differ_are_problems_and_refused_queries_are_not() {
        let mut results = report(1, &[]).results;
        let last = results.len() - 1;
        if let Some(answer) = &mut results[last].answer {
            answer.checks[0] = Some(Check { rows: 1, checksum: 6 });
        }
        let problems = unequal(&results);
        assert!(problems.len() == 1 && problems[0].contains("different results"), "{problems:?}");
        for result in results.iter_mut().filter(|it| it.case.query == DbmsQuery::NarrowScan) {
            let refused = Err(anyhow::anyhow!("syntax"));
            *result = DbmsResult::new(result.case.clone(), refused);
        }
        let (refused, failed) = failures(&results);
        assert_eq!((refused.len(), failed.len()), (2, 0), "{refused:?} {failed:?}");
        assert!(refused[0].contains("postgresql without narrow-scan: syntax"), "{refused:?}");
    }
}
