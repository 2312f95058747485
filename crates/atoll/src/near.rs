//! The name that was probably meant.

/// The nearest of the names, if one is near enough to be a slip of the fingers: at most a third of
/// the letters differ, and at least one may.
pub(crate) fn near<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let slips_max = (word.chars().count() / 3).max(1);
    let rated = names.into_iter().map(|name| (distance(&word, &name.to_lowercase()), name));
    rated.filter(|(slips, _)| *slips <= slips_max).min_by_key(|(slips, _)| *slips).map(|(_, n)| n)
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
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
        assert_eq!(near("xyz", names), None);
        assert_eq!(near("", names), None);
    }
}
