//! Details of indexes as bytes: conditions, expressions, and what the catalog shows of unique ones.
//!
//! | What | As |
//! |---|---|
//! | for each index that is not unique, its condition | optional text |
//! | the expressions of its columns | as below, not coalesce |
//! | for each unique one, the order of its columns | list: flag whether DESC, flag whether NULLS FIRST |
//! | the columns of its INCLUDE | list of column numbers |
//! | the expressions of its columns | list: optional: text, byte (0 lower, 1 upper, 2 coalesce with the value that follows, as in a row, 3 functions of texts as below) |
//! | its condition | optional: text, condition |
//!
//! A condition is a byte, then its parts:
//!
//! | Byte | Condition | Then |
//! |---|---|---|
//! | 0 | IS NULL | column number |
//! | 1 to 6 | =, <>, <, <=, >, >= | column number, value as in a row |
//! | 7 | NOT | condition |
//! | 8, 9 | AND, OR | list of conditions |
//! | 10 | LIKE | column number, pattern |
//! | 11 to 16 | as 1 to 6, of two columns | both numbers |
//!
//! Bytes from 10 on need version 3 of the format.
//!
//! Functions of texts are a list: byte (0 lower, 1 upper, 2 trim at the start, 3 at the end, 4 at both, 5 substring with
//! its first character and optional number of characters, 6 md5). They need version 4 of the format.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::table::{
    CONDITION_DEPTH_MAX, ComparisonOperator, IndexCondition, KeyExpression, KeyFunction, KeyOrder,
    RowCodec, RowCondition, TableDefinition, TextFunction,
};

use super::definition::{decode_column, decode_columns};
use super::further::has_further;

type Result<T> = std::result::Result<T, DecodeError>;

const OPERATORS: [(u8, ComparisonOperator); 6] = [
    (1, ComparisonOperator::Equal),
    (2, ComparisonOperator::NotEqual),
    (3, ComparisonOperator::Less),
    (4, ComparisonOperator::LessOrEqual),
    (5, ComparisonOperator::Greater),
    (6, ComparisonOperator::GreaterOrEqual),
];

/// The byte of an operator between columns is that of the operator with this added.
const OF_COLUMNS: u8 = 10;

/// Whether there is anything that [`encode_details`] writes.
pub(crate) fn has_details(definition: &TableDefinition) -> bool {
    let of_unique = definition.uniques.iter().any(|unique| {
        !unique.is_plain() || !unique.order.is_empty() || !unique.included.is_empty()
    });
    let mut indexes = definition.indexes.iter();
    has_further(definition)
        || of_unique
        || indexes.any(|it| it.condition.is_some() || !it.expressions.is_empty())
}

/// Whether a condition has forms that version 3 of the format adds.
pub(crate) fn has_newer_conditions(definition: &TableDefinition) -> bool {
    fn is_newer(condition: &RowCondition) -> bool {
        match condition {
            RowCondition::CompareColumns { .. } | RowCondition::Like { .. } => true,
            RowCondition::IsNull(_) | RowCondition::Compare { .. } => false,
            RowCondition::Not(condition) => is_newer(condition),
            RowCondition::And(conditions) | RowCondition::Or(conditions) => {
                conditions.iter().any(is_newer)
            }
        }
    }
    let mut conditions = definition.uniques.iter().filter_map(|unique| unique.condition.as_ref());
    conditions.any(|condition| is_newer(&condition.rows))
}

/// Whether an index has functions that version 4 of the format adds.
pub(crate) fn has_newer_functions(definition: &TableDefinition) -> bool {
    let of_uniques = definition.uniques.iter().flat_map(|unique| &unique.expressions);
    let of_indexes = definition.indexes.iter().flat_map(|index| &index.expressions);
    let mut all = of_uniques.chain(of_indexes).flatten();
    all.any(|expression| matches!(expression.function, KeyFunction::Texts(_)))
}

pub(crate) fn encode_details(encoder: &mut Encoder, definition: &TableDefinition) {
    for index in &definition.indexes {
        encoder.option(index.condition.as_deref(), Encoder::text);
        encoder.list(index.expressions.iter(), |encoder, expression| {
            encoder.option(expression.as_ref(), encode_expression);
        });
    }
    for unique in &definition.uniques {
        encoder.list(unique.order.iter(), |encoder, order| {
            encoder.flag(order.descending);
            encoder.flag(order.nulls_first);
        });
        encoder.list(unique.included.iter(), |encoder, column| encoder.count(*column));
        encoder.list(unique.expressions.iter(), |encoder, expression| {
            encoder.option(expression.as_ref(), encode_expression);
        });
        encoder.option(unique.condition.as_ref(), |encoder, condition| {
            encoder.text(&condition.sql);
            encode_condition(encoder, &condition.rows);
        });
    }
}

