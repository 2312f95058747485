//! `bench compare A B`: what became slower or faster from one result to another, with confidence.
//!
//! A measurement has many causes, and runs of another day are not paired with those of today. So no
//! distribution is assumed: the change is the median of all ratios of a run of B to a run of A, and its
//! interval comes from the ranks of the runs alone ([`rank`](crate::rank)). The change of the rivals between the results
//! is shown next to it: if they changed too, the machine did.

use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_tools::bench::{Better, Form, Manifest, Measurement, OutputArgs, json};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_topology::conditions::{MachineConditions, known};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rank::Change;
use crate::table::table;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench tpch --json -o before.json
  atoll bench tpch --json -o after.json
  atoll bench compare before.json after.json
  atoll bench compare before.json after.json --threshold 10% --confidence 99% --json

A change is B's time over A's (of rates A's over B's): above 1 is slower. It is the median of the ratios
of all runs; its interval holds whatever the runs' distribution is. Something is slower when the whole
interval is beyond the threshold, and if any measurement of Atoll is, the exit code is 5. With few runs no
interval is sure enough, as the output says: --runs 4 of both is the least for 95%, 5 for 99%.";

/// Arguments of `atoll bench compare`.
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The result before, as a benchmark wrote it with --json
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    a: PathBuf,
    /// The result after
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    b: PathBuf,
    /// How sure an interval has to be
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = confidence)]
    confidence: f64,
    /// Changes up to this do not count
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = threshold)]
    threshold: f64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads `95%` or `0.95`.
fn share(text: &str) -> Option<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    Some(number.trim().parse::<f64>().ok()? / unit)
}

/// Reads how sure an interval has to be.
pub(crate) fn confidence(text: &str) -> Result<f64, String> {
    let value = share(text).filter(|share| (0.5..=0.9999).contains(share));
    value.ok_or_else(|| "expected a share from 50% to 99.99%".to_owned())
}

/// Reads a change that does not count.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    let value = share(text).filter(|share| (0.0..=10.0).contains(share));
    value.ok_or_else(|| "expected a share from 0% to 1000%".to_owned())
}

/// The part of a result that is read.
#[derive(Deserialize)]
struct Read {
    benchmark: String,
    manifest: Manifest,
    measurements: Vec<Measurement>,
}

/// Everything that both results have.
#[derive(Debug, Serialize)]
struct ResultComparison {
    benchmark: String,
    confidence: f64,
    threshold: f64,
    /// Differences in the conditions, and measurements in only one result.
    notes: Vec<String>,
    rows: Vec<ComparisonRow>,
}

/// A measurement in both.
#[derive(Debug, Serialize)]
struct ComparisonRow {
    case: String,
    subject: String,
    unit: String,
    /// Medians.
    before: f64,
    after: f64,
    change: Change,
    verdict: Verdict,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Slower,
    Faster,
    /// Within the threshold, as far as the samples show.
    Same,
    /// Too few runs for the confidence.
    Unsure,
}

/// Reads both, and writes what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(false)?;
    let [a, b] = [read(&args.a)?, read(&args.b)?];
    if a.benchmark != b.benchmark {
        let message = format_args!("{} and {} are different benchmarks", a.benchmark, b.benchmark);
        return Err(CommandError::with(Exit::Usage, message));
    }
    let comparison = ResultComparison::from_results(&a, &b, args.confidence, args.threshold);
    if comparison.rows.is_empty() {
        return Err(CommandError::with(Exit::Usage, "the results have no measurement in common"));
    }
    outputs.write(|form| match form {
        Form::Json => json(&comparison),
        _ => Ok(comparison.text()),
    })?;
    match comparison.slower() {
        0 => Ok(()),
        count => {
            terminal::say(format_args!("{count} of Atoll's measurements became slower"));
            Err(CommandError::quietly(Exit::Slower))
        }
    }
}

fn read(file: &Path) -> Result<Read, CommandError> {
    let named = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(named)?;
    let read = serde_json::from_str(&text);
    Ok(read.with_context(|| format!("{} is not a result of atoll bench --json", named()))?)
}

