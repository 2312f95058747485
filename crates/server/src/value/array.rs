//! List parameters: `{1,NULL,"a b"}` and their binary form.

use atoll_sql::array_items;
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;

use super::parameter::{ParameterError, from_binary, from_text, item_type, items_wanted, list_of};
use super::types::PgType;

/// A list in its text form.
pub(super) fn text_list(
    text: &str,
    item: u32,
    wanted: &DataType,
    time_zone: Option<&str>,
) -> Result<ScalarValue, ParameterError> {
    let of = items_wanted(wanted).map_or_else(|| item_type(item), |of| of.as_ref().clone());
    let invalid = || ParameterError(format!("invalid input for a list: '{text}'"));
    let texts = array_items(text).ok_or_else(invalid)?;
    let items = texts.into_iter().map(|text| match text {
        Some(text) => from_text(text.as_bytes(), item, &of, time_zone),
        None => Ok(ScalarValue::Null),
    });
    list_of(items.collect::<Result<_, _>>()?, &of, time_zone)
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
    // Nested lists would take one call per level, and a message has room for millions.
    if !(0..=1).contains(&dimensions) || PgType::item_of(of).is_some() {
        return Err(ParameterError("lists of several dimensions are not supported".to_owned()));
    }
    let count = if dimensions == 0 { 0 } else { number(next(4)?)? };
    let count = u32::try_from(count).map_err(|_| invalid())?;
    if dimensions == 1 {
        next(4)?;
    }
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(match number(next(4)?)? {
            -1 => ScalarValue::Null,
            length => {
                let length = usize::try_from(length).map_err(|_| invalid())?;
                from_binary(next(length)?, of)?
            }
        });
    }
    if !rest.is_empty() {
        return Err(invalid());
    }
    list_of(items, &item_type(item), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lists_are_errors() {
        let whole = b"\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\x07";
        assert!(binary_list(whole, 23).is_ok());
        for end in 0..whole.len() {
            assert!(binary_list(&whole[..end], 23).is_err(), "{end}");
        }
        let behind = [whole.as_slice(), b"\0"].concat();
        assert!(binary_list(&behind, 23).is_err());
        let head = b"\0\0\0\x01\0\0\0\0\0\0\0\x17";
        for rest in [
            b"\x7f\xff\xff\xff\0\0\0\x01".as_slice(),
            b"\xff\xff\xff\xff\0\0\0\x01",
            b"\0\0\0\x01\0\0\0\x01\xff\xff\xff\xfe",
        ] {
            assert!(binary_list(&[head.as_slice(), rest].concat(), 23).is_err(), "{rest:?}");
        }
    }
}
