//! A report's cases as a table for people.

use std::fmt::{self, Write};

use atoll_tools::bench::Summary;
use atoll_tools::workload::shown;
use serde_json::Value;

use super::bandwidth::Bound;
use super::report::{Case, ContestReport, Ours, Rival};
use crate::table::table;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(self))
    }
}

impl fmt::Display for ContestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "- {}\n", self.tuning)?;
        f.write_str(&text(&self.cases))
    }
}

/// Cases, one row for each variant, then notes.
fn text(cases: &[Case]) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let rivals: Vec<&str> = names(cases);
    let mut header: Vec<String> = settings(first).map(|(name, _)| name.clone()).collect();
    header.extend(["variant", "atoll s"].map(str::to_owned));
    header.extend(rivals.iter().map(|name| format!("{name} s")));
    header.extend(["times faster", "GB/s", "of limit"].map(str::to_owned));
    let mut rows = Vec::new();
    for case in cases {
        rows.extend(case.ours.iter().map(|ours| row(case, ours, &rivals)));
    }
    let mut text = table(&header, &rows);
    text.push_str(&limits(cases));
    text.push_str(&notes(cases));
    text
}

/// A case in one line, while the next one is run.
fn line(case: &Case) -> String {
    let ours = case.ours.iter().map(|ours| {
        let ratio = ours.ratio.as_ref();
        let ratio =
            ratio.map(|it| format!(", {:.2} times faster than {}", it.spread.median, it.to));
        format!("{} {} s{}", ours.variant, seconds(Some(&ours.seconds)), ratio.unwrap_or_default())
    });
    format!("{}: {}", title(case), ours.collect::<Vec<_>>().join("; "))
}

/// Names of all rivals, in the order in which they ran.
fn names(cases: &[Case]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for rival in cases.iter().flat_map(|case| &case.rivals) {
        if !names.contains(&rival.name.as_str()) {
            names.push(&rival.name);
        }
    }
    names
}

fn row(case: &Case, ours: &Ours, rivals: &[&str]) -> Vec<String> {
    let mut row: Vec<String> = settings(case).map(|(_, value)| setting(value)).collect();
    row.extend([ours.variant.clone(), seconds(Some(&ours.seconds))]);
    row.extend(rivals.iter().map(|name| {
        let rival = case.rivals.iter().find(|rival| rival.name == *name);
        seconds(rival.and_then(|rival| rival.seconds.as_ref()))
    }));
    row.push(match &ours.ratio {
        Some(ratio) => format!("{} {}", ratio.spread, ratio.to),
        None => "-".to_owned(),
    });
    row.push(format!("{:.2}", ours.gb_per_s));
    row.push(format!("{:.0} %", 100.0 * ours.share_of_limit));
    row
}

/// Its settings, by name.
fn settings(case: &Case) -> impl Iterator<Item = (&String, &Value)> {
    case.settings.as_object().into_iter().flatten()
}

fn setting(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_u64().map_or(number.to_string(), shown),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Three digits, of microseconds too.
fn seconds(spread: Option<&Summary>) -> String {
    match spread.map(|spread| spread.median) {
        None => "-".to_owned(),
        Some(median) if median < 0.01 => format!("{median:.6}"),
        Some(median) => format!("{median:.3}"),
    }
}

/// The workers' bandwidth, with an explanation.
fn limits(cases: &[Case]) -> String {
    let all = |rate: fn(&Case) -> f64| Summary::from_values(cases.iter().map(rate));
    let (Some(read), Some(copy)) = (all(|it| it.bandwidth.read), all(|it| it.bandwidth.copy))
    else {
        return String::new();
    };
    format!(
        "\nThe workers read {read:.1} GB/s and copied {copy:.1} GB/s between the runs;\n\
         the limit is the time in which the rows are {}. Times are medians; 'times faster' is the best\n\
         rival's time by Atoll's, pair by pair: median (least–most).\n",
        match cases[0].limit.by {
            Bound::Read => "read once",
            Bound::Copy => "read and written elsewhere once",
        }
    )
}

/// Which variant was chosen and why, phases, and which engine failed.
fn notes(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases {
        let title = title(case);
        for ours in &case.ours {
            notes_of(&mut text, &title, ours);
        }
        for Rival { name, way, failure, .. } in &case.rivals {
            if let Some(failure) = failure {
                _ = writeln!(text, "- {title}: {name} failed: {failure}");
            } else if !way.is_empty() {
                _ = writeln!(text, "- {title}: {name} by its {way} engine, the faster one");
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn notes_of(text: &mut String, title: &str, ours: &Ours) {
    if let Some(note) = &ours.note {
        _ = writeln!(text, "- {title}: {}: {note}", ours.variant);
    }
    if !ours.phases.is_empty() {
        let phases =
            ours.phases.iter().map(|phase| format!("{} {:.4} s", phase.name, phase.seconds));
        let phases = phases.collect::<Vec<_>>().join(", ");
        _ = writeln!(text, "- {title}: {}: {phases}", ours.variant);
    }
    if let Some(speed_up) = ours.speed_up {
        _ = writeln!(text, "- {title}: {}: speed-up {speed_up:.2}", ours.variant);
    }
}

fn title(case: &Case) -> String {
    let settings = settings(case).map(|(name, value)| format!("{name} {}", setting(value)));
    settings.collect::<Vec<_>>().join(", ")
}
