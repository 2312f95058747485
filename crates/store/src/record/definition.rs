//! Definitions of tables, as bytes.
//!
//! | What | As |
//! |---|---|
//! | columns, with their stored types | schema |
//! | for each column, its default | optional text |
//! | for each column, the sequence that it owns | optional: byte (0 BY DEFAULT, 1 ALWAYS, 2 SERIAL), number of the sequence |
//! | PRIMARY KEY and UNIQUE constraints | list: name, list of column numbers, flag whether primary |
//! | CHECK constraints | list: name, text |
//! | placement | text |
//!
//! FOREIGN KEY constraints are stored separately, if there are any: list of name, list of column numbers, number of the
//! parent, list of its column numbers, actions on DELETE and UPDATE of the parent (a byte each: 0 NO ACTION,
//! 1 RESTRICT, 2 CASCADE, 3 SET NULL, 4 SET DEFAULT), flag whether MATCH FULL, when they are checked (byte: 0 NOT
//! DEFERRABLE, 1 INITIALLY IMMEDIATE, 2 INITIALLY DEFERRED).
//!
//! So are indexes: list of name, keys (a list of column number, flag whether DESC, flag whether NULLS FIRST) and list of
//! the column numbers of INCLUDE; then, for each PRIMARY KEY and UNIQUE constraint, a flag whether it is an index of
//! CREATE UNIQUE INDEX.
//!
//! So are their details, if there are any ([`details`](super::details), then [`further`](super::further)).

use std::sync::Arc;

use super::details::{has_details, has_newer_conditions, has_newer_functions};
use super::further::{has_deferrable_uniques, has_further};
use crate::codec::{DecodeError, Decoder, Encoder, decode_schema, encode_schema};
use crate::data_file::DataFileError;
use crate::ids::{SequenceId, TableId};
use crate::table::{
    Check, Deferral, ForeignKey, Identity, IdentityKind, Index, IndexKey, OnCommit,
    ReferentialAction, RowCodec, TableDefinition, Unique, is_indexable,
};

type Result<T> = std::result::Result<T, DecodeError>;

pub(crate) fn encode_definition(
    encoder: &mut Encoder,
    definition: &TableDefinition,
) -> std::result::Result<(), DataFileError> {
    encode_schema(encoder, &definition.columns)
        .map_err(|of| DataFileError::Type { data_type: of.to_string() })?;
    for default in &definition.defaults {
        encoder.option(default.as_deref(), Encoder::text);
    }
    for identity in &definition.identities {
        encoder.option(identity.as_ref(), |encoder, identity| {
            encoder.byte(match identity.kind {
                IdentityKind::ByDefault => 0,
                IdentityKind::Always => 1,
                IdentityKind::Serial => 2,
            });
            encoder.number(identity.sequence.get());
        });
    }
    encoder.list(definition.uniques.iter(), |encoder, unique| {
        encoder.text(&unique.name);
        encoder.list(unique.columns.iter(), |encoder, column| encoder.count(*column));
        encoder.flag(unique.is_primary);
    });
    encoder.list(definition.checks.iter(), |encoder, check| {
        encoder.text(&check.name);
        encoder.text(&check.sql);
    });
    encoder.text(&definition.placement.to_string());
    Ok(())
}

pub(crate) fn decode_definition(decoder: &mut Decoder<'_>) -> Result<TableDefinition> {
    let columns = decode_schema(decoder)?;
    if let Err(error) = RowCodec::new(&columns) {
        return Err(decoder.error("columns", error.to_string()));
    }
    let count = columns.fields().len();
    let default = |decoder: &mut Decoder<'_>| decoder.text("default").map(Arc::from);
    let defaults = (0..count).map(|_| decoder.option("default", default));
    let defaults = defaults.collect::<Result<_>>()?;
    let identities = (0..count).map(|_| decoder.option("identity", decode_identity));
    let identities = identities.collect::<Result<_>>()?;
    let uniques = decoder.list("unique constraints", |decoder| decode_unique(decoder, count))?;
    let checks = decoder.list("checks", |decoder| {
        let name = decoder.text("name of a constraint")?.into();
        Ok(Check { name, sql: decoder.text("condition of a constraint")?.into() })
    })?;
    let placement = decoder.text("placement")?.parse();
    let placement = placement.map_err(|error: atoll_placement::StrategyParseError| {
        decoder.error("placement", error.to_string())
    })?;
    // Temporary tables, which are in no record, have another one.
    let on_commit = OnCommit::default();
    let (indexes, catalog_indexes, foreign_keys) = (Vec::new(), Vec::new(), Vec::new());
    Ok(TableDefinition {
        columns,
        defaults,
        identities,
        uniques,
        indexes,
        catalog_indexes,
        checks,
        foreign_keys,
        placement,
        on_commit,
    })
}

