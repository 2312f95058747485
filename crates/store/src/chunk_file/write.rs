//! Writing a chunk.

use arrow_array::Array;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};

use super::checksum;
use super::home::StoredHome;
use super::layout::{ArrayLayout, for_each_buffer};
use crate::codec::{Encoder, encode_schema};
use crate::data_file::{DataFileError, Envelope};
use crate::files::DataFile;
use crate::table::{Chunk, StoredColumn, stored_data};

/// Small buffers are written together, in pieces of about this size; larger ones as they are.
const PIECE_BYTES: usize = 64 << 10;

/// Writes a chunk to a new file, which the caller syncs; returns the size of the file in bytes.
pub(super) fn write(
    file: &dyn DataFile,
    envelope: Envelope,
    chunk: &Chunk,
    schema: &Schema,
) -> Result<u64, DataFileError> {
    let (directory, arrays) = directory(envelope, chunk, schema)?;
    let mut out = PieceWriter { file, at: 0, pending: envelope.seal(&directory), failure: Ok(()) };
    for data in &arrays {
        for_each_buffer(data, &mut |bytes| out.put(bytes));
    }
    out.flush();
    out.failure?;
    Ok(out.at)
}

fn directory(
    envelope: Envelope,
    chunk: &Chunk,
    schema: &Schema,
) -> Result<(Vec<u8>, Vec<ArrayData>), DataFileError> {
    let mut arrays = Vec::new();
    let mut blocks = Encoder::new();
    for (number, block) in chunk.copies[0].blocks.iter().enumerate() {
        for column in block {
            if number == 0 {
                blocks.byte(encoding(column)?);
            }
            put(&mut blocks, &mut arrays, envelope, stored_data(column.rows()), false);
            if let (0, StoredColumn::Dictionary { values, .. }) = (number, column) {
                put(&mut blocks, &mut arrays, envelope, stored_data(values), true);
            }
        }
    }
    let body = arrays.iter().map(|data| ArrayLayout::from_data(data).bytes().unwrap_or(usize::MAX));
    let mut directory = Encoder::new();
    directory.count(body.sum());
    directory.count(chunk.rows);
    StoredHome::for_chunk(chunk).encode(&mut directory);
    encode_schema(&mut directory, schema)
        .map_err(|of| DataFileError::Type { data_type: of.to_string() })?;
    let mut directory = directory.finish();
    directory.extend(blocks.finish());
    Ok((directory, arrays))
}

fn put(
    encoder: &mut Encoder,
    arrays: &mut Vec<ArrayData>,
    envelope: Envelope,
    data: ArrayData,
    with_len: bool,
) {
    let mut hasher = checksum(envelope.database);
    for_each_buffer(&data, &mut |bytes| hasher.update(bytes));
    encoder.fixed(hasher.finalize());
    if with_len {
        encoder.count(data.len());
    }
    ArrayLayout::from_data(&data).encode(encoder);
    arrays.push(data);
}

fn encoding(column: &StoredColumn) -> Result<u8, DataFileError> {
    match (column, column.rows().data_type()) {
        (StoredColumn::Plain(_), _) => Ok(0),
        (StoredColumn::Narrow(_), DataType::Int8) => Ok(1),
        (StoredColumn::Narrow(_), DataType::Int16) => Ok(2),
        (StoredColumn::Narrow(_), DataType::Int32) => Ok(3),
        (StoredColumn::Narrow(_), DataType::Int64) => Ok(4),
        (StoredColumn::Dictionary { .. }, DataType::UInt8) => Ok(5),
        (StoredColumn::Dictionary { .. }, DataType::UInt16) => Ok(6),
        (_, other) => Err(DataFileError::Type { data_type: other.to_string() }),
    }
}

/// Writes bytes to a file in pieces that are not small.
struct PieceWriter<'a> {
    file: &'a dyn DataFile,
    at: u64,
    pending: Vec<u8>,
    /// The first error; nothing is written after it.
    failure: Result<(), DataFileError>,
}

impl PieceWriter<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if bytes.len() >= PIECE_BYTES / 2 {
            self.flush();
            return self.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        self.write(&pending);
        pending.clear();
        self.pending = pending;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_ok() && !bytes.is_empty() {
            self.failure = self.file.write_at(self.at, bytes).map_err(Into::into);
        }
        self.at += bytes.len() as u64;
    }
}
