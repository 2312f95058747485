//! Arrays in PostgreSQL's text form: `{1,NULL,"a b"}`.

/// Splits a one-dimensional array into its items; None if the text is not one.
pub fn array_items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim_matches(is_blank).strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim_matches(is_blank).is_empty() {
        return Some(items);
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.peek().is_some_and(|it| is_blank(*it)) {
            chars.next();
        }
        let mut item = String::new();
        let is_quoted = chars.next_if_eq(&'"').is_some();
        loop {
            match chars.peek() {
                None if is_quoted => return None,
                None => break,
                Some(',') if !is_quoted => break,
                Some('{' | '}' | '"') if !is_quoted => return None,
                Some(_) => {}
            }
            match chars.next()? {
                '"' => break,
                '\\' => item.push(chars.next()?),
                other => item.push(other),
            }
        }
        if is_quoted {
            while chars.peek().is_some_and(|it| is_blank(*it)) {
                chars.next();
            }
        } else {
            item.truncate(item.trim_end_matches(is_blank).len());
        }
        let is_null = !is_quoted && item.eq_ignore_ascii_case("null");
        if item.is_empty() && !is_quoted {
            return None;
        }
        items.push((!is_null).then_some(item));
        match chars.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
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
        for bad in ["", "1", "{1", "{1,}", "{\"a}", "{{1}}", "{\"a\"b}", "{\\}"] {
            assert_eq!(items(bad), None, "{bad}");
        }
    }
}
