//! Lists as parameters: `{1,NULL,"a b"}` and their binary form.

use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;

use super::parameter::{ParameterError, from_binary, from_text, item_type, items_wanted, list_of};
use super::types::item_of;

/// A list in its text form.
pub(super) fn text_list(
    text: &str,
    item: u32,
    wanted: &DataType,
) -> Result<ScalarValue, ParameterError> {
    let of = items_wanted(wanted).map_or_else(|| item_type(item), |of| of.as_ref().clone());
    let invalid = || ParameterError(format!("invalid input for a list: '{text}'"));
    let texts = split(text).ok_or_else(invalid)?;
    let items = texts.into_iter().map(|text| match text {
        Some(text) => from_text(text.as_bytes(), item, &of),
        None => Ok(ScalarValue::Null),
    });
    list_of(items.collect::<Result<_, _>>()?, &of)
}

/// The items of a list of one dimension; none where it is not one.
fn split(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim().is_empty() {
        return Some(items);
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.peek().is_some_and(|it| it.is_whitespace()) {
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
            while chars.peek().is_some_and(|it| it.is_whitespace()) {
                chars.next();
            }
        } else {
            item.truncate(item.trim_end().len());
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

/// A list in its binary form.
pub(super) fn binary_list(bytes: &[u8], item: u32) -> Result<ScalarValue, ParameterError> {
    let invalid = || ParameterError("invalid binary form of a list".to_owned());
    let mut rest = bytes;
    let mut next = |count: usize| -> Result<&[u8], ParameterError> {
        let (taken, left) = rest.split_at_checked(count).ok_or_else(invalid)?;
        rest = left;
        Ok(taken)
    };
    let number = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().map_err(|_| invalid())?;
        Ok::<i32, ParameterError>(i32::from_be_bytes(bytes))
    };
    let (dimensions, _, of) = (number(next(4)?)?, next(4)?, number(next(4)?)? as u32);
    // Items that are lists would be read by a call for each level, and a message has room for millions.
    if !(0..=1).contains(&dimensions) || item_of(of).is_some() {
        return Err(ParameterError("lists of several dimensions are not supported".to_owned()));
    }
    let count = if dimensions == 0 { 0 } else { number(next(4)?)? };
    if dimensions == 1 {
        next(4)?;
    }
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(match usize::try_from(number(next(4)?)?) {
            Ok(length) => from_binary(next(length)?, of)?,
            Err(_) => ScalarValue::Null,
        });
    }
    list_of(items, &item_type(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Option<Vec<Option<String>>> {
        split(text)
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
        for bad in ["", "1", "{1", "{1,}", "{\"a}", "{{1}}", "{\"a\"b}", "{\\}"] {
            assert_eq!(items(bad), None, "{bad}");
        }
    }

    #[test]
    fn damaged_lists_are_errors() {
        let whole = b"\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\x07";
        assert!(binary_list(whole, 23).is_ok());
        for end in 0..whole.len() {
            assert!(binary_list(&whole[..end], 23).is_err(), "{end}");
        }
        assert!(
            binary_list(b"\0\0\0\x01\0\0\0\0\0\0\0\x17\x7f\xff\xff\xff\0\0\0\x01", 23).is_err()
        );
    }
}
