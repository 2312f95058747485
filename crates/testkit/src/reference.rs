//! Slow reference operators, simple enough to be obviously correct, to compare fast ones with.

use std::collections::BTreeMap;

use crate::data::Value;

/// A row of (key, value).
pub type Row = (Value, Value);

/// Rows that pass, in order.
pub fn filter(rows: &[Row], passes: impl Fn(&Row) -> bool) -> Vec<Row> {
    rows.iter().copied().filter(|row| passes(row)).collect()
}

/// Row count and sum of values (None if all are null) per key; null keys form one group.
pub fn group(rows: &[Row]) -> BTreeMap<Value, (u64, Option<i128>)> {
    let mut groups = BTreeMap::new();
    for (key, value) in rows {
        let (count, sum): &mut (u64, Option<i128>) = groups.entry(*key).or_default();
        *count += 1;
        if let Some(value) = value {
            *sum = Some(sum.unwrap_or(0) + i128::from(*value));
        }
    }
    groups
}

/// All pairs of values whose keys are equal and not null, sorted.
pub fn inner_join(left: &[Row], right: &[Row]) -> Vec<(Value, Value)> {
    let mut pairs = Vec::new();
    for (left_key, left_value) in left {
        for (right_key, right_value) in right {
            if left_key.is_some() && left_key == right_key {
                pairs.push((*left_value, *right_value));
            }
        }
    }
    pairs.sort();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [Row; 4] = [(Some(1), Some(5)), (None, Some(7)), (Some(1), None), (None, None)];

    #[test]
    fn null_keys_group_together_and_never_join() {
        let groups = group(&ROWS);
        assert_eq!(groups[&None], (2, Some(7)));
        assert_eq!(groups[&Some(1)], (2, Some(5)));
        assert_eq!(inner_join(&ROWS, &ROWS[1..2]), []);
        assert_eq!(inner_join(&ROWS[..1], &ROWS), [(Some(5), None), (Some(5), Some(5))]);
    }

    #[test]
    fn a_group_without_values_has_no_sum() {
        assert_eq!(group(&ROWS[2..3])[&Some(1)], (1, None));
        assert_eq!(filter(&ROWS, |(key, _)| key.is_none()).len(), 2);
    }
}