fn encode_expression(encoder: &mut Encoder, expression: &KeyExpression) {
    encoder.text(&expression.sql);
    match &expression.function {
        KeyFunction::Lower => encoder.byte(0),
        KeyFunction::Upper => encoder.byte(1),
        KeyFunction::Coalesce(value) => {
            encoder.byte(2);
            encoder.bytes(value);
        }
        KeyFunction::Texts(functions) => {
            encoder.byte(3);
            encoder.list(functions.iter(), |encoder, function| {
                encode_text_function(encoder, *function);
            });
        }
    }
}

fn encode_text_function(encoder: &mut Encoder, function: TextFunction) {
    match function {
        TextFunction::Lower => encoder.byte(0),
        TextFunction::Upper => encoder.byte(1),
        TextFunction::Trim { start: true, end: false } => encoder.byte(2),
        TextFunction::Trim { start: false, end: true } => encoder.byte(3),
        TextFunction::Trim { .. } => encoder.byte(4),
        TextFunction::Substring { start, count } => {
            encoder.byte(5);
            encoder.number(start);
            encoder.option(count, Encoder::number);
        }
        TextFunction::Md5 => encoder.byte(6),
    }
}

fn decode_text_function(decoder: &mut Decoder<'_>) -> Result<TextFunction> {
    Ok(match decoder.byte("function of a text")? {
        0 => TextFunction::Lower,
        1 => TextFunction::Upper,
        2 => TextFunction::Trim { start: true, end: false },
        3 => TextFunction::Trim { start: false, end: true },
        4 => TextFunction::Trim { start: true, end: true },
        5 => {
            let start = decoder.number("first character")?;
            let count = decoder.option("characters", |decoder| decoder.number("characters"))?;
            TextFunction::Substring { start, count }
        }
        6 => TextFunction::Md5,
        other => {
            return Err(decoder.error("function of a text", format!("unknown function {other}")));
        }
    })
}

fn encode_condition(encoder: &mut Encoder, condition: &RowCondition) {
    let mut list = |byte, conditions: &[RowCondition]| {
        encoder.byte(byte);
        encoder.list(conditions.iter(), encode_condition);
    };
    match condition {
        RowCondition::And(conditions) => list(8, conditions),
        RowCondition::Or(conditions) => list(9, conditions),
        RowCondition::IsNull(column) => {
            encoder.byte(0);
            encoder.count(*column);
        }
        RowCondition::Compare { column, operator, value } => {
            encoder.byte(byte_of(*operator));
            encoder.count(*column);
            encoder.bytes(value);
        }
        RowCondition::CompareColumns { column, operator, other } => {
            encoder.byte(OF_COLUMNS + byte_of(*operator));
            encoder.count(*column);
            encoder.count(*other);
        }
        RowCondition::Like { column, pattern } => {
            encoder.byte(10);
            encoder.count(*column);
            encoder.text(pattern);
        }
        RowCondition::Not(condition) => {
            encoder.byte(7);
            encode_condition(encoder, condition);
        }
    }
}

fn byte_of(operator: ComparisonOperator) -> u8 {
    let known = OPERATORS.iter().find(|(_, known)| *known == operator);
    known.map_or(1, |(byte, _)| *byte)
}

/// Reads the details of a definition's indexes.
pub(crate) fn decode_details(
    decoder: &mut Decoder<'_>,
    definition: &mut TableDefinition,
) -> Result<()> {
    let codec = RowCodec::new(&definition.columns);
    let codec = codec.map_err(|error| decoder.error("columns", error.to_string()))?;
    let count = definition.columns.fields().len();
    for index in &mut definition.indexes {
        let condition = decoder.option("condition", |decoder| decoder.text("condition"))?;
        index.condition = condition.map(Into::into);
        let columns = index.keys.iter().map(|key| key.column);
        index.expressions = decode_expressions(decoder, &codec, columns)?;
        if index.expressions.iter().flatten().any(|it| !it.function.is_of_text()) {
            return Err(decoder.error("expressions of an index", "one is not of texts"));
        }
    }
    for unique in &mut definition.uniques {
        unique.order = decoder.list("order of an index", |decoder| {
            let descending = decoder.flag("whether descending")?;
            Ok(KeyOrder { descending, nulls_first: decoder.flag("whether NULLS FIRST")? })
        })?;
        unique.included = decode_columns(decoder, count)?;
        unique.expressions = decode_expressions(decoder, &codec, unique.columns.iter().copied())?;
        unique.condition = decoder.option("condition of an index", |decoder| {
            let sql = decoder.text("condition of an index")?.into();
            Ok(IndexCondition { sql, rows: decode_condition(decoder, &codec, 1)? })
        })?;
    }
    Ok(())
}

