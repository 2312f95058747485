//! A report's cases as a table for people.

use std::fmt::Write;

use serde_json::Value;

use super::args::shown;
use super::bandwidth::Bound;
use super::report::{Case, Ours, Rival, Spread};

/// Between two columns.
const GAP: &str = "  ";

/// Cases, one row for each variant, then notes.
pub(super) fn text(cases: &[Case]) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let rivals: Vec<&str> = names(cases);
    let mut header: Vec<String> = first.settings.keys().cloned().collect();
    header.extend(["variant", "atoll s"].map(str::to_owned));
    header.extend(rivals.iter().map(|name| format!("{name} s")));
    header.extend(["times faster", "GB/s", "of limit"].map(str::to_owned));
    let mut rows = vec![header];
    for case in cases {
        rows.extend(case.ours.iter().map(|ours| row(case, ours, &rivals)));
    }
    let mut text = aligned(&rows);
    text.push_str(&limits(cases));
    text.push_str(&notes(cases));
    text
}

/// A case in one line, for whoever waits.
pub(super) fn line(case: &Case) -> String {
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
    let mut row: Vec<String> = case.settings.values().map(setting).collect();
    row.extend([ours.variant.clone(), seconds(Some(&ours.seconds))]);
    row.extend(rivals.iter().map(|name| {
        let rival = case.rivals.iter().find(|rival| rival.name == *name);
        seconds(rival.and_then(|rival| rival.seconds.as_ref()))
    }));
    row.push(match &ours.ratio {
        Some(ratio) => {
            let Spread { median, least, most, .. } = ratio.spread;
            format!("{median:.2} ({least:.2}–{most:.2}) {}", ratio.to)
        }
        None => "-".to_owned(),
    });
    row.push(format!("{:.2}", ours.gb_per_s));
    row.push(format!("{:.0} %", 100.0 * ours.share_of_limit));
    row
}

fn setting(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_u64().map_or(number.to_string(), shown),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Three digits, of microseconds too.
fn seconds(spread: Option<&Spread>) -> String {
    match spread.map(|spread| spread.median) {
        None => "-".to_owned(),
        Some(median) if median < 0.01 => format!("{median:.6}"),
        Some(median) => format!("{median:.3}"),
    }
}

/// Columns as wide as what is in them; the last ones to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(&cells.collect::<Vec<_>>().join(GAP));
        text.push('\n');
    }
    text
}

/// What the workers' bandwidth was, and what it means.
fn limits(cases: &[Case]) -> String {
    let all = |rate: fn(&Case) -> f64| Spread::of(cases.iter().map(rate));
    let (Some(read), Some(copy)) = (all(|it| it.bandwidth.read), all(|it| it.bandwidth.copy))
    else {
        return String::new();
    };
    format!(
        "\nThe workers read {:.1} GB/s ({:.1}–{:.1}) and copied {:.1} GB/s ({:.1}–{:.1}) between the runs;\n\
         the limit is the time in which the rows are {}. Times are medians; 'times faster' is the best\n\
         rival's time by Atoll's, pair by pair: median (least–most).\n",
        read.median,
        read.least,
        read.most,
        copy.median,
        copy.least,
        copy.most,
        match cases[0].limit.by {
            Bound::Read => "read once",
            Bound::Copy => "read and written elsewhere once",
        }
    )
}

/// Which variant was chosen and why, phases, and who could not.
fn notes(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases {
        let title = title(case);
        for ours in &case.ours {
            notes_of(&mut text, &title, ours);
        }
        for Rival { name, way, failure, .. } in &case.rivals {
            if let Some(failure) = failure {
                _ = writeln!(text, "{title}: {name} could not: {failure}");
            } else if !way.is_empty() {
                _ = writeln!(text, "{title}: {name} by its {way} engine, the faster one");
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn notes_of(text: &mut String, title: &str, ours: &Ours) {
    if let Some(note) = &ours.note {
        _ = writeln!(text, "{title}: {}: {note}", ours.variant);
    }
    if !ours.phases.is_empty() {
        let phases =
            ours.phases.iter().map(|phase| format!("{} {:.4} s", phase.name, phase.seconds));
        let phases = phases.collect::<Vec<_>>().join(", ");
        _ = writeln!(text, "{title}: {}: {phases}", ours.variant);
    }
    if let Some(speed_up) = ours.speed_up {
        _ = writeln!(text, "{title}: {}: speed-up {speed_up:.2}", ours.variant);
    }
}

fn title(case: &Case) -> String {
    let settings = case.settings.iter().map(|(name, value)| format!("{name} {}", setting(value)));
    settings.collect::<Vec<_>>().join(", ")
}
