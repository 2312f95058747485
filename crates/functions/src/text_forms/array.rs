//! Arrays in PostgreSQL's text form: `{1,NULL,"a b"}`, `{{1,2},{3,4}}`.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum number of dimensions, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// An item of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayItem {
    /// NULL.
    Null,
    /// The text of a value.
    Text(String),
    /// The items of an array within the array.
    Items(Vec<ArrayItem>),
}

/// Splits a one-dimensional array into its items; None if the text is not one.
pub fn array_items(text: &str) -> Option<Vec<Option<String>>> {
    let item = |item| match item {
        ArrayItem::Null => Some(None),
        ArrayItem::Text(text) => Some(Some(text)),
        ArrayItem::Items(_) => None,
    };
    nested_array_items(text)?.into_iter().map(item).collect()
}

/// Splits an array of any number of dimensions into its items; None if the text is not one, or if arrays within the array
/// have different lengths.
pub fn nested_array_items(text: &str) -> Option<Vec<ArrayItem>> {
    let mut chars = text.trim_matches(is_blank).chars().peekable();
    chars.next_if_eq(&'{')?;
    let items = items_until_end(&mut chars, 1)?;
    if chars.next().is_some() {
        return None;
    }
    lengths(&items).map(|_| items)
}

/// Returns the lengths of an array by dimension; None if arrays within the array have different ones.
pub fn lengths(items: &[ArrayItem]) -> Option<Vec<usize>> {
    let mut of_items = items.iter().map(|item| match item {
        ArrayItem::Items(items) => lengths(items),
        _ => Some(Vec::new()),
    });
    let mut all = vec![items.len()];
    if let Some(first) = of_items.next() {
        let first = first?;
        if !of_items.all(|other| other.as_ref() == Some(&first)) {
            return None;
        }
        all.extend(first);
    }
    Some(all)
}

/// Whether an item of an array's text needs quotes.
pub fn is_array_item_quoted(item: &[u8]) -> bool {
    let is_special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b'\t'..=b'\r' | b' ');
    item.is_empty() || item.iter().any(is_special) || item.eq_ignore_ascii_case(b"null")
}

/// Appends an item to an array's text.
pub fn push_array_item(item: &str, text: &mut String) {
    if !is_array_item_quoted(item.as_bytes()) {
        return text.push_str(item);
    }
    text.push('"');
    for letter in item.chars() {
        if matches!(letter, '"' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
}

/// Reads items up to the closing brace.
fn items_until_end(chars: &mut Peekable<Chars<'_>>, depth: usize) -> Option<Vec<ArrayItem>> {
    let mut items = Vec::new();
    skip_blanks(chars);
    if chars.next_if_eq(&'}').is_some() {
        return Some(items);
    }
    loop {
        skip_blanks(chars);
        if chars.next_if_eq(&'{').is_some() {
            if depth == DIMENSIONS_MAX {
                return None;
            }
            items.push(ArrayItem::Items(items_until_end(chars, depth + 1)?));
        } else {
            items.push(single_item(chars)?);
        }
        skip_blanks(chars);
        match chars.next()? {
            '}' => return Some(items),
            ',' => {}
            _ => return None,
        }
    }
}

fn single_item(chars: &mut Peekable<Chars<'_>>) -> Option<ArrayItem> {
    if chars.next_if_eq(&'"').is_some() {
        let mut item = String::new();
        loop {
            match chars.next()? {
                '"' => return Some(ArrayItem::Text(item)),
                '\\' => item.push(chars.next()?),
                other => item.push(other),
            }
        }
    }
    let (mut item, mut end) = (String::new(), 0);
    while let Some(next) = chars.next_if(|next| !matches!(next, ',' | '}')) {
        match next {
            '{' | '"' => return None,
            '\\' => {
                item.push(chars.next()?);
                end = item.len();
            }
            other => {
                item.push(other);
                if !is_blank(other) {
                    end = item.len();
                }
            }
        }
    }
    item.truncate(end);
    match item.as_str() {
        "" => None,
        null if null.eq_ignore_ascii_case("null") => Some(ArrayItem::Null),
        _ => Some(ArrayItem::Text(item)),
    }
}

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|next| is_blank(*next)).is_some() {}
}

/// Whitespace allowed around an item: other spaces are part of it.
fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Option<Vec<Option<String>>> {
        array_items(text)
    }

    #[test]
    fn lists_are_split_at_their_commas() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(items("{}"), Some(vec![]));
        assert_eq!(items("{1, 2,NULL}"), Some(vec![some("1"), some("2"), None]));
        assert_eq!(
            items(r#"{"a,b", "\"", "NULL", ""}"#),
            Some(vec![some("a,b"), some("\""), some("NULL"), some("")])
        );
        assert_eq!(
            items("{\u{85}, \u{a0}a\u{a0} ,\u{b}b\n}"),
            Some(vec![some("\u{85}"), some("\u{a0}a\u{a0}"), some("b")])
        );
        for bad in ["", "1", "{1", "{1,}", "{\"a}", "{{1}}", "{\"a\"b}", "{\\}", "{1}}", "{1}{"] {
            assert_eq!(items(bad), None, "{bad}");
        }
    }

    #[test]
    fn arrays_of_several_dimensions_are_rectangles() {
        let shape = |text| nested_array_items(text).and_then(|items| lengths(&items));
        assert_eq!(shape("{{1,2},{3,4},{5,NULL}}"), Some(vec![3, 2]));
        assert_eq!(shape(" { {{a}} , {{\"b}\"}} } "), Some(vec![2, 1, 1]));
        assert_eq!(shape("{{{{{{1}}}}}}"), Some(vec![1; 6]));
        for bad in ["{{1,2},{3}}", "{{1},2}", "{{1},NULL}", "{{1}", "{{1}}}", "{{{{{{{1}}}}}}}"] {
            assert_eq!(shape(bad), None, "{bad}");
        }
        let deep = "{".repeat(100_000);
        assert_eq!(shape(&deep), None);
    }
}
