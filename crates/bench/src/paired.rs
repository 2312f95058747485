//! Measurements of Atoll and of others in turn, round by round: for each case the median of everyone, and how
//! Atoll compares.

use atoll_tools::bench::{Better, Measurement, Summary};
use serde::Serialize;
use serde_json::Value;

use crate::table;

/// One setting, measured round by round.
#[derive(Debug, Serialize)]
pub(crate) struct PairedCase {
    /// Settings by name.
    #[serde(flatten)]
    pub(crate) settings: Value,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    /// Atoll is the first.
    pub(crate) subjects: Vec<PairedSubject>,
}

/// Name of the subject.
#[derive(Debug, Serialize)]
pub(crate) struct PairedSubject {
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) samples: Vec<f64>,
    /// Summary of the samples.
    pub(crate) spread: Option<Summary>,
    /// Atoll by this one, round by round; of times the other way round: above 1 Atoll is better.
    pub(crate) ratio: Option<Summary>,
}

impl PairedCase {
    pub(crate) fn new(settings: Value, unit: &'static str, better: Better) -> Self {
        Self { settings, unit, better, subjects: Vec::new() }
    }

    /// Adds a subject's sample of a round.
    pub(crate) fn add(&mut self, name: &str, sample: f64) {
        match self.subjects.iter_mut().find(|subject| subject.name == name) {
            Some(subject) => subject.samples.push(sample),
            None => self.subjects.push(PairedSubject {
                name: name.to_owned(),
                samples: vec![sample],
                spread: None,
                ratio: None,
            }),
        }
    }

    /// Forgets the rounds so far: they were to warm up.
    pub(crate) fn forget(&mut self) {
        self.subjects.iter_mut().for_each(|subject| subject.samples.clear());
    }

    /// Sums up all rounds.
    pub(crate) fn finish(&mut self) {
        let Some(ours) = self.subjects.first().map(|subject| subject.samples.clone()) else {
            return;
        };
        for (at, subject) in self.subjects.iter_mut().enumerate() {
            let pairs = ours.iter().zip(&subject.samples);
            let ratios = pairs.map(|(ours, other)| match self.better {
                Better::More => ours / other,
                Better::Less => other / ours,
            });
            subject.ratio = if at == 0 { None } else { Summary::from_values(ratios) };
            subject.spread = Summary::from_values(subject.samples.iter().copied());
        }
    }

    /// For `bench compare`.
    pub(crate) fn measurements(&self) -> impl Iterator<Item = Measurement> {
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

    /// Its settings in words.
    pub(crate) fn name(&self) -> String {
        let settings = self.settings.as_object().into_iter().flatten();
        let words = settings.map(|(name, value)| match value {
            Value::String(text) => text.clone(),
            other => format!("{other} {name}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// A line for everyone in every case.
pub(crate) fn table<'a>(cases: impl IntoIterator<Item = &'a PairedCase>) -> String {
    let head = ["case", "unit", "subject", "median", "±", "atoll is better by"];
    let mut rows = Vec::new();
    for case in cases {
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
    table::table(&head.map(str::to_owned), &rows)
}

#[cfg(test)]
mod tests {
    use atoll_tools::bench::Better;
    use serde_json::json;

    use super::PairedCase;

    #[test]
    fn ratios_above_one_are_good_for_rates_and_for_times() {
        for (better, ours, other) in [(Better::More, 20.0, 10.0), (Better::Less, 10.0, 20.0)] {
            let mut case = PairedCase::new(json!({ "work": "insert" }), "unit", better);
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