pub(crate) fn encode_foreign_keys(encoder: &mut Encoder, definition: &TableDefinition) {
    encoder.list(definition.foreign_keys.iter(), |encoder, key| {
        encoder.text(&key.name);
        encoder.list(key.columns.iter(), |encoder, column| encoder.count(*column));
        encoder.number(key.parent.get());
        encoder.list(key.parent_columns.iter(), |encoder, column| encoder.count(*column));
        encoder.byte(byte_of(key.on_delete));
        encoder.byte(byte_of(key.on_update));
        encoder.flag(key.is_full);
        encoder.byte(match key.deferral {
            Deferral::Never => 0,
            Deferral::InitiallyImmediate => 1,
            Deferral::InitiallyDeferred => 2,
        });
    });
}

/// Whether there is anything that [`encode_indexes`] writes.
pub(crate) fn has_indexes(definition: &TableDefinition) -> bool {
    !definition.indexes.is_empty()
        || definition.uniques.iter().any(|unique| unique.is_index)
        || has_details(definition)
}

/// The lowest version of the format that can hold a definition: the second one has serial columns and details of indexes,
/// the third one their further details, and conditions that compare columns or are LIKE, the fourth one functions of
/// texts other than lower and upper, the sixth one deferrable unique constraints.
pub(crate) fn format_version(definition: &TableDefinition) -> u32 {
    let mut owned = definition.identities.iter().flatten();
    match has_details(definition) || owned.any(|owned| owned.kind == IdentityKind::Serial) {
        _ if has_deferrable_uniques(definition) => 6,
        _ if has_newer_functions(definition) => 4,
        _ if has_further(definition) || has_newer_conditions(definition) => 3,
        true => 2,
        false => 1,
    }
}

pub(crate) fn encode_indexes(encoder: &mut Encoder, definition: &TableDefinition) {
    encoder.list(definition.indexes.iter(), |encoder, index| {
        encoder.text(&index.name);
        encoder.list(index.keys.iter(), |encoder, key| {
            encoder.count(key.column);
            encoder.flag(key.descending);
            encoder.flag(key.nulls_first);
        });
        encoder.list(index.included.iter(), |encoder, column| encoder.count(*column));
    });
    encoder.list(definition.uniques.iter(), |encoder, unique| encoder.flag(unique.is_index));
}

/// Reads the indexes into a definition.
pub(crate) fn decode_indexes(
    decoder: &mut Decoder<'_>,
    definition: &mut TableDefinition,
) -> Result<()> {
    let fields = definition.columns.fields();
    definition.indexes = decoder.list("indexes", |decoder| {
        let name = decoder.text("name of an index")?.into();
        let keys = decoder.list("keys of an index", |decoder| {
            let column = decode_column(decoder, fields.len())?;
            if !is_indexable(fields[column].data_type()) {
                return Err(decoder.error("column", "its type cannot be in an index"));
            }
            let descending = decoder.flag("whether descending")?;
            Ok(IndexKey { column, descending, nulls_first: decoder.flag("whether NULLS FIRST")? })
        })?;
        if keys.is_empty() {
            return Err(decoder.error("keys of an index", "there are none"));
        }
        let included = decode_columns(decoder, fields.len())?;
        Ok(Index { name, keys, included, ..Index::default() })
    })?;
    let flags = decoder
        .list("kinds of unique constraints", |decoder| decoder.flag("whether it is an index"))?;
    if flags.len() != definition.uniques.len() {
        return Err(decoder.error("kinds of unique constraints", "their number differs"));
    }
    for (unique, is_index) in definition.uniques.iter_mut().zip(flags) {
        unique.is_index = is_index;
    }
    Ok(())
}

fn byte_of(action: ReferentialAction) -> u8 {
    match action {
        ReferentialAction::NoAction => 0,
        ReferentialAction::Restrict => 1,
        ReferentialAction::Cascade => 2,
        ReferentialAction::SetNull => 3,
        ReferentialAction::SetDefault => 4,
    }
}

/// Reads the foreign keys into a definition.
pub(crate) fn decode_foreign_keys(
    decoder: &mut Decoder<'_>,
    definition: &mut TableDefinition,
) -> Result<()> {
    let count = definition.columns.fields().len();
    definition.foreign_keys = decoder.list("foreign keys", |decoder| {
        let name = decoder.text("name of a constraint")?.into();
        let columns = decode_columns(decoder, count)?;
        let parent = TableId::new(decoder.number("parent")?);
        let parent_columns =
            decoder.list("columns of a parent", |decoder| decoder.size("column"))?;
        if columns.is_empty() || columns.len() != parent_columns.len() {
            return Err(decoder.error("columns of a parent", "their number differs"));
        }
        let on_delete = decode_action(decoder)?;
        let on_update = decode_action(decoder)?;
        let is_full = decoder.flag("whether MATCH FULL")?;
        let deferral = match decoder.byte("deferral")? {
            0 => Deferral::Never,
            1 => Deferral::InitiallyImmediate,
            2 => Deferral::InitiallyDeferred,
            other => return Err(decoder.error("deferral", format!("unknown deferral {other}"))),
        };
        Ok(ForeignKey {
            name,
            columns,
            parent,
            parent_columns,
            on_delete,
            on_update,
            is_full,
            deferral,
        })
    })?;
    Ok(())
}

