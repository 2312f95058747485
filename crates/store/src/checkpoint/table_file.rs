//! The contents of a table in a file of its own, which a checkpoint writes again only if the table has changed.
//!
//! A file `tables/<number in 20 digits>.table` is an [envelope](crate::data_file) with this payload:
//!
//! | What | As |
//! |---|---|
//! | the table | number |
//! | its definition | definition |
//! | the next row id | number |
//! | chunks in the order of their rows | list: file (number), ids, rows of the chunk that are deleted or have newer values (a set), the newer values (rows) |
//! | rows that are in no chunk yet | rows |
//! | foreign keys, if the table has any, or indexes | foreign keys |
//! | indexes, if the table has any | indexes |
//! | details of indexes, if the table has any | details |
//! | further details of them, if the table has any | further details |
//!
//! Definitions, ids, sets and rows are in the forms of [`record`](crate::record).

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use super::manifest::write_whole;
use crate::DatabaseId;
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::data_file::{DataFileError, DataFileKind, Envelope};
use crate::files::Files;
use crate::ids::{ChunkFileId, RowId, TableId};
use crate::record::{
    decode_definition, decode_details, decode_foreign_keys, decode_further, decode_ids,
    decode_indexes, decode_rows, decode_set, encode_definition, encode_details,
    encode_foreign_keys, encode_further, encode_ids, encode_indexes, encode_rows, encode_set,
    format_version, has_details, has_further, has_indexes,
};
use crate::table::{Row, RowIds, TableDefinition, TableVersion};

/// The directory of the files.
pub(crate) const TABLE_DIRECTORY: &str = "tables";

/// A table as read from its file, without the chunks.
#[derive(Debug)]
pub(crate) struct StoredTable {
    pub(crate) id: TableId,
    pub(crate) definition: TableDefinition,
    pub(crate) next_row_id: RowId,
    pub(crate) entries: Vec<StoredEntry>,
    pub(crate) tail: BTreeMap<RowId, Row>,
}

/// A chunk of the table, with the changes since it was written.
#[derive(Debug)]
pub(crate) struct StoredEntry {
    pub(crate) file: ChunkFileId,
    pub(crate) ids: RowIds,
    pub(crate) masked: Vec<u32>,
    pub(crate) delta: BTreeMap<RowId, Row>,
}

/// The file's name in the data directory.
pub(crate) fn table_file_name(number: u64) -> String {
    format!("{TABLE_DIRECTORY}/{number:020}.table")
}

/// The number in a file name of the directory of tables.
pub(crate) fn table_file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".table")?;
    let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// A payload, and the version of the format that it needs.
pub(crate) type TablePayload = (u32, Vec<u8>);

/// The payload for a table whose chunks all have files.
pub(crate) fn encode_table_file(
    id: TableId,
    table: &TableVersion,
) -> Result<TablePayload, DataFileError> {
    let mut encoder = Encoder::new();
    encoder.number(id.get());
    encode_definition(&mut encoder, table.definition())?;
    encoder.number(table.next_row_id().get());
    encoder.list(table.entries(), |encoder, entry| {
        encoder.number(entry.file().unwrap_or_default().get());
        encode_ids(encoder, entry.ids());
        let masked = entry.masked().into_iter().flat_map(|masked| masked.rows());
        encode_set(encoder, &masked.map(u64::from).collect());
        encode_rows(encoder, entry.delta());
    });
    encode_rows(&mut encoder, table.tail());
    let definition = table.definition();
    if has_indexes(definition) || !definition.foreign_keys.is_empty() {
        encode_foreign_keys(&mut encoder, definition);
    }
    if has_indexes(definition) {
        encode_indexes(&mut encoder, definition);
    }
    if has_details(definition) {
        encode_details(&mut encoder, definition);
    }
    if has_further(definition) {
        encode_further(&mut encoder, definition);
    }
    Ok((format_version(definition), encoder.finish()))
}

/// Reads a payload.
pub(crate) fn decode_table_file(payload: &[u8]) -> Result<StoredTable, DecodeError> {
    let mut decoder = Decoder::new(payload);
    let id = TableId::new(decoder.number("table")?);
    let mut definition = decode_definition(&mut decoder)?;
    let next_row_id = RowId::new(decoder.number("next row id")?);
    let entries = decoder.list("chunks", |decoder| {
        let file = ChunkFileId::new(decoder.number("chunk file")?);
        let ids = decode_ids(decoder)?;
        let masked = decode_set(decoder)?;
        let masked = rows_of(&masked, ids.count());
        let masked =
            masked.ok_or_else(|| decoder.error("masked rows", "the chunk has fewer rows"))?;
        Ok(StoredEntry { file, ids, masked, delta: decode_rows(decoder)? })
    })?;
    let tail = decode_rows(&mut decoder)?;
    if !decoder.is_at_end() {
        decode_foreign_keys(&mut decoder, &mut definition)?;
    }
    if !decoder.is_at_end() {
        decode_indexes(&mut decoder, &mut definition)?;
    }
    if !decoder.is_at_end() {
        decode_details(&mut decoder, &mut definition)?;
    }
    if !decoder.is_at_end() {
        decode_further(&mut decoder, &mut definition)?;
    }
    decoder.end()?;
    Ok(StoredTable { id, definition, next_row_id, entries, tail })
}

impl StoredTable {
    fn envelope(database: DatabaseId, number: u64) -> Envelope {
        Envelope { kind: DataFileKind::Table, database, number }
    }

    /// Reads the file with this number.
    pub(crate) fn read(
        files: &dyn Files,
        database: DatabaseId,
        number: u64,
    ) -> Result<Self, DataFileError> {
        let name = table_file_name(number);
        let file = files.open(&name)?;
        let opened = Self::envelope(database, number).open_as(&*file)?;
        let table = decode_table_file(&opened.payload);
        table.map_err(|error| DataFileError::of_decoding(&name, &error))
    }

    /// Writes a payload to the file with this number; returns its size in bytes.
    pub(crate) fn write(
        files: &dyn Files,
        database: DatabaseId,
        number: u64,
        (version, payload): &TablePayload,
    ) -> Result<u64, DataFileError> {
        let bytes = Self::envelope(database, number).seal_as(*version, payload);
        write_whole(files, &table_file_name(number), &bytes)
    }
}

/// The numbers of a set. Returns None unless all are below the number of rows.
fn rows_of(set: &RoaringTreemap, rows: usize) -> Option<Vec<u32>> {
    if set.max().is_some_and(|largest| largest >= rows as u64) {
        return None;
    }
    set.iter().map(|row| u32::try_from(row).ok()).collect()
}
