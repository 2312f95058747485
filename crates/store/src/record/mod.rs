//! Records of the log: changes of a transaction, as bytes. Values, never SQL or expressions of its statements.
//!
//! A record, in the forms of [`codec`](crate::codec):
//!
//! | What | As |
//! |---|---|
//! | version of the format: 1 to 5 | number |
//! | chunk files that it names | list of numbers |
//! | steps, oldest first | list: byte 0 and a catalog change, 1 and table (number) and change, or 2 and sequence (number) and value (signed), or 3 or 4 of [`prepared`] |
//!
//! Chunks of bulk loads are not in the record: they are in files that are synced before it is written. They come
//! first so that recovery can read them in parallel before it reads the rest. [`table`] and [`catalog`] specify
//! changes of tables and of the catalog, [`definition`] the definitions of tables.
//!
//! Version 2 adds serial columns and the [`details`] of indexes to definitions, version 3 their [`further`] details
//! and conditions that compare columns or are LIKE, version 5 prepared transactions, version 6 deferrable unique
//! constraints. A record has the lowest version that can hold it.

mod catalog;
mod definition;
mod details;
mod further;
mod prepared;
mod rows;
mod table;

use std::sync::Arc;

use crate::change::{ChangeStep, DatabaseChange};
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::data_file::DataFileError;
use crate::ids::{ChunkFileId, SequenceId, TableId};
use crate::table::Chunk;

pub(crate) use catalog::{
    decode_name, decode_sequence_definition, decode_statement, encode_name,
    encode_sequence_definition, encode_statement,
};
pub(crate) use definition::{
    decode_definition, decode_foreign_keys, decode_indexes, encode_definition, encode_foreign_keys,
    encode_indexes, format_version, has_indexes,
};
pub(crate) use details::{decode_details, encode_details, has_details};
pub(crate) use further::{decode_further, encode_further, has_further};
pub(crate) use rows::{decode_ids, decode_rows, decode_set, encode_ids, encode_rows, encode_set};

/// The newest version of the records' format that is written and can be read.
pub const RECORD_FORMAT_VERSION: u64 = 6;

/// Why a change cannot be a record, or a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A column of a type that cannot be recorded.
    #[error(transparent)]
    Type(#[from] DataFileError),
    /// A chunk that has no file yet.
    #[error("a chunk of {rows} rows of table {table} has no file that the log could name")]
    NoFile {
        /// The table.
        table: TableId,
        /// Rows of the chunk.
        rows: usize,
    },
    /// A record written by a later version of Atoll.
    #[error(
        "the record has version {0} of the records' format; this version of Atoll reads up to version \
         {RECORD_FORMAT_VERSION}: open the database with the version that wrote it, or a later one"
    )]
    NewerFormat(u64),
    /// Bytes that are not a record.
    #[error("the record is damaged at {0}")]
    Damaged(#[from] DecodeError),
}

/// The record of a change, without its temporary parts. All its chunks have files, which are synced.
pub fn encode_record(change: &DatabaseChange) -> Result<Vec<u8>, RecordError> {
    let mut encoder = Encoder::new();
    let version = change.durable_steps().map(|step| match step {
        ChangeStep::Catalog(change) => catalog::format_version(change),
        ChangeStep::Table(..) | ChangeStep::Sequence(..) => 1,
        ChangeStep::Prepare(..) | ChangeStep::EndPrepared { .. } => prepared::FORMAT_VERSION,
    });
    encoder.number(version.max().unwrap_or(1).into());
    let files = files_of(change)?;
    encoder.list(files.iter(), |encoder, file| encoder.number(file.get()));
    encode_steps(&mut encoder, change, &mut 0)?;
    Ok(encoder.finish())
}

