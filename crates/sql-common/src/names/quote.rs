//! Names as they are written in SQL that PostgreSQL also reads.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

static RESERVED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("reserved.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Quotes a name unless it is read as itself without quotes: lower case, and no key word.
pub fn quote_identifier(name: &str) -> Cow<'_, str> {
    let is_first = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let is_plain = name.starts_with(is_first)
        && name.chars().all(|letter| is_first(letter) || letter.is_ascii_digit());
    match is_plain && !RESERVED.contains(name) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('"', "\"\"")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_quotes_get_them() {
        for (name, wanted) in [
            ("item", "item"),
            ("_a1", "_a1"),
            ("1a", "\"1a\""),
            ("Item", "\"Item\""),
            ("a\"b", "\"a\"\"b\""),
            ("select", "\"select\""),
            ("between", "\"between\""),
            ("name", "name"),
            ("", "\"\""),
        ] {
            assert_eq!(quote_identifier(name), wanted);
        }
    }
}