/// Column numbers of a table with `count` columns.
pub(super) fn decode_columns(decoder: &mut Decoder<'_>, count: usize) -> Result<Vec<usize>> {
    decoder.list("columns of a constraint", |decoder| decode_column(decoder, count))
}

pub(super) fn decode_column(decoder: &mut Decoder<'_>, count: usize) -> Result<usize> {
    let column = decoder.size("column")?;
    match column < count {
        true => Ok(column),
        false => Err(decoder.error("column", format!("column {column} does not exist"))),
    }
}

fn decode_action(decoder: &mut Decoder<'_>) -> Result<ReferentialAction> {
    Ok(match decoder.byte("action of a foreign key")? {
        0 => ReferentialAction::NoAction,
        1 => ReferentialAction::Restrict,
        2 => ReferentialAction::Cascade,
        3 => ReferentialAction::SetNull,
        4 => ReferentialAction::SetDefault,
        other => {
            return Err(decoder.error("action of a foreign key", format!("unknown action {other}")));
        }
    })
}

fn decode_identity(decoder: &mut Decoder<'_>) -> Result<Identity> {
    let kind = match decoder.byte("kind of an identity")? {
        0 => IdentityKind::ByDefault,
        1 => IdentityKind::Always,
        2 => IdentityKind::Serial,
        other => {
            return Err(decoder.error("kind of an identity", format!("unknown kind {other}")));
        }
    };
    Ok(Identity { kind, sequence: SequenceId::new(decoder.number("sequence")?) })
}

fn decode_unique(decoder: &mut Decoder<'_>, count: usize) -> Result<Unique> {
    let name = decoder.text("name of a constraint")?.into();
    let columns = decode_columns(decoder, count)?;
    let is_primary = decoder.flag("whether it is the primary key")?;
    Ok(Unique { name, columns, is_primary, ..Unique::default() })
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use atoll_placement::Strategy;

    use super::*;
    use ReferentialAction::{Cascade, NoAction, Restrict, SetDefault, SetNull};

    #[test]
    fn foreign_keys_and_indexes_are_read_as_they_were_written() {
        let field = |name| Field::new(name, DataType::Int32, true);
        let columns = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let mut definition = TableDefinition::new(columns, Strategy::Aligned);
        for (at, action) in
            [NoAction, Restrict, Cascade, SetNull, SetDefault].into_iter().enumerate()
        {
            definition.foreign_keys.push(ForeignKey {
                name: format!("k{at}").into(),
                columns: vec![1, 0],
                parent: TableId::new(at as u64),
                parent_columns: vec![at, 7],
                on_delete: action,
                on_update: if at == 0 { SetNull } else { NoAction },
                is_full: at % 2 == 0,
                deferral: [
                    Deferral::Never,
                    Deferral::InitiallyImmediate,
                    Deferral::InitiallyDeferred,
                ][at % 3],
            });
        }
        let unique =
            |is_index| Unique { name: "u".into(), columns: vec![1], is_index, ..Unique::default() };
        definition.uniques = vec![unique(false), unique(true)];
        let key = |column, descending| IndexKey { column, descending, nulls_first: !descending };
        let keys = vec![key(1, true), key(0, false)];
        definition.indexes =
            vec![Index { name: "i".into(), keys, included: vec![0], ..Index::default() }];
        let mut encoder = Encoder::new();
        encode_definition(&mut encoder, &definition).unwrap();
        encode_foreign_keys(&mut encoder, &definition);
        encode_indexes(&mut encoder, &definition);
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut read = decode_definition(&mut decoder).unwrap();
        assert!(read.foreign_keys.is_empty() && !decoder.is_at_end());
        decode_foreign_keys(&mut decoder, &mut read).unwrap();
        decode_indexes(&mut decoder, &mut read).unwrap();
        decoder.end().unwrap();
        assert_eq!(read, definition);
        for end in 0..bytes.len() {
            let mut decoder = Decoder::new(&bytes[..end]);
            let read = decode_definition(&mut decoder);
            let read = read.and_then(|mut it| {
                decode_foreign_keys(&mut decoder, &mut it)?;
                decode_indexes(&mut decoder, &mut it)
            });
            assert!(read.is_err(), "{end} of {} bytes", bytes.len());
        }
    }
}
