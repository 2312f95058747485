//! The JSON form that every benchmark has: conditions, measurements that `bench compare` reads, and what
//! else this one reports.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manifest::Manifest;

/// All that a benchmark prints with `--json`.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    /// Name of the benchmark: `tpch`, `aggregate`.
    pub benchmark: &'a str,
    /// Where and how it was measured.
    pub manifest: &'a Manifest,
    /// Every run of everything that was timed.
    pub measurements: Vec<Measurement>,
    /// Other results of this benchmark.
    pub details: &'a T,
}

/// The runs of one engine, or of one variant, in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The case: settings by name.
    pub case: Map<String, Value>,
    /// The subject: `atoll`, `atoll ring`, `duckdb`.
    pub subject: String,
    /// Unit of the samples.
    pub unit: String,
    /// Whether smaller or larger samples are better.
    pub better: Better,
    /// One for each run.
    pub samples: Vec<f64>,
}

/// Whether smaller or larger samples are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller one: a time.
    Less,
    /// The larger one: a bandwidth.
    More,
}

impl Measurement {
    /// Times in `unit`; `case` is a JSON object.
    pub fn times(case: &Value, subject: impl Into<String>, unit: &str, samples: Vec<f64>) -> Self {
        let (case, unit) = (case.as_object().cloned().unwrap_or_default(), unit.to_owned());
        Self { case, subject: subject.into(), unit, better: Better::Less, samples }
    }

    /// Rates in `unit`; `case` is a JSON object.
    pub fn rates(case: &Value, subject: impl Into<String>, unit: &str, samples: Vec<f64>) -> Self {
        Self { better: Better::More, ..Self::times(case, subject, unit, samples) }
    }
}
