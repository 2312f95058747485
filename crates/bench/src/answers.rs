//! Whether two engines gave the same result.
//!
//! Whole numbers, decimals and texts have to be equal exactly; how many zeros end a decimal is the
//! engine's own choice. Binary floating point may differ by rounding: in 1e-9 of the value, or, where
//! the other engine computes with decimals, in a unit of the last digit it keeps. So may quotients of
//! decimals, which one engine rounds and another cuts off, and of which one keeps fewer digits.

use std::collections::HashMap;

use crate::protocol::{Answer, Kind};

/// Relative difference of floats that counts as rounding.
const FLOAT_TOLERANCE: f64 = 1e-9;

/// Fewest digits after the point that quotients have; sums of prices and rates have as many or fewer.
const QUOTIENT_DIGITS: usize = 6;

/// Whether the order of a result's rows means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// The query orders its rows, and no two of them alike.
    Given,
    /// Rows may come in any order.
    Any,
}

/// The first difference; None if the results are the same.
pub fn difference(left: &Answer, right: &Answer, order: RowOrder) -> Option<String> {
    let (rows, others) = (left.values.len(), right.values.len());
    if rows != others {
        return Some(format!("{rows} rows against {others}"));
    }
    if rows > 0 && left.columns.len() != right.columns.len() {
        return Some(format!("{} columns against {}", left.columns.len(), right.columns.len()));
    }
    let others = match order {
        RowOrder::Given => right.values.iter().map(Some).collect(),
        RowOrder::Any => partners(left, right),
    };
    for (row, (these, those)) in left.values.iter().zip(others).enumerate() {
        let Some(those) = those else {
            return Some(format!("{} has no counterpart", shown(these)));
        };
        if let Some(column) = first_difference((left, these), (right, those)) {
            let text = |row: &Row| row[column].clone().unwrap_or_else(|| "NULL".to_owned());
            let (row, column) = (row + 1, column + 1);
            return Some(format!(
                "row {row}, column {column}: {} against {}",
                text(these),
                text(those)
            ));
        }
    }
    None
}

fn shown(row: &Row) -> String {
    let values = row.iter().map(|value| value.as_deref().unwrap_or("NULL"));
    format!("the row ({})", values.collect::<Vec<_>>().join(", "))
}

/// Number of the first column in which two rows differ.
fn first_difference(
    (left, these): (&Answer, &Row),
    (right, those): (&Answer, &Row),
) -> Option<usize> {
    let pairs = these.iter().zip(those).enumerate();
    let differs = |(column, (this, that)): (usize, (&Option<String>, &Option<String>))| {
        let same = same((this, left.columns[column]), (that, right.columns[column]));
        (!same).then_some(column)
    };
    pairs.into_iter().find_map(differs)
}

type Row = Vec<Option<String>>;

/// For each row on the left the equal row on the right, each taken once; None if there
/// is none. Rows are looked up by the columns in which equal values have equal texts.
fn partners<'a>(left: &Answer, right: &'a Answer) -> Vec<Option<&'a Row>> {
    let exact: Vec<usize> = (0..left.columns.len())
        .filter(|column| {
            let kinds = [left, right].map(|answer| answer.columns.get(*column));
            kinds.iter().all(|kind| matches!(kind, Some(Kind::Integer | Kind::Text)))
        })
        .collect();
    let key = |row: &Row| -> Vec<Option<String>> {
        exact.iter().map(|column| row[*column].as_deref().map(plain_number_or_text)).collect()
    };
    let mut candidates: HashMap<_, Vec<&Row>> = HashMap::new();
    right.values.iter().for_each(|row| candidates.entry(key(row)).or_default().push(row));
    let mut partner = |these: &Row| {
        let rows = candidates.get_mut(&key(these))?;
        let same = |those: &&Row| first_difference((left, these), (right, those)).is_none();
        let at = rows.iter().position(same)?;
        Some(rows.swap_remove(at))
    };
    left.values.iter().map(&mut partner).collect()
}

/// Numbers without the zeros that say nothing, so that equal ones have equal texts.
fn plain_number_or_text(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number { plain_number(text) } else { text.to_owned() }
}

