//! The results: throughput by mode, cores given, speed-ups by query next to the published ones.

use std::collections::BTreeMap;

use anyhow::Result;
use atoll_tools::bench::{Manifest, Measurement, Summary};
use atoll_topology::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clients::ClientsAnswer;
use super::follow::Followed;
use super::plan::{ElasticCase, ElasticPlan, ElasticSetting, mode_name};
use super::plot;
use super::published::Published;
use crate::table::table;
use crate::trials::{CaseResult, TrialReport};

/// What came of a run.
pub(super) type ElasticResult = CaseResult<ElasticCase, ModeRun>;

/// A run of a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModeRun {
    pub(super) answer: ClientsAnswer,
    pub(super) followed: Followed,
    /// The engine gives itself cores; their number is not visible from outside.
    pub(super) is_cores_unknown: bool,
}

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct ElasticReport {
    pub(super) engine: String,
    pub(super) scale_factor: f64,
    pub(super) threads: usize,
    pub(super) nodes: usize,
    pub(super) notes: Vec<String>,
    pub(super) cases: Vec<SettingRuns>,
    /// Speed-up of each mode over `os` by query, with the most clients in random order.
    pub(super) speedups: Vec<QuerySpeedups>,
    pub(super) published: Published,
    pub(super) problems: Vec<String>,
}

/// The runs of one setting, mode by mode; `os` is the first.
#[derive(Debug, Serialize)]
pub(super) struct SettingRuns {
    pub(super) settings: Value,
    pub(super) modes: Vec<ModeRuns>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    problems: Vec<String>,
    #[serde(skip)]
    rows: BTreeMap<u8, usize>,
}

/// The runs of a mode.
#[derive(Debug, Default, Serialize)]
pub(super) struct ModeRuns {
    pub(super) mode: &'static str,
    /// Queries an hour, of each run.
    pub(super) rates: Vec<f64>,
    /// Lookups a second, of each run.
    pub(super) lookups: Vec<f64>,
    /// Mean time of each query over all runs, seconds.
    pub(super) queries: BTreeMap<u8, f64>,
    pub(super) followed: Vec<Followed>,
    pub(super) is_cores_unknown: bool,
    #[serde(skip)]
    asked: BTreeMap<u8, Vec<f64>>,
}

/// How much faster a query was.
#[derive(Debug, Serialize)]
pub(super) struct QuerySpeedups {
    pub(super) query: u8,
    pub(super) modes: BTreeMap<&'static str, f64>,
    pub(super) published_adaptive: Option<f64>,
}

impl ModeRuns {
    fn add(&mut self, answer: &ClientsAnswer, followed: Followed) {
        let seconds = answer.seconds.max(1e-9);
        self.rates.push(answer.queries_per_hour());
        self.lookups.push(answer.lookups as f64 / seconds);
        for asked in &answer.asked {
            self.asked.entry(asked.query).or_default().push(asked.seconds);
        }
        let mean = |times: &Vec<f64>| times.iter().sum::<f64>() / times.len().max(1) as f64;
        self.queries = self.asked.iter().map(|(query, times)| (*query, mean(times))).collect();
        self.followed.push(followed);
    }

    pub(super) fn rate(&self) -> Option<f64> {
        Some(Summary::from_values(self.rates.iter().copied())?.median)
    }