impl ResultComparison {
    fn from_results(a: &Read, b: &Read, confidence: f64, threshold: f64) -> Self {
        let mut notes = conditions(&a.manifest, &b.manifest);
        let mut rows = Vec::new();
        for before in &a.measurements {
            let after = b.measurements.iter().find(|after| is_same(before, after));
            match after.and_then(|after| {
                ComparisonRow::from_measurements(before, after, confidence, threshold)
            }) {
                Some(row) => rows.push(row),
                None => notes.push(format!("only in A: {}", name(before))),
            }
        }
        let is_new =
            |after: &&Measurement| !a.measurements.iter().any(|before| is_same(before, after));
        let new = b.measurements.iter().filter(is_new);
        notes.extend(new.map(|after| format!("only in B: {}", name(after))));
        Self { benchmark: a.benchmark.clone(), confidence, threshold, notes, rows }
    }

    /// Atoll's measurements that are slower.
    fn slower(&self) -> usize {
        let of_atoll = self.rows.iter().filter(|row| row.subject.starts_with("atoll"));
        of_atoll.filter(|row| row.verdict == Verdict::Slower).count()
    }

    fn text(&self) -> String {
        let head = ["case", "who", "unit", "A", "B", "B / A", "interval", "verdict"];
        let head = head.map(str::to_owned);
        let rows: Vec<Vec<String>> = self.rows.iter().map(ComparisonRow::cells).collect();
        let mut text = format!(
            "# bench compare {}\n\nMedians; above 1 is slower; intervals hold with {} % confidence; up \
             to {} % is not a change.\n\n{}",
            self.benchmark,
            percent(self.confidence),
            percent(self.threshold),
            table(&head, &rows)
        );
        if !self.notes.is_empty() {
            text.push('\n');
            self.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        }
        text
    }
}

/// `95`, `99.5`.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn is_same(a: &Measurement, b: &Measurement) -> bool {
    (&a.case, &a.subject, &a.unit) == (&b.case, &b.subject, &b.unit)
}

/// `query 1, threads 2: duckdb`.
fn name(measurement: &Measurement) -> String {
    format!("{}: {}", case(measurement), measurement.subject)
}

fn case(measurement: &Measurement) -> String {
    let setting = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name} {text}"),
        value => format!("{name} {value}"),
    };
    measurement.case.iter().map(setting).collect::<Vec<_>>().join(", ")
}

