//! The name that was probably meant.

/// The nearest of the names, if one is near enough to be a slip of the fingers: at most a third of
/// the letters differ, and at least one may.
pub(crate) fn near<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let slips_max = (word.chars().count() / 3).max(1);
    let rated = names.into_iter().map(|name| (distance(&word, &name.to_lowercase()), name));
    rated.filter(|(slips, _)| *slips <= slips_max).min_by_key(|(slips, _)| *slips).map(|(_, n)| n)
}

/// Letters to insert, delete, replace, or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = replaced.min(row[j] + 1).min(next[j - 1] + 1);
            let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swapped {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let names = ["tables", "timer", "mode"];
        assert_eq!(near("tabels", names), Some("tables"));
        assert_eq!(near("TIMR", names), Some("timer"));
        assert_eq!(near("mod", names), Some("mode"));
        assert_eq!(near("mdoe", names), Some("mode"));
        assert_eq!(near("cvs", ["box", "csv"]), Some("csv"));
        assert_eq!(near("xyz", names), None);
        assert_eq!(near("", names), None);
    }
}
