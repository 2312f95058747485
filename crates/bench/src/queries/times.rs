//! Times of queries: medians, ratios, sums and means.

use atoll_tools::bench::{Measurement, Summary};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::EngineMeasured;
use crate::trials::TrialCase;

/// The queries of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TimedQueries<C> {
    /// Times of each query.
    pub(crate) queries: Vec<QueryTimes<C>>,
    /// Sums and means over the queries that all engines answered.
    pub(crate) totals: Vec<Total>,
    /// Queries in the totals.
    pub(crate) totals_queries: usize,
    /// Queries that failed and results that differ; empty where all is well.
    pub(crate) problems: Vec<String>,
}

/// A query's times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct QueryTimes<C> {
    /// Which one.
    #[serde(flatten)]
    pub(crate) case: C,
    /// Rows of the last round's result.
    pub(crate) rows: usize,
    /// One for each engine, in their order; empty where the query has a problem.
    pub(crate) times: Vec<Times>,
    /// Bandwidth of its scans, if known.
    pub(crate) scan: Option<ScanReached>,
}

/// An engine's times for a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    /// The engine.
    pub(crate) engine: String,
    /// Every measured round, in milliseconds.
    #[serde(skip)]
    pub(crate) samples_ms: Vec<f64>,
    /// Median and quartiles, in milliseconds.
    pub(crate) ms: Summary,
    /// Atoll's median over this engine's: below 1 Atoll is faster.
    pub(crate) atoll_ratio: f64,
}

/// Bandwidth of the scans of a query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ScanReached {
    /// Bytes that the scans read, as they are stored.
    pub(crate) bytes: u64,
    /// Bytes over the median time.
    pub(crate) bytes_per_second: f64,
    /// Share of the bandwidth measured in the same run.
    pub(crate) bandwidth_share: f64,
}

/// An engine's sums over the queries that all engines answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Total {
    /// The engine.
    pub(crate) engine: String,
    /// Sum of the medians, in milliseconds.
    pub(crate) total_ms: f64,
    /// Geometric mean of the medians, in milliseconds.
    pub(crate) geometric_mean_ms: f64,
    /// Atoll's total over this engine's.
    pub(crate) atoll_ratio: f64,
    /// Geometric mean of the queries' ratios, Atoll over this engine.
    pub(crate) atoll_ratio_geometric_mean: f64,
}

impl<C: TrialCase> TimedQueries<C> {
    /// Of all that was run; `bandwidth` is that of memory, in bytes per second.
    pub(crate) fn new(engines: &[EngineMeasured], runs: Vec<QueryRuns<C>>, bandwidth: f64) -> Self {
        let problems = |runs: &QueryRuns<C>| {
            let named = runs.problems.iter().map(|it| format!("{}: {it}", runs.case));
            named.collect::<Vec<_>>()
        };
        let problems = runs.iter().flat_map(problems).collect();
        let queries: Vec<_> = runs.into_iter().map(|runs| runs.summary(bandwidth)).collect();
        let answered: Vec<&QueryTimes<C>> =
            queries.iter().filter(|it| !it.times.is_empty()).collect();
        let names = engines.iter().map(|engine| engine.loaded.engine.as_str()).enumerate();
        let totals = names.filter_map(|(at, name)| total(name, at, &answered)).collect();
        let totals_queries = answered.len();
        Self { totals, totals_queries, queries, problems }
    }

    /// For `bench compare`: the case of a query and `settings`, a JSON object.
    pub(crate) fn measurements(&self, settings: &Value) -> Vec<Measurement> {
        let of_query = |query: &QueryTimes<C>| {
            let mut case = json!(query.case);
            if let (Some(case), Some(settings)) = (case.as_object_mut(), settings.as_object()) {
                case.extend(settings.clone());
            }
            let times = query.times.iter().map(|times| {
                Measurement::times(&case, &times.engine, "ms", times.samples_ms.clone())
            });
            times.collect::<Vec<_>>()
        };
        self.queries.iter().flat_map(of_query).collect()
    }
}

/// The totals of the engine at a place in the order; None if no query was answered.
fn total<C>(name: &str, at: usize, answered: &[&QueryTimes<C>]) -> Option<Total> {
    let median = |query: &&QueryTimes<C>, at: usize| query.times[at].ms.median;
    let sum = |at: usize| answered.iter().map(|query| median(query, at)).sum::<f64>();
    let mean = |of: &dyn Fn(&&QueryTimes<C>) -> f64| {
        let logarithms: f64 = answered.iter().map(|query| of(query).ln()).sum();
        (logarithms / answered.len() as f64).exp()
    };
    (!answered.is_empty()).then(|| Total {
        engine: name.to_owned(),
        total_ms: sum(at),
        geometric_mean_ms: mean(&|query| median(query, at)),
        atoll_ratio: sum(0) / sum(at),
        atoll_ratio_geometric_mean: mean(&|query| query.times[at].atoll_ratio),
    })
}

/// A query's rounds as they come in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueryRuns<C> {
    case: C,
    engines: Vec<String>,
    /// Milliseconds by engine, then round.
    samples: Vec<Vec<f64>>,
    pub(crate) rows: usize,
    pub(crate) scanned_bytes: Option<u64>,
    pub(crate) problems: Vec<String>,
}

impl<C: TrialCase> QueryRuns<C> {
    /// Before the first round.
    pub(crate) fn new(case: C, engines: impl Iterator<Item = String>) -> Self {
        let engines: Vec<String> = engines.collect();
        let samples = vec![Vec::new(); engines.len()];
        Self { case, engines, samples, rows: 0, scanned_bytes: None, problems: Vec::new() }
    }

    /// Adds a round: one time for each engine.
    pub(crate) fn add(&mut self, round: impl Iterator<Item = f64>) {
        self.samples.iter_mut().zip(round).for_each(|(samples, ms)| samples.push(ms));
    }

    /// Adds a problem.
    pub(crate) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    /// A line of progress.
    pub(crate) fn progress(&self) -> String {
        if let Some(problem) = self.problems.first() {
            return format!("{}: {problem}", self.case);
        }
        let times = self.engines.iter().zip(&self.samples).map(|(engine, samples)| {
            let median =
                Summary::from_values(samples.iter().copied()).map_or(0.0, |all| all.median);
            format!("{engine} {median:.1} ms")
        });
        format!("{}: {}", self.case, times.collect::<Vec<_>>().join(", "))
    }

    fn summary(self, bandwidth: f64) -> QueryTimes<C> {
        let Self { case, rows, engines, samples, scanned_bytes, problems } = self;
        let summaries: Option<Vec<Summary>> =
            samples.iter().map(|samples| Summary::from_values(samples.iter().copied())).collect();
        let summaries = summaries.filter(|all| problems.is_empty() && !all.is_empty());
        let Some(summaries) = summaries else {
            return QueryTimes { case, rows, times: Vec::new(), scan: None };
        };
        let atoll = summaries[0].median;
        let scan = scanned_bytes.map(|bytes| {
            let bytes_per_second = bytes as f64 / (atoll / 1e3);
            ScanReached { bytes, bytes_per_second, bandwidth_share: bytes_per_second / bandwidth }
        });
        let times = engines.into_iter().zip(samples).zip(summaries);
        let times = times.map(|((engine, samples_ms), ms)| Times {
            engine,
            samples_ms,
            ms,
            atoll_ratio: atoll / ms.median,
        });
        QueryTimes { case, rows, times: times.collect(), scan }
    }
}
