//! Changes of the catalog as bytes: a byte, then its parameters.
//!
//! | Byte | Change | Then |
//! |---|---|---|
//! | 0, 1 | a schema is created, dropped | name |
//! | 2 | a table is created | name, number, definition |
//! | 3, 4 | a view, an external table is created | name, statement |
//! | 5 | a sequence is created | name, number, definition |
//! | 6 | a table, view, sequence or external table is dropped | name |
//! | 7 | one is renamed | both names |
//! | 8 | a table gets another definition | number, definition |
//! | 9 | a sequence gets another definition | number, definition, optional last value (signed) |
//! | 10, 11 | as 2 and 8, of a table with foreign keys | the same, then these |
//! | 12, 13 | as 10 and 11, of a table with indexes | the same, then these |
//! | 14, 15 | as 12 and 13, of a table with details of indexes | the same, then these |
//! | 16, 17 | as 14 and 15, of a table with further details | the same, then these |
//!
//! The name of a relation is two texts: schema and name; a statement is three: SQL, schema, options. The definition
//! of a sequence is increment, smallest, largest and first value (signed), a flag whether it begins anew, and how
//! many values are cached.

use std::sync::Arc;

use super::definition::{
    self, decode_definition, decode_foreign_keys, decode_indexes, encode_definition,
    encode_foreign_keys, encode_indexes, has_indexes,
};
use super::details::{decode_details, encode_details, has_details};
use super::further::{decode_further, encode_further, has_further};
use crate::change::{CatalogChange, RelationName, SequenceDefinition, StoredStatement};
use crate::codec::{DecodeError, Decoder, Encoder};
use crate::data_file::DataFileError;
use crate::ids::{SequenceId, TableId};
use crate::table::TableDefinition;

type Result<T> = std::result::Result<T, DecodeError>;

pub(super) fn encode_catalog_change(
    encoder: &mut Encoder,
    change: &CatalogChange,
) -> std::result::Result<(), DataFileError> {
    match change {
        CatalogChange::CreateSchema { name } => {
            encoder.byte(0);
            encoder.text(name);
        }
        CatalogChange::DropSchema { name } => {
            encoder.byte(1);
            encoder.text(name);
        }
        CatalogChange::CreateTable { name, id, definition } => {
            encoder.byte(kind_of(definition, [2, 10, 12, 14, 16]));
            encode_name(encoder, name);
            encoder.number(id.get());
            encode_whole(encoder, definition)?;
        }
        CatalogChange::CreateView { name, statement } => {
            encoder.byte(3);
            encode_name(encoder, name);
            encode_statement(encoder, statement);
        }
        CatalogChange::CreateExternal { name, statement } => {
            encoder.byte(4);
            encode_name(encoder, name);
            encode_statement(encoder, statement);
        }
        CatalogChange::CreateSequence { name, id, definition } => {
            encoder.byte(5);
            encode_name(encoder, name);
            encoder.number(id.get());
            encode_sequence_definition(encoder, definition);
        }
        CatalogChange::Drop { name } => {
            encoder.byte(6);
            encode_name(encoder, name);
        }
        CatalogChange::Rename { from, to } => {
            encoder.byte(7);
            encode_name(encoder, from);
            encode_name(encoder, to);
        }
        CatalogChange::SetDefinition { table, definition } => {
            encoder.byte(kind_of(definition, [8, 11, 13, 15, 17]));
            encoder.number(table.get());
            encode_whole(encoder, definition)?;
        }
        CatalogChange::SetSequence { sequence, definition, last } => {
            encoder.byte(9);
            encoder.number(sequence.get());
            encode_sequence_definition(encoder, definition);
            encoder.option(*last, Encoder::signed);
        }
    }
    Ok(())
}

/// The lowest version of the format that can hold a change.
pub(super) fn format_version(change: &CatalogChange) -> u32 {
    match change {
        CatalogChange::CreateTable { definition, .. }
        | CatalogChange::SetDefinition { definition, .. } => definition::format_version(definition),
        _ => 1,
    }
}

/// The byte for a definition alone, for one with foreign keys, for one with indexes, for one with their details, and for
/// one with their further details.
fn kind_of(
    definition: &TableDefinition,
    [alone, with_foreign_keys, with_indexes, with_details, with_further]: [u8; 5],
) -> u8 {
    match (has_indexes(definition), definition.foreign_keys.is_empty()) {
        (true, _) if has_further(definition) => with_further,
        (true, _) if has_details(definition) => with_details,
        (true, _) => with_indexes,
        (false, false) => with_foreign_keys,
        (false, true) => alone,
    }
}

/// A definition with its foreign keys and indexes, if any.
fn encode_whole(
    encoder: &mut Encoder,
    definition: &TableDefinition,
) -> std::result::Result<(), DataFileError> {
    encode_definition(encoder, definition)?;
    if has_indexes(definition) || !definition.foreign_keys.is_empty() {
        encode_foreign_keys(encoder, definition);
    }
    if has_indexes(definition) {
        encode_indexes(encoder, definition);
    }
    if has_details(definition) {
        encode_details(encoder, definition);
    }
    if has_further(definition) {
        encode_further(encoder, definition);
    }
    Ok(())
}

