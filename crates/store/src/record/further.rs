//! Further details of indexes as bytes.
//!
//! | What | As |
//! |---|---|
//! | for each index that is not unique, whether it is shown as USING hash | flag |
//! | the operator classes of its columns | list of optional texts |
//! | for each unique one, how it compares | byte: 1 if NULLS NOT DISTINCT, plus 2 if DEFERRABLE, or 4 if INITIALLY DEFERRED |
//! | the operator classes of its columns | list of optional texts |
//! | indexes that hold no rows | list: name, method, keys (list), column numbers of INCLUDE (list), condition (optional text) |
//!
//! A key of these is a byte (0 a column, 1 an expression), then a column number or a text, a flag whether DESC, a flag
//! whether NULLS FIRST, and its operator class (optional text).

use std::sync::Arc;

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::table::{
    CatalogIndex, CatalogKey, CatalogKeyOf, Deferral, KeyOrder, TableDefinition, Unique,
};

use super::definition::{decode_column, decode_columns};

type Result<T> = std::result::Result<T, DecodeError>;

/// Whether there is anything that [`encode_further`] writes.
pub(crate) fn has_further(definition: &TableDefinition) -> bool {
    let (mut uniques, mut indexes) = (definition.uniques.iter(), definition.indexes.iter());
    !definition.catalog_indexes.is_empty()
        || uniques.any(|unique| compares(unique) != 0 || !unique.operator_classes.is_empty())
        || indexes.any(|index| index.is_hash || !index.operator_classes.is_empty())
}

/// Whether there are constraints that version 6 of the format adds.
pub(crate) fn has_deferrable_uniques(definition: &TableDefinition) -> bool {
    definition.uniques.iter().any(|unique| !unique.is_immediate())
}

fn compares(unique: &Unique) -> u8 {
    u8::from(unique.nulls_not_distinct)
        + match unique.deferral {
            Deferral::Never => 0,
            Deferral::InitiallyImmediate => 2,
            Deferral::InitiallyDeferred => 4,
        }
}

pub(crate) fn encode_further(encoder: &mut Encoder, definition: &TableDefinition) {
    for index in &definition.indexes {
        encoder.flag(index.is_hash);
        encode_classes(encoder, &index.operator_classes);
    }
    for unique in &definition.uniques {
        encoder.byte(compares(unique));
        encode_classes(encoder, &unique.operator_classes);
    }
    encoder.list(definition.catalog_indexes.iter(), |encoder, index| {
        encoder.text(&index.name);
        encoder.text(&index.method);
        encoder.list(index.keys.iter(), encode_key);
        encoder.list(index.included.iter(), |encoder, column| encoder.count(*column));
        encoder.option(index.condition.as_deref(), Encoder::text);
    });
}

fn encode_classes(encoder: &mut Encoder, classes: &[Option<Arc<str>>]) {
    encoder.list(classes.iter(), |encoder, class| encoder.option(class.as_deref(), Encoder::text));
}

fn encode_key(encoder: &mut Encoder, key: &CatalogKey) {
    match &key.of {
        CatalogKeyOf::Column(column) => {
            encoder.byte(0);
            encoder.count(*column);
        }
        CatalogKeyOf::Expression(sql) => {
            encoder.byte(1);
            encoder.text(sql);
        }
    }
    encoder.flag(key.order.descending);
    encoder.flag(key.order.nulls_first);
    encoder.option(key.operator_class.as_deref(), Encoder::text);
}