fn same((this, kind): (&Option<String>, Kind), (that, other): (&Option<String>, Kind)) -> bool {
    let (Some(this), Some(that)) = (this, that) else { return this == that };
    match (kind, other) {
        (Kind::Text, _) | (_, Kind::Text) => this == that,
        (Kind::Float, _) | (_, Kind::Float) => {
            nearly(this, that, unit(this, kind).max(unit(that, other)))
        }
        (Kind::Decimal, Kind::Decimal) if are_quotients(this, that) => {
            nearly(this, that, unit(this, kind).max(unit(that, other)))
        }
        _ => plain_number(this) == plain_number(that),
    }
}

/// Whether two decimals have the digits that quotients have.
fn are_quotients(this: &str, that: &str) -> bool {
    let [this, that] =
        [this, that].map(|text| text.split_once('.').map_or(0, |(_, digits)| digits.len()));
    this.min(that) >= QUOTIENT_DIGITS
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
        || (a - b).is_finite() && (a - b).abs() <= FLOAT_TOLERANCE * a.abs().max(b.abs()) + unit
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
        let (left, right) =
            (answer(1, &[this.1], &[&[this.0]]), answer(1, &[that.1], &[&[that.0]]));
        let found = [RowOrder::Given, RowOrder::Any].map(|order| difference(&left, &right, order));
        assert_eq!(found[0].is_some(), found[1].is_some(), "{found:?}");
        found[0].clone()
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
        assert_eq!(of_values(("-inf", Float), ("-Infinity", Float)), None);
        for finite in ["1.25", "NaN", "inf"] {
            assert!(of_values((finite, Float), ("-inf", Float)).is_some(), "{finite}");
        }
    }

    #[test]
    fn quotients_may_keep_fewer_digits_or_be_cut_off() {
        let of = |this, that| of_values((this, Kind::Decimal), (that, Kind::Decimal));
        assert_eq!(of("0.666666", "0.6666666666666667"), None);
        assert!(of("0.666666", "0.6666686666666667").is_some());
        assert_eq!(of("0.666666", "0.666667"), None);
        assert!(of("0.666666", "0.666668").is_some());
        assert!(of("0.66666", "0.66667").is_some());
    }

    #[test]
    fn null_is_not_a_value() {
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
        assert_eq!(difference(&left, &left, RowOrder::Given), None);
        let found = difference(&left, &answer(3, &kinds, &rows[..1]), RowOrder::Any);
        assert_eq!(found.as_deref(), Some("2 rows against 1"));
        let turned = answer(3, &kinds, &turned);
        let found = difference(&left, &turned, RowOrder::Given);
        assert_eq!(found.as_deref(), Some("row 1, column 1: 1 against 2"));
        assert_eq!(difference(&left, &turned, RowOrder::Any), None);
    }

    #[test]
    fn rows_in_any_order_have_to_come_as_often() {
        let kinds = [Kind::Text, Kind::Float];
        let left = answer(1, &kinds, &[&["a", "1.5"], &["a", "2.5"], &["a", "1.5"]]);
        let same = answer(1, &kinds, &[&["a", "2.5"], &["a", "1.5000000000001"], &["a", "1.5"]]);
        assert_eq!(difference(&left, &same, RowOrder::Any), None);
        let other = answer(1, &kinds, &[&["a", "2.5"], &["a", "2.5"], &["a", "1.5"]]);
        let found = difference(&left, &other, RowOrder::Any);
        assert_eq!(found.as_deref(), Some("the row (a, 1.5) has no counterpart"));
    }

    #[test]
    fn empty_results_are_the_same_even_without_columns() {
        let (none, text) = (answer(1, &[], &[]), answer(1, &[Kind::Text], &[]));
        assert_eq!(difference(&none, &text, RowOrder::Given), None);
        let (one, none) = (answer(1, &[Kind::Text], &[&["a"]]), answer(1, &[], &[&[]]));
        let found = difference(&one, &none, RowOrder::Any);
        assert_eq!(found.as_deref(), Some("1 columns against 0"));
    }
}
