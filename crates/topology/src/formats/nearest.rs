//! Which known name a mistaken one probably means.

/// Longest name that is compared; a longer one is nobody's slip of a finger.
const LENGTH_MAX: usize = 64;

/// The known name with the fewest changed letters, where a third of the letters at most differ.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(LENGTH_MAX + 1).collect();
    if name.len() > LENGTH_MAX {
        return None;
    }
    let (near, changes) =
        known.map(|known| (known, changes(&name, known))).min_by_key(|&(_, changes)| changes)?;
    (changes <= name.len().div_ceil(3)).then_some(near)
}

/// Letters to insert, remove or change (Levenshtein), one row of the table at a time.
fn changes(name: &[char], known: &str) -> usize {
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (done, letter) in known.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (index, other) in name.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[name.len()]
}
