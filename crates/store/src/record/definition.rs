//! What is declared of a table, as bytes.
//!
//! | What | As |
//! |---|---|
//! | columns, with their stored types | schema |
//! | of each column its default | optional text |
//! | of each column its identity | optional: flag whether ALWAYS, number of the sequence |
//! | PRIMARY KEY and UNIQUE constraints | list: name, list of column numbers, flag whether primary |
//! | CHECK constraints | list: name, text |
//! | placement | text |

use std::sync::Arc;

use crate::codec::{DecodeError, Decoder, Encoder, decode_schema, encode_schema};
use crate::data_file::DataFileError;
use crate::ids::SequenceId;
use crate::table::{Check, Identity, IdentityKind, OnCommit, RowCodec, TableDefinition, Unique};

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
            encoder.flag(identity.kind == IdentityKind::Always);
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
    Ok(TableDefinition { columns, defaults, identities, uniques, checks, placement, on_commit })
}

fn decode_identity(decoder: &mut Decoder<'_>) -> Result<Identity> {
    let kind = match decoder.flag("kind of an identity")? {
        true => IdentityKind::Always,
        false => IdentityKind::ByDefault,
    };
    Ok(Identity { kind, sequence: SequenceId::new(decoder.number("sequence")?) })
}

fn decode_unique(decoder: &mut Decoder<'_>, count: usize) -> Result<Unique> {
    let name = decoder.text("name of a constraint")?.into();
    let columns = decoder.list("columns of a constraint", |decoder| {
        let column = decoder.size("column")?;
        match column < count {
            true => Ok(column),
            false => Err(decoder.error("column", format!("there is no column {column}"))),
        }
    })?;
    Ok(Unique { name, columns, is_primary: decoder.flag("whether it is the primary key")? })
}
