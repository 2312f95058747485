//! Numbers as people read them.

use atoll_topology::Nanos;

/// Printed in place of a ratio without a divisor.
pub(super) const NOTHING: &str = "-";
/// Counts below this are written out.
const WRITTEN_OUT: f64 = 10_000.0;
/// Characters of a command or a name in a line.
const LINE: usize = 90;

/// A count: `9876`, `12.3k`, `1.23M`.
pub(super) fn count(value: u64) -> String {
    if (value as f64) < WRITTEN_OUT {
        return value.to_string();
    }
    scaled(value as f64, &["", "k", "M", "G", "T", "P", "E"])
}

/// A time: `850 ns`, `12.3 ms`, `3.2 s`.
pub(super) fn time(time: Nanos) -> String {
    const UNITS: [&str; 4] = [" ns", " µs", " ms", " s"];
    if time.0 <= 0.0 { "0".to_owned() } else { scaled(time.0, &UNITS) }
}

/// Three digits and the unit: each is a thousand of the one before.
fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // What would be rounded to a thousand has the next unit.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{}{}", digits(value), units[unit])
}

/// A number with three digits where it has fractions: `7.25`, `40.1`, `182`.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The same without zeros at its end: `10`, `0.65`.
pub(super) fn trimmed(value: f64) -> String {
    let text = digits(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A share: `98.1 %`, or a dash.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// The same without a fraction, for narrow columns.
pub(super) fn percent_short(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.0}%", share * 100.0))
}

/// `1 node`, `4 nodes`.
pub(super) fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A text of a record on one line, cut where a title would be too long.
pub(super) fn line(text: &str) -> String {
    cut(text, LINE)
}

/// A text of a record without control characters, which could steer a terminal, and cut.
pub(super) fn cut(text: &str, characters: usize) -> String {
    let plain = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let mut line: String = text.chars().take(characters).map(plain).collect();
    if text.chars().nth(characters).is_some() {
        line.push('…');
    }
    line
}
