//! Reading a chunk into memory at its home.

use std::sync::Arc;

use arrow_arith::aggregate::max;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, SchemaRef};
use atoll_placement::{Arena, ChunkHome, NodeBuffer};
use atoll_topology::{Machine, NodeId};
use bytes::Bytes;

use super::checksum;
use super::home::{HomeChange, StoredHome};
use super::layout::ArrayLayout;
use crate::DatabaseId;
use crate::codec::{DecodeError, Decoder, decode_schema};
use crate::data_file::{DataFileError, Envelope, Opened};
use crate::files::DataFile;
use crate::table::{BLOCK_ROWS, Chunk, ChunkCopy, StoredColumn, TableError};

/// A chunk that was read.
#[derive(Debug)]
pub struct LoadedChunk {
    /// The chunk, in memory at its home.
    pub chunk: Chunk,
    /// The stored types of its columns.
    pub schema: SchemaRef,
    /// Whether it is placed where it was when it was written.
    pub home: HomeChange,
    /// Bytes read.
    pub bytes: u64,
}

/// The contents of a file's directory.
#[derive(Debug)]
pub(super) struct Directory {
    body_bytes: usize,
    pub(super) rows: usize,
    home: StoredHome,
    pub(super) schema: SchemaRef,
    /// For each block, for each column.
    blocks: Vec<Vec<StoredArray>>,
    /// Offset of the body.
    body: u64,
    database: DatabaseId,
}

/// One column of one block as it is in the file.
#[derive(Debug)]
struct StoredArray {
    encoding: u8,
    rows: CheckedLayout,
    /// The values of a dictionary, in the first block.
    values: Option<CheckedLayout>,
}

#[derive(Debug)]
struct CheckedLayout {
    checksum: u32,
    layout: ArrayLayout,
}

/// The memory of a chunk as the owner of Arrow buffers.
struct SharedMemory(Arc<NodeBuffer>);

impl AsRef<[u8]> for SharedMemory {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Reads a chunk.
pub(super) fn read(
    file: &dyn DataFile,
    envelope: Envelope,
    arena: &Arena,
) -> Result<LoadedChunk, DataFileError> {
    let directory = Directory::read(file, envelope)?;
    let (place, home) = directory.home.on(arena.machine());
    let wanted: Vec<Option<NodeId>> = match place.home {
        ChunkHome::Node(node) => vec![Some(node)],
        ChunkHome::Unbound => vec![None],
        ChunkHome::CopyPerNode => {
            arena.machine().nodes_with_memory().map(|node| Some(node.id)).collect()
        }
    };
    let not_loaded = |error: TableError| match error {
        TableError::Memory(reason) => {
            DataFileError::Memory { file: file.name().to_owned(), reason }
        }
        other => DataFileError::damaged(file.name(), "its body", &other.to_string()),
    };
    let first = directory.load(file, arena, wanted.first().copied().flatten())?;
    let mut copies = vec![first];
    for node in wanted.into_iter().skip(1) {
        let copy = ChunkCopy::place(&copies[0].blocks, arena, node).map_err(not_loaded)?;
        copies.push(copy);
    }
    let chunk = Chunk::new(&directory.schema, directory.rows, place.owner, copies);
    let chunk = chunk.map_err(not_loaded)?;
    let bytes = directory.body + directory.body_bytes as u64;
    Ok(LoadedChunk { chunk, schema: directory.schema, home, bytes })
}

/// The node on which a chunk will be placed, or whose workers scan it.
pub(super) fn home(
    file: &dyn DataFile,
    envelope: Envelope,
    machine: &Machine,
) -> Result<Option<NodeId>, DataFileError> {
    let (place, _) = Directory::read(file, envelope)?.home.on(machine);
    Ok(match place.home {
        ChunkHome::Node(node) => Some(node),
        ChunkHome::Unbound | ChunkHome::CopyPerNode => place.owner,
    })
}

/// Reads a whole file and verifies every checksum, without keeping anything.
pub(super) fn check(file: &dyn DataFile, envelope: Envelope) -> Result<Directory, DataFileError> {
    let directory = Directory::read(file, envelope)?;
    let mut at = directory.body;
    let mut bytes = Vec::new();
    for (block, column, stored) in directory.arrays() {
        let length = stored.layout.bytes().unwrap_or(usize::MAX);
        bytes.resize(length, 0);
        file.read_at(at, &mut bytes)?;
        at += length as u64;
        stored.check(file, directory.database, (block, column), &bytes)?;
    }
    Ok(directory)
}

impl Directory {
    pub(super) fn read(file: &dyn DataFile, envelope: Envelope) -> Result<Self, DataFileError> {
        let opened = envelope.open_as(file)?;
        let directory = Self::decode(&opened);
        let directory =
            directory.map_err(|error| DataFileError::of_decoding(file.name(), &error))?;
        let wanted = directory.body + directory.body_bytes as u64;
        let found = file.bytes()?;
        match found == wanted {
            true => Ok(directory),
            false => {
                let reason = format!("the file has {found} bytes; {wanted} were written");
                Err(DataFileError::damaged(file.name(), "its end", &reason))
            }
        }
    }