    /// Mean of a figure over the runs that have it.
    fn mean(&self, of: impl Fn(&Followed) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.followed.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

impl SettingRuns {
    fn new(setting: &ElasticSetting) -> Self {
        Self {
            settings: setting.to_json(),
            name: setting.to_string(),
            modes: Vec::new(),
            problems: Vec::new(),
            rows: BTreeMap::new(),
        }
    }

    /// Adds a run.
    fn add(&mut self, result: ElasticResult) {
        let (name, mode) = (&self.name, mode_name(result.case.mode));
        let Some(run) = result.answer else {
            let error = result.error.unwrap_or_default();
            self.problems.push(format!("{name}, {mode}: {error}"));
            return;
        };
        for asked in &run.answer.asked {
            let rows = *self.rows.entry(asked.query).or_insert(asked.rows);
            if rows != asked.rows {
                let (query, other) = (asked.query, asked.rows);
                self.problems
                    .push(format!("{name}, {mode}: Q{query} gave {other} rows, and {rows} before"));
            }
        }
        let at = self.modes.iter().position(|runs| runs.mode == mode).unwrap_or_else(|| {
            let is_cores_unknown = run.is_cores_unknown;
            self.modes.push(ModeRuns { mode, is_cores_unknown, ..ModeRuns::default() });
            self.modes.len() - 1
        });
        self.modes[at].add(&run.answer, run.followed);
    }

    /// Its settings in words.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn os(&self) -> Option<&ModeRuns> {
        self.modes.iter().find(|runs| runs.mode == "os")
    }
}

impl TrialReport for ElasticReport {
    const NAME: &'static str = "elastic";

    fn measurements(&self) -> Vec<Measurement> {
        let of = |case: &SettingRuns, runs: &ModeRuns| {
            Measurement::rates(&case.settings, runs.mode, "queries/h", runs.rates.clone())
        };
        let cases = self.cases.iter();
        cases.flat_map(|case| case.modes.iter().map(move |runs| of(case, runs))).collect()
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let mut text = format!(
            "# Elastic cores\n\n{manifest}\n- TPC-H of scale factor {}, {} threads of {}\n\n",
            self.scale_factor, self.threads, self.engine
        );
        for note in &self.notes {
            text.push_str(&format!("{note}\n\n"));
        }
        text.push_str(&self.throughput());
        if !self.speedups.is_empty() {
            text.push_str("\n## Speed-up over the system's scheduling, by query\n\n");
            text.push_str(&self.by_query());
        }
        text.push_str(&format!("\n## Published, on `{}`\n\n", self.published.machine));
        let row = |it: &super::published::PublishedFigure| {
            vec![it.what.clone(), format!("{:.2}", it.times), it.origin.clone()]
        };
        let rows: Vec<Vec<String>> = self.published.figures.iter().map(row).collect();
        text.push_str(&table(&["figure", "times", "origin"].map(str::to_owned), &rows));
        for contradiction in &self.published.contradictions {
            text.push_str(&format!("\nThe paper contradicts itself: {}.\n", contradiction.says));
        }
        text
    }

