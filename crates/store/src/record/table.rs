//! Changes of one table, as bytes.
//!
//! | What | As |
//! |---|---|
//! | whether all earlier rows are deleted | flag |
//! | chunks of new rows | list: id of the first row, number of the file in the record's list |
//! | chunks in place of rows | list: ids, number of the file in the record's list |
//! | new rows | rows |
//! | updated rows | rows |
//! | deleted rows | bytes: a set of 64-bit numbers in Roaring's portable format |
//!
//! Rows are a list of the id (the first as it is, then its distance from the previous one) and the row's bytes;
//! ids are a flag whether they have no gaps, then the first and their number, or a list as for rows.

use std::sync::Arc;

use super::rows::{decode_ids, decode_rows, decode_set, encode_ids, encode_rows, encode_set};
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::ids::{ChunkFileId, RowId};
use crate::table::{AppendedChunk, Chunk, ReplacedChunk, TableChange};

type Result<T> = std::result::Result<T, DecodeError>;

/// A chunk with the file that holds it.
pub(super) type FiledChunk = (ChunkFileId, Arc<Chunk>);

/// The chunks of a change, each with its file if it has one.
pub(super) fn chunks_of(
    change: &TableChange,
) -> impl Iterator<Item = (&Arc<Chunk>, Option<ChunkFileId>)> {
    let appended = change.appended.iter().map(|appended| (&appended.chunk, appended.file));
    appended.chain(change.replaced.iter().map(|replaced| (&replaced.chunk, replaced.file)))
}

/// Writes a change whose chunks have files, those from `first_file` on in the record's list.
pub(super) fn encode_table(encoder: &mut Encoder, change: &TableChange, first_file: usize) {
    let mut file = first_file;
    let mut next_file = || {
        file += 1;
        file - 1
    };
    encoder.flag(change.truncated);
    encoder.list(change.appended.iter(), |encoder, appended| {
        encoder.number(appended.first.get());
        encoder.count(next_file());
    });
    encoder.list(change.replaced.iter(), |encoder, replaced| {
        encode_ids(encoder, &replaced.ids);
        encoder.count(next_file());
    });
    encode_rows(encoder, change.inserted.iter().map(|(id, row)| (*id, row)));
    encode_rows(encoder, change.updated.iter().map(|(id, row)| (*id, row)));
    encode_set(encoder, &change.deleted);
}

/// Reads a change; `chunks` are those of the record's list of files.
pub(super) fn decode_table(
    decoder: &mut Decoder<'_>,
    chunks: &[FiledChunk],
) -> Result<TableChange> {
    let chunk = |decoder: &mut Decoder<'_>| {
        let number = decoder.size("chunk file")?;
        let chunk = chunks.get(number);
        chunk.ok_or_else(|| decoder.error("chunk file", format!("the record has no file {number}")))
    };
    let truncated = decoder.flag("whether it is truncated")?;
    let appended = decoder.list("appended chunks", |decoder| {
        let first = decoder.number("first row id")?;
        let (file, chunk) = chunk(decoder)?;
        let end = first.checked_add(chunk.rows as u64).filter(|end| *end < u64::MAX);
        match end {
            Some(_) => Ok(AppendedChunk {
                first: RowId::new(first),
                chunk: Arc::clone(chunk),
                file: Some(*file),
            }),
            None => Err(decoder.error("first row id", format!("{first} is too large"))),
        }
    })?;
    let replaced = decoder.list("replaced chunks", |decoder| {
        let ids = decode_ids(decoder)?;
        let (file, chunk) = chunk(decoder)?;
        match ids.count() == chunk.rows {
            true => Ok(ReplacedChunk { ids, chunk: Arc::clone(chunk), file: Some(*file) }),
            false => {
                let reason = format!("{} for the {} rows of {file}", ids.count(), chunk.rows);
                Err(decoder.error("row ids", reason))
            }
        }
    })?;
    let inserted = decode_rows(decoder)?;
    let updated = decode_rows(decoder)?;
    let deleted = decode_set(decoder)?;
    Ok(TableChange {
        inserted,
        updated,
        deleted,
        appended,
        replaced,
        truncated,
        ..Default::default()
    })
}