fn decode_expressions(
    decoder: &mut Decoder<'_>,
    codec: &RowCodec,
    mut columns: impl Iterator<Item = usize>,
) -> Result<Vec<Option<KeyExpression>>> {
    decoder.list("expressions of an index", |decoder| {
        let Some(column) = columns.next() else {
            return Err(decoder.error("expressions of an index", "there are too many"));
        };
        decoder.option("expression", |decoder| decode_expression(decoder, codec, column))
    })
}

fn decode_expression(
    decoder: &mut Decoder<'_>,
    codec: &RowCodec,
    column: usize,
) -> Result<KeyExpression> {
    let sql = decoder.text("expression")?.into();
    let is_of_text = codec.schema().field(column).data_type().is_string();
    let function = match decoder.byte("function")? {
        0 if is_of_text => KeyFunction::Lower,
        1 if is_of_text => KeyFunction::Upper,
        2 => KeyFunction::Coalesce(decode_value(decoder, codec, column)?),
        3 if is_of_text => {
            let functions = decoder.list("functions of a text", decode_text_function)?;
            match KeyFunction::of_text_functions(functions) {
                Some(function @ KeyFunction::Texts(_)) => function,
                _ => return Err(decoder.error("functions of a text", "there is only one")),
            }
        }
        other => return Err(decoder.error("function", format!("unknown function {other}"))),
    };
    Ok(KeyExpression { sql, function })
}

fn decode_condition(
    decoder: &mut Decoder<'_>,
    codec: &RowCodec,
    depth: usize,
) -> Result<RowCondition> {
    if depth > CONDITION_DEPTH_MAX {
        return Err(decoder.error("condition", "it is nested too deeply"));
    }
    let count = codec.schema().fields().len();
    Ok(match decoder.byte("kind of a condition")? {
        0 => RowCondition::IsNull(decode_column(decoder, count)?),
        7 => RowCondition::Not(Box::new(decode_condition(decoder, codec, depth + 1)?)),
        kind @ (8 | 9) => {
            let parts = decoder
                .list("conditions", |decoder| decode_condition(decoder, codec, depth + 1))?;
            if kind == 8 { RowCondition::And(parts) } else { RowCondition::Or(parts) }
        }
        10 => {
            let column = decode_column(decoder, count)?;
            if !codec.schema().field(column).data_type().is_string() {
                return Err(decoder.error("condition", "its column is not of texts"));
            }
            RowCondition::Like { column, pattern: decoder.text("pattern")?.into() }
        }
        kind => decode_comparison(decoder, codec, kind)?,
    })
}

/// A comparison of a column with a value, or with another column.
fn decode_comparison(
    decoder: &mut Decoder<'_>,
    codec: &RowCodec,
    kind: u8,
) -> Result<RowCondition> {
    let is_of_columns = kind > OF_COLUMNS;
    let byte = if is_of_columns { kind - OF_COLUMNS } else { kind };
    let Some((_, operator)) = OPERATORS.iter().find(|(known, _)| *known == byte) else {
        return Err(decoder.error("condition", format!("unknown condition {kind}")));
    };
    let fields = codec.schema().fields();
    let column = decode_column(decoder, fields.len())?;
    if !RowCondition::compares(fields[column].data_type()) {
        return Err(decoder.error("condition", "its column cannot be compared"));
    }
    if !is_of_columns {
        let value = decode_value(decoder, codec, column)?;
        return Ok(RowCondition::Compare { column, operator: *operator, value });
    }
    let other = decode_column(decoder, fields.len())?;
    match fields[column].data_type() == fields[other].data_type() {
        true => Ok(RowCondition::CompareColumns { column, operator: *operator, other }),
        false => Err(decoder.error("condition", "its columns are of different types")),
    }
}

