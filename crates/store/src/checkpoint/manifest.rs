//! The manifest: the one file that defines what a data directory holds.
//!
//! The file `manifest` is an [envelope](crate::data_file) with this payload. It is written next to the old one
//! and renamed over it, so a directory always holds a complete checkpoint, old or new.
//!
//! | What | As |
//! |---|---|
//! | commits that the checkpoint holds | number |
//! | position in the log after the last record that it holds | number |
//! | position up to which the log was synced then | number |
//! | last number given to a file of a chunk, and of a table | two numbers |
//! | next number of a table, and of a sequence | two numbers |
//! | schemas | list of names |
//! | names | list: schema and name; byte 0 and table (number), 1 and statement of a view, 2 and sequence (number), or 3 and statement of an external table |
//! | sequences | list: number, definition, optional last value (signed), generation |
//! | tables | list: number, number of the file, rows, bytes of its chunk files |
//! | prepared transactions, in version 2 of the format | bytes: a record that prepares them |
//!
//! Statements and definitions of sequences are in the forms of [`record`](crate::record).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::DatabaseId;
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::data_file::{
    DataFileError, DataFileKind, Envelope, FIRST_DATA_FORMAT, MANIFEST_FORMAT_VERSION,
};
use crate::database::{Relation, RelationName, SequenceState};
use crate::files::{FileError, FileErrorKind, Files};
use crate::ids::{ChunkFileId, Epoch, SequenceId, TableId};
use crate::log::{Position, RecoveryStart};
use crate::record::{
    RecordError, decode_name, decode_sequence_definition, decode_statement, encode_name,
    encode_sequence_definition, encode_statement, files_of_record,
};

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "manifest";
/// The name of the next manifest while it is written.
pub(crate) const NEXT_MANIFEST: &str = "manifest.new";

/// The contents of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) database: DatabaseId,
    pub(crate) epoch: Epoch,
    pub(crate) start: RecoveryStart,
    pub(crate) last_chunk_file: ChunkFileId,
    pub(crate) last_table_file: u64,
    pub(crate) next_table: TableId,
    pub(crate) next_sequence: SequenceId,
    pub(crate) schemas: Vec<Arc<str>>,
    pub(crate) relations: Vec<(RelationName, Relation)>,
    pub(crate) sequences: Vec<(SequenceId, SequenceState)>,
    pub(crate) tables: BTreeMap<TableId, TableFile>,
    /// A record that prepares the prepared transactions; empty if there are none.
    pub(crate) prepared: Vec<u8>,
}

/// The file of a table, with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableFile {
    pub(crate) number: u64,
    pub(crate) rows: u64,
    pub(crate) chunk_bytes: u64,
}

impl Manifest {
    fn envelope(database: DatabaseId) -> Envelope {
        Envelope { kind: DataFileKind::Manifest, database, number: 0 }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder.number(self.epoch.get());
        encoder.number(self.start.from.0);
        encoder.number(self.start.synced.0);
        encoder.number(self.last_chunk_file.get());
        encoder.number(self.last_table_file);
        encoder.number(self.next_table.get());
        encoder.number(self.next_sequence.get());
        encoder.list(self.schemas.iter(), |encoder, name| encoder.text(name));
        encoder.list(self.relations.iter(), |encoder, (name, relation)| {
            encode_name(encoder, name);
            encode_relation(encoder, relation);
        });
        encoder.list(self.sequences.iter(), |encoder, (id, state)| {
            encoder.number(id.get());
            encode_sequence_definition(encoder, &state.definition);
            encoder.option(state.last, Encoder::signed);
            encoder.number(state.generation);
        });
        encoder.list(self.tables.iter(), |encoder, (id, file)| {
            encoder.number(id.get());
            encoder.number(file.number);
            encoder.number(file.rows);
            encoder.number(file.chunk_bytes);
        });
        if self.prepared.is_empty() {
            return Self::envelope(self.database).seal(&encoder.finish());
        }
        encoder.bytes(&self.prepared);
        Self::envelope(self.database).seal_as(MANIFEST_FORMAT_VERSION, &encoder.finish())
    }