    fn decode(opened: &Opened) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(&opened.payload);
        let body_bytes = decoder.size("bytes of the body")?;
        let rows = decoder.size("rows")?;
        if !(1..=u32::MAX as usize).contains(&rows) {
            return Err(decoder.error("rows", format!("invalid number of rows: {rows}")));
        }
        let home = StoredHome::decode(&mut decoder)?;
        let schema = decode_schema(&mut decoder)?;
        let count = schema.fields().len();
        let mut blocks: Vec<Vec<StoredArray>> = Vec::new();
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let rows = BLOCK_ROWS.min(rows - start);
            let first = blocks.first();
            let column = |column: usize| {
                let encoding = first.map(|first| first[column].encoding);
                StoredArray::decode(&mut decoder, rows, encoding)
            };
            let block = (0..count).map(column).collect::<Result<_, _>>()?;
            blocks.push(block);
        }
        let stored = Self {
            body_bytes,
            rows,
            home,
            schema,
            blocks,
            body: opened.end,
            database: opened.envelope.database,
        };
        let sum = stored
            .arrays()
            .try_fold(0_usize, |sum, (_, _, stored)| sum.checked_add(stored.layout.bytes()?));
        match sum == Some(body_bytes) {
            true => decoder.end().map(|()| stored),
            false => Err(decoder.error("bytes of the body", "they do not match its arrays")),
        }
    }

    /// All arrays in the order of the body, with block and column.
    fn arrays(&self) -> impl Iterator<Item = (usize, usize, &CheckedLayout)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(block, columns)| {
            columns.iter().enumerate().flat_map(move |(column, stored)| {
                [Some(&stored.rows), stored.values.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(move |layout| (block, column, layout))
            })
        })
    }

    /// The chunk's columns in memory on a node.
    fn load(
        &self,
        file: &dyn DataFile,
        arena: &Arena,
        wanted: Option<NodeId>,
    ) -> Result<ChunkCopy, DataFileError> {
        let memory = arena.allocate(wanted, self.body_bytes.max(1));
        let mut memory = memory
            .map_err(|reason| DataFileError::Memory { file: file.name().to_owned(), reason })?;
        file.read_at(self.body, &mut memory.as_mut_slice()[..self.body_bytes])?;
        let memory = Arc::new(memory);
        let mut body = Bytes::from_owner(SharedMemory(Arc::clone(&memory)));
        let mut blocks: Vec<Vec<StoredColumn>> = Vec::with_capacity(self.blocks.len());
        for (number, stored) in self.blocks.iter().enumerate() {
            let mut columns = Vec::with_capacity(stored.len());
            for (column, array) in stored.iter().enumerate() {
                let of = self.schema.field(column).data_type();
                let mut next = |stored: &CheckedLayout, of: &DataType| {
                    let part = body.split_to(stored.layout.bytes().unwrap_or_default());
                    stored.check(file, self.database, (number, column), &part)?;
                    let built = stored.layout.build(of, &part);
                    built.map_err(|error| damaged(file, (number, column), &error.to_string()))
                };
                let rows_type = rows_type(array.encoding, of);
                let rows_type =
                    rows_type.map_err(|reason| damaged(file, (number, column), &reason))?;
                let rows = next(&array.rows, &rows_type)?;
                let values = array.values.as_ref().map(|values| next(values, of)).transpose()?;
                let first = blocks.first().map(|first: &Vec<StoredColumn>| &first[column]);
                let built = stored_column(array.encoding, rows, values, first);
                columns.push(built.map_err(|reason| damaged(file, (number, column), reason))?);
            }
            blocks.push(columns);
        }
        Ok(ChunkCopy::over(memory, wanted, blocks, arena))
    }
}

