//! Times and sizes as settings: numbers with units, read and shown as PostgreSQL does.

/// Units from small to large, and how many of the first each is.
pub(super) type Units = [(&'static str, u64)];

/// Milliseconds.
pub(super) const TIME: &Units =
    &[("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
/// Kilobytes.
pub(super) const MEMORY: &Units = &[("kB", 1), ("MB", 1 << 10), ("GB", 1 << 20), ("TB", 1 << 30)];

/// A number of the smallest unit: `500`, `250ms`, `1.5 s`. `None` if it is invalid or above PostgreSQL's maximum.
pub(super) fn quantity(text: &str, units: &Units) -> Option<u64> {
    let text = text.trim();
    let is_number = |it: char| it.is_ascii_digit() || it == '.';
    let end = text.find(|it: char| !is_number(it)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let size = match text[end..].trim() {
        "" => 1,
        unit => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    let whole = (number * size as f64).round();
    (whole <= f64::from(i32::MAX)).then_some(whole as u64)
}

/// The quantity as a whole number of the largest possible unit: `90s`.
pub(super) fn shown(quantity: u64, units: &Units) -> String {
    let fits = |(_, size): &&(&str, u64)| quantity > 0 && quantity.is_multiple_of(*size);
    match units.iter().rev().find(fits) {
        Some((unit, size)) => format!("{}{unit}", quantity / size),
        None => quantity.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_shown_as_in_postgresql() {
        for (text, units, wanted) in [
            ("0", TIME, Some("0")),
            ("250ms", TIME, Some("250ms")),
            ("5000", TIME, Some("5s")),
            ("90 s", TIME, Some("90s")),
            ("1.5s", TIME, Some("1500ms")),
            ("60min", TIME, Some("1h")),
            ("1024", MEMORY, Some("1MB")),
            ("64MB", MEMORY, Some("64MB")),
            ("-1", TIME, None),
            ("x", TIME, None),
            ("5 MB", TIME, None),
            ("", TIME, None),
            ("3000000000", TIME, None),
        ] {
            let found = quantity(text, units).map(|it| shown(it, units));
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
    }
}