/// Reads the further details of a definition's indexes.
pub(crate) fn decode_further(
    decoder: &mut Decoder<'_>,
    definition: &mut TableDefinition,
) -> Result<()> {
    let count = definition.columns.fields().len();
    for index in &mut definition.indexes {
        index.is_hash = decoder.flag("whether USING hash")?;
        index.operator_classes = decode_classes(decoder, index.keys.len())?;
    }
    for unique in &mut definition.uniques {
        let compares = decoder.byte("how a unique constraint compares")?;
        unique.nulls_not_distinct = compares & 1 == 1;
        unique.deferral = match compares & !1 {
            0 => Deferral::Never,
            2 => Deferral::InitiallyImmediate,
            4 => Deferral::InitiallyDeferred,
            _ => {
                let reason = format!("unknown byte {compares}");
                return Err(decoder.error("how a unique constraint compares", reason));
            }
        };
        unique.operator_classes = decode_classes(decoder, unique.columns.len())?;
    }
    definition.catalog_indexes = decoder.list("indexes without rows", |decoder| {
        let name = decoder.text("name of an index")?.into();
        let method = decoder.text("method of an index")?.into();
        let keys = decoder.list("keys of an index", |decoder| decode_key(decoder, count))?;
        if keys.is_empty() {
            return Err(decoder.error("keys of an index", "there are none"));
        }
        let included = decode_columns(decoder, count)?;
        let condition = decoder.option("condition", |decoder| decoder.text("condition"))?;
        Ok(CatalogIndex { name, method, keys, included, condition: condition.map(Into::into) })
    })?;
    Ok(())
}

fn decode_classes(decoder: &mut Decoder<'_>, keys: usize) -> Result<Vec<Option<Arc<str>>>> {
    let classes = decoder.list("operator classes", decode_class)?;
    match classes.is_empty() || classes.len() == keys {
        true => Ok(classes),
        false => Err(decoder.error("operator classes", "their number differs")),
    }
}

fn decode_class(decoder: &mut Decoder<'_>) -> Result<Option<Arc<str>>> {
    let class = decoder.option("operator class", |decoder| decoder.text("operator class"))?;
    Ok(class.map(Into::into))
}

fn decode_key(decoder: &mut Decoder<'_>, count: usize) -> Result<CatalogKey> {
    let of = match decoder.byte("kind of a key")? {
        0 => CatalogKeyOf::Column(decode_column(decoder, count)?),
        1 => CatalogKeyOf::Expression(decoder.text("expression")?.into()),
        other => return Err(decoder.error("kind of a key", format!("unknown kind {other}"))),
    };
    let descending = decoder.flag("whether descending")?;
    let order = KeyOrder { descending, nulls_first: decoder.flag("whether NULLS FIRST")? };
    Ok(CatalogKey { of, order, operator_class: decode_class(decoder)? })
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use atoll_placement::Strategy;

    use super::*;
    use crate::table::{Index, IndexKey};

    fn definition() -> TableDefinition {
        let fields =
            vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8View, true)];
        let mut definition = TableDefinition::new(Arc::new(Schema::new(fields)), Strategy::Aligned);
        definition.uniques =
            vec![Unique { name: "u".into(), columns: vec![1, 0], ..Unique::default() }];
        let key = IndexKey { column: 1, descending: false, nulls_first: false };
        definition.indexes = vec![Index { name: "i".into(), keys: vec![key], ..Index::default() }];
        definition
    }

    #[test]
    fn further_details_are_read_as_they_were_written_and_damage_is_noticed() {
        let mut whole = definition();
        assert!(!has_further(&whole));
        whole.uniques[0].nulls_not_distinct = true;
        whole.uniques[0].deferral = Deferral::InitiallyDeferred;
        assert!(has_deferrable_uniques(&whole));
        whole.uniques[0].operator_classes = vec![Some("text_pattern_ops".into()), None];
        whole.indexes[0].is_hash = true;
        let key = |of| CatalogKey {
            of,
            order: KeyOrder { descending: true, nulls_first: false },
            operator_class: Some("gin_trgm_ops".into()),
        };
        whole.catalog_indexes = vec![CatalogIndex {
            name: "g".into(),
            method: "gin".into(),
            keys: vec![key(CatalogKeyOf::Column(1)), key(CatalogKeyOf::Expression("a + 1".into()))],
            included: vec![0],
            condition: Some("(a > 1)".into()),
        }];
        assert!(has_further(&whole));
        let mut encoder = Encoder::new();
        encode_further(&mut encoder, &whole);
        let bytes = encoder.finish();
        let mut read = definition();
        let mut decoder = Decoder::new(&bytes);
        decode_further(&mut decoder, &mut read).unwrap();
        decoder.end().unwrap();
        assert_eq!(read, whole);
        for end in 0..bytes.len() {
            let mut decoder = Decoder::new(&bytes[..end]);
            assert!(decode_further(&mut decoder, &mut definition()).is_err(), "{end} bytes");
        }
    }
}
