//! What came out: for each case the median of everyone, and how Atoll compares.

use std::fmt;

use atoll_tools::bench::{Better, Measurement, Summary};
use serde::Serialize;
use serde_json::Value;

use crate::table::table;

/// What is told beside the measurements.
#[derive(Debug, Serialize)]
pub(super) struct StoreReport {
    /// Rows of the table of single rows, and of the one that is copied.
    pub(super) rows: u64,
    pub(super) bulk_rows: u64,
    /// Where the databases were.
    pub(super) directory: String,
    pub(super) cases: Vec<StoreCase>,
}

/// One setting, measured round by round.
#[derive(Debug, Serialize)]
pub(super) struct StoreCase {
    /// Settings by name.
    #[serde(flatten)]
    pub(super) settings: Value,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// Atoll is the first.
    pub(super) subjects: Vec<Subject>,
}

/// Who was measured.
#[derive(Debug, Serialize)]
pub(super) struct Subject {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) samples: Vec<f64>,
    /// What the samples come to.
    pub(super) spread: Option<Summary>,
    /// Atoll by this one, round by round; of times the other way round: above 1 Atoll is better.
    pub(super) ratio: Option<Summary>,
}

impl StoreCase {
    pub(super) fn new(settings: Value, unit: &'static str, better: Better) -> Self {
        Self { settings, unit, better, subjects: Vec::new() }
    }

    /// Adds what was measured of someone in a round.
    pub(super) fn add(&mut self, name: &str, sample: f64) {
        match self.subjects.iter_mut().find(|subject| subject.name == name) {
            Some(subject) => subject.samples.push(sample),
            None => self.subjects.push(Subject {
                name: name.to_owned(),
                samples: vec![sample],
                spread: None,
                ratio: None,
            }),
        }
    }

    /// Forgets the rounds so far: they were to warm up.
    pub(super) fn forget(&mut self) {
        self.subjects.iter_mut().for_each(|subject| subject.samples.clear());
    }

    /// Sums up all rounds.
    pub(super) fn finish(&mut self) {
        let Some(ours) = self.subjects.first().map(|subject| subject.samples.clone()) else {
            return;
        };
        for (at, subject) in self.subjects.iter_mut().enumerate() {
            let pairs = ours.iter().zip(&subject.samples);
            let ratios = pairs.map(|(ours, other)| match self.better {
                Better::More => ours / other,
                Better::Less => other / ours,
            });
            subject.ratio = if at == 0 { None } else { Summary::of(ratios) };
            subject.spread = Summary::of(subject.samples.iter().copied());
        }
    }

    fn measurements(&self) -> impl Iterator<Item = Measurement> {
        self.subjects.iter().map(|subject| {
            let samples = subject.samples.clone();
            match self.better {
                Better::More => {
                    Measurement::rates(&self.settings, &subject.name, self.unit, samples)
                }
                Better::Less => {
                    Measurement::times(&self.settings, &subject.name, self.unit, samples)
                }
            }
        })
    }

    fn name(&self) -> String {
        let settings = self.settings.as_object().into_iter().flatten();
        let words = settings.map(|(name, value)| match value {
            Value::String(text) => text.clone(),
            other => format!("{other} {name}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

impl StoreReport {
    /// For `bench compare`.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        self.cases.iter().flat_map(StoreCase::measurements).collect()
    }
}

impl fmt::Display for StoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, bulk_rows, directory, .. } = self;
        writeln!(f, "- {rows} rows changed and read one by one, {bulk_rows} copied")?;
        writeln!(f, "- databases in {directory}\n")?;
        let head = ["case", "unit", "subject", "median", "±", "atoll is better by"];
        let mut rows = Vec::new();
        for case in &self.cases {
            for subject in &case.subjects {
                let half = |spread: Summary| (spread.quartile_high - spread.quartile_low) / 2.0;
                let number = |number: f64| match number.abs() {
                    large if large >= 100.0 => format!("{number:.0}"),
                    _ => format!("{number:.4}"),
                };
                let spread = subject.spread;
                rows.push(vec![
                    case.name(),
                    case.unit.to_owned(),
                    subject.name.clone(),
                    spread.map_or_else(String::new, |spread| number(spread.median)),
                    spread.map_or_else(String::new, |spread| number(half(spread))),
                    subject.ratio.map_or_else(String::new, |ratio| format!("{ratio}")),
                ]);
            }
        }
        f.write_str(&table(&head.map(str::to_owned), &rows))
    }
}

#[cfg(test)]
mod tests {
    use atoll_tools::bench::Better;
    use serde_json::json;

    use super::StoreCase;

    #[test]
    fn ratios_above_one_are_good_for_rates_and_for_times() {
        for (better, ours, other) in [(Better::More, 20.0, 10.0), (Better::Less, 10.0, 20.0)] {
            let mut case = StoreCase::new(json!({ "work": "insert" }), "unit", better);
            case.add("atoll", 7.0);
            case.forget();
            for _ in 0..3 {
                case.add("atoll", ours);
                case.add("sqlite", other);
            }
            case.finish();
            assert!(case.subjects[0].ratio.is_none());
            let ratio = case.subjects[1].ratio.expect("a ratio");
            assert_eq!((ratio.median, ratio.runs), (2.0, 3));
        }
    }
}
