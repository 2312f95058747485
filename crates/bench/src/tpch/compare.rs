//! Whether two engines gave the same result.
//!
//! Whole numbers, decimals and texts have to be equal exactly; how many zeros end a decimal is the
//! engine's own choice. Binary floating point may differ by rounding: in 1e-9 of the value, or, where
//! the other engine computes with decimals, in a unit of the last digit it keeps.

use crate::worker::protocol::{Answer, Kind};

/// Relative difference of floats that counts as rounding.
const FLOAT_TOLERANCE: f64 = 1e-9;

/// Queries whose ORDER BY leaves rows with equal values in any order: Q11 orders by a sum alone.
const UNORDERED: [u8; 1] = [11];

/// What differs first; none where the results are the same.
pub(super) fn difference(left: &Answer, right: &Answer) -> Option<String> {
    let (rows, others) = (left.values.len(), right.values.len());
    if rows != others {
        return Some(format!("{rows} rows against {others}"));
    }
    if rows > 0 && left.columns.len() != right.columns.len() {
        return Some(format!("{} columns against {}", left.columns.len(), right.columns.len()));
    }
    let pairs = ordered(left).into_iter().zip(ordered(right)).enumerate();
    for (row, (these, those)) in pairs {
        for (column, (this, that)) in these.iter().zip(those).enumerate() {
            if !same((this, left.columns[column]), (that, right.columns[column])) {
                let [this, that] = [this, that].map(|value| value.as_deref().unwrap_or("NULL"));
                let (row, column) = (row + 1, column + 1);
                return Some(format!("row {row}, column {column}: {this} against {that}"));
            }
        }
    }
    None
}

type Row = Vec<Option<String>>;

/// The rows in the order in which they are compared.
fn ordered(answer: &Answer) -> Vec<&Row> {
    let mut rows: Vec<&Row> = answer.values.iter().collect();
    if UNORDERED.contains(&answer.query) {
        rows.sort_by_cached_key(|row| {
            let columns = row.iter().zip(&answer.columns);
            columns.map(|(value, kind)| sort_key(value, *kind)).collect::<Vec<_>>()
        });
    }
    rows
}

/// Equal values sort alike, whichever engine wrote them. Floats are left out: they may differ.
fn sort_key(value: &Option<String>, kind: Kind) -> Option<String> {
    let value = value.as_deref()?;
    match kind {
        Kind::Float => None,
        Kind::Integer | Kind::Decimal => Some(plain_number(value)),
        Kind::Text => Some(value.to_owned()),
    }
}

fn same((this, kind): (&Option<String>, Kind), (that, other): (&Option<String>, Kind)) -> bool {
    let (Some(this), Some(that)) = (this, that) else { return this == that };
    match (kind, other) {
        (Kind::Text, _) | (_, Kind::Text) => this == that,
        (Kind::Float, _) | (_, Kind::Float) => {
            nearly(this, that, unit(this, kind).max(unit(that, other)))
        }
        _ => plain_number(this) == plain_number(that),
    }
}

/// A unit of the last digit of a decimal; nothing for other kinds.
fn unit(text: &str, kind: Kind) -> f64 {
    match (kind, text.split_once('.')) {
        (Kind::Decimal, Some((_, digits))) => 0.1f64.powi(digits.len() as i32),
        _ => 0.0,
    }
}

fn nearly(this: &str, that: &str, unit: f64) -> bool {
    let (Ok(a), Ok(b)) = (this.parse::<f64>(), that.parse::<f64>()) else { return this == that };
    // Equal infinities and two NaNs are the same; their difference says nothing.
    a == b
        || (a.is_nan() && b.is_nan())
        || (a - b).abs() <= (FLOAT_TOLERANCE * a.abs().max(b.abs())).max(unit)
}

/// A number without the zeros that say nothing: `-0012.50` is `-12.5`, and `-0.00` is `0`.
fn plain_number(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    match (whole, fraction) {
        ("", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        ("", fraction) => format!("{sign}0.{fraction}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(query: u8, columns: &[Kind], rows: &[&[&str]]) -> Answer {
        let value = |text: &&str| (*text != "NULL").then(|| (*text).to_owned());
        let values = rows.iter().map(|row| row.iter().map(value).collect()).collect();
        Answer { query, ms: 1.0, columns: columns.to_vec(), values }
    }

    fn of_values(this: (&str, Kind), that: (&str, Kind)) -> Option<String> {
        difference(&answer(1, &[this.1], &[&[this.0]]), &answer(1, &[that.1], &[&[that.0]]))
    }

    #[test]
    fn decimals_are_exact_whatever_their_scale() {
        use Kind::{Decimal, Integer};
        assert_eq!(of_values(("12.50", Decimal), ("12.5000", Decimal)), None);
        assert_eq!(of_values(("7", Integer), ("7.00", Decimal)), None);
        assert_eq!(of_values(("-0.00", Decimal), ("0", Integer)), None);
        for other in ["12.51", "-12.50", "125.0", "12.500000000000000000001"] {
            assert!(of_values(("12.50", Decimal), (other, Decimal)).is_some(), "{other}");
        }
        assert!(of_values(("100", Integer), ("1", Integer)).is_some());
    }

    #[test]
    fn floats_may_differ_by_rounding_and_no_more() {
        use Kind::{Decimal, Float, Integer};
        assert_eq!(of_values(("1000000000.1", Float), ("1000000000.5", Float)), None);
        assert!(of_values(("1.0", Float), ("1.00000001", Float)).is_some());
        assert_eq!(of_values(("0.0499", Decimal), ("0.04998529", Float)), None);
        assert!(of_values(("0.0499", Decimal), ("0.0501", Float)).is_some());
        assert_eq!(of_values(("2", Integer), ("2.0", Float)), None);
        assert!(of_values(("2", Integer), ("3.0", Float)).is_some());
        assert_eq!(of_values(("NaN", Float), ("nan", Float)), None);
    }

    #[test]
    fn null_is_no_value() {
        assert!(of_values(("NULL", Kind::Text), ("", Kind::Text)).is_some());
        assert!(of_values(("NULL", Kind::Decimal), ("0", Kind::Decimal)).is_some());
        assert_eq!(of_values(("NULL", Kind::Float), ("NULL", Kind::Decimal)), None);
    }

    #[test]
    fn rows_count_and_so_does_their_order() {
        let kinds = [Kind::Integer, Kind::Text];
        let rows: [&[&str]; 2] = [&["1", "a"], &["2", "b"]];
        let turned = [rows[1], rows[0]];
        let left = answer(3, &kinds, &rows);
        assert_eq!(difference(&left, &left), None);
        let found = difference(&left, &answer(3, &kinds, &rows[..1]));
        assert_eq!(found.as_deref(), Some("2 rows against 1"));
        let found = difference(&left, &answer(3, &kinds, &turned));
        assert_eq!(found.as_deref(), Some("row 1, column 1: 1 against 2"));
        let tied = (answer(11, &kinds, &rows), answer(11, &kinds, &turned));
        assert_eq!(difference(&tied.0, &tied.1), None);
    }

    #[test]
    fn empty_results_are_the_same_even_without_columns() {
        assert_eq!(difference(&answer(1, &[], &[]), &answer(1, &[Kind::Text], &[])), None);
        let found = difference(&answer(1, &[Kind::Text], &[&["a"]]), &answer(1, &[], &[&[]]));
        assert_eq!(found.as_deref(), Some("1 columns against 0"));
    }
}
