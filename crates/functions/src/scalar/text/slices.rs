//! Characters of a text by position, as in `text[2:3]`.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, text};
use crate::scalar::text::texts::entry;

fn element(call: &Call) -> Result<ArrayRef> {
    let (texts, places) = (call.text(0), call.whole(1));
    call.texts(|row, out| {
        let (text, place) = (texts.value(row), places.value(row));
        let nth = usize::try_from(place.unsigned_abs()).ok().and_then(|nth| nth.checked_sub(1));
        let found = nth.and_then(|nth| match place > 0 {
            true => text.chars().nth(nth),
            false => text.chars().rev().nth(nth),
        });
        out.extend(found);
        Ok(true)
    })
}

fn slice(call: &Call) -> Result<ArrayRef> {
    let (texts, first, last) = (call.text(0), call.whole(1), call.whole(2));
    call.texts(|row, out| {
        let text = texts.value(row);
        let count = text.chars().count() as i64;
        // Converts positions from the end to positions from the start; 1 is the first.
        let place = |place: i64| if place < 0 { count.saturating_add(place) + 1 } else { place };
        let (first, last) = (place(first.value(row)).max(1), place(last.value(row)).min(count));
        if first <= last {
            let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
            let taken = usize::try_from(last - first + 1).unwrap_or(0);
            out.extend(text.chars().skip(skipped).take(taken));
        }
        Ok(true)
    })
}

const ALL: &[Entry] = &[
    entry!("text_element" [], "text, place", &[Arguments::Are(&[Takes::Text, Takes::Whole])], text,
        "The character at a place of a text, negative ones counted from its end: text[place].",
        "text_element('abc', -1) = 'c'", element),
    entry!("text_slice" [], "text, first, last",
        &[Arguments::Are(&[Takes::Text, Takes::Whole, Takes::Whole])], text,
        "The characters between two places of a text: text[first:last].",
        "text_slice('abcdef', 2, 3) = 'bc'", slice),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