/// Writes the steps of a change whose chunks have the files from `file` on in the record's list.
fn encode_steps(
    encoder: &mut Encoder,
    change: &DatabaseChange,
    file: &mut usize,
) -> Result<(), RecordError> {
    encoder.count(change.durable_steps().count());
    for step in change.durable_steps() {
        match step {
            ChangeStep::Catalog(change) => {
                encoder.byte(0);
                catalog::encode_catalog_change(encoder, change)?;
            }
            ChangeStep::Table(table, change) => {
                encoder.byte(1);
                encoder.number(table.get());
                table::encode_table(encoder, change, *file);
                *file += table::chunks_of(change).count();
            }
            ChangeStep::Sequence(sequence, value) => {
                encoder.byte(2);
                encoder.number(sequence.get());
                encoder.signed(*value);
            }
            ChangeStep::Prepare(name, transaction) => {
                encoder.byte(3);
                prepared::encode_prepared(encoder, name, transaction);
                encode_steps(encoder, &transaction.change, file)?;
            }
            ChangeStep::EndPrepared { name, commits } => {
                encoder.byte(4);
                encoder.text(name);
                encoder.flag(*commits);
            }
        }
    }
    Ok(())
}

fn files_of(change: &DatabaseChange) -> Result<Vec<ChunkFileId>, RecordError> {
    let tables = change.durable_tables();
    let chunks = tables.flat_map(|(table, change)| {
        table::chunks_of(change).map(move |(chunk, file)| (table, chunk, file))
    });
    let file = |(table, chunk, file): (TableId, &Arc<Chunk>, Option<ChunkFileId>)| {
        file.ok_or(RecordError::NoFile { table, rows: chunk.rows })
    };
    chunks.map(file).collect()
}

/// The files named by a record, without reading the rest of it.
pub fn files_of_record(bytes: &[u8]) -> Result<Vec<ChunkFileId>, RecordError> {
    read_files(&mut Decoder::new(bytes))
}

fn read_files(decoder: &mut Decoder<'_>) -> Result<Vec<ChunkFileId>, RecordError> {
    match decoder.number("version of the format")? {
        1..=RECORD_FORMAT_VERSION => {}
        0 => return Err(decoder.error("version of the format", "0 is not a version").into()),
        newer => return Err(RecordError::NewerFormat(newer)),
    }
    Ok(decoder.list("chunk files", |decoder| decoder.number("chunk file").map(ChunkFileId::new))?)
}

/// Reads a record; `chunk` returns the chunk of a file.
pub fn decode_record<E: From<RecordError>>(
    bytes: &[u8],
    chunk: impl FnMut(ChunkFileId) -> Result<Arc<Chunk>, E>,
) -> Result<DatabaseChange, E> {
    let mut decoder = Decoder::new(bytes);
    let files = read_files(&mut decoder)?;
    let chunks = files.iter().copied().map(chunk).collect::<Result<Vec<_>, _>>()?;
    let chunks: Vec<_> = files.into_iter().zip(chunks).collect();
    let steps = decoder.list("steps", |decoder| {
        let kind = decoder.byte("kind of a step")?;
        match kind {
            3 => {
                let (name, mut transaction) = prepared::decode_prepared(decoder)?;
                let own = decoder.list("steps of a prepared transaction", |decoder| {
                    let kind = decoder.byte("kind of a step")?;
                    decode_step(decoder, kind, &chunks)
                })?;
                transaction.change = DatabaseChange { steps: own };
                Ok(ChangeStep::Prepare(name, Arc::new(transaction)))
            }
            4 => {
                let name = decoder.text("name of a prepared transaction")?.into();
                Ok(ChangeStep::EndPrepared { name, commits: decoder.flag("whether it commits")? })
            }
            kind => decode_step(decoder, kind, &chunks),
        }
    });
    let steps = steps.and_then(|steps| decoder.end().map(|()| steps));
    Ok(DatabaseChange { steps: steps.map_err(RecordError::from)? })
}

fn decode_step(
    decoder: &mut Decoder<'_>,
    kind: u8,
    chunks: &[table::FiledChunk],
) -> Result<ChangeStep, DecodeError> {
    match kind {
        0 => Ok(ChangeStep::Catalog(catalog::decode_catalog_change(decoder)?)),
        1 => {
            let table = TableId::new(decoder.number("table")?);
            Ok(ChangeStep::Table(table, table::decode_table(decoder, chunks)?))
        }
        2 => {
            let sequence = SequenceId::new(decoder.number("sequence")?);
            Ok(ChangeStep::Sequence(sequence, decoder.signed("value of a sequence")?))
        }
        other => Err(decoder.error("kind of a step", format!("unknown kind {other}"))),
    }
}
