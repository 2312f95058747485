//! Ids and rows as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringTreemap;

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::ids::RowId;
use crate::table::{Row, RowIds};

type Result<T> = std::result::Result<T, DecodeError>;

/// Writes rising ids: the first, then the distance of each from the previous one.
fn put_rising(encoder: &mut Encoder, before: &mut Option<RowId>, id: RowId) {
    let number = match *before {
        None => id.get(),
        Some(before) => id.get() - before.get(),
    };
    encoder.number(number);
    *before = Some(id);
}

fn take_rising(decoder: &mut Decoder<'_>, before: &mut Option<RowId>) -> Result<RowId> {
    let number = decoder.number("row id")?;
    let id = match *before {
        None => Some(number),
        Some(_) if number == 0 => None,
        Some(before) => before.get().checked_add(number),
    };
    // The largest number is not a row id: the next id must exist too.
    let id = id.filter(|id| *id < u64::MAX).map(RowId::new);
    *before = id;
    id.ok_or_else(|| decoder.error("row id", "ids do not rise"))
}

pub(crate) fn encode_rows<'a>(
    encoder: &mut Encoder,
    rows: impl ExactSizeIterator<Item = (RowId, &'a Row)>,
) {
    let mut before = None;
    encoder.list(rows, |encoder, (id, row)| {
        put_rising(encoder, &mut before, id);
        encoder.bytes(row.as_bytes());
    });
}

pub(crate) fn decode_rows(decoder: &mut Decoder<'_>) -> Result<BTreeMap<RowId, Row>> {
    let mut before = None;
    let rows = decoder.list("rows", |decoder| {
        let id = take_rising(decoder, &mut before)?;
        Ok((id, Row::from_bytes(decoder.bytes("row")?)))
    })?;
    Ok(rows.into_iter().collect())
}

pub(crate) fn encode_ids(encoder: &mut Encoder, ids: &RowIds) {
    match ids {
        RowIds::Dense { first, rows } => {
            encoder.flag(true);
            encoder.number(first.get());
            encoder.count(*rows);
        }
        RowIds::Sparse(ids) => {
            encoder.flag(false);
            let mut before = None;
            encoder.list(ids.iter(), |encoder, id| put_rising(encoder, &mut before, *id));
        }
    }
}

pub(crate) fn decode_ids(decoder: &mut Decoder<'_>) -> Result<RowIds> {
    if decoder.flag("whether ids have no gaps")? {
        let first = decoder.number("first row id")?;
        let rows = decoder.size("number of rows")?;
        let end = first.checked_add(rows as u64).filter(|end| *end < u64::MAX);
        return match end {
            Some(_) if rows > 0 => Ok(RowIds::Dense { first: RowId::new(first), rows }),
            _ => {
                Err(decoder
                    .error("row ids", format!("{rows} ids from {first} on are out of range")))
            }
        };
    }
    let mut before = None;
    let ids: Vec<RowId> = decoder.list("row ids", |decoder| take_rising(decoder, &mut before))?;
    match ids.is_empty() {
        true => Err(decoder.error("row ids", "there are none")),
        false => Ok(RowIds::Sparse(Arc::from(ids))),
    }
}

pub(crate) fn encode_set(encoder: &mut Encoder, set: &RoaringTreemap) {
    let mut bytes = Vec::with_capacity(set.serialized_size());
    let written = set.serialize_into(&mut bytes);
    debug_assert!(written.is_ok(), "memory takes all bytes");
    encoder.bytes(&bytes);
}

pub(crate) fn decode_set(decoder: &mut Decoder<'_>) -> Result<RoaringTreemap> {
    let bytes = decoder.bytes("set of row ids")?;
    let mut rest = bytes;
    let set = RoaringTreemap::deserialize_from(&mut rest);
    let set = set.map_err(|error| decoder.error("set of row ids", error.to_string()))?;
    match rest.is_empty() {
        true => Ok(set),
        false => Err(decoder.error("set of row ids", "it has bytes after its end")),
    }
}
