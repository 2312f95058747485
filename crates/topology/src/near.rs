//! Suggests a known name for a mistyped one.

/// Maximum length of a compared name; a longer one is not a typo.
const LENGTH_MAX: usize = 64;

/// The nearest of the names, if it is similar enough: at most a third of the letters differ, and at least one may. Case
/// is ignored, and two swapped letters count as one.
pub fn nearest_name<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    if letters > LENGTH_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let slips = |name: &str| strsim::osa_distance(&word, &name.to_lowercase());
    let rated = names.into_iter().map(|name| (slips(name), name));
    let near = rated.filter(|(slips, _)| *slips <= (letters / 3).max(1));
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let names = ["tables", "timer", "mode"];
        assert_eq!(nearest_name("tabels", names), Some("tables"));
        assert_eq!(nearest_name("TIMR", names), Some("timer"));
        assert_eq!(nearest_name("mod", names), Some("mode"));
        assert_eq!(nearest_name("mdoe", names), Some("mode"));
        assert_eq!(nearest_name("cvs", ["box", "csv"]), Some("csv"));
        assert_eq!(nearest_name("xyz", names), None);
        assert_eq!(nearest_name("", names), None);
        assert_eq!(nearest_name(&"t".repeat(1 << 20), names), None);
    }
}
