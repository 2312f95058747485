//! List parameters: `{1,NULL,"a b"}`, `{{1,2},{3,4}}` and their binary form.

use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::temporal::StatementClock;
use atoll_sql::{ArrayItem, nested_array_items};

use super::parameter::{ParameterError, from_binary, from_text, item_type, items_wanted, list_of};
use super::types::PgType;

/// A list in its text form.
pub(super) fn text_list(
    text: &str,
    item: u32,
    wanted: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let invalid = || ParameterError(format!("malformed array literal: \"{text}\""));
    let items = nested_array_items(text).ok_or_else(invalid)?;
    text_items(items, item, wanted, clock)
}

fn text_items(
    items: Vec<ArrayItem>,
    item: u32,
    wanted: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let of = items_wanted(wanted).map_or_else(|| item_type(item), |of| of.as_ref().clone());
    let items = items.into_iter().map(|value| match value {
        ArrayItem::Text(_) if items_wanted(&of).is_some() => Err(few_dimensions()),
        ArrayItem::Text(text) => from_text(text.as_bytes(), item, &of, clock),
        ArrayItem::Null => Ok(ScalarValue::Null),
        ArrayItem::Items(_) if items_wanted(&of).is_none() => Err(many_dimensions()),
        ArrayItem::Items(items) => text_items(items, item, &of, clock),
    });
    list_of(items.collect::<Result<_, _>>()?, &of, clock)
}

fn many_dimensions() -> ParameterError {
    ParameterError(
        "the array has more dimensions than its type; declare them: INT[][], $1::INT[][]"
            .to_owned(),
    )
}

fn few_dimensions() -> ParameterError {
    ParameterError("the array has fewer dimensions than its type".to_owned())
}

/// Maximum number of dimensions, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// A list in its binary form. `wanted` is the type that the statement expects.
pub(super) fn binary_list(
    bytes: &[u8],
    item: u32,
    wanted: Option<&DataType>,
) -> Result<ScalarValue, ParameterError> {
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
    let dimensions = usize::try_from(dimensions).map_err(|_| invalid())?;
    // An array as an item would take one call per level, and a message has room for millions.
    if dimensions > DIMENSIONS_MAX || PgType::item_of(of).is_some() {
        return Err(invalid());
    }
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(number(next(4)?)?).map_err(|_| invalid())?);
        next(4)?;
    }
    let count = lengths.iter().try_fold(1_usize, |count, length| count.checked_mul(*length));
    let count = if lengths.is_empty() { 0 } else { count.ok_or_else(invalid)? };
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
    if count > 0
        && let Some(wanted) = wanted
    {
        match depth(wanted) {
            depth if depth < lengths.len() => return Err(many_dimensions()),
            depth if depth > lengths.len() => return Err(few_dimensions()),
            _ => {}
        }
    }
    nested(items, lengths.get(1..).unwrap_or_default(), item_type(item))
}

/// The number of dimensions of a type.
fn depth(of: &DataType) -> usize {
    items_wanted(of).map_or(0, |item| 1 + depth(&item))
}

/// The list of these items, in lists of these lengths.
fn nested(
    mut items: Vec<ScalarValue>,
    lengths: &[usize],
    mut of: DataType,
) -> Result<ScalarValue, ParameterError> {
    if items.is_empty() {
        return list_of(items, &of, StatementClock::default());
    }
    for length in lengths.iter().rev() {
        let lists = items
            .chunks(*length)
            .map(|chunk| list_of(chunk.to_vec(), &of, StatementClock::default()));
        items = lists.collect::<Result<_, _>>()?;
        of = DataType::new_list(of, true);
    }
    list_of(items, &of, StatementClock::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lists_are_errors() {
        let whole = b"\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\x07";
        assert!(binary_list(whole, 23, None).is_ok());
        for end in 0..whole.len() {
            assert!(binary_list(&whole[..end], 23, None).is_err(), "{end}");
        }
        let behind = [whole.as_slice(), b"\0"].concat();
        assert!(binary_list(&behind, 23, None).is_err());
        let head = b"\0\0\0\x01\0\0\0\0\0\0\0\x17";
        for rest in [
            b"\x7f\xff\xff\xff\0\0\0\x01".as_slice(),
            b"\xff\xff\xff\xff\0\0\0\x01",
            b"\0\0\0\x01\0\0\0\x01\xff\xff\xff\xfe",
        ] {
            assert!(binary_list(&[head.as_slice(), rest].concat(), 23, None).is_err(), "{rest:?}");
        }
    }
}