/// A value of a column.
fn decode_value(decoder: &mut Decoder<'_>, codec: &RowCodec, column: usize) -> Result<Box<[u8]>> {
    let value: Box<[u8]> = decoder.bytes("value")?.into();
    match codec.is_value(column, &value) {
        true => Ok(value),
        false => Err(decoder.error("value", "it is not of its column's type")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema};
    use atoll_placement::Strategy;

    use super::super::definition::format_version;
    use super::*;
    use crate::table::{Index, IndexKey, Unique};

    fn definition() -> TableDefinition {
        let fields =
            vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8View, true)];
        let mut definition = TableDefinition::new(Arc::new(Schema::new(fields)), Strategy::Aligned);
        let names = ["u", "v"].map(|name| Unique {
            name: name.into(),
            columns: vec![1, 0],
            is_index: true,
            ..Unique::default()
        });
        definition.uniques = names.to_vec();
        let key = IndexKey { column: 1, descending: false, nulls_first: false };
        let index = Index { name: "i".into(), keys: vec![key], ..Index::default() };
        definition.indexes = vec![index];
        definition
    }

    #[test]
    fn details_are_read_as_they_were_written_and_damage_is_noticed() {
        let mut whole = definition();
        assert!(!has_details(&whole));
        whole.indexes[0].condition = Some("a > 1".into());
        let compare = |operator| RowCondition::Compare {
            column: 0,
            operator,
            value: 7_i32.to_le_bytes().into(),
        };
        let mut parts: Vec<RowCondition> = OPERATORS.map(|(_, it)| compare(it)).to_vec();
        parts.push(RowCondition::Not(Box::new(RowCondition::IsNull(1))));
        parts.push(RowCondition::Like { column: 1, pattern: "a%".into() });
        parts.extend(OPERATORS.map(|(_, operator)| RowCondition::CompareColumns {
            column: 0,
            operator,
            other: 0,
        }));
        let rows = RowCondition::Or(vec![RowCondition::And(parts), RowCondition::IsNull(0)]);
        whole.uniques[0].condition = Some(IndexCondition { sql: "a = 7".into(), rows });
        whole.uniques[0].order =
            vec![KeyOrder { descending: true, nulls_first: false }, KeyOrder::default()];
        whole.uniques[0].included = vec![0];
        let expression = |sql: &str, function| Some(KeyExpression { sql: sql.into(), function });
        let texts = [
            TextFunction::Lower,
            TextFunction::Upper,
            TextFunction::Trim { start: true, end: false },
            TextFunction::Trim { start: false, end: true },
            TextFunction::Trim { start: true, end: true },
            TextFunction::Substring { start: 2, count: Some(3) },
            TextFunction::Substring { start: 1, count: None },
            TextFunction::Md5,
        ];
        let all = KeyFunction::of_text_functions(texts.to_vec()).unwrap();
        whole.indexes[0].expressions = vec![expression("md5(b)", all)];
        let zero = KeyFunction::Coalesce(0_i32.to_le_bytes().into());
        whole.uniques[1].expressions =
            vec![expression("lower(b)", KeyFunction::Lower), expression("COALESCE(a, 0)", zero)];
        assert!(has_details(&whole));
        let mut encoder = Encoder::new();
        encode_details(&mut encoder, &whole);
        let bytes = encoder.finish();
        let mut read = definition();
        let mut decoder = Decoder::new(&bytes);
        decode_details(&mut decoder, &mut read).unwrap();
        decoder.end().unwrap();
        assert_eq!(read, whole);
        for end in 0..bytes.len() {
            let mut decoder = Decoder::new(&bytes[..end]);
            assert!(decode_details(&mut decoder, &mut definition()).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn the_version_of_the_format_is_the_lowest_that_has_the_condition() {
        let version = |rows| {
            let mut definition = definition();
            let condition = IndexCondition { sql: "c".into(), rows };
            definition.uniques[1].condition = Some(condition);
            format_version(&definition)
        };
        let (is_null, like) =
            (RowCondition::IsNull(0), RowCondition::Like { column: 1, pattern: "a%".into() });
        let less = ComparisonOperator::Less;
        let columns = RowCondition::CompareColumns { column: 0, operator: less, other: 0 };
        assert_eq!(format_version(&definition()), 1);
        assert_eq!(version(RowCondition::And(vec![is_null.clone()])), 2);
        assert_eq!(version(RowCondition::And(vec![is_null, like])), 3);
        assert_eq!(version(RowCondition::Not(Box::new(columns))), 3);
        let mut trimmed = definition();
        let function = KeyFunction::Texts([TextFunction::Trim { start: true, end: true }].into());
        let sql = "btrim(b)".into();
        trimmed.uniques[0].expressions = vec![Some(KeyExpression { sql, function })];
        assert_eq!(format_version(&trimmed), 4);
    }

    #[test]
    fn deep_conditions_are_refused() {
        let deep = |depth| {
            let first = RowCondition::IsNull(0);
            (1..depth).fold(first, |inner, _| RowCondition::Not(Box::new(inner)))
        };
        let read = |depth| {
            let mut encoder = Encoder::new();
            encode_condition(&mut encoder, &deep(depth));
            let bytes = encoder.finish();
            let codec = RowCodec::new(&definition().columns).unwrap();
            decode_condition(&mut Decoder::new(&bytes), &codec, 1)
        };
        assert_eq!(read(CONDITION_DEPTH_MAX).unwrap(), deep(CONDITION_DEPTH_MAX));
        assert!(read(CONDITION_DEPTH_MAX + 1).is_err());
    }
}