fn decode_whole(decoder: &mut Decoder<'_>, kind: u8) -> Result<Arc<TableDefinition>> {
    let mut definition = decode_definition(decoder)?;
    if matches!(kind, 10..=17) {
        decode_foreign_keys(decoder, &mut definition)?;
    }
    if matches!(kind, 12..=17) {
        decode_indexes(decoder, &mut definition)?;
    }
    if matches!(kind, 14..=17) {
        decode_details(decoder, &mut definition)?;
    }
    if matches!(kind, 16 | 17) {
        decode_further(decoder, &mut definition)?;
    }
    Ok(Arc::new(definition))
}

pub(super) fn decode_catalog_change(decoder: &mut Decoder<'_>) -> Result<CatalogChange> {
    Ok(match decoder.byte("catalog change")? {
        0 => CatalogChange::CreateSchema { name: decoder.text("schema")?.into() },
        1 => CatalogChange::DropSchema { name: decoder.text("schema")?.into() },
        kind @ (2 | 10 | 12 | 14 | 16) => CatalogChange::CreateTable {
            name: decode_name(decoder)?,
            id: decode_table_id(decoder)?,
            definition: decode_whole(decoder, kind)?,
        },
        3 => CatalogChange::CreateView {
            name: decode_name(decoder)?,
            statement: Arc::new(decode_statement(decoder)?),
        },
        4 => CatalogChange::CreateExternal {
            name: decode_name(decoder)?,
            statement: Arc::new(decode_statement(decoder)?),
        },
        5 => CatalogChange::CreateSequence {
            name: decode_name(decoder)?,
            id: decode_sequence_id(decoder)?,
            definition: Arc::new(decode_sequence_definition(decoder)?),
        },
        6 => CatalogChange::Drop { name: decode_name(decoder)? },
        7 => CatalogChange::Rename { from: decode_name(decoder)?, to: decode_name(decoder)? },
        kind @ (8 | 11 | 13 | 15 | 17) => CatalogChange::SetDefinition {
            table: decode_table_id(decoder)?,
            definition: decode_whole(decoder, kind)?,
        },
        9 => CatalogChange::SetSequence {
            sequence: decode_sequence_id(decoder)?,
            definition: Arc::new(decode_sequence_definition(decoder)?),
            last: decoder.option("last value", |decoder| decoder.signed("last value"))?,
        },
        other => return Err(decoder.error("catalog change", format!("unknown change {other}"))),
    })
}

/// The next id must exist too.
fn decode_id(decoder: &mut Decoder<'_>, what: &'static str) -> Result<u64> {
    match decoder.number(what)? {
        u64::MAX => Err(decoder.error(what, "the number is too large")),
        number => Ok(number),
    }
}

fn decode_table_id(decoder: &mut Decoder<'_>) -> Result<TableId> {
    decode_id(decoder, "table").map(TableId::new)
}

fn decode_sequence_id(decoder: &mut Decoder<'_>) -> Result<SequenceId> {
    decode_id(decoder, "sequence").map(SequenceId::new)
}

pub(crate) fn encode_name(encoder: &mut Encoder, name: &RelationName) {
    encoder.text(&name.schema);
    encoder.text(&name.name);
}

pub(crate) fn decode_name(decoder: &mut Decoder<'_>) -> Result<RelationName> {
    let schema = decoder.text("schema of a name")?;
    Ok(RelationName::new(schema, decoder.text("name")?))
}

pub(crate) fn encode_statement(encoder: &mut Encoder, statement: &StoredStatement) {
    encoder.text(&statement.sql);
    encoder.text(&statement.schema);
    encoder.text(&statement.options);
}

pub(crate) fn decode_statement(decoder: &mut Decoder<'_>) -> Result<StoredStatement> {
    let sql = decoder.text("statement")?.into();
    let schema = decoder.text("schema of a statement")?.into();
    Ok(StoredStatement { sql, schema, options: decoder.text("options of a statement")?.into() })
}

pub(crate) fn encode_sequence_definition(encoder: &mut Encoder, definition: &SequenceDefinition) {
    encoder.signed(definition.increment);
    encoder.signed(definition.min);
    encoder.signed(definition.max);
    encoder.signed(definition.start);
    encoder.flag(definition.cycle);
    encoder.number(definition.cache.into());
}

pub(crate) fn decode_sequence_definition(decoder: &mut Decoder<'_>) -> Result<SequenceDefinition> {
    let increment = decoder.signed("increment")?;
    if increment == 0 {
        return Err(decoder.error("increment", "it is 0"));
    }
    let min = decoder.signed("smallest value")?;
    let max = decoder.signed("largest value")?;
    let start = decoder.signed("first value")?;
    let cycle = decoder.flag("whether it begins anew")?;
    let cache = u32::try_from(decoder.number("cached values")?);
    let cache = cache.map_err(|_| decoder.error("cached values", "the number is too large"))?;
    Ok(SequenceDefinition { increment, min, max, start, cycle, cache })
}