    fn plot(&self) -> String {
        plot::plot(self)
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl ElasticReport {
    /// The report of all results, in the order of the plan.
    ///
    /// # Errors
    /// When the published figures cannot be read.
    pub(super) fn new(
        plan: &ElasticPlan,
        results: Vec<ElasticResult>,
        machine: &Machine,
    ) -> Result<Self> {
        let engine = format!("{:?}", plan.engine).to_lowercase();
        let nodes = machine.nodes.len();
        let mut notes = Vec::new();
        if nodes < 2 {
            notes.push(
                "This machine has one node: no access is remote, so the modes differ in the number of cores \
                 only, and the published gains cannot show here. `atoll lab run` counts them on a machine of \
                 several nodes."
                    .to_owned(),
            );
        }
        notes.push(
            "Figures 7 and 8 of the paper are not compared: their values are not published."
                .to_owned(),
        );
        let mut report = Self {
            engine,
            scale_factor: plan.scale_factor,
            threads: plan.threads,
            nodes,
            notes,
            cases: Vec::new(),
            speedups: Vec::new(),
            published: Published::read()?,
            problems: Vec::new(),
        };
        results.into_iter().for_each(|result| report.add(result));
        report.finish();
        Ok(report)
    }

    fn add(&mut self, result: ElasticResult) {
        let settings = result.case.setting.to_json();
        if self.cases.last().is_none_or(|last| last.settings != settings) {
            self.cases.push(SettingRuns::new(&result.case.setting));
        }
        if let Some(last) = self.cases.last_mut() {
            last.add(result);
            self.problems.append(&mut last.problems);
        }
    }

    /// What follows from all cases.
    fn finish(&mut self) {
        let has_traffic = self
            .cases
            .iter()
            .flat_map(|case| &case.modes)
            .any(|runs| runs.mean(|followed| followed.memory_gbps).is_some());
        if !has_traffic {
            self.notes.push(
                "No counters of memory traffic here (resctrl): throughput of memory and HT/IMC are left out.".to_owned(),
            );
        }
        let random = self.cases.iter().filter(|case| case.settings["work"] == "random");
        let Some(most) = random.max_by_key(|case| case.settings["clients"].as_i64()) else {
            return;
        };
        let Some(os) = most.os() else { return };
        for (query, before) in &os.queries {
            let faster = |runs: &ModeRuns| Some((runs.mode, before / runs.queries.get(query)?));
            let others = most.modes.iter().filter(|runs| runs.mode != "os");
            let published = self.published.speedup.adaptive.get(usize::from(*query) - 1).copied();
            let modes = others.filter_map(faster).collect();
            self.speedups.push(QuerySpeedups {
                query: *query,
                modes,
                published_adaptive: published,
            });
        }
    }

    fn throughput(&self) -> String {
        let head = [
            "case",
            "mode",
            "queries/h",
            "× os",
            "lookups/s",
            "cores",
            "changes",
            "migrations",
            "LLC misses",
            "GB/s",
            "remote",
        ];
        let text = |value: Option<f64>, decimals: usize| {
            value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
        };
        let mut rows = Vec::new();
        for case in &self.cases {
            let os = case.os().and_then(ModeRuns::rate);
            for runs in &case.modes {
                let rate = runs.rate();
                let lookups =
                    Summary::from_values(runs.lookups.iter().copied()).map(|it| it.median);
                let cores = runs.mean(|it| Some(it.cores_mean)).filter(|_| !runs.is_cores_unknown);
                rows.push(vec![
                    case.name().to_owned(),
                    runs.mode.to_owned(),
                    text(rate, 0),
                    text(rate.zip(os).map(|(rate, os)| rate / os), 2),
                    text(lookups.filter(|it| *it > 0.0), 0),
                    text(cores, 1),
                    text(runs.mean(|it| Some(it.acts as f64)), 0),
                    text(runs.mean(|it| Some(it.migrations? as f64)), 0),
                    text(runs.mean(|it| Some(it.llc_misses? as f64)), 0),
                    text(runs.mean(|it| it.memory_gbps), 2),
                    text(runs.mean(|it| it.remote_share), 3),
                ]);
            }
        }
        table(&head.map(str::to_owned), &rows)
    }

    fn by_query(&self) -> String {
        let modes: Vec<&str> =
            self.speedups.first().into_iter().flat_map(|it| it.modes.keys().copied()).collect();
        let mut head = vec!["query".to_owned()];
        head.extend(modes.iter().map(|mode| (*mode).to_owned()));
        head.push(format!("adaptive, published ({})", self.published.speedup.origin));
        let number = |value: Option<f64>| value.map_or_else(String::new, |it| format!("{it:.2}"));
        let mut rows: Vec<Vec<String>> = Vec::new();
        for query in &self.speedups {
            let mut row = vec![format!("Q{}", query.query)];
            row.extend(modes.iter().map(|mode| number(query.modes.get(mode).copied())));
            row.push(number(query.published_adaptive));
            rows.push(row);
        }
        let mean = |of: &dyn Fn(&QuerySpeedups) -> Option<f64>| {
            let values: Vec<f64> = self.speedups.iter().filter_map(of).collect();
            let logs: f64 = values.iter().map(|it| it.ln()).sum();
            number((!values.is_empty()).then(|| (logs / values.len() as f64).exp()))
        };
        let mut row = vec!["geometric mean".to_owned()];
        row.extend(modes.iter().map(|mode| mean(&|it| it.modes.get(mode).copied())));
        row.push(mean(&|it| it.published_adaptive));
        rows.push(row);
        table(&head, &rows)
    }
}