    fn decode(database: DatabaseId, version: u32, payload: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(payload);
        let epoch = Epoch::new(decoder.number("epoch")?);
        let from = Position(decoder.number("position of the log")?);
        let synced = Position(decoder.number("synced position of the log")?);
        let last_chunk_file = ChunkFileId::new(decoder.number("last file of a chunk")?);
        let last_table_file = decoder.number("last file of a table")?;
        let next_table = TableId::new(decoder.number("next table")?);
        let next_sequence = SequenceId::new(decoder.number("next sequence")?);
        let schemas = decoder.list("schemas", |decoder| decoder.text("schema").map(Into::into))?;
        let relations = decoder.list("names", |decoder| {
            let name = decode_name(decoder)?;
            Ok((name, decode_relation(decoder)?))
        })?;
        let sequences = decoder.list("sequences", |decoder| {
            let id = SequenceId::new(decoder.number("sequence")?);
            let definition = Arc::new(decode_sequence_definition(decoder)?);
            let last = decoder.option("last value", |decoder| decoder.signed("last value"))?;
            let generation = decoder.number("generation")?;
            Ok((id, SequenceState { definition, last, generation }))
        })?;
        let tables = decoder.list("tables", |decoder| {
            let id = TableId::new(decoder.number("table")?);
            let number = decoder.number("file of a table")?;
            let rows = decoder.number("rows")?;
            let chunk_bytes = decoder.number("bytes of a table")?;
            Ok((id, TableFile { number, rows, chunk_bytes }))
        })?;
        let prepared = match version {
            FIRST_DATA_FORMAT => Vec::new(),
            _ => decoder.bytes("prepared transactions")?.to_vec(),
        };
        decoder.end()?;
        Ok(Self {
            database,
            epoch,
            start: RecoveryStart { from, synced },
            last_chunk_file,
            last_table_file,
            next_table,
            next_sequence,
            schemas,
            relations,
            sequences,
            tables: tables.into_iter().collect(),
            prepared,
        })
    }

    /// Reads the manifest of a directory. Returns None if there is none.
    pub(crate) fn read(files: &dyn Files) -> Result<Option<Self>, DataFileError> {
        let file = match files.open(MANIFEST) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let opened = Envelope::open(&*file, DataFileKind::Manifest)?;
        let manifest = Self::decode(opened.envelope.database, opened.version, &opened.payload);
        manifest.map(Some).map_err(|error| DataFileError::of_decoding(MANIFEST, &error))
    }

    /// The chunk files that prepared transactions name.
    pub(crate) fn prepared_files(&self) -> Result<Vec<ChunkFileId>, RecordError> {
        match self.prepared.is_empty() {
            true => Ok(Vec::new()),
            false => files_of_record(&self.prepared),
        }
    }

    /// The name of a table, for messages.
    pub(crate) fn name_of(&self, table: TableId) -> String {
        let of_table =
            |(_, relation): &&(RelationName, Relation)| *relation == Relation::Table(table);
        let found = self.relations.iter().find(of_table);
        found.map_or_else(|| format!("number {table}"), |(name, _)| name.to_string())
    }

    /// Writes and syncs the new manifest next to the current one.
    pub(crate) fn write_beside(&self, files: &dyn Files) -> Result<u64, DataFileError> {
        write_whole(files, NEXT_MANIFEST, &self.encode())
    }

    /// Replaces the current manifest with the new one.
    pub(crate) fn switch(files: &dyn Files) -> Result<(), FileError> {
        files.rename(NEXT_MANIFEST, MANIFEST)
    }
}

fn encode_relation(encoder: &mut Encoder, relation: &Relation) {
    match relation {
        Relation::Table(id) => {
            encoder.byte(0);
            encoder.number(id.get());
        }
        Relation::View(statement) => {
            encoder.byte(1);
            encode_statement(encoder, statement);
        }
        Relation::Sequence(id) => {
            encoder.byte(2);
            encoder.number(id.get());
        }
        Relation::External(statement) => {
            encoder.byte(3);
            encode_statement(encoder, statement);
        }
    }
}

fn decode_relation(decoder: &mut Decoder<'_>) -> Result<Relation, DecodeError> {
    Ok(match decoder.byte("kind of a name")? {
        0 => Relation::Table(TableId::new(decoder.number("table")?)),
        1 => Relation::View(Arc::new(decode_statement(decoder)?)),
        2 => Relation::Sequence(SequenceId::new(decoder.number("sequence")?)),
        3 => Relation::External(Arc::new(decode_statement(decoder)?)),
        other => return Err(decoder.error("kind of a name", format!("unknown kind {other}"))),
    })
}

/// Writes and syncs a new file in place of what an interrupted attempt may have left; returns its size in bytes.
pub(crate) fn write_whole(
    files: &dyn Files,
    name: &str,
    bytes: &[u8],
) -> Result<u64, DataFileError> {
    let file = match files.create(name, 0) {
        Err(error) if error.kind == FileErrorKind::Exists => {
            files.remove(name)?;
            files.create(name, 0)?
        }
        file => file?,
    };
    let written = file.write_at(0, bytes).and_then(|()| file.sync_data());
    if let Err(error) = written {
        // A partial file takes space that may be the space that was missing.
        let _ = files.remove(name);
        return Err(error.into());
    }
    Ok(bytes.len() as u64)
}
