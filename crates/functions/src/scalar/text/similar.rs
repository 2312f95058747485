//! Similarity of two texts.

use std::collections::HashSet;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::common::utils::datafusion_strsim as strsim;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, double, whole};
use crate::scalar::text::texts::entry;

const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];

fn distances(call: &Call, of: impl Fn(&str, &str) -> Result<i64>) -> Result<ArrayRef> {
    let (left, right) = (call.text(0), call.text(1));
    call.wholes(|row| Ok(Some(of(left.value(row), right.value(row))?)))
}

fn hamming(call: &Call) -> Result<ArrayRef> {
    distances(call, |left, right| {
        if left.len() != right.len() {
            return call.fails("the texts must be of the same length");
        }
        Ok(left.bytes().zip(right.bytes()).filter(|(left, right)| left != right).count() as i64)
    })
}

fn levenshtein(left: &str, right: &str) -> Result<i64> {
    Ok(strsim::levenshtein(left, right) as i64)
}

/// The distance in which a transposition counts once.
fn damerau(left: &str, right: &str) -> Result<i64> {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let most = left.len() + right.len();
    let width = right.len() + 2;
    let mut costs = vec![0; (left.len() + 2) * width];
    costs[0] = most;
    for row in 0..=left.len() {
        (costs[(row + 1) * width], costs[(row + 1) * width + 1]) = (most, row);
    }
    for column in 0..=right.len() {
        (costs[column + 1], costs[width + column + 1]) = (most, column);
    }
    let mut last_rows = std::collections::HashMap::new();
    for row in 1..=left.len() {
        let mut last_column = 0;
        for column in 1..=right.len() {
            let last_row = last_rows.get(&right[column - 1]).copied().unwrap_or(0);
            let from_column = last_column;
            let differs = left[row - 1] != right[column - 1];
            if !differs {
                last_column = column;
            }
            let swapped = costs[last_row * width + from_column]
                + (row - last_row - 1)
                + 1
                + (column - from_column - 1);
            costs[(row + 1) * width + column + 1] = (costs[row * width + column]
                + usize::from(differs))
            .min(costs[(row + 1) * width + column] + 1)
            .min(costs[row * width + column + 1] + 1)
            .min(swapped);
        }
        last_rows.insert(left[row - 1], row);
    }
    Ok(costs[(left.len() + 1) * width + right.len() + 1] as i64)
}

fn shares(call: &Call, of: impl Fn(&str, &str) -> Result<f64>) -> Result<ArrayRef> {
    let (left, right) = (call.text(0), call.text(1));
    call.doubles(|row| Ok(Some(of(left.value(row), right.value(row))?)))
}

fn jaccard(call: &Call) -> Result<ArrayRef> {
    shares(call, |left, right| {
        if left.is_empty() || right.is_empty() {
            return call.fails("neither text may be empty");
        }
        let [left, right] = [left, right].map(|text| text.bytes().collect::<HashSet<u8>>());
        let common = left.intersection(&right).count() as f64;
        Ok(common / left.union(&right).count() as f64)
    })
}

/// Jaro's similarity of the bytes.
fn jaro(left: &str, right: &str) -> f64 {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.is_empty() || right.is_empty() {
        return if left.len() == right.len() { 1.0 } else { 0.0 };
    }
    let reach = (left.len().max(right.len()) / 2).saturating_sub(1);
    let mut taken = vec![false; right.len()];
    let mut of_left = Vec::new();
    for (at, byte) in left.iter().enumerate() {
        let (first, end) = (at.saturating_sub(reach), (at + reach + 1).min(right.len()));
        if let Some(found) = (first..end).find(|&other| !taken[other] && right[other] == *byte) {
            taken[found] = true;
            of_left.push(*byte);
        }
    }
    if of_left.is_empty() {
        return 0.0;
    }
    let of_right = right.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(byte, _)| byte);
    let moved = of_left.iter().zip(of_right).filter(|(left, right)| left != right).count();
    let common = of_left.len() as f64;
    (common / left.len() as f64
        + common / right.len() as f64
        + (common - (moved / 2) as f64) / common)
        / 3.0
}

fn jaro_winkler(left: &str, right: &str) -> f64 {
    let jaro = jaro(left, right);
    let prefix = left.bytes().zip(right.bytes()).take(4).take_while(|(left, right)| left == right);
    if jaro > 0.7 { jaro + prefix.count() as f64 * 0.1 * (1.0 - jaro) } else { jaro }
}

const ALL: &[Entry] = &[
    entry!(
        "levenshtein"["editdist3"],
        "text, text",
        TWO,
        whole,
        "How many characters have to be changed, added or taken away to make one text of the other.",
        "levenshtein('duck', 'db') = 3",
        |call| distances(call, levenshtein)
    ),
    entry!("damerau_levenshtein" [], "text, text", TWO, whole,
        "As levenshtein, where two neighbours that changed places count once.",
        "damerau_levenshtein('duckdb', 'udckbd') = 2", |call| distances(call, damerau)),
    entry!(
        "hamming"["mismatches"],
        "text, text",
        TWO,
        whole,
        "At how many places two texts of the same length differ.",
        "hamming('duck', 'luck') = 1",
        hamming
    ),
    entry!("jaccard" [], "text, text", TWO, double,
        "The share of all bytes of two texts that both have.", "jaccard('duck', 'luck') = 0.6", jaccard),
    entry!("jaro_similarity" [], "text, text", TWO, double,
        "Jaro's similarity, from 0 to 1.", "jaro_similarity('duck', 'duck') = 1.0",
        |call| shares(call, |left, right| Ok(jaro(left, right)))),
    entry!("jaro_winkler_similarity" [], "text, text", TWO, double,
        "Jaro's similarity with Winkler's prize for a common beginning.",
        "jaro_winkler_similarity('duck', 'duck') = 1.0",
        |call| shares(call, |left, right| Ok(jaro_winkler(left, right)))),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