/// Conditions that are not alike.
fn conditions(a: &Manifest, b: &Manifest) -> Vec<String> {
    let differs = |what: &str, a: &str, b: &str| (a != b).then(|| format!("{what}: {a} and {b}"));
    let fact = |what: &str, of: fn(&MachineConditions) -> &Option<String>| {
        differs(what, known(of(&a.machine)), known(of(&b.machine)))
    };
    [
        differs("machine", &a.machine.fingerprint, &b.machine.fingerprint),
        differs("cpus", &a.machine.cpus.to_string(), &b.machine.cpus.to_string()),
        differs("engines", &a.engines.join(", "), &b.engines.join(", ")),
        differs("seed", &a.seed.to_string(), &b.seed.to_string()),
        fact("kernel", |it| &it.kernel),
        fact("transparent huge pages", |it| &it.transparent_huge_pages),
        fact("NUMA balancing", |it| &it.numa_balancing),
        fact("governor", |it| &it.governor),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl ComparisonRow {
    /// None if one of them has no run.
    fn from_measurements(
        before: &Measurement,
        after: &Measurement,
        sure: f64,
        threshold: f64,
    ) -> Option<Self> {
        let (old, new) = match before.better {
            Better::Less => (&before.samples, &after.samples),
            Better::More => (&after.samples, &before.samples),
        };
        let change = Change::from_samples(old, new, sure)?;
        let median = |measurement: &Measurement| {
            atoll_tools::bench::Summary::from_values(measurement.samples.iter().copied())
        };
        Some(Self {
            case: case(before),
            subject: before.subject.clone(),
            unit: before.unit.clone(),
            before: median(before)?.median,
            after: median(after)?.median,
            verdict: Verdict::from_change(&change, threshold),
            change,
        })
    }

    fn cells(&self) -> Vec<String> {
        let Change { ratio, low, high, .. } = self.change;
        let figure = |value: f64| match value {
            value if value.abs() < 0.1 => format!("{value:.5}"),
            value => format!("{value:.3}"),
        };
        vec![
            self.case.clone(),
            self.subject.clone(),
            self.unit.clone(),
            figure(self.before),
            figure(self.after),
            format!("{ratio:.3}"),
            format!("{low:.3}–{high:.3}"),
            match self.verdict {
                Verdict::Slower => "SLOWER",
                Verdict::Faster => "faster",
                Verdict::Same => "",
                Verdict::Unsure => "too few runs",
            }
            .to_owned(),
        ]
    }
}

impl Verdict {
    fn from_change(change: &Change, threshold: f64) -> Self {
        match change {
            Change { is_sure: false, .. } => Self::Unsure,
            Change { low, .. } if *low > 1.0 + threshold => Self::Slower,
            Change { high, .. } if *high < 1.0 / (1.0 + threshold) => Self::Faster,
            _ => Self::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(times: &[(&str, [f64; 6])], rates: [f64; 6]) -> Read {
        let machine = atoll_topology::Machine::synthetic("node:1 core:2 pu:1").unwrap();
        let case = json!({ "query": 1 });
        let mut measurements: Vec<Measurement> = times
            .iter()
            .map(|(who, samples)| Measurement::times(&case, *who, "ms", samples.to_vec()))
            .collect();
        measurements.push(Measurement::rates(&json!({}), "atoll", "GB/s", rates.to_vec()));
        let manifest = Manifest::new(&machine, 6, 1, 1);
        Read { benchmark: "tpch".into(), manifest, measurements }
    }

    const TIMES: [f64; 6] = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0];

    #[test]
    fn slower_results_are_separated_from_noise_and_rates_are_inverted() {
        let double = TIMES.map(|time| 2.0 * time);
        let a = result(&[("atoll", TIMES), ("duckdb", TIMES), ("old", TIMES)], double);
        let b = result(&[("atoll", double), ("duckdb", TIMES), ("new", TIMES)], TIMES);
        let comparison = ResultComparison::from_results(&a, &b, 0.95, 0.05);
        let verdicts: Vec<Verdict> = comparison.rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Slower, Verdict::Same, Verdict::Slower]);
        assert!((comparison.rows[0].change.ratio - 2.0).abs() < 0.05, "{comparison:?}");
        assert_eq!(comparison.slower(), 2);
        assert_eq!(comparison.notes, ["only in A: query 1: old", "only in B: query 1: new"]);
        let back = ResultComparison::from_results(&b, &a, 0.95, 0.05);
        assert_eq!((back.slower(), back.rows[0].verdict), (0, Verdict::Faster));
        let text = comparison.text();
        assert!(text.contains("SLOWER") && text.contains("95 % confidence"), "{text}");
    }

    #[test]
    fn a_rival_that_is_slower_is_not_a_regression_of_atoll() {
        let double = TIMES.map(|time| 2.0 * time);
        let a = result(&[("duckdb", TIMES)], TIMES);
        let b = result(&[("duckdb", double)], TIMES);
        let comparison = ResultComparison::from_results(&a, &b, 0.95, 0.05);
        assert_eq!((comparison.rows[0].verdict, comparison.slower()), (Verdict::Slower, 0));
    }

    #[test]
    fn shares_are_percent_or_parts_of_one() {
        assert_eq!((confidence("95%"), confidence("0.99")), (Ok(0.95), Ok(0.99)));
        assert_eq!(threshold("0"), Ok(0.0));
        for text in ["", "100%", "49%", "-1", "NaN", "x%"] {
            assert!(confidence(text).is_err(), "{text}");
        }
    }
}