impl StoredArray {
    /// Reads the entry of a column; only the first block contains the encoding.
    fn decode(
        decoder: &mut Decoder<'_>,
        rows: usize,
        encoding: Option<u8>,
    ) -> Result<Self, DecodeError> {
        let is_first = encoding.is_none();
        let encoding = encoding.map_or_else(|| decoder.byte("encoding"), Ok)?;
        let checksum = decoder.fixed("checksum")?;
        let rows = CheckedLayout { checksum, layout: ArrayLayout::decode(decoder, rows)? };
        let values = (is_first && is_dictionary(encoding)).then(|| {
            let checksum = decoder.fixed("checksum")?;
            let len = decoder.size("values of a dictionary")?;
            Ok(CheckedLayout { checksum, layout: ArrayLayout::decode(decoder, len)? })
        });
        Ok(Self { encoding, rows, values: values.transpose()? })
    }
}

impl CheckedLayout {
    fn check(
        &self,
        file: &dyn DataFile,
        database: DatabaseId,
        place: (usize, usize),
        bytes: &[u8],
    ) -> Result<(), DataFileError> {
        let mut hasher = checksum(database);
        hasher.update(bytes);
        match hasher.finalize() == self.checksum {
            true => Ok(()),
            false => Err(damaged(file, place, "the checksum is wrong")),
        }
    }
}

fn damaged(file: &dyn DataFile, (block, column): (usize, usize), reason: &str) -> DataFileError {
    let place = format!("block {block}, column {column}");
    DataFileError::damaged(file.name(), &place, reason)
}

fn is_dictionary(encoding: u8) -> bool {
    matches!(encoding, 5 | 6)
}

/// The type of the array of rows, if the encoding is valid for the column's type.
fn rows_type(encoding: u8, of: &DataType) -> Result<DataType, String> {
    let width = match of {
        DataType::Int16 | DataType::UInt16 => 2,
        DataType::Int32 | DataType::UInt32 | DataType::Date32 => 4,
        DataType::Int64 | DataType::UInt64 | DataType::Date64 | DataType::Timestamp(..) => 8,
        DataType::Decimal128(..) => 16,
        _ => 0,
    };
    match encoding {
        0 => Ok(of.clone()),
        1 if width > 1 => Ok(DataType::Int8),
        2 if width > 2 => Ok(DataType::Int16),
        3 if width > 4 => Ok(DataType::Int32),
        4 if width > 8 => Ok(DataType::Int64),
        5 if *of == DataType::Utf8View => Ok(DataType::UInt8),
        6 if *of == DataType::Utf8View => Ok(DataType::UInt16),
        other => Err(format!("encoding {other} is invalid for type {of}")),
    }
}

fn stored_column(
    encoding: u8,
    rows: ArrayRef,
    values: Option<ArrayRef>,
    first: Option<&StoredColumn>,
) -> Result<StoredColumn, &'static str> {
    if encoding == 0 {
        return Ok(StoredColumn::Plain(rows));
    }
    if !is_dictionary(encoding) {
        return Ok(StoredColumn::Narrow(rows));
    }
    let values = match (values, first) {
        (Some(values), _) => values,
        (None, Some(StoredColumn::Dictionary { values, .. })) => Arc::clone(values),
        _ => return Err("the dictionary has no values"),
    };
    let largest = match rows.data_type() {
        DataType::UInt8 => max(rows.as_primitive::<UInt8Type>()).map(usize::from),
        _ => max(rows.as_primitive::<UInt16Type>()).map(usize::from),
    };
    match largest.is_none_or(|code| code < values.len()) && values.null_count() == 0 {
        true => Ok(StoredColumn::Dictionary { codes: rows, values }),
        false => Err("a code names no value of the dictionary"),
    }
}
