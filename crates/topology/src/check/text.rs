//! Findings as text.

use std::fmt::Write;

use super::{Finding, Severity};

/// Width of a terminal.
const COLUMNS_MAX: usize = 80;
const INDENT: &str = "  ";

/// The findings as `atoll topo check` prints them: what, why, readings, and what to do. Prose is at most 80 columns
/// wide; commands and readings stay on one line so that they can be copied. Empty if there are no findings.
pub fn text(findings: &[Finding]) -> String {
    findings.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut text = wrapped(&format!("{severity}: {}", finding.what), "", INDENT);
    text.push_str(&wrapped(&finding.why, INDENT, INDENT));
    for reading in &finding.read {
        let _ = writeln!(text, "{INDENT}read:   {} = {}", reading.file, reading.value);
    }
    if let Some(command) = &finding.command {
        let who = if finding.as_root { "  (as root)" } else { "" };
        let _ = writeln!(text, "{INDENT}change: {command}{who}");
    }
    if let Some(advice) = &finding.advice {
        let head = format!("{INDENT}advice: ");
        text.push_str(&wrapped(advice, &head, &" ".repeat(head.len())));
    }
    text
}

/// The text wrapped to [`COLUMNS_MAX`] columns unless a word is longer.
fn wrapped(text: &str, first: &str, indent: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut begun = false;
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a first line");
        if begun && last.chars().count() + 1 + word.chars().count() > COLUMNS_MAX {
            lines.push(format!("{indent}{word}"));
            continue;
        }
        if begun {
            last.push(' ');
        }
        last.push_str(word);
        begun = true;
    }
    lines.join("\n") + "\n"
}
